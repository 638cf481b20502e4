"""Errors of the system, in the words of Codex."""

import errno
import os
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from codex_py.errors import ExitCode, PatchError

_MISFITS: Final = {
    errno.ENOENT,
    errno.EEXIST,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.ELOOP,
    errno.ENAMETOOLONG,
}
"""The errors that say that a patch is for other files than those that are there."""


def describe(error: OSError) -> str:
    """The cause: `No such file or directory (os error 2)`."""
    if error.errno:
        return f"{error.strerror} (os error {error.errno})"
    return str(error)


def file_error(
    what: str,
    path: str,
    error: OSError,
) -> PatchError:
    """A `PatchError` of kind `file`.

    A patch that names what is not there does not fit. Every other error of the system, such as a
    missing permission or a read-only disk, is no fault of the patch, and has another exit code.
    """
    failure = PatchError(f"Failed to {what} {path}: {describe(error)}", kind="file")
    if error.errno and error.errno not in _MISFITS:
        failure.exit_code = ExitCode.TURN_FAILED
    return failure


@contextmanager
def failing_to(what: str, path: str) -> Generator[None]:
    """Turn an `OSError` into a `PatchError` of kind `file` that says what failed: `write file`, …"""
    try:
        yield
    except OSError as error:
        raise file_error(what, path, error) from error


def system_error(number: int) -> OSError:
    return OSError(number, os.strerror(number))

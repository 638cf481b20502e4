"""Describes errors of the operating system in the words of Codex."""

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
"""The errors that mean that a patch was made for other files than those on the disk."""


def describe(error: OSError) -> str:
    """Return the cause in words: `No such file or directory (os error 2)`."""
    if error.errno:
        return f"{error.strerror} (os error {error.errno})"
    return str(error)


def file_error(what: str, path: str, error: OSError) -> PatchError:
    """Return a `PatchError` of kind `file`.

    Its exit code tells two cases apart: the patch does not fit the files on the disk, or the patch
    is not at fault, as with a missing permission or a read-only disk.

    Args:
        what: the step that failed, such as `write file`.
    """
    failure = PatchError(f"Failed to {what} {path}: {describe(error)}", kind="file")
    if error.errno and error.errno not in _MISFITS:
        failure.exit_code = ExitCode.TURN_FAILED
    return failure


@contextmanager
def failing_to(what: str, path: str) -> Generator[None]:
    """Raise an `OSError` of the `with` body as the `PatchError` of `file_error`."""
    try:
        yield
    except OSError as error:
        raise file_error(what, path, error) from error


def system_error(number: int) -> OSError:
    """Return the error that the system raises for this `errno`."""
    return OSError(number, os.strerror(number))

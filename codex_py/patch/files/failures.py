"""Errors of the system, in the words of Codex."""

import os
from collections.abc import Generator
from contextlib import contextmanager

from codex_py.errors import PatchError


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
    return PatchError(f"Failed to {what} {path}: {describe(error)}", kind="file")


@contextmanager
def failing_to(what: str, path: str) -> Generator[None]:
    """Turn an `OSError` into a `PatchError` of kind `file` that says what failed: `write file`, …"""
    try:
        yield
    except OSError as error:
        raise file_error(what, path, error) from error


def system_error(number: int) -> OSError:
    return OSError(number, os.strerror(number))

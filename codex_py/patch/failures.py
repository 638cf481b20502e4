"""Errors of the system, in the words of Codex."""

import os

from codex_py.errors import PatchError


def describe(error: OSError) -> str:
    """The cause: `No such file or directory (os error 2)`."""
    return f"{error.strerror} (os error {error.errno})" if error.errno else str(error)


def file_error(what: str, path: str, error: OSError) -> PatchError:
    return PatchError(f"Failed to {what} {path}: {describe(error)}", kind="file")


def system_error(number: int) -> OSError:
    return OSError(number, os.strerror(number))

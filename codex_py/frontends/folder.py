"""The folder that a command works in."""

import os
from pathlib import Path

from codex_py.frontends.command_parser import UsageError


def working_folder(name: str) -> Path:
    """A folder by the name that was given for it: absolute, and without links.

    Raises:
        UsageError: it is not a folder, or cannot be found.
    """
    try:
        # `Path.resolve` raises something else for links in a circle.
        path = Path(os.path.realpath(name, strict=True))
        is_folder = path.is_dir()
    except OSError as error:
        raise UsageError(f"cannot work in {name!r}: {error.strerror}", code="cwd") from error
    if not is_folder:
        raise UsageError(f"cannot work in {name!r}: Not a directory", code="cwd")
    return path

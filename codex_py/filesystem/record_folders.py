"""Folders of `$CODEX_HOME` in which features keep copies of the user's files, such as patches.

The sandbox hides them if the policy denies any path: a copy may have the contents of such a path. A file
marks them, so that this holds also when the feature that made them is gone.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from codex_py.filesystem.private import make_private

_MARK: Final = ".records"


def make_record_folder(home: Path, name: str) -> Path:
    """Make the folder `codex-py/NAME` of `$CODEX_HOME`, if it is not there, and return it.

    Raises:
        OSError: it cannot be made.
    """
    folder = home / "codex-py" / name
    make_private(folder)
    (folder / _MARK).touch()
    return folder


def record_folders(home: Path) -> Iterator[Path]:
    """Yield the folders that `make_record_folder` has made in `$CODEX_HOME`."""
    for mark in home.glob(f"codex-py/*/{_MARK}"):
        yield mark.parent

"""Temporary folders for the program's own files, out of reach of the commands that it runs.

A command in a sandbox may write to the folders for temporary files. It could put a link where the
program writes next, or change what the program reads back. So the program's own files are never
there.
"""

import shutil
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from codex_py.errors import CodexError
from codex_py.filesystem.private import locked, make_private

_OLD_S = 24 * 3600.0
"""A folder of this age that is not locked was left behind by a program that was killed."""


@contextmanager
def own_folder(
    home: Path | None,
    purpose: str,
    *others: Path,
) -> Generator[Path]:
    """Make a private folder, which is removed at the end.

    Args:
        home: `$CODEX_HOME`, absolute. Commands in a sandbox cannot write below it. None if the
            folder must not lie there.
        purpose: a word for the name of the folder.
        others: further folders that such commands cannot write to. If the home cannot be written,
            the first of these that can be written is used.

    Raises:
        CodexError: none of these folders can be written.
    """
    places = [*others]
    own_place = None
    if home is not None:
        own_place = home / "codex-py" / "tmp"
        places.insert(0, own_place)
    problems: list[str] = []
    with ExitStack() as stack:
        for place in places:
            try:
                if place == own_place:
                    make_private(place)
                    _remove_old(place)
                folder = _locked_folder(place, purpose, stack)
            except OSError as error:
                problems.append(f"{place} cannot be written: {error.strerror}")
            else:
                yield folder
                return
    reason = "; ".join(problems)
    raise CodexError(f"there is no place for own files: {reason}", code="home")


def _locked_folder(place: Path, purpose: str, stack: ExitStack) -> Path:
    """Make a temporary folder, and lock it so that no other agent removes it.

    Args:
        stack: removes the folder when it closes.
    """
    made = TemporaryDirectory(prefix=f"{purpose}.", dir=place)
    folder = Path(stack.enter_context(made))
    stack.enter_context(locked(folder, 0))
    return folder


def _remove_old(place: Path) -> None:
    """Remove the folders that killed programs left behind."""
    for folder in place.iterdir():
        with suppress(OSError):
            age_s = time.time() - folder.stat().st_mtime
            if age_s > _OLD_S:
                with locked(folder, 0):
                    shutil.rmtree(folder)

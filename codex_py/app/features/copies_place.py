"""Finds a place for the copies of the work tree that gates compare. LIGHT."""

import tempfile
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from codex_py.config.config import Config
from codex_py.config.paths import project_root
from codex_py.errors import CodexError, ConfigError
from codex_py.filesystem.private import make_private
from codex_py.filesystem.repository import own_repository

_PROBE: Final = bytes(64 * 1024)
"""The contents of the file that is written to find out whether a folder can be written to."""


@contextmanager
def place_of_copies(config: Config) -> Generator[Path]:
    """Yield the home, or a folder in the repository if the home cannot be written to.

    The folder in the repository is removed at the end. Commands in a sandbox can write to neither.

    Raises:
        ConfigError: there is no such place.
    """
    # The folder where undo keeps its copies.
    folder = config.home / "codex-py" / "undo"
    try:
        _probe(folder)
    except OSError as error:
        problem = f"{folder} cannot be written: {error.strerror}"
    else:
        yield config.home
        return
    with ExitStack() as stack:
        try:
            temporary = _folder_in_repository(config.cwd)
            place = Path(stack.enter_context(temporary))
            _probe(place)
        except (OSError, ValueError, CodexError) as error:
            raise ConfigError(
                f"gates that look at changes need a place for a copy of the work tree: {problem};"
                f" the repository cannot be used either: {error}"
            ) from error
        yield place


def _folder_in_repository(cwd: Path) -> tempfile.TemporaryDirectory[str]:
    root = project_root(cwd, (".git",))
    if root is None:
        raise FileNotFoundError(f"{cwd} is in no git repository")
    repository = own_repository(root).folder
    return tempfile.TemporaryDirectory(prefix="codex-py-copies.", dir=repository)


def _probe(folder: Path) -> None:
    """Write to a file in the folder. Raises an `OSError` if that fails, as on a full disk."""
    make_private(folder)
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(_PROBE)
        file.flush()

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


@contextmanager
def place_of_copies(config: Config) -> Generator[Path]:
    """Return the home, or a folder in the repository if the home cannot be written to.

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
        root = project_root(config.cwd, (".git",))
        try:
            if root is None:
                raise FileNotFoundError(f"{config.cwd} is in no git repository")
            repository = own_repository(root).folder
            prefix = "codex-py-copies."
            place = stack.enter_context(
                tempfile.TemporaryDirectory(prefix=prefix, dir=repository)
            )
            _probe(Path(place))
        except (OSError, ValueError, CodexError) as error:
            raise ConfigError(
                f"gates that look at changes need a place for a copy of the work tree: {problem};"
                f" the repository cannot be used either: {error}"
            ) from error
        yield Path(place)


def _probe(folder: Path) -> None:
    """Raises an `OSError` if nothing can be written there, as on a full disk."""
    make_private(folder)
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(_PROBE)
        file.flush()

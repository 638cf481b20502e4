"""Adds plugins to `$CODEX_HOME/codex-py/plugins`, and removes them: whole or not at all, whatever ends the program."""

import json
import os
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from codex_py.app.plugin_sources import PluginSource
from codex_py.config.plugin import PLUGIN_NAME, Plugin
from codex_py.config.plugin_files import RECORD
from codex_py.config.plugins import plugins_folder
from codex_py.errors import CodexError
from codex_py.filesystem.own import lock, locked, make_private

_LOCK_TIMEOUT_S: Final = 10.0
_UNFINISHED: Final = ".new-"


@contextmanager
def workspace(home: Path) -> Generator[Path]:
    """A private folder beside the plugins, which is removed at the end; those that a kill left behind as well.

    Raises:
        CodexError: it cannot be made, or the file system fails inside of the context.
    """
    folder = plugins_folder(home)
    try:
        make_private(folder)
        with locked(folder, _LOCK_TIMEOUT_S):
            for left in folder.glob(f"{_UNFINISHED}*"):
                # Whoever uses one holds its lock.
                with suppress(OSError), locked(left, 0):
                    _delete(left)
            made = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=folder))
            descriptor = os.open(made, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            lock(descriptor, 0)
        try:
            yield made
        finally:
            _delete(made)
            os.close(descriptor)
    except OSError as error:
        raise CodexError(
            f"the plugins in {folder} cannot be changed: {error.strerror}", code="plugin"
        ) from error


def require_new(home: Path, name: str) -> None:
    """Raises a `CodexError` if there is a plugin of this name."""
    if os.path.lexists(plugins_folder(home) / name):
        raise CodexError(
            f"there is a plugin {name} already; to add another one, run `codex-py plugin remove {name}` first",
            code="plugin",
        )


def install(home: Path, made: Path, plugin: Plugin, source: PluginSource) -> None:
    """Put a plugin into its place. `made`: a `workspace`.

    Raises:
        CodexError: there is one of its name.
        OSError: it is not there.
    """
    staged = made / plugin.name
    digests = {path: file.digest for path, file in source.files.items()}
    record = {**source.origin, "files": digests}
    for path, file in source.files.items():
        _write(staged / path, file.data, 0o500 if file.is_executable else 0o400)
    _write(staged / RECORD, json.dumps(record, indent=1, ensure_ascii=False).encode(), 0o400)
    # Programs of the plugin that write beside themselves would change it.
    for folder, _, _ in os.walk(staged, topdown=False):
        Path(folder).chmod(0o500)
    # To be moved, a folder must be writable.
    staged.chmod(0o700)
    with locked(plugins_folder(home), _LOCK_TIMEOUT_S):
        require_new(home, plugin.name)
        staged.rename(plugin.root)
    plugin.root.chmod(0o500)


def remove(home: Path, name: str) -> bool:
    """Remove a plugin, even one that has changed; False if there is none. Raises a `CodexError` if that fails."""
    root = plugins_folder(home) / name
    if not PLUGIN_NAME.fullmatch(name) or not os.path.lexists(root):
        return False
    with workspace(home) as made:
        if not root.is_symlink():
            root.chmod(0o700)
        root.rename(made / name)
    return True


def _write(path: Path, data: bytes, mode: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    path.chmod(mode)


def _delete(folder: Path) -> None:
    for each, _, _ in os.walk(folder):
        Path(each).chmod(0o700)
    shutil.rmtree(folder)

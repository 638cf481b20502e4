"""The paths that the client watches: `fs/watch`, `fs/unwatch` and `fs/changed`.

A path may be a file, a folder with its entries, or missing. The folder of a file is watched rather
than the file, because many programs replace a file instead of writing into it.
"""

import asyncio
import os
from contextlib import suppress
from typing import Final

from codex_py.app.json_rpc import INTERNAL_ERROR, INVALID_REQUEST, JsonRpc, RpcError
from codex_py.filesystem.watching import FolderWatcher, folder_watcher

_TOGETHER_S: Final = 0.2
"""The time within which changes are told in one notification, as in Codex."""
_MAX_WATCHES: Final = 1_000
_MAX_PATHS: Final = 1_000
"""The paths of one notification. If more have changed, only the watched path is named."""


class _Watch:
    """One path that is watched.

    Attributes:
        names: the folders that are watched for this path, each with the names in it that matter.
        changed: the changed paths that the client is not told of yet.
        task: the task that tells the client; None if nothing has changed.
    """

    def __init__(self, watch_id: str, path: str) -> None:
        self.id = watch_id
        self.path = path
        self.names: dict[str, set[str]] = {}
        self.changed: set[str] = set()
        self.task: asyncio.Task[None] | None = None

    def wanted(self) -> dict[str, set[str]]:
        """The folders that have to be watched at this moment; see `names`.

        These are the path itself if it is a folder, and the folder of the path, or the nearest one
        above that exists. If the path is a link, its target counts too.
        """
        found: dict[str, set[str]] = {}
        for path in dict.fromkeys((self.path, os.path.realpath(self.path))):
            folder, name = os.path.split(path)
            while not os.path.isdir(folder):
                folder, name = os.path.split(folder)
            found.setdefault(folder, set()).add(name)
        if os.path.isdir(self.path):
            found.setdefault(self.path, set())
        return found


class FileWatches:
    """The watches of one client, by the ids that the client has for them."""

    def __init__(self, rpc: JsonRpc) -> None:
        self._rpc = rpc
        self._watches: dict[str, _Watch] = {}
        self._folders: dict[str, set[_Watch]] = {}
        """The watches for each folder that is watched."""
        self._watcher: FolderWatcher | None = None

    def add(self, watch_id: str, path: str) -> None:
        """Watch a path, which need not exist.

        Raises:
            RpcError: the id is in use, or the system can watch no more.
        """
        if watch_id in self._watches:
            raise RpcError(INVALID_REQUEST, f"watchId already exists: {watch_id}")
        if len(self._watches) >= _MAX_WATCHES:
            text = f"more than {_MAX_WATCHES} watches; `fs/unwatch` ends one"
            raise RpcError(INVALID_REQUEST, text)
        if self._watcher is None:
            self._watcher = folder_watcher(self._folder_changed)
        watch = _Watch(watch_id, path)
        try:
            self._watch_folders(watch)
        except OSError as error:
            self._leave_folders(watch)
            text = f"cannot watch `{path}`: {error.strerror}"
            raise RpcError(INTERNAL_ERROR, text) from error
        self._watches[watch_id] = watch

    async def remove(self, watch_id: str) -> None:
        """End a watch, of which the client is told nothing more."""
        watch = self._watches.pop(watch_id, None)
        if watch is None:
            return
        self._leave_folders(watch)
        if watch.task is not None:
            watch.task.cancel()
            await asyncio.wait([watch.task])

    async def aclose(self) -> None:
        for watch_id in tuple(self._watches):
            await self.remove(watch_id)
        if self._watcher is not None:
            await self._watcher.aclose()

    def _watch_folders(self, watch: _Watch) -> None:
        """Watch the folders that are wanted now, and no other ones. Raises an `OSError`."""
        assert self._watcher is not None
        wanted = watch.wanted()
        for folder in watch.names.keys() - wanted.keys():
            self._leave(watch, folder)
        for folder in wanted:
            if folder not in self._folders:
                self._watcher.add(folder)
            self._folders.setdefault(folder, set()).add(watch)
            watch.names[folder] = wanted[folder]

    def _leave_folders(self, watch: _Watch) -> None:
        for folder in tuple(watch.names):
            self._leave(watch, folder)

    def _leave(self, watch: _Watch, folder: str) -> None:
        del watch.names[folder]
        watches = self._folders.get(folder, set())
        watches.discard(watch)
        if not watches and self._watcher is not None:
            self._folders.pop(folder, None)
            self._watcher.remove(folder)

    def _folder_changed(self, folder: str, name: str) -> None:
        """Take a change; see `watching.Changed`."""
        watches = tuple(self._folders.get(folder, ()))
        if not name:
            # The folder may be another one now, which has to be watched anew.
            self._folders.pop(folder, None)
            assert self._watcher is not None
            self._watcher.remove(folder)
            for watch in watches:
                watch.names.pop(folder, None)
        for watch in watches:
            self._entry_changed(watch, folder, name)

    def _entry_changed(
        self,
        watch: _Watch,
        folder: str,
        name: str,
    ) -> None:
        is_own = name == "" or name in watch.names.get(folder, ())
        if is_own:
            is_near = folder in (watch.path, os.path.dirname(watch.path))
            # A folder may be removed again meanwhile, and then the one above it will tell.
            with suppress(OSError):
                self._watch_folders(watch)
            if is_near or os.path.lexists(watch.path):
                self._tell(watch, watch.path)
        elif folder == watch.path:
            self._tell(watch, os.path.join(folder, name))

    def _tell(self, watch: _Watch, path: str) -> None:
        """Tell the client soon that a path has changed."""
        watch.changed.add(os.fsencode(path).decode(errors="replace"))
        if len(watch.changed) > _MAX_PATHS:
            watch.changed = {watch.path}
        if watch.task is None:
            watch.task = asyncio.create_task(self._report(watch))

    async def _report(self, watch: _Watch) -> None:
        """Tell the client of all changes of the next moment, once it has read nearly everything."""
        await asyncio.sleep(_TOGETHER_S)
        try:
            await self._rpc.drained()
        except RpcError:
            return
        paths = sorted(watch.changed)
        watch.changed.clear()
        watch.task = None
        self._rpc.notify("fs/changed", {"watchId": watch.id, "changedPaths": paths})

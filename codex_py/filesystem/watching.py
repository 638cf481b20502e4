"""Tells of changes in folders: `Inotify` as the kernel of Linux reports them, else `Polling`.

Source: inotify(7).
"""

import asyncio
import ctypes
import os
import struct
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from typing import Final, Protocol, TypeAlias

Changed: TypeAlias = Callable[[str, str], None]
"""Called with a folder and the name of an entry that has changed, in the running loop.

The name is empty if the folder itself may have changed, such as when it is gone.
"""

_MODIFY: Final = 0x2
_ATTRIB: Final = 0x4
_MOVED_FROM: Final = 0x40
_MOVED_TO: Final = 0x80
_CREATE: Final = 0x100
_DELETE: Final = 0x200
_DELETE_SELF: Final = 0x400
_MOVE_SELF: Final = 0x800
_OVERFLOW: Final = 0x4000
_IGNORED: Final = 0x8000
_ONLY_FOLDERS: Final = 0x1000000
_ENTRIES: Final = _MODIFY | _ATTRIB | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE
_ASKED: Final = _ENTRIES | _DELETE_SELF | _MOVE_SELF | _ONLY_FOLDERS
_OF_ITSELF: Final = _DELETE_SELF | _MOVE_SELF | _OVERFLOW | _IGNORED
"""The events that may mean another folder is at the path now."""
_HEAD: Final = struct.Struct("iIII")
"""The beginning of an event: its watch, its mask, a cookie, and the length of the name."""
_READ_BYTES: Final = 64 * 1024
_READS: Final = 16
"""The reads in a row. Then the rest of the program gets a turn."""
_POLL_S: Final = 0.5
_MAX_POLLED: Final = 10_000
"""Entries of a folder that are looked at; changes of others are missed."""

_Marks: TypeAlias = tuple[int, int, int]
"""The inode, the times of change and the size of an entry, which tell whether it has changed."""


class FolderWatcher(Protocol):
    """Watches folders, whose absolute paths are given. A link stands for the folder it leads to."""

    def add(self, folder: str) -> None:
        """Begin to watch a folder that is not watched yet.

        Raises:
            OSError: there is no such folder, or it cannot be watched.
        """
        ...

    def remove(self, folder: str) -> None:
        """Stop watching a folder. Does nothing if it is not watched."""
        ...

    async def aclose(self) -> None: ...


def folder_watcher(changed: Changed) -> FolderWatcher:
    """The watcher of this system. It needs a running loop."""
    if sys.platform == "linux":
        # The kernel gives a user some 128 of them.
        with suppress(OSError):
            return Inotify(changed)
    return Polling(changed)


class Inotify:
    """See `FolderWatcher`. Folders that were replaced have to be added again."""

    def __init__(self, changed: Changed) -> None:
        """Raises an `OSError` if the kernel refuses."""
        self._changed = changed
        self._descriptor = _checked(_libc().inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        self._watches: dict[str, int] = {}
        """The kernel's watches, by folder. Two names of one folder have the same."""
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._descriptor, self._read)

    def add(self, folder: str) -> None:
        name = os.fsencode(folder)
        watch = _libc().inotify_add_watch(self._descriptor, name, _ASKED)
        self._watches[folder] = _checked(watch)

    def remove(self, folder: str) -> None:
        watch = self._watches.pop(folder, None)
        if watch is not None and watch not in self._watches.values():
            _libc().inotify_rm_watch(self._descriptor, watch)

    async def aclose(self) -> None:
        self._loop.remove_reader(self._descriptor)
        os.close(self._descriptor)

    def _read(self) -> None:
        for _ in range(_READS):
            try:
                data = os.read(self._descriptor, _READ_BYTES)
            except BlockingIOError:
                return
            for watch, mask, name in _events(data):
                self._tell(watch, mask, name)

    def _tell(
        self,
        watch: int,
        mask: int,
        name: str,
    ) -> None:
        if not name and not mask & _OF_ITSELF:
            # The mode of the folder has changed, for instance, which is not asked for.
            return
        if mask & _OVERFLOW:
            folders = list(self._watches)
        else:
            found = self._watches.items()
            folders = [folder for folder, number in found if number == watch]
        for folder in folders:
            if mask & _IGNORED:
                # The folder is gone, and the kernel may use the number for another one.
                self._watches.pop(folder, None)
            elif mask & _MOVE_SELF:
                # The kernel would still watch it at its new place.
                self.remove(folder)
            self._changed(folder, name)


class Polling:
    """See `FolderWatcher`. Compares the entries every half second: slower, but on every system."""

    def __init__(self, changed: Changed) -> None:
        self._changed = changed
        self._seen: dict[str, Mapping[str, _Marks]] = {}
        """The entries of each folder, as they were last."""
        self._task: asyncio.Task[None] | None = None

    def add(self, folder: str) -> None:
        self._seen[folder] = _entries(folder)
        if self._task is None:
            self._task = asyncio.create_task(self._poll())

    def remove(self, folder: str) -> None:
        self._seen.pop(folder, None)

    async def aclose(self) -> None:
        self._seen.clear()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _poll(self) -> None:
        while True:
            await asyncio.sleep(_POLL_S)
            for folder in tuple(self._seen):
                try:
                    now = await asyncio.to_thread(_entries, folder)
                except OSError:
                    self.remove(folder)
                    self._changed(folder, "")
                    continue
                before = self._seen.get(folder)
                if before is None:
                    continue
                self._seen[folder] = now
                for name in sorted(now.keys() | before.keys()):
                    if now.get(name) != before.get(name):
                        self._changed(folder, name)


def _entries(folder: str) -> dict[str, _Marks]:
    found: dict[str, _Marks] = {}
    with os.scandir(folder) as entries:
        for entry in entries:
            if len(found) >= _MAX_POLLED:
                break
            with suppress(OSError):
                status = entry.stat(follow_symlinks=False)
                times = status.st_mtime_ns ^ status.st_ctime_ns
                found[entry.name] = (status.st_ino, times, status.st_size)
    return found


def _events(data: bytes) -> Iterator[tuple[int, int, str]]:
    """Yield the watch, the mask and the name of each event."""
    start = 0
    while start < len(data):
        watch, mask, _, length = _HEAD.unpack_from(data, start)
        start += _HEAD.size
        name = data[start : start + length].rstrip(b"\0")
        start += length
        yield watch, mask, os.fsdecode(name)


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _checked(result: int) -> int:
    """The result of a call of the C library. Raises an `OSError` if the call has failed."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result

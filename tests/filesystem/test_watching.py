import asyncio
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from codex_py.filesystem.watching import Changed, FolderWatcher, Inotify, Polling

_ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="Linux has inotify")
_ALL = pytest.mark.parametrize(
    "make", [pytest.param(Inotify, marks=_ON_LINUX), Polling]
)
Make = Callable[[Changed], FolderWatcher]


class Seen:
    """Takes changes, and waits for them."""

    def __init__(self) -> None:
        self.changes: set[tuple[str, str]] = set()
        self._came = asyncio.Event()

    def __call__(self, folder: str, name: str) -> None:
        self.changes.add((folder, name))
        self._came.set()

    async def until(self, *change: str) -> None:
        async with asyncio.timeout(30):
            while change not in self.changes:
                self._came.clear()
                await self._came.wait()


@_ALL
def test_a_new_changed_or_removed_entry_is_told(tmp_path: Path, make: Make) -> None:
    async def run() -> None:
        seen = Seen()
        watcher = make(seen)
        folder = str(tmp_path)
        watcher.add(folder)
        (tmp_path / "a").write_text("1", encoding="utf-8")
        await seen.until(folder, "a")
        seen.changes.clear()
        (tmp_path / "a").write_text("22", encoding="utf-8")
        await seen.until(folder, "a")
        seen.changes.clear()
        (tmp_path / "a").unlink()
        await seen.until(folder, "a")
        await watcher.aclose()

    asyncio.run(run())


@_ALL
def test_a_folder_that_is_gone_is_told_without_a_name(
    tmp_path: Path, make: Make
) -> None:
    async def run() -> None:
        seen = Seen()
        watcher = make(seen)
        folder = tmp_path / "folder"
        folder.mkdir()
        watcher.add(str(folder))
        folder.rmdir()
        await seen.until(str(folder), "")
        with pytest.raises(FileNotFoundError):
            watcher.add(str(folder))
        await watcher.aclose()

    asyncio.run(run())


@_ON_LINUX
def test_a_folder_that_was_moved_is_not_followed(tmp_path: Path) -> None:
    async def run() -> None:
        seen = Seen()
        watcher = Inotify(seen)
        folder = tmp_path / "folder"
        folder.mkdir()
        watcher.add(str(folder))
        watcher.add(str(tmp_path))
        moved = folder.rename(tmp_path / "moved")
        await seen.until(str(folder), "")
        (moved / "inner").touch()
        (tmp_path / "last").touch()
        await seen.until(str(tmp_path), "last")
        assert (str(folder), "inner") not in seen.changes
        await watcher.aclose()

    asyncio.run(run())


@_ON_LINUX
def test_both_names_of_a_folder_are_told_until_each_is_removed(tmp_path: Path) -> None:
    async def run() -> None:
        seen = Seen()
        watcher = Inotify(seen)
        folder = tmp_path / "folder"
        folder.mkdir()
        link = tmp_path / "link"
        link.symlink_to(folder)
        watcher.add(str(folder))
        watcher.add(str(link))
        (folder / "a").touch()
        await seen.until(str(folder), "a")
        await seen.until(str(link), "a")
        watcher.remove(str(link))
        seen.changes.clear()
        (folder / "b").touch()
        await seen.until(str(folder), "b")
        assert seen.changes == {(str(folder), "b")}
        await watcher.aclose()

    asyncio.run(run())


@_ALL
def test_a_folder_is_left_alone_after_it_was_removed(
    tmp_path: Path, make: Make
) -> None:
    async def run() -> None:
        seen = Seen()
        watcher = make(seen)
        inner = tmp_path / "inner"
        inner.mkdir()
        watcher.add(str(inner))
        watcher.add(str(tmp_path))
        watcher.remove(str(inner))
        watcher.remove(str(inner))
        (inner / "a").touch()
        (tmp_path / "b").touch()
        await seen.until(str(tmp_path), "b")
        assert not any(folder == str(inner) for folder, _ in seen.changes)
        await watcher.aclose()

    asyncio.run(run())

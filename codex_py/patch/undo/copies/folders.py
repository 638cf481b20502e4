"""Looks at folders whose files are not copied: finds changes in them, files, and pipes, sockets and
devices."""

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple, Self

MAX_LOOKED_AT: Final = 5_000
"""The number of entries that one call looks at."""


class Held(NamedTuple):
    """The identity of a file or link that is not copied. It stays equal if the file is renamed, or
    gets other permissions or another hard link."""

    size: int
    mtime_ns: int
    inode: int

    @classmethod
    def of(cls, found: os.stat_result) -> Self:
        return cls(found.st_size, found.st_mtime_ns, found.st_ino)


def is_file_or_link(found: os.stat_result) -> bool:
    return stat.S_ISREG(found.st_mode) or stat.S_ISLNK(found.st_mode)


def files_below(
    root: Path,
    name: str,
    most: int,
) -> list[str]:
    """List the files and links below a folder, relative to the root.

    Returns:
        An empty list if there are more than `most`, or if the folder has a `.git` in it.
    """
    found: list[str] = []
    top = f"{root}/"
    for folder, folders, files in os.walk(root / name):
        # `os.walk` counts links to folders as folders.
        links = [each for each in folders if Path(folder, each).is_symlink()]
        found += [f"{folder}/{each}".removeprefix(top) for each in (*files, *links)]
        if len(found) > most or ".git" in folders:
            return []
    return [each for each in found if is_file_or_link(os.lstat(f"{root}/{each}"))]


def folder_states(
    root: Path,
    names: Sequence[str],
    held: dict[str, Held] | None = None,
) -> dict[str, tuple[int, int]]:
    """Count the entries in each folder, at any depth, and find the time of their latest change, in ns.

    After `MAX_LOOKED_AT` entries in all, only the folders themselves are looked at.

    Args:
        names: the folders, relative to the root; they are the keys of the result.
        held: the files and links in the folders are added to it, by their paths relative to the root.
    """
    top = f"{root}/"
    room = MAX_LOOKED_AT
    found = dict[str, tuple[int, int]]()
    for name in names:
        room_before = room
        newest = 0
        # Grows while it is gone through.
        folders = [root / name]
        for folder in folders:
            with suppress(OSError):
                newest = max(newest, folder.lstat().st_ctime_ns)
                with os.scandir(folder) as entries:
                    for entry in islice(entries, room):
                        room -= 1
                        status = entry.stat(follow_symlinks=False)
                        newest = max(newest, status.st_ctime_ns)
                        if held is not None and is_file_or_link(status):
                            held[entry.path.removeprefix(top)] = Held.of(status)
                        if entry.is_dir(follow_symlinks=False):
                            folders.append(Path(entry.path))
        found[name] = (room_before - room, newest)
    return found


def special_files(root: Path, but: Sequence[str]) -> Iterator[str]:
    """The pipes, sockets and devices among the first `MAX_LOOKED_AT` entries below a folder, the
    outermost first. Paths are relative to the root.

    Args:
        but: names of folders that are not looked at, each with a slash at its end.
    """
    room = MAX_LOOKED_AT
    top = f"{root}/"
    # Grows while it is gone through.
    folders = [top]
    left_out = set(but)
    for folder in folders:
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                room -= 1
                if room < 0:
                    return
                name = entry.path.removeprefix(top)
                if entry.is_dir(follow_symlinks=False):
                    if entry.name != ".git" and f"{name}/" not in left_out:
                        folders.append(entry.path)
                elif not (entry.is_file(follow_symlinks=False) or entry.is_symlink()):
                    yield name

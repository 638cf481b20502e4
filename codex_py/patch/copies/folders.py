"""Tells whether folders changed that are too large to be copied."""

import os
from collections.abc import Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Final

_MAX_LOOKED_AT: Final = 5_000


def folder_states(root: Path, names: Sequence[bytes]) -> dict[str, tuple[int, int]]:
    """By name the number of entries in a folder, and the time of their latest change, in ns.

    After some thousand entries, only the folders themselves are looked at.
    """
    room, found = _MAX_LOOKED_AT, dict[str, tuple[int, int]]()
    for name in names:
        newest, folders, before = 0, [root / os.fsdecode(name)], room
        for folder in folders:
            with suppress(OSError):
                newest = max(newest, folder.lstat().st_ctime_ns)
                with os.scandir(folder) as entries:
                    for entry in islice(entries, room):
                        room -= 1
                        newest = max(newest, entry.stat(follow_symlinks=False).st_ctime_ns)
                        if entry.is_dir(follow_symlinks=False):
                            folders.append(Path(entry.path))
        found[os.fsdecode(name)] = before - room, newest
    return found

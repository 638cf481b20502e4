"""The journal entry of a turn, for changes that are already in place."""

import stat
from collections.abc import Sequence
from pathlib import Path

from codex_py.patch.diff.turn_diff import NetChanges
from codex_py.patch.files.change import Entry, FileChange, TurnOfEntry
from codex_py.patch.files.handles import Status
from codex_py.protocol.patched_file import PatchedFile


def turn_entry(net: NetChanges, folders: Sequence[str], turn: TurnOfEntry) -> Entry:
    """
    Args:
        net: all changes of the turn.
        folders: that it made; those that are not there any more do not count.
    """
    known, unkept = list[FileChange](), dict.fromkeys(turn.unkept)
    for file in net.files():
        if net.is_known(file.path):
            known.append(_change(file))
        else:
            unkept[str(file.path)] = None
    # The outermost first.
    made = sorted({folder for folder in folders if Path(folder).is_dir()})
    return Entry(known, made=made, turn=turn._replace(unkept=tuple(unkept)))


def _change(file: PatchedFile) -> FileChange:
    mode = file.new_mode
    before: Status | None = None
    if file.old is not None:
        old_mode = file.old_mode or stat.S_IFREG | 0o644
        # The owner is not known. An undo by root gives the file to the owner of the folder.
        near = next(path for path in file.path.parents if path.is_dir()).stat()
        before = Status(0, 0, old_mode, len(file.old), 0, near.st_uid, near.st_gid)
    is_link = mode is not None and stat.S_ISLNK(mode)
    change = FileChange(str(file.path), str(file.path), before)
    change.old, change.new = file.old, file.new
    change.mode = None if mode is None or is_link else stat.S_IMODE(mode)
    change.fate = "removed" if file.new is None else "link" if is_link else "file"
    return change

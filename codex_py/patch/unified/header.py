"""The lines of a diff before the first hunk of a file: its names, its modes and what becomes of it."""

import os
import re
from dataclasses import dataclass

from codex_py.errors import PatchError
from codex_py.patch.diff.names import unquoted
from codex_py.patch.unified.hunks import FileDiff

_NO_FILE = re.compile(rb"(?:1970-01-01|1969-12-31) |\(nonexistent\)|\(revision 0\)")
"""The time that `diff` and Subversion write for a file that is not there."""
_INDEX = re.compile(rb"([0-9a-f]{4,64})\.\.([0-9a-f]{4,64})(?: (\d{6}))?")
_DEV_NULL = b"/dev/null"


@dataclass(slots=True)
class FileHeader:
    """The lines of a file before its first hunk, as far as they are read."""

    diff: FileDiff
    """The file, as far as these lines describe it; `file` completes it."""
    names: tuple[bytes, bytes] | None = None
    """Of the `diff --git` line."""
    old_name: bytes | None = None
    new_name: bytes | None = None
    old_stamp: bytes = b""
    new_stamp: bytes = b""
    bare_old: bytes | None = None
    """Of a rename or a copy, without a prefix."""
    bare_new: bytes | None = None

    def extended(self, line: bytes) -> None:
        """Take one of git's extended header lines; others are passed over."""
        diff = self.diff
        word, _, rest = line.rstrip(b"\r\n").partition(b" ")
        match word, *rest.split(b" ", 1):
            case b"index", *_ if found := _INDEX.match(rest):
                diff.old_blob, diff.new_blob = found[1].decode(), found[2].decode()
                if found[3]:
                    diff.old_mode = diff.new_mode = int(found[3], 8)
            case b"old", b"mode", mode:
                diff.old_mode = _mode(mode)
            case b"new", b"mode", mode:
                diff.new_mode = _mode(mode)
            case b"new", b"file", mode:
                diff.operation, diff.new_mode = "add", _mode(mode[5:])
            case b"deleted", b"file", mode:
                diff.operation, diff.old_mode = "delete", _mode(mode[5:])
            case (b"rename" | b"copy") as verb, b"from", name:
                diff.operation = "rename" if verb == b"rename" else "copy"
                self.bare_old = unquoted(name)
            case ((b"rename" | b"copy"), b"to", name):
                self.bare_new = unquoted(name)
            case _:
                pass

    def file(self) -> FileDiff:
        """The diff, once all its hunks are read."""
        old, new = self._names()
        self.diff.old_name, self.diff.new_name = os.fsdecode(old), os.fsdecode(new)
        self._find_operation()
        return self.diff

    def _names(self) -> tuple[bytes, bytes]:
        if self.bare_old is not None and self.bare_new is not None:
            self.diff.has_prefix = False
            return self.bare_old, self.bare_new
        old = self.old_name if self.old_name != _DEV_NULL else None
        new = self.new_name if self.new_name != _DEV_NULL else None
        if old is None and new is None:
            if self.names is None:
                raise PatchError(
                    "the name of the file cannot be told from its header",
                    kind="parse",
                    line=self.diff.line,
                )
            old, new = self.names
        return old or new or b"", new or old or b""

    def _find_operation(self) -> None:
        """Tell new and deleted files where no line of git's says so."""
        diff, hunks = self.diff, self.diff.hunks
        if diff.operation != "update" or not hunks:
            return
        is_alone = len(hunks) == 1 and not diff.is_git
        if self.old_name == _DEV_NULL or (
            is_alone and not hunks[0].old and _NO_FILE.match(self.old_stamp)
        ):
            diff.operation = "add"
        elif self.new_name == _DEV_NULL or (
            is_alone and not hunks[0].new and _NO_FILE.match(self.new_stamp)
        ):
            diff.operation = "delete"


def _mode(text: bytes) -> int | None:
    return int(text, 8) if re.fullmatch(rb"[0-7]{5,6}", text) else None

"""The lines of a diff before the first hunk of a file: its names, its modes and what becomes of it."""

import os
import re
from dataclasses import dataclass

from codex_py.errors import PatchError
from codex_py.patch.names import unquoted
from codex_py.patch.unified.hunks import DiffHunk, FileDiff, Operation

_NO_FILE = re.compile(rb"(?:1970-01-01|1969-12-31) |\(nonexistent\)|\(revision 0\)")
"""What `diff` and Subversion write for the time of a file that is not there."""
_INDEX = re.compile(rb"([0-9a-f]{4,64})\.\.([0-9a-f]{4,64})(?: (\d{6}))?")
_DEV_NULL = b"/dev/null"


@dataclass(slots=True)
class FileHeader:
    """The lines of a file before its first hunk, as far as they are read."""

    line: int
    is_git: bool = False
    names: tuple[bytes, bytes] | None = None
    """Of the `diff --git` line."""
    operation: Operation = "update"
    old_name: bytes | None = None
    new_name: bytes | None = None
    old_stamp: bytes = b""
    new_stamp: bytes = b""
    bare_old: bytes | None = None
    """Of a rename or a copy, without a prefix."""
    bare_new: bytes | None = None
    old_mode: int | None = None
    new_mode: int | None = None
    old_blob: str | None = None
    new_blob: str | None = None
    is_binary: bool = False
    has_crlf: bool = False

    def extended(self, line: bytes) -> bool:
        """Take one of git's extended header lines; False for any other line."""
        text = line.rstrip(b"\r\n")
        word, _, rest = text.partition(b" ")
        match word, *rest.split(b" ", 1):
            case b"index", *_ if found := _INDEX.match(rest):
                self.old_blob, self.new_blob = found[1].decode(), found[2].decode()
                if found[3]:
                    self.old_mode = self.new_mode = int(found[3], 8)
            case b"old", b"mode", mode:
                self.old_mode = self._mode(mode)
            case b"new", b"mode", mode:
                self.new_mode = self._mode(mode)
            case b"new", b"file", mode:
                self.operation, self.new_mode = "add", self._mode(mode[5:])
            case b"deleted", b"file", mode:
                self.operation, self.old_mode = "delete", self._mode(mode[5:])
            case (b"rename" | b"copy") as verb, b"from", name:
                self.operation = "rename" if verb == b"rename" else "copy"
                self.bare_old = unquoted(name)
            case ((b"rename" | b"copy"), b"to", name):
                self.bare_new = unquoted(name)
            case ((b"similarity" | b"dissimilarity"), *_):
                pass
            case _:
                return False
        return True

    def _mode(self, text: bytes) -> int | None:
        return int(text, 8) if re.fullmatch(rb"[0-7]{5,6}", text) else None

    def file(self, hunks: list[DiffHunk]) -> FileDiff:
        old, new, has_prefix = self._names()
        self._find_operation(hunks)
        return FileDiff(
            self.line,
            self.operation,
            os.fsdecode(old),
            os.fsdecode(new),
            self.is_git,
            has_prefix,
            self.old_mode,
            self.new_mode,
            self.old_blob,
            self.new_blob,
            tuple(hunks),
            self.is_binary,
            self.has_crlf,
        )

    def _names(self) -> tuple[bytes, bytes, bool]:
        if self.bare_old is not None and self.bare_new is not None:
            return self.bare_old, self.bare_new, False
        old = self.old_name if self.old_name != _DEV_NULL else None
        new = self.new_name if self.new_name != _DEV_NULL else None
        if old is None and new is None:
            if self.names is None:
                raise PatchError(
                    "the name of the file cannot be told from its header",
                    kind="parse",
                    line=self.line,
                )
            old, new = self.names
        old, new = old or new or b"", new or old or b""
        return old, new, True

    def _find_operation(self, hunks: list[DiffHunk]) -> None:
        """Tell new and deleted files where no line of git's says so."""
        if self.operation != "update" or self.is_git or len(hunks) != 1:
            if self.operation == "update" and hunks:
                if self.old_name == _DEV_NULL:
                    self.operation = "add"
                elif self.new_name == _DEV_NULL:
                    self.operation = "delete"
            return
        if self.old_name == _DEV_NULL or (not hunks[0].old and _NO_FILE.match(self.old_stamp)):
            self.operation = "add"
        elif self.new_name == _DEV_NULL or (not hunks[0].new and _NO_FILE.match(self.new_stamp)):
            self.operation = "delete"

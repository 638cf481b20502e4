"""Read unified diffs: those of `diff -u` and those of git, byte for byte.

Format: https://www.gnu.org/software/diffutils/manual/html_node/Detailed-Unified.html and
https://git-scm.com/docs/diff-format ("Generating patch text with -p").

The `unidiff` package is not used here. It takes 4.7 us a line, which is more for a diff between two
releases than `git apply` takes for everything (this reader: 0.5 us); it knows neither copies, nor quoted
names, nor names with ` b/` in them. The tests hold this reader against it.
"""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from typing import Literal, NoReturn, TypeAlias

from codex_py.errors import PatchError
from codex_py.patch.names import git_names, header_name, unquoted

Operation: TypeAlias = Literal["update", "add", "delete", "rename", "copy", "uncopy"]
"""`uncopy` is a copy in reverse: the old name, which was the new one, is deleted."""

_RANGE = re.compile(rb"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")
_EPOCH = re.compile(rb"(?:1970-01-01|1969-12-31) ")
_INDEX = re.compile(rb"([0-9a-f]{4,64})\.\.([0-9a-f]{4,64})(?: (\d{6}))?")
_DEV_NULL = b"/dev/null"
_BINARY = re.compile(rb"(?:GIT binary patch|Binary files .* differ)\s*$")
NO_NEWLINE = b"\n\\ No newline at end of file\n"
"""What follows a line of a diff that stands for one without a terminator."""
_NO_BODY = re.compile(rb"[^-+ ]")
_MARKS = b" +-\\\r\n"
_SWAPPED = bytes.maketrans(b"+-", b"-+")


@dataclass(frozen=True, slots=True)
class DiffHunk:
    """Lines of a file that give way to others. Lines end in LF, but for the last of a file without one."""

    line: int
    """Of the diff, from 1: its `@@` line."""
    old_start: int
    """As the diff says: from 1, and an empty range names the line before it."""
    new_start: int
    body: list[bytes]
    """Each line with its mark, a space, `-` or `+`."""
    old: list[bytes]
    new: list[bytes]
    leading: int
    """Lines of context before the first change."""
    trailing: int

    @property
    def at(self) -> int:
        """Index of the first old line, or of the line before which additions go."""
        return self.old_start - 1 if self.old else self.old_start

    def reversed(self) -> "DiffHunk":
        body = [line[:1].translate(_SWAPPED) + line[1:] for line in self.body]
        return DiffHunk(
            self.line,
            self.new_start,
            self.old_start,
            body,
            self.new,
            self.old,
            self.leading,
            self.trailing,
        )


@dataclass(frozen=True, slots=True)
class FileDiff:
    """What a diff says of one file."""

    line: int
    """Of the diff, from 1."""
    operation: Operation
    old_name: str
    """As written, prefix included, quotes undone; that of the new file where there is no old one."""
    new_name: str
    is_git: bool
    """Began with `diff --git`."""
    has_prefix: bool
    """Names begin with `a/` and `b/`, or the like; those of renames and copies never do."""
    old_mode: int | None
    """As git writes it, file type included: 0o100644, 0o100755, 0o120000, 0o160000."""
    new_mode: int | None
    old_blob: str | None
    """Hexadecimal, perhaps shortened: the git object that was changed."""
    new_blob: str | None
    hunks: tuple[DiffHunk, ...]
    is_binary: bool
    has_crlf: bool
    """Every line of the diff itself ends in CRLF: it went through a program that makes it so."""

    def reversed(self) -> "FileDiff":
        opposite: dict[Operation, Operation] = {
            "add": "delete",
            "delete": "add",
            "copy": "uncopy",
            "uncopy": "copy",
        }
        return replace(
            self,
            operation=opposite.get(self.operation, self.operation),
            old_name=self.new_name,
            new_name=self.old_name,
            old_mode=self.new_mode,
            new_mode=self.old_mode,
            old_blob=self.new_blob,
            new_blob=self.old_blob,
            hunks=tuple([hunk.reversed() for hunk in self.hunks]),
        )

    def without_crlf(self) -> "FileDiff":
        """The diff as it was before its line ends became CRLF."""
        return replace(self, hunks=tuple([_without_crlf(hunk) for hunk in self.hunks]))


def read_diff(data: bytes) -> tuple[FileDiff, ...]:
    """The files of a diff, in its order; text around them is passed over.

    Raises:
        PatchError: of kind `parse`, with the line: the diff is cut short, a hunk is not as long as it
            says, or it is a combined diff.
    """
    lines = list(BytesIO(data))
    if lines and not lines[-1].endswith(b"\n"):
        lines[-1] += b"\n"
    return _Reader(lines).files()


def written_hunks(hunks: Sequence[DiffHunk]) -> bytes:
    """Hunks as a diff has them."""
    parts: list[bytes] = []
    for hunk in hunks:
        old, new = f"{hunk.old_start},{len(hunk.old)}", f"{hunk.new_start},{len(hunk.new)}"
        parts.append(f"@@ -{old} +{new} @@\n".encode())
        for line in hunk.body:
            parts.append(line)
            if not line.endswith(b"\n"):
                parts.append(NO_NEWLINE)
    return b"".join(parts)


def _without_crlf(hunk: DiffHunk) -> DiffHunk:
    def lf(lines: list[bytes]) -> list[bytes]:
        return [line[:-2] + b"\n" if line.endswith(b"\r\n") else line for line in lines]

    return replace(hunk, body=lf(hunk.body), old=lf(hunk.old), new=lf(hunk.new))


def _refuse(reason: str, line: int) -> NoReturn:
    raise PatchError(reason, kind="parse", line=line)


@dataclass(slots=True)
class _Header:
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
                _refuse("the name of the file can not be told from its header", self.line)
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
        if self.old_name == _DEV_NULL or (not hunks[0].old and _EPOCH.match(self.old_stamp)):
            self.operation = "add"
        elif self.new_name == _DEV_NULL or (not hunks[0].new and _EPOCH.match(self.new_stamp)):
            self.operation = "delete"


class _Reader:
    def __init__(self, lines: list[bytes]) -> None:
        self._lines = lines
        # One byte for each line: counting the lines of a hunk is counting bytes, which C does.
        self._marks = b"".join([line[:1] for line in lines])
        self._files: list[FileDiff] = []
        self._header: _Header | None = None
        self._hunks: list[DiffHunk] = []

    def files(self) -> tuple[FileDiff, ...]:
        at = 0
        while at < len(self._lines):
            at = self._read(at)
        self._finish()
        return tuple(self._files)

    def _read(self, at: int) -> int:
        """Take the line at an index, and what belongs to it; the index of the next one."""
        line = self._lines[at]
        header = self._header
        if line.startswith(b"diff --git "):
            self._finish()
            self._header = _Header(at + 1, is_git=True, names=git_names(line[11:]))
            self._header.has_crlf = line.endswith(b"\r\n")
        elif line.startswith(b"--- ") and self._lines[at + 1 : at + 2]:
            following = self._lines[at + 1]
            if following.startswith(b"+++ "):
                self._file_names(at, line, following)
                return at + 2
        elif line.startswith(b"@@ -"):
            if header is None:
                _refuse("a hunk without the names of a file (`---`, `+++`) before it", at + 1)
            return self._hunk(at, line)
        elif line.startswith((b"@@@ ", b"diff --cc ", b"diff --combined ")):
            _refuse("combined diffs, which git makes of merges, can not be applied", at + 1)
        elif header is not None and not self._hunks:
            if _BINARY.match(line):
                header.is_binary = True
            elif header.is_git and header.old_name is None:
                header.extended(line)
        return at + 1

    def _file_names(self, at: int, old_line: bytes, new_line: bytes) -> None:
        header = self._header
        if header is None or not header.is_git or header.old_name is not None or self._hunks:
            self._finish()
            header = self._header = _Header(at + 1)
        header.has_crlf = old_line.endswith(b"\r\n") and new_line.endswith(b"\r\n")
        header.old_name, header.old_stamp = header_name(old_line[4:])
        header.new_name, header.new_stamp = header_name(new_line[4:])

    def _finish(self) -> None:
        header = self._header
        if header is not None:
            if header.old_name is not None and not self._hunks:
                _refuse("the diff ends before the first hunk of this file", header.line)
            self._files.append(header.file(self._hunks))
        self._header, self._hunks = None, []

    def _hunk(self, at: int, line: bytes) -> int:
        found = _RANGE.match(line)
        if found is None:
            _refuse(f"{_shown(line)} is no hunk header", at + 1)
        old_count = 1 if found[2] is None else int(found[2])
        new_count = 1 if found[4] is None else int(found[4])
        start = at + 1
        end = self._end(at, start, old_count, new_count)
        marks = self._marks[start:end]
        body = self._lines[start:end]
        if b"\n" in marks or b"\r" in marks:
            # An editor has cut the blank that marks an empty line of context.
            body = [b" " + line if line[0] in b"\r\n" else line for line in body]
            marks = marks.translate(bytes.maketrans(b"\r\n", b"  "))
        if b"\\" in marks or self._marks[end : end + 1] == b"\\":
            end += self._marks[end : end + 1] == b"\\"
            marks, body = _without_newlines(self._lines[start:end], at + 1)
        old = [line[1:] for line in body if line[0] != 43]
        new = [line[1:] for line in body if line[0] != 45]
        leading = len(marks) - len(marks.lstrip(b" "))
        trailing = len(marks) - len(marks.rstrip(b" "))
        self._hunks.append(
            DiffHunk(at + 1, int(found[1]), int(found[3]), body, old, new, leading, trailing)
        )
        self._check_end(at, end)
        return end

    def _end(self, at: int, start: int, old_count: int, new_count: int) -> int:
        """The index behind the hunk, going by the counts of its header."""
        marks = self._marks
        found = _NO_BODY.search(marks, start)
        end = len(marks) if found is None else found.start()
        length = end - start
        if (
            length - marks.count(b"+", start, end) == old_count
            and length - marks.count(b"-", start, end) == new_count
        ):
            return end
        # Something else than a hunk or the end follows, or there are lines of other kinds in it.
        end = start
        old_left, new_left = old_count, new_count
        while missing := max(old_left, new_left):
            part = marks[end : end + missing]
            removed, added, backslashes = part.count(b"-"), part.count(b"+"), part.count(b"\\")
            kept = part.count(b" ") + part.count(b"\n") + part.count(b"\r")
            if removed + added + kept + backslashes != missing:
                bad = next((i for i, mark in enumerate(part, end) if mark not in _MARKS), None)
                if bad is None:
                    _refuse(
                        f"the diff is cut short: the hunk should have {old_count} old and {new_count} "
                        f"new lines, and at least {missing - len(part)} of them are not there",
                        at + 1,
                    )
                _refuse(
                    f"the hunk should have {old_count} old and {new_count} new lines, but "
                    f"{_shown(self._lines[bad])} comes before that",
                    bad + 1,
                )
            end += missing
            old_left -= removed + kept
            new_left -= added + kept
            if old_left < 0 or new_left < 0:
                _refuse(
                    f"the hunk has more lines than the {old_count} old and {new_count} new ones that "
                    "its header says",
                    at + 1,
                )
        return end

    def _check_end(self, at: int, end: int) -> None:
        following = self._lines[end] if end < len(self._lines) else b""
        if following[:1] not in b"+- " or not following:
            return
        is_header = following.startswith(b"--- ") and self._lines[end + 1 : end + 2] != []
        if is_header or following.rstrip() == b"--":
            return
        _refuse(f"the hunk is longer than its header says: {_shown(following)} follows it", at + 1)


def _without_newlines(lines: list[bytes], number: int) -> tuple[bytes, list[bytes]]:
    """Heed the `\\ No newline at end of file` lines of a hunk."""
    body: list[bytes] = []
    for line in lines:
        if not line.startswith(b"\\"):
            body.append(line if line[0] not in b"\r\n" else b" " + line)
        elif body:
            body[-1] = body[-1].removesuffix(b"\n")
        else:
            _refuse("the hunk begins with a remark on its last line", number)
    return b"".join([line[:1] for line in body]), body


def _shown(line: bytes) -> str:
    text = line.rstrip(b"\r\n").decode(errors="replace")
    return repr(text if len(text) <= 100 else text[:100] + "…")

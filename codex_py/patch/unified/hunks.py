"""Holds a unified diff: files, hunks and lines, byte for byte as `diff -u` and git write them.

Format: https://www.gnu.org/software/diffutils/manual/html_node/Detailed-Unified.html and
https://git-scm.com/docs/diff-format ("Generating patch text with -p").
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

from codex_py.errors import PatchError, PatchErrorKind
from codex_py.patch.files.modes import Kind, kind_of
from codex_py.patch.lines import line_of_diff

Operation: TypeAlias = Literal["update", "add", "delete", "rename", "copy", "uncopy"]
"""`uncopy` is a copy in reverse: the old name, which was the new one, is deleted."""

_SWAPPED = bytes.maketrans(b"+-", b"-+")


class DiffHunk(NamedTuple):
    """Lines of a file, and the lines that replace them.

    Each ends in LF, except the last line of a file that does not end in one.
    """

    line: int
    """The number of its `@@` line in the diff, from 1."""
    old_start: int
    """The first old line as the diff says, from 1; an empty range names the line before it."""
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
        if self.old:
            return self.old_start - 1
        return self.old_start

    def reversed(self) -> "DiffHunk":
        return self._replace(
            old_start=self.new_start,
            new_start=self.old_start,
            body=list(map(_opposite_line, self.body)),
            old=self.new,
            new=self.old,
        )


def _opposite_line(line: bytes) -> bytes:
    mark = line[:1].translate(_SWAPPED)
    return mark + line[1:]


class BinaryHalf(NamedTuple):
    """One direction of a change of binary contents."""

    is_delta: bool
    data: bytes
    """The full contents, or a delta of git that makes them from the other ones."""
    unpacked: int
    """The size in bytes of `data`, plus the size of the delta's result."""


class FileDiff:
    """The part of a diff that changes one file."""

    def __init__(
        self, line: int, *, is_git: bool = False, has_crlf: bool = False
    ) -> None:
        self.line = line
        """The line of the diff where this part begins, from 1."""
        self.is_git = is_git
        """True if it began with `diff --git`."""
        self.operation: Operation = "update"
        self.old_name = ""
        """The old name as written, with its prefix and without quotes; the new name if there is no
        old file."""
        self.new_name = ""
        self.has_prefix = True
        """True if names begin with `a/` and `b/`, or the like; those of renames and copies never
        do."""
        self.old_mode: int | None = None
        """The old mode as git writes it, with the file type: 0o100644, 0o100755, 0o120000,
        0o160000."""
        self.new_mode: int | None = None
        self.old_blob: str | None = None
        """The id of the git object that was changed, in hexadecimal, perhaps shortened."""
        self.new_blob: str | None = None
        self.hunks: list[DiffHunk] = []
        self.is_binary = False
        self.halves: list[BinaryHalf] = []
        """The halves of a binary file: first the one that makes the new contents, then the one that
        makes the old ones, which may be missing. Empty if the diff only says that they differ."""
        self.has_crlf = has_crlf
        """True if every line of the diff itself ends in CRLF, because another program changed its
        line ends."""

    @property
    def old_kind(self) -> Kind | None:
        """The kind of the old entry; None if the diff does not say."""
        return kind_of(self.old_mode)

    @property
    def new_kind(self) -> Kind | None:
        return kind_of(self.new_mode)

    @property
    def may_add(self) -> bool:
        """True if it creates a missing file without saying so; git's diffs always say so."""
        if self.is_git or self.operation != "update" or len(self.hunks) != 1:
            return False
        hunk = self.hunks[0]
        return not hunk.old and hunk.old_start == 0

    def refusal(self, reason: str, kind: PatchErrorKind = "parse") -> PatchError:
        return PatchError(reason, kind=kind, line=self.line)

    def reversed(self) -> "FileDiff":
        opposite: dict[Operation, Operation] = {
            "add": "delete",
            "delete": "add",
            "copy": "uncopy",
            "uncopy": "copy",
        }
        diff = self._copy()
        diff.operation = opposite.get(self.operation, self.operation)
        diff.old_name = self.new_name
        diff.new_name = self.old_name
        diff.old_mode = self.new_mode
        diff.new_mode = self.old_mode
        diff.old_blob = self.new_blob
        diff.new_blob = self.old_blob
        diff.hunks = [hunk.reversed() for hunk in self.hunks]
        if len(self.halves) > 1:
            diff.halves = self.halves[::-1]
        else:
            # Nothing makes the old contents.
            diff.halves = []
        return diff

    def without_crlf(self) -> "FileDiff":
        """The diff as it was before its line ends became CRLF."""
        diff = self._copy()
        diff.hunks = [_without_crlf(hunk) for hunk in self.hunks]
        return diff

    def _copy(self) -> "FileDiff":
        diff = FileDiff(self.line)
        vars(diff).update(vars(self))
        return diff


def written_hunks(hunks: Sequence[DiffHunk]) -> bytes:
    """Write hunks as they stand in a diff."""
    parts: list[bytes] = []
    for hunk in hunks:
        old = _range(hunk.old_start, len(hunk.old))
        new = _range(hunk.new_start, len(hunk.new))
        parts.append(f"@@ -{old} +{new} @@\n".encode())
        parts += map(line_of_diff, hunk.body)
    return b"".join(parts)


def _range(start: int, size: int) -> str:
    """Lines as git writes them: a range of one line has no length."""
    if size == 1:
        return str(start)
    return f"{start},{size}"


def _without_crlf(hunk: DiffHunk) -> DiffHunk:
    return hunk._replace(
        body=list(map(_with_lf, hunk.body)),
        old=list(map(_with_lf, hunk.old)),
        new=list(map(_with_lf, hunk.new)),
    )


def _with_lf(line: bytes) -> bytes:
    if line.endswith(b"\r\n"):
        return line[:-2] + b"\n"
    return line

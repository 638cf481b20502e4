"""Reads diffs for display: their files, and the lines with their numbers.

A diff is in git's form, or an envelope of `apply_patch`. Do not apply the result: the reader is
lenient. Text that is not a diff has no files.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from codex_py.errors import PatchError
from codex_py.patch.diff.names import stripped
from codex_py.patch.unified import reader
from codex_py.patch.unified.hunks import DiffHunk, FileDiff

VERBS = {"add": "Added", "delete": "Deleted", "rename": "Renamed"}
EDITED = "Edited"

Sign: TypeAlias = Literal["+", "-", " ", "@", "\\"]

_ENVELOPE = re.compile(r"\*\*\* (Add|Delete|Update) File: (.*)")
_MOVE = "*** Move to: "
_SIGNS: dict[bytes, Sign] = {b"+": "+", b"-": "-"}


@dataclass(frozen=True, slots=True)
class DiffLine:
    """A line of a diff, without its sign and its newline."""

    sign: Sign
    """`@` marks lines that are left out, `\\` a remark on the line before."""
    text: str
    number: int | None = None
    """The number in the new file, or for a removed line in the old file. None if unknown."""
    old: int | None = None
    """The number in the old file, for a line that is in both."""


@dataclass(slots=True)
class ShownFile:
    """A file of a diff."""

    path: str
    verb: str = EDITED
    """`Added`, `Edited`, `Deleted` or `Renamed`."""
    moved_to: str = ""
    lines: list[DiffLine] = field(default_factory=list[DiffLine])
    hunks: Sequence[DiffHunk] = field(default=(), compare=False)
    """The hunks of the diff; an envelope has none."""


def read_diff(diff: str) -> list[ShownFile]:
    """Return the files of a diff in its order; none if it is empty or not a diff.

    The diff may be cut short.
    """
    if diff.startswith("*** Begin Patch"):
        return list(_envelope(diff.removesuffix("\n").split("\n")))
    try:
        files = reader.read_diff(diff.encode(errors="surrogateescape"), cut_short=True)
    except (PatchError, UnicodeEncodeError):
        return []
    return [_shown(file) for file in files]


def _shown(file: FileDiff) -> ShownFile:
    # In git's form, the names begin with `a/` and `b/`.
    components = 1 if file.has_prefix and file.is_git else 0
    old = stripped(file.old_name, components) or file.old_name
    new = stripped(file.new_name, components) or file.new_name
    verb = VERBS.get(file.operation, EDITED)
    moved_to = new if new != old else ""
    shown = ShownFile(old, verb, moved_to, hunks=file.hunks)
    for hunk in file.hunks:
        if shown.lines:
            shown.lines.append(DiffLine("@", ""))
        shown.lines += _lines(hunk)
    if file.is_binary:
        shown.lines.append(DiffLine("\\", "binary contents"))
    return shown


def _lines(hunk: DiffHunk) -> Iterator[DiffLine]:
    old = hunk.old_start
    new = hunk.new_start
    for line in hunk.body:
        sign = _SIGNS.get(line[:1], " ")
        text = line[1:].decode(errors="replace")
        without_newline = text.removesuffix("\n")
        match sign:
            case "-":
                yield DiffLine("-", without_newline, old)
                old += 1
            case "+":
                yield DiffLine("+", without_newline, new)
                new += 1
            case _:
                yield DiffLine(sign, without_newline, new, old)
                old += 1
                new += 1
        if not text.endswith("\n"):
            yield DiffLine("\\", "No newline at end of file")


def _envelope(lines: list[str]) -> Iterator[ShownFile]:
    """Yield the files of an envelope, given as lines without newlines."""
    file: ShownFile | None = None
    for line in lines:
        head = _ENVELOPE.match(line)
        if head:
            if file is not None:
                yield file
            verb = VERBS.get(head[1].lower(), EDITED)
            file = ShownFile(head[2].strip(), verb)
        elif file is None or line.startswith("*** End"):
            continue
        elif line.startswith(_MOVE):
            file.verb = "Renamed"
            file.moved_to = line.removeprefix(_MOVE).strip()
        elif line.startswith("@@"):
            if file.lines:
                file.lines.append(DiffLine("@", ""))
        else:
            # Only the lines of a new file have known numbers.
            number = len(file.lines) + 1 if file.verb == "Added" else None
            first = line[:1].encode(errors="replace")
            sign = _SIGNS.get(first, " ")
            file.lines.append(DiffLine(sign, line[1:], number))
    if file is not None:
        yield file

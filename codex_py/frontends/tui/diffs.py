"""Diffs as they are shown: by file, each line with its number. Reads git's form, and the envelope of `apply_patch`.

What is shown is not what is applied: text that is no diff is shown as it is instead of being refused.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Sign: TypeAlias = Literal["+", "-", " ", "@", "\\"]

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_ENVELOPE = re.compile(r"\*\*\* (Add|Delete|Update) File: (.*)")
_MOVE = "*** Move to: "
_VERBS = {"Add": "Added", "Delete": "Deleted", "Update": "Edited"}


@dataclass(frozen=True, slots=True)
class DiffLine:
    sign: Sign
    """`@` stands for lines that are left out, `\\` for a remark on the line before."""
    text: str
    number: int | None = None
    """In the new file; of a removed line, in the old one. None where it is not known."""


@dataclass(slots=True)
class ShownFile:
    path: str
    verb: str = "Edited"
    """`Added`, `Edited`, `Deleted` or `Renamed`."""
    moved_to: str = ""
    lines: list[DiffLine] = field(default_factory=list[DiffLine])

    @property
    def added(self) -> int:
        return sum(line.sign == "+" for line in self.lines)

    @property
    def removed(self) -> int:
        return sum(line.sign == "-" for line in self.lines)


def read_diff(diff: str) -> list[ShownFile]:
    """The files of a diff in its order; none where it is empty or no diff."""
    lines = diff.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    return list(_git(lines) if not diff.startswith("*** Begin Patch") else _envelope(lines))


def _git(lines: list[str]) -> Iterator[ShownFile]:
    file: ShownFile | None = None
    old = new = old_left = new_left = 0
    for line in lines:
        if file is not None and (old_left > 0 or new_left > 0) and line[:1] in {"+", "-", " ", ""}:
            sign = line[:1] or " "
            number = old if sign == "-" else new
            file.lines.append(DiffLine(_sign(sign), line[1:], number))
            old, old_left = (old + 1, old_left - 1) if sign != "+" else (old, old_left)
            new, new_left = (new + 1, new_left - 1) if sign != "-" else (new, new_left)
        elif line.startswith("\\") and file is not None:
            file.lines.append(DiffLine("\\", line[2:]))
        elif hunk := _HUNK.match(line):
            if file is None:
                return
            if file.lines:
                file.lines.append(DiffLine("@", ""))
            old, new = int(hunk[1]), int(hunk[3])
            old_left, new_left = int(hunk[2] or 1), int(hunk[4] or 1)
        elif line.startswith("diff --git "):
            if file is not None:
                yield file
            file = ShownFile(_named(line.removeprefix("diff --git ")))
            old_left = new_left = 0
        elif file is not None:
            _header(line, file)
    if file is not None:
        yield file


def _header(line: str, file: ShownFile) -> None:
    """A line between `diff --git` and the first hunk."""
    key, _, rest = line.partition(" ")
    match key:
        case "---" if rest != "/dev/null":
            file.path = _path(rest)
        case "+++" if rest != "/dev/null" and file.verb == "Added":
            file.path = _path(rest)
        case "new":
            file.verb = "Added" if rest.startswith("file mode") else file.verb
        case "deleted":
            file.verb = "Deleted"
        case "rename" if rest.startswith("from "):
            file.verb, file.path = "Renamed", _unquoted(rest.removeprefix("from "))
        case "rename" if rest.startswith("to "):
            file.moved_to = _unquoted(rest.removeprefix("to "))
        case "Binary" | "GIT":
            file.lines.append(DiffLine("\\", "binary contents"))
        case _:
            pass


def _envelope(lines: list[str]) -> Iterator[ShownFile]:
    file: ShownFile | None = None
    for line in lines:
        if head := _ENVELOPE.match(line):
            if file is not None:
                yield file
            file = ShownFile(head[2].strip(), _VERBS[head[1]])
        elif file is None or line.startswith("*** End"):
            continue
        elif line.startswith(_MOVE):
            file.verb, file.moved_to = "Renamed", line.removeprefix(_MOVE).strip()
        elif line.startswith("@@"):
            if file.lines:
                file.lines.append(DiffLine("@", ""))
        else:
            number = len(file.lines) + 1 if file.verb == "Added" else None
            sign = line[:1] if line[:1] in {"+", "-"} else " "
            file.lines.append(DiffLine(_sign(sign), line[1:], number))
    if file is not None:
        yield file


def _sign(char: str) -> Sign:
    match char:
        case "+" | "-":
            return char
        case _:
            return " "


def _named(names: str) -> str:
    """The file of `a/x b/x`, where the names are the same: lines behind it say so where they are not."""
    if names.startswith('"'):
        return _path(names[: names.find('"', 1) + 1])
    return _path(names[: len(names) // 2])


def _path(name: str) -> str:
    name = _unquoted(name.partition("\t")[0])
    return name[2:] if name.startswith(("a/", "b/")) else name


def _unquoted(name: str) -> str:
    """A name as git writes it. Between quotes bytes are written in octal."""
    if len(name) < 2 or name[0] != '"' or name[-1] != '"':
        return name
    raw = re.sub(
        rb"\\([0-7]{3}|.)",
        lambda m: bytes([int(m[1], 8) & 0xFF]) if len(m[1]) == 3 else _ESCAPES.get(m[1], m[1]),
        name[1:-1].encode(),
    )
    return raw.decode(errors="replace")


_ESCAPES = {
    b"n": b"\n",
    b"t": b"\t",
    b"r": b"\r",
    b"a": b"\a",
    b"b": b"\b",
    b"f": b"\f",
    b"v": b"\v",
}

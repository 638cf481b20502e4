"""Show what a plan changes as a unified diff in the manner of git."""

import difflib
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from pathlib import Path

from codex_py.patch.plan import FileChangePlan

_CONTEXT = 3
_MAX_BYTES = 4 * 1024 * 1024
"""Of a file, old and new together, beyond which it is only named."""
_MAX_CHANGED_LINES = 2_000
"""Between the first and the last difference; `difflib` can take quadratic time."""
_MAX_CHARACTERS = 1024 * 1024
"""Of the whole diff; files that come after are only named."""


def git_diff(changes: Iterable[FileChangePlan], root: Path | None = None) -> str:
    """A diff of all changes, for people to read.

    Paths are relative to `root` where they are below it. Binary and very large files get one line that
    says so; bytes that are not UTF-8 show as U+FFFD.
    """
    parts: list[str] = []
    size = 0
    for change in changes:
        part = _header(change, root)
        part += (
            _body(change, root) if size < _MAX_CHARACTERS else "Not shown: the diff is too long\n"
        )
        size += len(part)
        parts.append(part)
    return "".join(parts)


def _name(path: Path, root: Path | None) -> str:
    if root is not None and path.is_relative_to(root):
        path = path.relative_to(root)
    return str(path).lstrip("/")


def _header(change: FileChangePlan, root: Path | None) -> str:
    old = _name(change.path, root)
    new = _name(change.move_to or change.path, root)
    header = f"diff --git a/{old} b/{new}\n"
    if change.move_to is not None:
        header += f"rename from {old}\nrename to {new}\n"
    elif change.kind == "delete":
        header += "deleted file\n"
    elif change.old is None:
        header += "new file\n"
    return header


def _body(change: FileChangePlan, root: Path | None) -> str:
    old_data, new_data = change.old or b"", change.new or b""
    if old_data == new_data:
        return ""
    if b"\0" in old_data or b"\0" in new_data:
        return "Binary files differ\n"
    if len(old_data) + len(new_data) > _MAX_BYTES:
        return f"Not shown: {len(old_data)} bytes become {len(new_data)}\n"
    old, new = _lines(old_data), _lines(new_data)
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    if max(len(old), len(new)) - head - tail > _MAX_CHANGED_LINES:
        removed, added = len(old) - head - tail, len(new) - head - tail
        return f"Not shown: {removed} lines from line {head + 1} become {added}\n"
    # Leaving out what is the same at both ends spares difflib most of the work.
    skipped = max(head - _CONTEXT, 0)
    cut = max(tail - _CONTEXT, 0)
    hunks = _hunks(old[skipped : len(old) - cut], new[skipped : len(new) - cut], skipped)
    absent_old, absent_new = change.old is None, change.new is None
    old_name = "/dev/null" if absent_old else f"a/{_name(change.path, root)}"
    new_name = "/dev/null" if absent_new else f"b/{_name(change.move_to or change.path, root)}"
    return f"--- {old_name}\n+++ {new_name}\n" + "".join(hunks)


def _lines(data: bytes) -> list[str]:
    lines = data.decode(errors="replace").split("\n")
    last = lines.pop()
    return [line + "\n" for line in lines] + ([last] if last else [])


def _common(old: Sequence[str], new: Sequence[str]) -> int:
    """How many lines both begin with."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))


def _hunks(old: Sequence[str], new: Sequence[str], skipped: int) -> Iterator[str]:
    matcher = difflib.SequenceMatcher(None, old, new)
    for group in matcher.get_grouped_opcodes(_CONTEXT):
        old_range = _range(group[0][1] + skipped, group[-1][2] + skipped)
        new_range = _range(group[0][3] + skipped, group[-1][4] + skipped)
        yield f"@@ -{old_range} +{new_range} @@\n"
        for tag, old_start, old_end, new_start, new_end in group:
            if tag == "equal":
                yield from map(_marked, " " * (old_end - old_start), old[old_start:old_end])
                continue
            yield from map(_marked, "-" * (old_end - old_start), old[old_start:old_end])
            yield from map(_marked, "+" * (new_end - new_start), new[new_start:new_end])


def _marked(mark: str, line: str) -> str:
    return mark + line if line.endswith("\n") else f"{mark}{line}\n\\ No newline at end of file\n"


def _range(start: int, end: int) -> str:
    """Lines from 1; an empty range names the line before it."""
    length = end - start
    return f"{start + 1}" if length == 1 else f"{start + (length > 0)},{length}"

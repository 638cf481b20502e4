"""Show what a plan changes as a unified diff in the manner of git."""

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import AnyStr

from codex_py.errors import PatchError
from codex_py.patch.diff.git_words import in_git_words
from codex_py.patch.kind import kind_of, written_mode
from codex_py.patch.names import quoted
from codex_py.patch.plan import FileChangePlan

_CONTEXT = 3
MAX_BYTES = 4 * 1024 * 1024
"""Of a file, old and new together, beyond which it is only named."""
_MAX_CHANGED_LINES = 2_000
"""Between the first and the last difference; `difflib` can take quadratic time."""
_MAX_CHARACTERS = 1024 * 1024
"""Of the whole diff, but for its last line. Files that do not fit are only named, then counted."""


def git_diff(
    changes: Iterable[FileChangePlan],
    root: Path | None = None,
    instead: Mapping[Path, str] | None = None,
) -> str:
    """A diff of all changes, for people; `git apply` takes it too where nothing is left out.

    Paths are relative to `root` where they are below it. Binary and very large files get one line that
    says so; bytes that are not UTF-8 show as U+FFFD.

    Args:
        instead: lines, by path, that stand for the contents of a file.
    """
    parts: list[str] = []
    room = _MAX_CHARACTERS
    waiting = [part for change in changes for part in _parts(change)]
    for number, change in enumerate(waiting):
        header = _header(change, root)
        body = "Not shown: the diff is too long\n"
        if room > 0:
            told = None if instead is None else instead.get(change.path)
            shown = _body(change, root) if told is None else told
            if len(header) + len(shown) <= room:
                body = shown
        if len(header) + len(body) > room:
            parts.append(f"Not shown: {len(waiting) - number} more files\n")
            break
        room -= len(header) + len(body)
        parts.append(header + body)
    return "".join(parts)


def _parts(change: FileChangePlan) -> list[FileChangePlan]:
    """What becomes of links as git has to say it; for files that would show less of what happens."""
    if {kind_of(change.old_mode), kind_of(change.new_mode)} <= {"file", None}:
        return [change]
    try:
        return list(in_git_words(change))
    except PatchError:
        return [change]


def _name(path: Path, root: Path | None) -> str:
    if root is not None and path.is_relative_to(root):
        path = path.relative_to(root)
    return str(path).lstrip("/")


def _side(prefix: str, path: Path, root: Path | None) -> str:
    return _quoted(f"{prefix}/{_name(path, root)}")


def _quoted(name: str) -> str:
    return quoted(name).decode()


def _header(change: FileChangePlan, root: Path | None) -> str:
    destination = change.move_to or change.path
    header = f"diff --git {_side('a', change.path, root)} {_side('b', destination, root)}\n"
    is_new = change.old is None and change.old_mode is None
    if change.kind == "delete":
        header += f"deleted file mode {written_mode(change.old_mode)}\n"
    elif is_new:
        header += f"new file mode {written_mode(change.new_mode)}\n"
    elif written_mode(change.old_mode) != written_mode(change.new_mode):
        header += (
            f"old mode {written_mode(change.old_mode)}\nnew mode {written_mode(change.new_mode)}\n"
        )
    if change.move_to is not None:
        old, new = _name(change.path, root), _name(change.move_to, root)
        header += f"rename from {_quoted(old)}\nrename to {_quoted(new)}\n"
    return header


def _body(change: FileChangePlan, root: Path | None) -> str:
    old_data, new_data = change.old or b"", change.new or b""
    if old_data == new_data:
        return ""
    if b"\0" in old_data or b"\0" in new_data:
        return "Binary files differ\n"
    if len(old_data) + len(new_data) > MAX_BYTES:
        return f"Not shown: {len(old_data)} bytes become {len(new_data)}\n"
    old, new = _lines(old_data), _lines(new_data)
    head = common_start(old, new)
    tail = common_start(old[head:][::-1], new[head:][::-1])
    if max(len(old), len(new)) - head - tail > _MAX_CHANGED_LINES:
        removed, added = len(old) - head - tail, len(new) - head - tail
        return f"Not shown: {removed} lines from line {head + 1} become {added}\n"
    # Leaving out what is the same at both ends spares difflib most of the work.
    skipped = max(head - _CONTEXT, 0)
    cut = max(tail - _CONTEXT, 0)
    hunks = _hunks(old[skipped : len(old) - cut], new[skipped : len(new) - cut], skipped)
    old_name = "/dev/null" if change.old is None else _side("a", change.path, root)
    new_name = (
        "/dev/null" if change.new is None else _side("b", change.move_to or change.path, root)
    )
    return f"--- {old_name}\n+++ {new_name}\n" + "".join(hunks)


def _lines(data: bytes) -> list[str]:
    lines = data.decode(errors="replace").split("\n")
    last = lines.pop()
    return [line + "\n" for line in lines] + ([last] if last else [])


def common_start(old: Sequence[AnyStr], new: Sequence[AnyStr]) -> int:
    """How many lines both begin with."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))


def _hunks(old: Sequence[str], new: Sequence[str], skipped: int) -> Iterator[str]:
    matcher = difflib.SequenceMatcher(None, old, new)
    for group in matcher.get_grouped_opcodes(_CONTEXT):
        old_range = line_range(group[0][1] + skipped, group[-1][2] + skipped)
        new_range = line_range(group[0][3] + skipped, group[-1][4] + skipped)
        yield f"@@ -{old_range} +{new_range} @@\n"
        for tag, old_start, old_end, new_start, new_end in group:
            if tag == "equal":
                yield from map(_marked, " " * (old_end - old_start), old[old_start:old_end])
                continue
            yield from map(_marked, "-" * (old_end - old_start), old[old_start:old_end])
            yield from map(_marked, "+" * (new_end - new_start), new[new_start:new_end])


def _marked(mark: str, line: str) -> str:
    return mark + line if line.endswith("\n") else f"{mark}{line}\n\\ No newline at end of file\n"


def line_range(start: int, end: int) -> str:
    """Lines from 1; an empty range names the line before it."""
    length = end - start
    return f"{start + 1}" if length == 1 else f"{start + (length > 0)},{length}"

"""Write changes as a unified diff in git's format: complete, or with limits for people to read."""

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import BytesIO
from itertools import takewhile
from operator import eq
from pathlib import Path

from codex_py.errors import PatchError
from codex_py.patch.diff.names import quoted
from codex_py.patch.files.modes import kind_of, written_mode
from codex_py.patch.lines import line_of_diff
from codex_py.protocol.patched_file import PatchedFile

_CONTEXT = 3
"""Unchanged lines around each change."""
MAX_BYTES = 4 * 1024 * 1024
"""The limit for a file, old and new contents together. In a diff for people, larger ones are only
named."""
_MAX_SHOWN_LINES = 2_000
"""The limit of lines between the first and the last difference of a file. In a diff for people, more
are only counted."""
_MAX_COMPARED_LINES = 5_000
"""The limit of lines that `difflib` compares, which can take quadratic time. More become one hunk."""
_MAX_CHARACTERS = 1024 * 1024
"""The limit of a diff for people. Of files beyond it, the first are only named and the rest counted."""


def git_diff(
    changes: Iterable[PatchedFile],
    root: Path | None = None,
    instead: Mapping[Path, str] | None = None,
    *,
    keeps_bytes: bool = False,
) -> str:
    """Write a diff of all changes for people. If nothing is left out, `git apply` takes it too.

    Paths below `root` are relative to it. Binary and very large files get one line that says so.

    Args:
        instead: the lines to write in place of a file's contents, by path.
        keeps_bytes: a byte that is not UTF-8 becomes a lone surrogate, as with `surrogateescape`,
            so that the diff can be applied. If False, it becomes U+FFFD.
    """
    shown: list[str] = []
    room = _MAX_CHARACTERS
    errors = "replace"
    if keeps_bytes:
        errors = "surrogateescape"
    if instead is None:
        instead = {}
    parts = [part for change in changes for part in _parts(change)]
    for number, part in enumerate(parts):
        names = (
            _shown_name(part.path, root),
            _shown_name(part.destination, root),
        )
        header = _header(part, names).decode(errors="replace")
        body = "Not shown: the diff is too long\n"
        if room > 0:
            text = instead.get(part.path)
            if text is None:
                text = _shown_body(part, names).decode(errors=errors)
            if len(header) + len(text) <= room:
                body = text
        if len(header) + len(body) > room:
            shown.append(f"Not shown: {len(parts) - number} more files\n")
            break
        room -= len(header) + len(body)
        shown.append(header + body)
    return "".join(shown)


def exact_diff(
    changes: Iterable[PatchedFile],
    root: Path,
    context: int = _CONTEXT,
) -> bytes:
    """Write a complete diff of all changes, from which `git apply` makes every byte of the new files.

    Names are relative to `root`. Contents are written unchanged, whatever their encoding, with NUL bytes as well.

    Raises:
        PatchError: a file is outside of `root`, its old contents are not known, or git cannot
            express the change.
    """
    parts = [part for change in changes for part in in_git_words(change)]
    return b"".join([_exact(part, root, context) for part in parts])


def _exact(
    change: PatchedFile,
    root: Path,
    context: int,
) -> bytes:
    _check_expressible(change, root)
    names = (
        str(change.path.relative_to(root)),
        str(change.destination.relative_to(root)),
    )
    old = list(BytesIO(change.old or b""))
    new = list(BytesIO(change.new or b""))
    if old == new:
        body = b""
    else:
        body = _body(change, names, _hunks(old, new, context))
    return _header(change, names) + body


def _check_expressible(change: PatchedFile, root: Path) -> None:
    """Raise the `PatchError` of `exact_diff` if one part of a change cannot be written."""
    if change.kind == "delete" and change.old is None:
        raise PatchError(f"{change.path}: its contents are not known", kind="file")
    sides = (
        (change.old_mode, change.old),
        (change.new_mode, change.new),
    )
    for mode, commit in sides:
        if kind_of(mode) == "submodule" and not commit:
            raise PatchError(
                f"{change.path}: the submodule's commit is not known", kind="file"
            )
    for path in (change.path, change.destination):
        if not path.is_relative_to(root):
            raise PatchError(f"{path} is outside of {root}", kind="refused")


def _parts(change: PatchedFile) -> list[PatchedFile]:
    """Split a change as git does if it concerns links or submodules. A change of files alone stays
    whole: that shows people more."""
    kinds = {kind_of(change.old_mode), kind_of(change.new_mode)}
    if kinds <= {"file", None}:
        return [change]
    try:
        return list(in_git_words(change))
    except PatchError:
        return [change]


def _shown_name(path: Path, root: Path | None) -> str:
    if root is not None and path.is_relative_to(root):
        path = path.relative_to(root)
    return str(path).lstrip("/")


def _header(change: PatchedFile, names: tuple[str, str]) -> bytes:
    header = b"diff --git %s %s\n" % (quoted(f"a/{names[0]}"), quoted(f"b/{names[1]}"))
    old_mode = written_mode(change.old_mode)
    new_mode = written_mode(change.new_mode)
    if change.new is None:
        header += f"deleted file mode {old_mode}\n".encode()
    elif change.old is None and change.old_mode is None:
        header += f"new file mode {new_mode}\n".encode()
    elif old_mode != new_mode:
        header += f"old mode {old_mode}\nnew mode {new_mode}\n".encode()
    if change.move_to is not None:
        header += b"rename from %s\nrename to %s\n" % (
            quoted(names[0]),
            quoted(names[1]),
        )
    return header


def _shown_body(change: PatchedFile, names: tuple[str, str]) -> bytes:
    old_data = change.old or b""
    new_data = change.new or b""
    if old_data == new_data:
        return b""
    if b"\0" in old_data or b"\0" in new_data:
        return b"Binary files differ\n"
    if len(old_data) + len(new_data) > MAX_BYTES:
        return f"Not shown: {len(old_data)} bytes become {len(new_data)}\n".encode()
    old = list(BytesIO(old_data))
    new = list(BytesIO(new_data))
    head, tail = _common_ends(old, new)
    removed = len(old) - head - tail
    added = len(new) - head - tail
    if max(removed, added) > _MAX_SHOWN_LINES:
        return (
            f"Not shown: {removed} lines from line {head + 1} become {added}\n".encode()
        )
    return _body(change, names, _hunks(old, new, _CONTEXT))


def _body(
    change: PatchedFile,
    names: tuple[str, str],
    hunks: Iterable[bytes],
) -> bytes:
    if change.old is None:
        old_side = b"/dev/null"
    else:
        old_side = _side(f"a/{names[0]}")
    if change.new is None:
        new_side = b"/dev/null"
    else:
        new_side = _side(f"b/{names[1]}")
    return b"".join([b"--- ", old_side, b"\n+++ ", new_side, b"\n", *hunks])


def _side(name: str) -> bytes:
    if " " in name:
        # git too ends such a name with a tab, lest `patch` take the rest for a time.
        return quoted(name) + b"\t"
    return quoted(name)


def _common_ends(old: Sequence[bytes], new: Sequence[bytes]) -> tuple[int, int]:
    """Count the lines that both begin with, and, of the rest, those that both end with."""
    head = _common_start(old, new)
    old_backwards = old[head:][::-1]
    new_backwards = new[head:][::-1]
    return head, _common_start(old_backwards, new_backwards)


def _common_start(old: Sequence[bytes], new: Sequence[bytes]) -> int:
    return sum(takewhile(bool, map(eq, old, new)))


def _hunks(
    old: Sequence[bytes],
    new: Sequence[bytes],
    context: int,
) -> Iterator[bytes]:
    """The hunks of a diff, in pieces of text: ranges, then marked lines."""
    head, tail = _common_ends(old, new)
    # Leaving out what is the same at both ends spares difflib most of the work.
    skipped = max(head - context, 0)
    cut = max(tail - context, 0)
    old = old[skipped : len(old) - cut]
    new = new[skipped : len(new) - cut]
    for group in _groups(old, new, head - skipped, tail - cut, context):
        _, old_first, _, new_first, _ = group[0]
        _, _, old_last, _, new_last = group[-1]
        old_range = _line_range(old_first + skipped, old_last + skipped)
        new_range = _line_range(new_first + skipped, new_last + skipped)
        yield f"@@ -{old_range} +{new_range} @@\n".encode()
        for tag, old_start, old_end, new_start, new_end in group:
            if tag == "equal":
                yield from _marked(b" ", old[old_start:old_end])
            else:
                yield from _marked(b"-", old[old_start:old_end])
                yield from _marked(b"+", new[new_start:new_end])


def _groups(
    old: Sequence[bytes],
    new: Sequence[bytes],
    head: int,
    tail: int,
    context: int,
) -> Iterable[list[tuple[str, int, int, int, int]]]:
    """Compare the lines, and group the opcodes (as `difflib` has them) into hunks.

    Args:
        head: the number of lines that both begin with.
        tail: the number of lines that both end with.
    """
    old_end = len(old) - tail
    new_end = len(new) - tail
    old_middle = old[head:old_end]
    new_middle = new[head:new_end]
    matcher = difflib.SequenceMatcher(None, old_middle, new_middle)
    if max(old_end, new_end) - head > _MAX_COMPARED_LINES:
        changed = [("replace", 0, old_end - head, 0, new_end - head)]
    else:
        changed = matcher.get_opcodes()
    # Context at both ends is not left to difflib: aligned with other lines it would be cut short, and
    # git takes a hunk that ends in a change for the end of the file.
    opcodes = [("equal", 0, head, 0, head)]
    for tag, *ends in changed:
        old_first, old_last, new_first, new_last = [end + head for end in ends]
        opcodes.append((tag, old_first, old_last, new_first, new_last))
    opcodes.append(("equal", old_end, len(old), new_end, len(new)))
    matcher.opcodes = opcodes  # pyright: ignore[reportAttributeAccessIssue] -- its cache, not in typeshed
    return matcher.get_grouped_opcodes(context)


def _marked(mark: bytes, lines: Sequence[bytes]) -> list[bytes]:
    return [mark + line_of_diff(line) for line in lines]


def _line_range(start: int, end: int) -> str:
    """Write the range of a hunk: the number of its first line, and its length unless that is 1.

    Lines count from 1. An empty range names the line before it.
    """
    length = end - start
    match length:
        case 0:
            return f"{start},0"
        case 1:
            return f"{start + 1}"
        case _:
            return f"{start + 1},{length}"


def in_git_words(change: PatchedFile) -> Iterator[PatchedFile]:
    """Split a change that git has to express as several; yield any other as it is.

    Git needs several for a move onto an existing file, for a change of type, and for changes of
    links and submodules, which are written as a deletion and an addition. Links and submodules that
    are just renamed stay whole.

    Raises:
        PatchError: a file was moved under the name of a link to it, and the link's target is no
            longer known.
    """
    kinds = {kind_of(change.old_mode), kind_of(change.new_mode)}
    is_file = kinds <= {"file", None}
    if change.replaced is None and (is_file or change.old == change.new):
        yield change
        return
    becomes_file = "link" in kinds and "file" in kinds
    if becomes_file and change.move_to is not None and change.link_target is None:
        raise PatchError(
            f"{change.path}: a symbolic link that gives way to a file of another name cannot be written "
            "as a diff",
            kind="file",
        )
    path = change.destination
    if change.old is not None or change.new is None:
        yield PatchedFile.of(
            change.path, change.old_entry, None, old_mode=change.old_mode
        )
    replaces_file = change.replaced is not None and kind_of(change.replaced_mode) in {
        "file",
        None,
    }
    if replaces_file and is_file:
        yield PatchedFile.of(
            path,
            change.replaced,
            change.new,
            old_mode=change.replaced_mode or change.new_mode,
            new_mode=change.new_mode,
        )
        return
    if change.replaced is not None:
        yield PatchedFile.of(path, change.replaced, None, old_mode=change.replaced_mode)
    if change.new is not None:
        yield PatchedFile.of(path, None, change.new, new_mode=change.new_mode)

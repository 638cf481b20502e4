"""Write what a plan changes as a complete diff in git's format, which `git apply` takes back byte for byte.

For people there is `codex_py.patch.diff.writer`, which is bounded and leaves out what does not show.
"""

import difflib
from collections.abc import Iterable, Iterator, Sequence
from io import BytesIO
from pathlib import Path

from codex_py.errors import PatchError
from codex_py.patch.diff.git_words import in_git_words
from codex_py.patch.diff.writer import common_start, line_range
from codex_py.patch.kind import kind_of, written_mode
from codex_py.patch.names import quoted
from codex_py.patch.plan import FileChangePlan
from codex_py.patch.unified.hunks import NO_NEWLINE

_MAX_CHANGED_LINES = 5_000
"""Between the first and the last difference; beyond, they become one hunk: `difflib` can take quadratic
time."""


def exact_diff(changes: Iterable[FileChangePlan], root: Path, context: int = 3) -> bytes:
    """A diff of all changes, with names relative to `root`, modes and renames.

    Contents are written as they are, whatever their encoding, NUL bytes included.

    Raises:
        PatchError: a file is outside of `root`, or what was there is not known, or git has no words for it.
    """
    return b"".join(
        [_file(part, root, context) for change in changes for part in in_git_words(change)]
    )


def _file(change: FileChangePlan, root: Path, context: int) -> bytes:
    if change.kind == "delete" and change.old is None:
        raise PatchError(f"{change.path}: its contents are not known", kind="file")
    for mode, text in ((change.old_mode, change.old), (change.new_mode, change.new)):
        if kind_of(mode) == "submodule" and not text:
            raise PatchError(f"{change.path}: the submodule's commit is not known", kind="file")
    old_name = _name(change.path, root)
    new_name = _name(change.move_to or change.path, root)
    old_side, new_side = quoted(f"a/{old_name}"), quoted(f"b/{new_name}")
    header = b"diff --git %s %s\n" % (old_side, new_side)
    old_mode, new_mode = (
        written_mode(mode).encode() for mode in (change.old_mode, change.new_mode)
    )
    is_new, is_gone = change.old is None, change.new is None
    if is_new:
        header += b"new file mode %s\n" % new_mode
    elif is_gone:
        header += b"deleted file mode %s\n" % old_mode
    elif old_mode != new_mode:
        header += b"old mode %s\nnew mode %s\n" % (old_mode, new_mode)
    if change.move_to is not None:
        header += b"rename from %s\nrename to %s\n" % (quoted(old_name), quoted(new_name))
    old, new = list(BytesIO(change.old or b"")), list(BytesIO(change.new or b""))
    if old == new:
        return header
    # git too ends a name with blanks in it with a tab, lest `patch` take the rest for a time.
    old_side = b"/dev/null" if is_new else old_side + b"\t" * (b" " in old_side)
    new_side = b"/dev/null" if is_gone else new_side + b"\t" * (b" " in new_side)
    return header + b"".join(
        [b"--- ", old_side, b"\n+++ ", new_side, b"\n", *_hunks(old, new, context)]
    )


def _name(path: Path, root: Path) -> str:
    if not path.is_relative_to(root):
        raise PatchError(f"{path} is outside of {root}", kind="refused")
    return str(path.relative_to(root))


def _hunks(old: Sequence[bytes], new: Sequence[bytes], context: int) -> Iterator[bytes]:
    head = common_start(old, new)
    tail = common_start(old[head:][::-1], new[head:][::-1])
    skipped = max(head - context, 0)
    cut = max(tail - context, 0)
    old, new = old[skipped : len(old) - cut], new[skipped : len(new) - cut]
    for group in _groups(old, new, head - skipped, tail - cut, context):
        old_range = line_range(group[0][1] + skipped, group[-1][2] + skipped)
        new_range = line_range(group[0][3] + skipped, group[-1][4] + skipped)
        yield f"@@ -{old_range} +{new_range} @@\n".encode()
        for tag, old_start, old_end, new_start, new_end in group:
            if tag == "equal":
                yield from _marked(b" ", old[old_start:old_end])
            else:
                yield from _marked(b"-", old[old_start:old_end])
                yield from _marked(b"+", new[new_start:new_end])


def _groups(
    old: Sequence[bytes], new: Sequence[bytes], head: int, tail: int, context: int
) -> Iterable[list[tuple[str, int, int, int, int]]]:
    old_end, new_end = len(old) - tail, len(new) - tail
    matcher = difflib.SequenceMatcher(None, old[head:old_end], new[head:new_end])
    if max(old_end, new_end) - head > _MAX_CHANGED_LINES:
        changed = [("replace", 0, old_end - head, 0, new_end - head)]
    else:
        changed = matcher.get_opcodes()
    # Context at both ends is not left to difflib: aligned with other lines it would be cut short, and
    # git takes a hunk that ends in a change for the end of the file.
    matcher.opcodes = [  # pyright: ignore[reportAttributeAccessIssue] -- its cache, not in typeshed
        ("equal", 0, head, 0, head),
        *[(tag, i + head, j + head, k + head, n + head) for tag, i, j, k, n in changed],
        ("equal", old_end, len(old), new_end, len(new)),
    ]
    return matcher.get_grouped_opcodes(context)


def _marked(mark: bytes, lines: Sequence[bytes]) -> Iterator[bytes]:
    for line in lines:
        yield mark + line
        if not line.endswith(b"\n"):
            yield NO_NEWLINE

"""Convert envelopes to unified diffs and back. Both ways need the files that the patch is for.

The result does the same to these files as the original. An envelope cannot express everything: that
a file ends without a newline, changes its mode or holds bytes that are not UTF-8; symbolic links and
submodules; a file that takes the place of a directory; lines that end otherwise than the first of
their file, or, in a new file, otherwise than in LF. A diff that needs any of this is refused.
"""

import stat
from collections.abc import Iterator
from pathlib import Path

from codex_py.errors import PatchError
from codex_py.patch.diff.writer import exact_diff
from codex_py.patch.envelope.apply import plan_patch
from codex_py.patch.files.modes import kind_of, permissions_by_umask
from codex_py.patch.lines import BLANK
from codex_py.patch.plan import readable_under
from codex_py.patch.unified.plan import plan_unified
from codex_py.patch.unified.reader import read_diff
from codex_py.protocol.patched_file import PatchedFile

_NOT_UTF8 = "what is not UTF-8"
_CONTEXTS = (3, 12, 1_000_000_000)
"""The numbers of context lines to try, until every hunk fits one place only. The last number stands
for the whole file."""


def to_unified(text: str, cwd: Path) -> str:
    """Convert an envelope to a git diff, with three lines of context and names relative to `cwd`.

    Bytes that are not UTF-8 are decoded with `surrogateescape`.

    Raises:
        PatchError: the envelope does not fit the files, or changes some outside of `cwd`.
    """
    plan = plan_patch(text, cwd, readable=readable_under([cwd]))
    return exact_diff(plan.changes, cwd).decode(errors="surrogateescape")


def to_envelope(diff: str, cwd: Path) -> str:
    """Convert a unified diff to an envelope.

    Raises:
        PatchError: the diff does not fit the files; of kind `parse` if an envelope cannot express
            it. The message names the file and the reason.
    """
    plan = plan_unified(diff, cwd, readable=readable_under([cwd]))
    sections = [_section(change, cwd) for change in plan.changes]
    return "\n".join(["*** Begin Patch", *sections, "*** End Patch\n"])


def _section(change: PatchedFile, cwd: Path) -> str:
    """Write the section of one file, and check that it does what the change does."""
    reason = _unsayable_entry(change, cwd) or _unsayable_contents(change)
    if reason:
        path = change.destination
        raise PatchError(f"{path}: an envelope cannot say {reason}", kind="parse")
    section = ""
    if change.old is None or change.new is None:
        return "\n".join(_lines(change, cwd, 0))
    for context in _CONTEXTS:
        section = "\n".join(_lines(change, cwd, context))
        if _does(section, change, cwd):
            return section
    # `surrogateescape` decodes bytes that are not UTF-8 to these characters.
    has_other_bytes = any("\udc80" <= character <= "\udcff" for character in section)
    if has_other_bytes:
        reason = _NOT_UTF8
    else:
        reason = "how its lines end: they would all end as the first does"
    raise PatchError(f"{change.path}: an envelope cannot say {reason}", kind="parse")


def _unsayable_entry(change: PatchedFile, cwd: Path) -> str | None:
    """Find what an envelope cannot say about the names and kinds of a change; None if nothing."""
    for path in (change.path, change.destination):
        name = str(path.relative_to(cwd))
        if "\n" in name or name != name.strip(BLANK):
            return f"a name with a line break in it or blanks around it: {name!r}"
    kinds = {
        kind_of(change.old_mode),
        kind_of(change.new_mode),
        kind_of(change.replaced_mode),
    }
    if "link" in kinds:
        return "what becomes of a symbolic link"
    if "submodule" in kinds:
        return "what becomes of a submodule"
    if change.new is None:
        return None
    if change.destination.is_dir():
        return "that a file takes the place of a directory"
    if change.move_to is not None and change.path in change.move_to.parents:
        return "that a directory takes the place of a file that is moved into it"
    return None


def _unsayable_contents(change: PatchedFile) -> str | None:
    """Find what an envelope cannot say about the mode and bytes of a change; None if nothing."""
    if change.new is None:
        return None
    reason = _unsayable_mode(change)
    if reason is not None:
        return reason
    if change.new and not change.new.endswith(b"\n"):
        return "that the file ends without a newline"
    # An envelope has all lines of a file that is new, or that was empty, as added lines.
    if not change.old or change.kind == "add":
        if b"\r\n" in change.new:
            return "that lines of a new file end in CRLF"
        try:
            change.new.decode()
        except UnicodeDecodeError:
            return _NOT_UTF8
    return None


def _unsayable_mode(change: PatchedFile) -> str | None:
    old_bits = _permissions(change.old_mode)
    new_bits = _permissions(change.new_mode)
    if change.old is not None and change.replaced is None and old_bits != new_bits:
        return f"that its mode changes to {new_bits or 0:o}"
    if change.old is None and new_bits not in {None, permissions_by_umask(0o666)}:
        return f"that a new file has the mode {new_bits:o}"
    return None


def _permissions(mode: int | None) -> int | None:
    if mode is None:
        return None
    return stat.S_IMODE(mode)


def _lines(
    change: PatchedFile,
    cwd: Path,
    context: int,
) -> Iterator[str]:
    """The lines of a section, with `context` lines around each change."""
    name = str(change.path.relative_to(cwd))
    if change.new is None:
        yield f"*** Delete File: {name}"
    elif change.old is None:
        yield from _added(change.path, change.new, cwd)
    elif change.old == change.new and change.move_to is None:
        return
    elif not change.old:
        # An update has to find a line, and an empty file has none.
        yield f"*** Delete File: {name}"
        yield from _added(change.destination, change.new, cwd)
    else:
        yield f"*** Update File: {name}"
        if change.move_to is not None:
            yield f"*** Move to: {change.move_to.relative_to(cwd)}"
        *_, file = read_diff(exact_diff([change], cwd, context))
        hunks = file.hunks
        for hunk in hunks:
            yield "@@"
            yield from (_text(line) for line in hunk.body)
            if not hunk.trailing and hunk.leading:
                yield "*** End of File"
        if not hunks:
            # A file that is only moved needs a hunk too: its first line, as context.
            first, _, _ = change.old.partition(b"\n")
            yield "@@"
            yield " " + _text(first)


def _added(
    path: Path,
    data: bytes,
    cwd: Path,
) -> Iterator[str]:
    yield f"*** Add File: {path.relative_to(cwd)}"
    lines = data.decode().split("\n")
    yield from (f"+{line}" for line in lines[:-1])


def _text(line: bytes) -> str:
    """Decode a line without its terminator."""
    return line.rstrip(b"\r\n").decode(errors="surrogateescape")


def _does(
    section: str,
    change: PatchedFile,
    cwd: Path,
) -> bool:
    """True if the section, applied to the files, has the outcome of the change."""
    if not section:
        return True
    try:
        plan = plan_patch(f"*** Begin Patch\n{section}\n*** End Patch", cwd)
    except PatchError:
        return False
    return _outcome(plan.changes) == _outcome([change])


def _outcome(changes: list[PatchedFile]) -> dict[Path, bytes | None]:
    """The new contents of each path; None where no file is left."""
    outcome: dict[Path, bytes | None] = {}
    for change in changes:
        outcome[change.path] = None
        outcome[change.destination] = change.new
    return outcome


def reversed_diff(diff: str, cwd: Path) -> str:
    """Make a diff that undoes what a unified diff does to the files under `cwd`.

    The result fits the files once `diff` is applied.

    Raises:
        PatchError: `diff` does not fit the files as they are.
    """
    plan = plan_unified(diff, cwd, readable=readable_under([cwd]))
    undone: list[PatchedFile] = []
    for change in reversed(plan.changes):
        undone += _opposite(change)
    return exact_diff(undone, cwd).decode(errors="surrogateescape")


def _opposite(change: PatchedFile) -> Iterator[PatchedFile]:
    """The changes that take one change back: two if it replaced a file at its destination."""
    if change.replaced is None:
        yield PatchedFile.of(
            change.destination,
            change.new,
            change.old,
            move_to=change.path if change.move_to else None,
            old_mode=change.new_mode,
            new_mode=change.old_mode,
        )
        return
    yield PatchedFile.of(
        change.destination,
        change.new,
        change.replaced,
        old_mode=change.new_mode,
        new_mode=change.replaced_mode or change.new_mode,
    )
    yield PatchedFile.of(
        change.path,
        None,
        change.old,
        new_mode=change.old_mode,
    )

"""Turn envelopes into unified diffs and back, going by the files that they are for.

Either way, the result does the same to these files as the original. An envelope cannot say that a
file ends without a newline, changes its mode, or holds what is not UTF-8, and nothing about
symbolic links, submodules and files in place of directories; the lines of a file end as its first
line does, and those of a new file in LF. A diff that needs any of this is refused.
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
"""Lines of context that are tried until each hunk has only one place; the last is the whole file."""


def to_unified(text: str, cwd: Path) -> str:
    """An envelope as a git diff, with three lines of context and names relative to `cwd`.

    What is not UTF-8 comes decoded with `surrogateescape`.

    Raises:
        PatchError: the envelope does not fit the files, or changes some outside of `cwd`.
    """
    plan = plan_patch(text, cwd, readable=readable_under([cwd]))
    return exact_diff(plan.changes, cwd).decode(errors="surrogateescape")


def to_envelope(diff: str, cwd: Path) -> str:
    """A unified diff as an envelope.

    Raises:
        PatchError: the diff does not fit the files; or, of kind `parse`, an envelope cannot say what
            it does. The message names the file and the reason.
    """
    plan = plan_unified(diff, cwd, readable=readable_under([cwd]))
    sections = [_section(change, cwd) for change in plan.changes]
    return "\n".join(["*** Begin Patch", *sections, "*** End Patch\n"])


def _section(change: PatchedFile, cwd: Path) -> str:
    """The lines of one file, joined; checked to do what the change does."""
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
    is_text = not any("\udc80" <= character <= "\udcff" for character in section)
    if is_text:
        reason = "how its lines end: they would all end as the first does"
    else:
        reason = _NOT_UTF8
    raise PatchError(f"{change.path}: an envelope cannot say {reason}", kind="parse")


def _unsayable_entry(change: PatchedFile, cwd: Path) -> str | None:
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
    if change.new is None:
        return None
    if change.old_mode is not None:
        old_bits = stat.S_IMODE(change.old_mode)
    else:
        old_bits = None
    if change.new_mode is not None:
        new_bits = stat.S_IMODE(change.new_mode)
    else:
        new_bits = None
    if change.old is not None and change.replaced is None and old_bits != new_bits:
        return f"that its mode changes to {new_bits or 0:o}"
    if change.old is None and new_bits not in {None, permissions_by_umask(0o666)}:
        return f"that a new file has the mode {new_bits:o}"
    if change.new and not change.new.endswith(b"\n"):
        return "that the file ends without a newline"
    if not change.old or change.kind == "add":
        if b"\r\n" in change.new:
            return "that lines of a new file end in CRLF"
        try:
            change.new.decode()
        except UnicodeDecodeError:
            return _NOT_UTF8
    return None


def _lines(
    change: PatchedFile,
    cwd: Path,
    context: int,
) -> Iterator[str]:
    name = str(change.path.relative_to(cwd))
    if change.new is None:
        yield f"*** Delete File: {name}"
    elif change.old is None:
        yield from _added(change.path, change.new, cwd)
    elif change.old == change.new and change.move_to is None:
        return
    elif not change.old:
        # There is no line to be found in an empty file.
        yield f"*** Delete File: {name}"
        yield from _added(change.destination, change.new, cwd)
    else:
        yield f"*** Update File: {name}"
        if change.move_to is not None:
            yield f"*** Move to: {change.move_to.relative_to(cwd)}"
        hunks = read_diff(exact_diff([change], cwd, context))[-1].hunks
        for hunk in hunks:
            yield "@@"
            yield from (_text(line) for line in hunk.body)
            if not hunk.trailing and hunk.leading:
                yield "*** End of File"
        if not hunks:
            yield "@@"
            yield " " + _text(change.old.partition(b"\n")[0])


def _added(
    path: Path,
    data: bytes,
    cwd: Path,
) -> Iterator[str]:
    yield f"*** Add File: {path.relative_to(cwd)}"
    lines = data.decode().split("\n")
    yield from (f"+{line}" for line in lines[:-1])


def _text(line: bytes) -> str:
    return line.rstrip(b"\r\n").decode(errors="surrogateescape")


def _does(
    section: str,
    change: PatchedFile,
    cwd: Path,
) -> bool:
    if not section:
        return True
    try:
        plan = plan_patch(f"*** Begin Patch\n{section}\n*** End Patch", cwd)
    except PatchError:
        return False
    return _outcome(plan.changes) == _outcome([change])


def _outcome(changes: list[PatchedFile]) -> dict[Path, bytes | None]:
    outcome: dict[Path, bytes | None] = {}
    for change in changes:
        outcome[change.path] = None
        outcome[change.destination] = change.new
    return outcome


def reversed_diff(diff: str, cwd: Path) -> str:
    """A diff that undoes what a unified diff does to the files under `cwd`.

    It is made for the files as they are once `diff` is applied. Raises a `PatchError` if it does not fit them.
    """
    plan = plan_unified(diff, cwd, readable=readable_under([cwd]))
    undone = [part for change in reversed(plan.changes) for part in _opposite(change)]
    return exact_diff(undone, cwd).decode(errors="surrogateescape")


def _opposite(change: PatchedFile) -> Iterator[PatchedFile]:
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
    yield PatchedFile.of(change.path, None, change.old, new_mode=change.old_mode)

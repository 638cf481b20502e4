"""Work out what a unified diff does to the files of a directory."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from codex_py.errors import PatchError
from codex_py.patch.files.handles import Directories
from codex_py.patch.files.modes import kind_of
from codex_py.patch.plan import PatchPlan
from codex_py.patch.report import Findings
from codex_py.patch.unified.content import Patcher
from codex_py.patch.unified.files import DiffPlanner
from codex_py.patch.unified.hunks import FileDiff
from codex_py.patch.unified.reader import read_diff
from codex_py.patch.unified.target import targets_of, vacated
from codex_py.patch.unified.three_way import ThreeWay
from codex_py.patch.unified.tree import DiffTree

Writable: TypeAlias = Callable[[str], bool]


def plan_unified(
    text: str | bytes,
    cwd: Path,
    writable: Writable | None,
    *,
    strip: int | None = None,
    readable: Callable[[str], bool] | None = None,
    directory: str | None = None,
    reverse: bool = False,
    strict: bool = False,
    partial: bool = False,
    three_way: ThreeWay | None = None,
) -> PatchPlan:
    """Read a unified diff and check all of it against the files. Nothing is written.

    Args:
        text: the diff; text in it that is not UTF-8 has been decoded with `surrogateescape`.
        cwd: absolute; names in the diff are relative to it.
        writable: says of a real, absolute path whether it may be written; None allows everything.
        readable: the same of reading. It is asked before a file is opened, and what it refuses ends it.
        strip: how many leading directories to leave out of names; None guesses, see `targets_of`.
        directory: put in front of all names; relative to `cwd`.
        reverse: undo the diff.
        strict: refuse hunks whose place has to be guessed, see `apply_hunks`.
        partial: leave out what does not fit; the plan has it as rejects.
        three_way: where a file is not as the diff has it, and the diff names the git blob that it
            was made from, merge.

    Raises:
        PatchError: nothing of it can be applied, or not all of it and `partial` is off.
    """
    files = read_diff(_encoded(text))
    if not files:
        raise PatchError("No files were modified.", kind="empty")
    _refuse_unsupported(files)
    if reverse:
        files = tuple([file.reversed() for file in reversed(files)])
    root = Path(os.path.normpath(cwd / directory)) if directory else cwd
    targets = targets_of(files, root, strip)
    findings = Findings()
    patcher = Patcher(findings, strict=strict, partial=partial, three_way=three_way)
    with Directories() as handles:
        tree = DiffTree(root, cwd, vacated(targets), handles, readable)
        planner = DiffPlanner(tree, targets, patcher, findings)
        planner.run()
    if not partial or not tree.touched:
        findings.raise_failures()
    notes = [note for report in findings.hunks if (note := report.note())]
    findings.notes = [*notes, *findings.notes]
    plan = PatchPlan(tree.touched, planner.named, findings, emptied=tree.emptied)
    return plan.checked(writable)


def _encoded(text: str | bytes) -> bytes:
    if isinstance(text, bytes):
        return text
    try:
        return text.encode(errors="surrogateescape")
    except UnicodeEncodeError as error:
        raise PatchError("the patch is not valid Unicode text", kind="parse") from error


def _refuse_unsupported(files: Sequence[FileDiff]) -> None:
    for file in files:
        if file.is_binary:
            raise PatchError(
                f"{file.new_name}: changes of binary files cannot be applied",
                kind="parse",
                line=file.line,
            )
        for mode in (file.old_mode, file.new_mode):
            if mode is not None and kind_of(mode) is None:
                raise PatchError(
                    f"{file.new_name}: {mode:06o} is the mode of neither a file nor a link",
                    kind="parse",
                    line=file.line,
                )

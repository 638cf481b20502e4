"""Plan what a unified diff does to the files of a directory.

As with `git apply`, all renames and copies of a diff read the files as they are on disk, whatever else
the diff does to their old names. Other changes of a file take effect in order, so that the diffs of
several commits can follow each other.
"""

import os
import stat
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from codex_py.errors import PatchError
from codex_py.patch.files.change import EntryChange
from codex_py.patch.files.failures import failing_to, file_error
from codex_py.patch.files.handles import Directories
from codex_py.patch.files.modes import kind_of
from codex_py.patch.files.tree import Content
from codex_py.patch.plan import PatchPlan, Planner
from codex_py.patch.report import Findings, HunkReport
from codex_py.patch.unified.content import Patcher, ThreeWay, added, reject
from codex_py.patch.unified.hunks import FileDiff
from codex_py.patch.unified.reader import read_diff
from codex_py.patch.unified.target import REMOVING, Target, targets_of, vacated
from codex_py.patch.unified.tree import DiffTree


def plan_unified(
    text: str | bytes,
    cwd: Path,
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
        text: the diff. In a `str`, bytes that are not UTF-8 are decoded with `surrogateescape`.
        cwd: absolute; names in the diff are relative to it.
        strip: the number of leading directories to leave out of names; None guesses, see
            `targets_of`.
        readable: see `plan_patch`.
        directory: put in front of all names; relative to `cwd`.
        reverse: undo the diff.
        strict: refuse hunks whose place has to be guessed, see `apply_hunks`.
        partial: leave out hunks and files that do not fit; the plan has them as `rejects`.
        three_way: merges a file that is not as in the diff, if the diff names the git blob that it
            was made for.

    Raises:
        PatchError: not all of it can be applied; if `partial`, nothing of it.
    """
    files = read_diff(_encoded(text))
    if not files:
        raise PatchError("No files were modified.", kind="empty")
    if reverse:
        files = tuple([file.reversed() for file in reversed(files)])
    _refuse_unsupported(files)
    root = cwd
    if directory:
        root = Path(os.path.normpath(cwd / directory))
    targets = targets_of(files, root, strip)
    findings = Findings()
    patcher = Patcher(findings, strict=strict, partial=partial, three_way=three_way)
    with Directories() as handles:
        tree = DiffTree(root, cwd, vacated(targets), handles, readable)
        planner = _Planner(tree, targets, patcher)
        planner.run(targets)
        planner.settle()
    if not partial or not tree.touched:
        findings.raise_failures()
    notes = [report.note() for report in findings.hunks]
    # The notes on hunks come before those on files.
    findings.notes[:0] = [note for note in notes if note is not None]
    return PatchPlan(
        tree.touched,
        planner.named,
        findings,
        emptied=tree.emptied,
        only_read=tree.only_read,
    )


def _encoded(text: str | bytes) -> bytes:
    if isinstance(text, bytes):
        return text
    try:
        return text.encode(errors="surrogateescape")
    except UnicodeEncodeError as error:
        raise PatchError("the patch is not valid Unicode text", kind="parse") from error


def _refuse_unsupported(files: Sequence[FileDiff]) -> None:
    """Raise a `PatchError` for binary contents that are not in the diff, and for unknown modes."""
    for file in files:
        if file.is_binary and (not file.halves or file.hunks):
            raise file.refusal(
                f"{file.new_name}: the diff has not all of the binary contents: "
                "`git diff --binary` writes them"
            )
        for mode in (file.old_mode, file.new_mode):
            if mode is not None and kind_of(mode) is None:
                raise file.refusal(
                    f"{file.new_name}: {mode:06o} is the mode of neither a file nor a link"
                )


class _Planner(Planner[Target]):
    def __init__(
        self,
        tree: DiffTree,
        targets: Sequence[Target],
        patcher: Patcher,
    ) -> None:
        super().__init__(patcher.findings)
        self._tree = tree
        self._patcher = patcher
        self._vacated = vacated(targets)
        self._destinations = {
            target.new for target in targets if target.diff.operation not in REMOVING
        }
        self._put_by: dict[str, Target] = {}
        """The target that last wrote each file, by its location."""

    def settle(self) -> None:
        """Settle the tree once all files are planned, and reject those that cannot be written."""
        for file, cause in self._tree.settle():
            target = self._put_by[file.location]
            self._reject(target, file_error("write file", file.path, cause))
            if target.diff.operation == "rename":
                # The file keeps its old name.
                self._tree.entry(target.old).fate = "untouched"

    def _paths(self, part: Target) -> Collection[str]:
        return (part.old, part.new)

    def _plan(self, part: Target) -> None:
        # An error that the cases below let pass is about a path that no file can have.
        with failing_to("write file", part.new):
            match part.diff.operation:
                case "update":
                    self._update(part)
                case "add":
                    self._add(part)
                case "delete" | "uncopy":
                    self._delete(part)
                case "rename" | "copy":
                    self._move(part)

    def _reject(self, part: Target, error: PatchError, /) -> None:
        reject(self.findings, part, part.diff.hunks, [error])

    def _update(self, target: Target) -> None:
        file = self._tree.entry(target.old)
        if target.diff.may_add and not file.present:
            self._add(target)
            return
        if target.diff.old_kind is None:
            # `diff -u` compares the files that links lead to.
            with failing_to("read file to update", target.old):
                file = self._tree.followed(file)
        old = self._current(file, target)
        new = self._patcher.patched(target, file, old)
        self._put(file, new, target)
        self.named.append(("M", target.old_shown))

    def _add(self, target: Target) -> None:
        file = self._tree.entry(target.new)
        new = added(target)
        self._refuse_existing(file, new, target)
        named = ("D", target.new_shown)
        if file.fate == "removed" and named in self.named:
            # git deletes a file and makes it again if it becomes a link, or the like.
            self.named[self.named.index(named)] = ("M", target.new_shown)
        else:
            self.named.append(("A", target.new_shown))
            file.added = True
        self._put(file, new, target)
        if new.kind == "submodule":
            self.findings.notes.append(
                f"{target.new_shown} is a submodule: its empty folder is made, and nothing is fetched."
            )
        for hunk in target.diff.hunks:
            report = HunkReport(target.new, 1, hunk.line, 1, 0)
            self.findings.hunks.append(report)

    def _delete(self, target: Target) -> None:
        file = self._tree.entry(target.old)
        old = self._current(file, target)
        left = self._patcher.patched(target, file, old)
        if left.data and target.diff.operation == "delete":
            raise PatchError(
                f"{target.old}: it has other contents than those that the patch deletes "
                f"({len(left.data)} bytes more)",
                kind="match",
            )
        self._drop(file, target)
        self.named.append(("D", target.old_shown))

    def _move(self, target: Target) -> None:
        source = self._tree.entry(target.old)
        file = self._tree.entry(target.new)
        old = self._original(source, target)
        new = self._patcher.patched(target, source, old)
        if new.kind == "file" and new.mode is None and source.before is not None:
            new = new._replace(mode=source.before.permissions)
        if file is not source:
            self._refuse_existing(file, new, target)
        if target.diff.operation == "copy":
            file.added = True
            self.named.append(("A", target.new_shown))
        else:
            # The old name may be that of another file of the diff.
            if file is not source and target.old not in self._destinations:
                file.origin = source.origin
                if file.origin is None and source.before is not None:
                    file.origin = source
                self._drop(source, target)
            self.named.append(("M", target.new_shown))
        self._put(file, new, target)

    def _drop(self, file: EntryChange, target: Target) -> None:
        with failing_to("delete file", target.old):
            self._tree.drop(file)

    def _put(
        self,
        file: EntryChange,
        content: Content,
        target: Target,
    ) -> None:
        self._tree.put(file, content)
        self._put_by[file.location] = target

    def _current(self, file: EntryChange, target: Target) -> Content:
        """Read an entry as the diff has left it so far."""
        with failing_to("read file to update", target.old):
            content = self._tree.current(file)
            if content.kind == "submodule" and target.diff.old_kind is None:
                raise OSError(f"path `{target.old}` is not a file")
            return content

    def _original(self, file: EntryChange, target: Target) -> Content:
        """Read the file that is renamed or copied, as it was before the diff."""
        if file.before is None:
            return self._current(file, target)
        with failing_to("read file to update", target.old):
            return self._tree.original(file)

    def _refuse_existing(
        self,
        file: EntryChange,
        new: Content,
        target: Target,
    ) -> None:
        """Raise a `PatchError` if a new file is there already, and the diff does not make room."""
        if not file.present:
            return
        put_by = self._put_by.get(file.location)
        is_made_by_diff = put_by is not None and put_by.diff.operation != "update"
        if not is_made_by_diff:
            if target.new in self._vacated:
                return
            if file.had_type(stat.S_IFDIR):
                # There may be room once the diff has emptied it.
                return
        with failing_to("write file", target.new):
            old = self._tree.current(file)
        reason = "already"
        if old.data == new.data and old.kind == new.kind:
            reason = "with the same contents: it seems to be already applied"
        raise PatchError(
            f"{target.new}: the patch makes this file, which is there {reason}",
            kind="match",
        )

"""`apply_patch`: applies a patch to all of its files, or to none.

A patch is checked against the files, then approved, then announced, then written.
"""

import asyncio
import errno
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

from codex_py.errors import PatchError, ToolError
from codex_py.patch.diff.names import MAX_PATH_BYTES
from codex_py.patch.diff.writer import git_diff
from codex_py.patch.envelope.apply import plan_patch
from codex_py.patch.files.commit import Committed
from codex_py.patch.files.journal import Journal
from codex_py.patch.plan import PatchPlan, UnsavedText
from codex_py.protocol.annotations import Aliases
from codex_py.protocol.approval import ApprovalPolicy, ApprovalRequest, may_ask
from codex_py.protocol.calls import (
    PastCall,
    PastItems,
    named_changes,
    read_report,
    shortened,
)
from codex_py.protocol.dispatch import ToolContext
from codex_py.protocol.event_items import Change, FileChange, ThreadItem
from codex_py.protocol.events import FilesPatched, ItemCompleted, ItemStarted
from codex_py.protocol.frozen import frozen
from codex_py.protocol.patched_file import OpenTexts, PatchedFile
from codex_py.protocol.tools import ToolOutput
from codex_py.streams.terminal import some_of
from codex_py.tools.base import ToolParams, command_report
from codex_py.tools.patch.scope import ReadScope, refusal, writable_by
from codex_py.tools.patch.unsaved import show_written, unsaved_texts
from codex_py.tools.threads import to_its_end

_NO_FIT = "PatchFailed"
_MOVED_TO = re.compile(r"^\*\*\* Move to: (.*\S)", re.MULTILINE)


@frozen(kw_only=True)
class ApplyPatchParams(ToolParams):
    input: Annotated[str, "The whole patch.", Aliases(["patch", "patchText"])]


class ApplyPatch:
    """The tool of one session.

    Args:
        home: `$CODEX_HOME`, for the journal of files that patches replace; None keeps no journal.
        unambiguous: refuse a patch whose old lines fit several places; otherwise the first place is
            used.
        open_texts: the texts in the user's editor, which may be newer than those on disk.
    """

    name = "apply_patch"
    params = ApplyPatchParams
    parallel = False

    def __init__(
        self,
        home: Path | None = None,
        *,
        unambiguous: bool = False,
        open_texts: OpenTexts | None = None,
    ) -> None:
        self._home = home
        self._open_texts = open_texts
        self._unambiguous = unambiguous

    async def run(self, params: ApplyPatchParams, context: ToolContext) -> ToolOutput:
        return await self.apply(params.input, context.cwd, context)

    def changes(self, params: ApplyPatchParams, cwd: Path) -> Sequence[Path] | None:
        names = [change.path for change in named_changes(params.input)]
        names += _MOVED_TO.findall(params.input)
        return [cwd / name for name in names] or None

    def show_refusal(
        self, params: ApplyPatchParams, error: ToolError, context: ToolContext
    ) -> None:
        _refuse(_named_files(params.input, context.cwd), "", error, context)

    def replay(self, call: PastCall, past: PastItems) -> ThreadItem | None:
        if not call.has_run:
            return None
        arguments = call.arguments
        patch = str(arguments.get("input", arguments.get("patch", "")))
        item = FileChange(id=past.next_id(), changes=named_changes(patch), diff=patch)
        report = read_report(call.output)
        if report.exit_code == 0:
            return replace(item, status="completed")
        text = report.text.rstrip("\n")
        if not text:
            return replace(item, status="failed")
        return _failed(item, call.error_code or _NO_FIT, text)

    async def apply(
        self,
        patch: str,
        cwd: Path,
        context: ToolContext,
    ) -> ToolOutput:
        """Apply the text of a patch whose relative paths start at `cwd` (absolute).

        A patch that does not fit returns an output in Codex's words, and its item fails. After a
        cancellation, either the whole patch is on disk or none of it.

        If a file has unsaved text in the user's editor, the patch changes this text. It is saved
        just before the patch is written, so undoing the patch brings it back.

        Raises:
            ToolError: the patch was refused, or the editor failed. Its item fails with the code of
                this error.
        """
        started = time.monotonic()
        journal = None if self._home is None else Journal(self._home, cwd)
        scope = ReadScope(context, self._home)
        try:
            unsaved = await self._unsaved(patch, cwd, scope)
        except ToolError as error:
            _refuse(_named_files(patch, cwd), "", error, context)
            raise
        texts = {location: text.editor for location, text in unsaved.items()}
        try:
            recovered, plan, diff = await asyncio.to_thread(
                self._plan, patch, cwd, journal, scope, texts
            )
        except PatchError as error:
            named = _named_files(patch, cwd)
            return _no_plan(error, named, scope, context)
        changes = [
            Change(path=str(change.path), kind=change.kind) for change in plan.changes
        ]
        try:
            await self._approve(plan, cwd, context)
        except ToolError as error:
            _refuse(changes, diff, error, context)
            raise

        item = _start_item(changes, diff, context, plan.changes)
        # A cancellation waits here, so that the whole patch is written or none of it.
        write = partial(self._write, patch, cwd, scope, plan, journal, unsaved)
        saved = tuple(map(Path, unsaved))
        outcome = await to_its_end(_commit(plan, write, saved, item, context))
        wall_s = time.monotonic() - started
        if isinstance(outcome, PatchError):
            report = command_report(1, wall_s, f"{outcome}\n")
            return ToolOutput(report, success=False, error_code=_write_code(outcome))
        notes = [*recovered, *plan.notes, *outcome.notes]
        if self._open_texts is not None:
            notes += await show_written(self._open_texts, plan.changes)
        text = plan.summary() + "".join([f"Note: {note}\n" for note in notes])
        return ToolOutput(command_report(0, wall_s, text))

    async def _unsaved(
        self, patch: str, cwd: Path, scope: ReadScope
    ) -> Mapping[str, UnsavedText]:
        """The unsaved texts of the files that the patch names, by real path.

        Raises:
            ToolError: the editor failed.
        """
        if self._open_texts is None:
            return {}
        paths = [Path(change.path) for change in _named_files(patch, cwd)]
        paths += [cwd / name for name in _MOVED_TO.findall(patch)]
        return await unsaved_texts(self._open_texts, paths, scope)

    def _plan(
        self,
        patch: str,
        cwd: Path,
        journal: Journal | None,
        scope: ReadScope,
        texts: Mapping[str, bytes],
    ) -> tuple[list[str], PatchPlan, str]:
        """Undo the rest of an interrupted patch, and check this one against the files. Blocks.

        Returns notes about what was undone, the plan, and the diff of the changes. Raises a
        `PatchError` if the patch does not fit.
        """
        recovered: list[str] = []
        if journal is not None:
            recovered = journal.recover()
        plan = self._planned(patch, cwd, scope, texts)
        return recovered, plan, git_diff(plan.changes, cwd)

    def _planned(
        self, patch: str, cwd: Path, scope: ReadScope, texts: Mapping[str, bytes]
    ) -> PatchPlan:
        return plan_patch(
            patch,
            cwd,
            readable=scope.readable,
            unambiguous=self._unambiguous,
            texts=texts,
        )

    def _write(
        self,
        patch: str,
        cwd: Path,
        scope: ReadScope,
        plan: PatchPlan,
        journal: Journal | None,
        unsaved: Mapping[str, UnsavedText],
    ) -> Committed:
        """Save the unsaved texts, and write the plan. Blocks; raises a `PatchError`."""
        if unsaved:
            plan.save(unsaved)
            saved = self._planned(patch, cwd, scope, {})
            if saved.changes != plan.changes:
                raise PatchError(
                    "a file has changed since the patch was checked", kind="file"
                )
            plan = saved
        return plan.commit(journal)

    async def _approve(
        self,
        plan: PatchPlan,
        cwd: Path,
        context: ToolContext,
    ) -> None:
        """Ask for an approval if needed.

        Raises:
            ToolError: the patch may not be written.
        """
        policy = context.approval_policy
        outside: Sequence[Path] = []
        writable = writable_by(context, self._home)
        if writable is not None:
            outside = plan.refused(writable)
        if not outside and policy is not ApprovalPolicy.UNTRUSTED:
            return
        if context.sandbox_policy.is_final or not may_ask(policy, "sandbox_approval"):
            raise refusal(context)
        request = _approval_request(plan, outside, cwd, context)
        approvals = context.approvals
        async with approvals.asking:
            # Approvals are for resolved paths: a command can change the target of a link.
            if not plan.locations <= approvals.granted:
                await approvals.ask(
                    request, plan.locations, rejected="patch rejected by user"
                )


def _approval_request(
    plan: PatchPlan, outside: Sequence[Path], cwd: Path, context: ToolContext
) -> ApprovalRequest:
    """The question about a patch. It names `outside`, the files outside of the sandbox, by their
    resolved paths."""
    changes = plan.changes_by_place(outside)
    reason = None
    if outside:
        named = some_of([str(path) for path in outside], 3)
        reason = f"writes outside of the sandbox: {named}"
    paths: list[Path] = []
    for change in changes:
        paths.append(change.path)
        if change.move_to is not None:
            paths.append(change.move_to)
    return ApprovalRequest(
        "patch",
        git_diff(changes, cwd),
        context.cwd,
        reason,
        paths=tuple(paths),
        files=changes,
        item_id=context.next_item_id.upcoming,
    )


def _named_files(patch: str, cwd: Path) -> list[Change]:
    """The files that a patch names, with absolute paths. The patch need not fit them."""
    return [
        replace(change, path=os.path.normpath(cwd / change.path))
        for change in named_changes(patch)
        if len(change.path) <= MAX_PATH_BYTES
    ]


def _no_plan(
    error: PatchError,
    named: Sequence[Change],
    scope: ReadScope,
    context: ToolContext,
) -> ToolOutput:
    """The output for a patch that does not fit the files `named` in it, after its item has failed.

    Raises:
        CallRefused: the patch may not read or write a file.
    """
    if error.kind == "refused":
        refused = refusal(context)
        _refuse(named, "", refused, context)
        raise refused from error
    text = scope.failure(error)
    _refuse(named, "", ToolError(text, code=_NO_FIT), context)
    return ToolOutput(text, success=False, error_code=_NO_FIT)


def _failed(
    item: FileChange,
    code: str,
    reason: str,
) -> FileChange:
    error = {"code": code, "message": shortened(reason)}
    return replace(item, status="failed", error=error)


def _start_item(
    changes: Sequence[Change],
    diff: str,
    context: ToolContext,
    files: Sequence[PatchedFile] = (),
) -> FileChange:
    """Emit the start of an item, with `files`. The returned item has none, as its end needs none."""
    by_path = sorted(changes, key=lambda change: change.path)
    item = FileChange(id=context.next_item_id(), changes=by_path, diff=diff)
    context.emit(ItemStarted(replace(item, files=files)))
    return item


def _refuse(
    changes: Sequence[Change], diff: str, error: ToolError, context: ToolContext
) -> None:
    """Emit an item that starts and fails at once."""
    item = _start_item(changes, diff, context)
    failed = _failed(item, error.code, str(error))
    context.emit(ItemCompleted(failed))


async def _commit(
    plan: PatchPlan,
    write: Callable[[], Committed],
    saved: Sequence[Path],
    item: FileChange,
    context: ToolContext,
) -> Committed | PatchError:
    """Write the plan with `write`, which blocks, and complete its item.

    Returns a `PatchError` if the patch could not be written.
    """
    try:
        committed = await asyncio.to_thread(write)
    except Exception as failure:
        failed = _failed(item, _write_code(failure), str(failure))
        context.emit(ItemCompleted(failed))
        if isinstance(failure, PatchError):
            return failure
        raise
    context.emit(FilesPatched(plan.changes, committed.number, saved))
    context.emit(ItemCompleted(replace(item, status="completed")))
    return committed


def _write_code(failure: BaseException) -> str:
    """The name of the operating system's error, such as `ENOSPC`; `PatchFailed` for any other
    failure."""
    cause = failure.__cause__
    if not isinstance(cause, OSError):
        return _NO_FIT
    return errno.errorcode.get(cause.errno or 0, _NO_FIT)

"""Run `apply_patch`: change files as a patch says, all of them or none.

A patch is checked against the files, then approved, then announced, then written.
"""

import asyncio
import errno
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from codex_py.errors import CallRefused, PatchError, ToolError
from codex_py.patch.diff.names import MAX_PATH_BYTES
from codex_py.patch.diff.writer import git_diff
from codex_py.patch.envelope.apply import plan_patch
from codex_py.patch.files.commit import Committed
from codex_py.patch.files.journal import Journal
from codex_py.patch.plan import PatchPlan, readable_under, writable_under
from codex_py.protocol.approval import ApprovalPolicy, ApprovalRequest, may_ask
from codex_py.protocol.calls import named_changes, shortened
from codex_py.protocol.dispatch import ToolContext
from codex_py.protocol.events import (
    Change,
    FileChange,
    FilesPatched,
    ItemCompleted,
    ItemStarted,
)
from codex_py.protocol.tools import ToolOutput
from codex_py.sandbox.layout import absent_names, layout, own_paths, resolve_roots, secrets

_NO_FIT = "PatchFailed"
_OUTSIDE = "patch rejected: writing outside of the project; rejected by user approval settings"
_READ_ONLY = (
    "patch rejected: writing is blocked by read-only sandbox; rejected by user approval settings"
)


class PatchCalls:
    """One instance serves a session.

    Args:
        home: `$CODEX_HOME`, for the journal of files that patches replace; None keeps no journal.
        unambiguous: refuse a patch whose old lines fit several places; otherwise the first one is used.
    """

    def __init__(self, home: Path | None, *, unambiguous: bool = False) -> None:
        self._home = home
        self._unambiguous = unambiguous

    async def apply(self, patch: str, cwd: Path, context: ToolContext) -> ToolOutput:
        """Apply the text of a patch whose relative paths start at `cwd` (absolute).

        A patch that does not fit gets an output in Codex's words, and a failed item. After a cancellation,
        either the whole patch is on disk or nothing of it.

        Raises:
            ToolError: the patch was refused. Its item has the status `declined`.
        """
        started = time.monotonic()
        journal = None if self._home is None else Journal(self._home, cwd)
        scope = self._read_scope(context)
        try:
            recovered, plan, diff = await asyncio.to_thread(self._plan, patch, cwd, journal, scope)
        except PatchError as error:
            if error.kind == "refused":
                refusal = _refusal(context)
                _decline(_named_files(patch, cwd), "", refusal, context)
                raise refusal from error
            text = scope.failure(error)
            item = _start_item(_named_files(patch, cwd), "", context)
            context.emit(ItemCompleted(_failed(item, _NO_FIT, text)))
            return ToolOutput(text, success=False, error_code=_NO_FIT)
        changes = [Change(path=str(change.path), kind=change.kind) for change in plan.changes]
        try:
            await self._approve(plan, cwd, context)
        except ToolError as error:
            _decline(changes, diff, error, context)
            raise

        item = _start_item(changes, diff, context)
        outcome = await _commit(plan, journal, item, context)
        if isinstance(outcome, PatchError):
            return ToolOutput(_report(1, started, f"{outcome}\n"), success=False)
        notes = "".join([f"Note: {note}\n" for note in (*recovered, *plan.notes, *outcome.notes)])
        return ToolOutput(_report(0, started, plan.summary() + notes))

    def _plan(
        self, patch: str, cwd: Path, journal: Journal | None, scope: "_ReadScope"
    ) -> tuple[list[str], PatchPlan, str]:
        """Recover interrupted patches, then plan this one. Returns notes on the former, the plan, and its diff."""
        recovered = [] if journal is None else journal.recover()
        unambiguous = self._unambiguous
        plan = plan_patch(patch, cwd, readable=scope.readable, unambiguous=unambiguous)
        return recovered, plan, git_diff(plan.changes, cwd)

    async def _approve(self, plan: PatchPlan, cwd: Path, context: ToolContext) -> None:
        """Return if the plan may be carried out. The question names files outside by their resolved paths.

        Raises:
            ToolError: the policy or the user refused.
        """
        policy = context.approval_policy
        writable = self._writable(context)
        outside = [] if writable is None else plan.refused(writable)
        asks_always = policy is ApprovalPolicy.UNTRUSTED
        if not outside and not asks_always:
            return
        if not may_ask(policy, "sandbox_approval"):
            raise _refusal(context)
        changes = plan.changes_by_place(outside)
        diff = git_diff(changes, cwd)
        paths = tuple([path for c in changes for path in (c.path, c.move_to) if path])
        request = ApprovalRequest("patch", diff, context.cwd, _reason(outside), paths=paths)
        approvals = context.approvals
        async with approvals.asking:
            # The resolved paths: a command can change where a link leads.
            if not plan.locations <= approvals.granted:
                await approvals.ask(request, plan.locations, rejected="patch rejected by user")

    def _read_scope(self, context: ToolContext) -> "_ReadScope":
        writable = self._writable(context)
        if writable is None:
            return _ReadScope(lambda _path: True, hidden=(), may_ask=False)
        roots = (context.cwd, *context.sandbox_policy.writable_roots)
        below = readable_under(roots)
        approved = {str(key) for key in context.approvals.granted if isinstance(key, Path)}
        return _ReadScope(
            lambda path: below(path) or path in approved or writable(path),
            hidden=() if self._home is None else secrets(self._home),
            may_ask=may_ask(context.approval_policy, "sandbox_approval"),
        )

    def _writable(self, context: ToolContext) -> Callable[[str], bool] | None:
        """Tells which files the sandbox allows to write; None if it allows all."""
        policy = context.sandbox_policy
        match policy.mode:
            case "danger-full-access":
                return None
            case "read-only":
                return lambda _path: False
            case "workspace-write":
                # As for commands: see `PlatformSandbox`.
                roots = resolve_roots(policy, context.environment.get("TMPDIR", ""), self._home)
                absent = absent_names(roots)
                own = (*own_paths(), *([] if self._home is None else [self._home]))
                held = layout(roots, own, offline=True).protected
                return _excluding((*held, *absent), writable_under(roots.all))


class _ReadScope:
    """The files that a patch may read before it is approved.

    Our own process reads them, which is not sandboxed, and the error for a patch that does not fit quotes lines of
    the file. So a file outside of the sandbox is read only if the user can be asked, and the error does not quote it.
    Files that are hidden from commands are never read.
    """

    def __init__(
        self, inside: Callable[[str], bool], *, hidden: Sequence[Path], may_ask: bool
    ) -> None:
        self._inside = inside
        self._hidden = tuple([f"{path}/" for path in hidden])
        self._may_ask = may_ask
        self._outside: list[str] = []

    def readable(self, path: str) -> bool:
        if f"{path}/".startswith(self._hidden):
            return False
        if self._inside(path):
            return True
        self._outside.append(path)
        return self._may_ask

    def failure(self, error: PatchError) -> str:
        if not self._outside:
            return _verification_failure(error)
        named = _listed(list(dict.fromkeys(self._outside)))
        return (
            f"apply_patch verification failed: the patch reads {named}, outside of the sandbox, and does "
            "not fit; look at the files with a command first"
        )


def _excluding(protected: Sequence[Path], writable: Callable[[str], bool]) -> Callable[[str], bool]:
    """Exclude these paths (without links), and all below them, from what `writable` allows."""
    # Some file systems ignore case.
    closed = tuple(f"{path}/".casefold() for path in protected)
    return lambda path: writable(path) and not f"{path}/".casefold().startswith(closed)


def _named_files(patch: str, cwd: Path) -> list[Change]:
    """The files that a patch names, although it does not fit; absolute paths."""
    named = named_changes(patch)
    return [
        replace(change, path=os.path.normpath(cwd / change.path))
        for change in named
        if len(change.path) <= MAX_PATH_BYTES
    ]


def _failed(item: FileChange, code: str, reason: str) -> FileChange:
    return replace(item, status="failed", error={"code": code, "message": shortened(reason)})


def _start_item(changes: Sequence[Change], diff: str, context: ToolContext) -> FileChange:
    item = FileChange(
        id=context.next_item_id(),
        changes=sorted(changes, key=lambda change: change.path),
        diff=diff,
    )
    context.emit(ItemStarted(item))
    return item


def _decline(changes: Sequence[Change], diff: str, error: ToolError, context: ToolContext) -> None:
    item = _failed(_start_item(changes, diff, context), error.code, str(error))
    context.emit(ItemCompleted(replace(item, status="declined")))


def _refusal(context: ToolContext) -> CallRefused:
    if context.sandbox_policy.mode == "read-only":
        text, cause, allow = _READ_ONLY, "the sandbox is read-only", "-s workspace-write"
    else:
        text, cause, allow = _OUTSIDE, "a patch leaves the workspace", "--add-dir FOLDER"
    return CallRefused(text, code="SandboxDenied", cause=cause, allow=allow)


async def _commit(
    plan: PatchPlan, journal: Journal | None, item: FileChange, context: ToolContext
) -> Committed | PatchError:
    """Write the plan and complete its item. Returns the error if nothing could be written."""
    commit = asyncio.ensure_future(asyncio.to_thread(plan.commit, journal))
    cancelled: asyncio.CancelledError | None = None
    while not commit.done():
        try:
            await asyncio.wait([commit])
        except asyncio.CancelledError as error:
            # A thread cannot be stopped; it ends by itself, with everything or nothing written.
            cancelled = error
    failure = commit.exception()
    if failure is None:
        context.emit(FilesPatched(plan.changes))
        context.emit(ItemCompleted(replace(item, status="completed")))
    else:
        context.emit(ItemCompleted(_failed(item, _write_code(failure), str(failure))))
    if cancelled is not None:
        raise cancelled
    if failure is not None and not isinstance(failure, PatchError):
        raise failure
    return failure or commit.result()


def _write_code(failure: BaseException) -> str:
    """The name of the operating system's error, if it is one: `ENOSPC`, …"""
    cause = failure.__cause__
    number = cause.errno if isinstance(cause, OSError) else None
    return errno.errorcode.get(number or 0, _NO_FIT)


def _reason(outside: Sequence[Path]) -> str | None:
    if not outside:
        return None
    return f"writes outside of the sandbox: {_listed([str(path) for path in outside])}"


def _listed(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - 3} more" if len(paths) > 3 else ""
    return ", ".join(paths[:3]) + more


def _verification_failure(error: PatchError) -> str:
    if error.kind == "empty":
        return "patch rejected: empty patch"
    if error.kind != "parse":
        message = error.reason
    elif error.line is None:
        message = f"invalid patch: {error.reason}"
    else:
        message = f"invalid hunk at line {error.line}, {error.reason}"
    return f"apply_patch verification failed: {message}"


def _report(exit_code: int, started: float, output: str) -> str:
    """The output in the format of a command, as in Codex."""
    seconds = f"{time.monotonic() - started:.1f}".removesuffix(".0")
    return f"Exit code: {exit_code}\nWall time: {seconds} seconds\nOutput:\n{output}"

"""Running a call: the tool, its context, and the function that extensions wrap. LIGHT."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypeVar, runtime_checkable

from codex_py.errors import CodexError, ToolError
from codex_py.protocol.approval import (
    ApprovalRequest,
    Approver,
    AskForApproval,
    ReviewDecision,
    SandboxPolicy,
    as_review,
)
from codex_py.protocol.events import EventSink
from codex_py.protocol.frozen import frozen
from codex_py.protocol.tools import ToolCall, ToolOutput


class ItemIds:
    """The ids of a tool call's thread items: calling this object returns a fresh `item_N`."""

    def __init__(self, fresh: Callable[[], str]) -> None:
        self._fresh = fresh
        self._upcoming: str | None = None

    def __call__(self) -> str:
        item_id = self._upcoming or self._fresh()
        self._upcoming = None
        return item_id

    @property
    def upcoming(self) -> str:
        """The id of the next item. A question about the call names it before the item exists."""
        if self._upcoming is None:
            self._upcoming = self._fresh()
        return self._upcoming


class ApproverFailed(Exception):
    """An approver raised `error`, which ends the turn: the approver is not part of a call."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(error)
        self.error = error


def is_cancelled() -> bool:
    """True if the current task was cancelled.

    A `CancelledError` is a bug otherwise: it comes from work that the task has awaited.
    """
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


class Approvals:
    """The approvals that the user granted for a session. Tools ask for more here.

    Hold the lock `asking` while you ask, so that the user gets one question at a time. A session
    shares the lock with its children. Check `granted` again once you hold it: the previous answer
    may cover this call.

    Args:
        abort: ends the turn. It is called if the user decides `ABORT`.
        asking: the lock of the parent session; None makes a new one.
        agent: the nickname of the subagent; see `ApprovalRequest`.
    """

    def __init__(
        self,
        approver: Approver,
        abort: Callable[[], None] = lambda: None,
        asking: asyncio.Lock | None = None,
        agent: str | None = None,
    ) -> None:
        self._approver = approver
        self._abort = abort
        self._agent = agent
        self.granted: set[Any] = set()
        """Keys of the commands, files and tools that are approved for the session."""
        self.asking = asking or asyncio.Lock()

    async def ask(
        self, request: ApprovalRequest, grants: Iterable[Hashable], *, rejected: str
    ) -> ReviewDecision:
        """Ask the user. Returns one of the approving decisions.

        Args:
            grants: keys to add to `granted` if the user approves for the session.
            rejected: the beginning of the error if the user refuses; their feedback follows.

        Raises:
            ToolError: the user refused.
            CodexError: the approver raised it, or its answer cannot be understood.
            ApproverFailed: the approver raised another exception. Tools must not catch this.
        """
        try:
            answer = await self._approver.review(replace(request, agent=self._agent))
        except (CodexError, ToolError, GeneratorExit):
            raise
        except asyncio.CancelledError as error:
            if is_cancelled():
                raise
            # The approver itself was cancelled, not the call.
            raise ApproverFailed(error) from error
        except BaseException as error:
            raise ApproverFailed(error) from error
        review = as_review(answer)
        if review.decision is ReviewDecision.ABORT:
            self._abort()
        if review.decision in {ReviewDecision.DENIED, ReviewDecision.ABORT}:
            if review.feedback:
                rejected = f"{rejected}: {review.feedback}"
            raise ToolError(rejected, code="ApprovalDenied")
        if review.decision is ReviewDecision.APPROVED_FOR_SESSION:
            self.granted.update(grants)
        return review.decision


@frozen
class ToolContext:
    """The facts about the turn of a call that its tool gets."""

    call_id: str
    cwd: Path
    """The working directory, absolute."""
    environment: dict[str, str]
    """The environment for child processes; the configured policy has been applied."""
    approval_policy: AskForApproval
    sandbox_policy: SandboxPolicy
    approvals: Approvals
    emit: EventSink
    next_item_id: ItemIds
    """The ids of this call alone."""
    output_token_limit: int = 10_000
    """Limit on the output that the model gets, in tokens of about four bytes."""


ParamsT_contra = TypeVar("ParamsT_contra", contravariant=True)


class Tool(Protocol[ParamsT_contra]):
    """Something that the model can call.

    A tool may implement `KnowsChanges`, `ShowsRefusals` and `Replayable` as well.
    """

    name: str
    params: type[Any]
    """The class of the arguments: a `ToolParams` or a pydantic model. The class of a freeform tool
    has one field, `input: str`."""
    parallel: bool
    """False: runs alone, after all earlier calls and before all later ones."""

    async def run(self, params: ParamsT_contra, context: ToolContext) -> ToolOutput:
        """Carry out a call.

        The tool itself emits the thread items of the call: each starts, and completes on every
        path. After a cancellation, no process is left running and no file half-written.

        Raises:
            ToolError: its text becomes the output of the call. See `Dispatch` for other exceptions.
        """
        ...


@runtime_checkable
class KnowsChanges(Protocol):
    """A tool that can tell which files a call will change."""

    def changes(self, params: Any, cwd: Path) -> Sequence[Path] | None:
        """The absolute paths of the files; None if they are not known. `params` is an instance of
        `Tool.params`."""
        ...


@runtime_checkable
class ShowsRefusals(Protocol):
    """A tool whose refused calls have thread items too."""

    def show_refusal(
        self,
        params: Any,
        error: ToolError,
        context: ToolContext,
    ) -> None:
        """Emit the item of a call that an extension, such as a hook, refused."""
        ...


def changed_paths(use: "ToolUse") -> Sequence[Path] | None:
    """The absolute paths of the files that a call will change.

    Empty if it changes none, None if they are not known. Paths that no file can have are left out:
    the tool refuses them.
    """
    tool = use.tool
    paths = None
    if isinstance(tool, KnowsChanges):
        paths = tool.changes(use.params, use.context.cwd)
    if paths is None:
        return None
    return tuple(path for path in paths if _can_exist(path))


def _can_exist(path: Path) -> bool:
    """False for a path with a NUL, or with a character that the file system's encoding lacks."""
    try:
        return b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        return False


@frozen
class ToolUse:
    """A call that leaves the queue, with its tool and its checked arguments.

    `replace(use, params=…)` changes the arguments of the run. The history keeps the call as the
    model made it.
    """

    call: ToolCall
    tool: Tool[Any]
    params: Any
    """An instance of `tool.params`."""
    context: ToolContext


Dispatch: TypeAlias = Callable[[ToolUse], Awaitable[ToolOutput]]
"""Runs a call and returns its output. Exceptions of the tool have become outputs already, unless
they end the turn.

A wrapper may skip the call, change it, repeat it, or add `ToolOutput.notes`. If the wrapper, or the
tool, raises

- `ToolError` or `OSError`, its text becomes the output of this call;
- a `CodexError`, the turn ends with it: the other calls are cancelled, and each call without an
  output is answered `aborted: {error}`. Nothing is retried, not even after a `ModelError`. After a
  `TurnSuspended`, the turn ends once the other calls have ended, and the session file has no output
  of this call, so that a later session can run it, see `ThreadState.open_call`;
- `CancelledError` because the call was cancelled, or `KeyboardInterrupt`, it is passed on;
- anything else, `SystemExit` included, it is a bug, which fails this call alone: its output is
  `internal error` with the code `UnknownError`, and `BugFound` has the traceback.

An exception group counts as the first bug in it, or, without a bug, as the first error.
"""

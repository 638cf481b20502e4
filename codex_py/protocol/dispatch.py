"""How a call is run: the tool, its context, and the function that extensions wrap. LIGHT."""

import asyncio
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
    """The ids of a call's thread items: each call of this gives a fresh `item_N`."""

    def __init__(self, fresh: Callable[[], str]) -> None:
        self._fresh = fresh
        self._upcoming: str | None = None

    def __call__(self) -> str:
        taken = self.upcoming
        self._upcoming = None
        return taken

    @property
    def upcoming(self) -> str:
        """The id that the next item gets: a question about the call comes before its item, and names it."""
        if self._upcoming is None:
            self._upcoming = self._fresh()
        return self._upcoming


class ApproverFailed(Exception):
    """An approver, which is no part of a call, raised `error`: the turn ends with it."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


class Approvals:
    """The approvals that the user granted for a session. Tools ask for further ones here.

    Hold `asking` while you ask, so that the user gets one question at a time. A session shares it with its children.
    Check `granted` again once you hold it:
    the previous answer may cover this call.

    Args:
        abort: ends the turn; called if the user decides `ABORT`.
        agent: see `ApprovalRequest`.
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
            rejected: how the error begins if the user refuses; their feedback follows.

        Raises:
            ToolError: the user refused.
            CodexError: the approver gave no answer that can be understood.
            ApproverFailed: it raised something else. It is not for tools to catch.
        """
        try:
            answer = await self._approver.review(replace(request, agent=self._agent))
        except (CodexError, ToolError):
            raise
        except Exception as error:
            raise ApproverFailed(error) from error
        review = as_review(answer)
        if review.decision is ReviewDecision.ABORT:
            self._abort()
        if review.decision in {ReviewDecision.DENIED, ReviewDecision.ABORT}:
            if review.feedback:
                feedback = f": {review.feedback}"
            else:
                feedback = ""
            raise ToolError(f"{rejected}{feedback}", code="ApprovalDenied")
        if review.decision is ReviewDecision.APPROVED_FOR_SESSION:
            self.granted.update(grants)
        return review.decision


@frozen
class ToolContext:
    """What a tool gets to know about the turn of its call."""

    call_id: str
    cwd: Path
    """Absolute."""
    environment: dict[str, str]
    """For child processes; the policy of the configuration has been applied."""
    approval_policy: AskForApproval
    sandbox_policy: SandboxPolicy
    approvals: Approvals
    emit: EventSink
    next_item_id: ItemIds
    """Of this call alone."""
    output_token_limit: int = 10_000
    """How much output the model gets, in tokens of about four bytes."""


ParamsT_contra = TypeVar("ParamsT_contra", contravariant=True)


class Tool(Protocol[ParamsT_contra]):
    """Something that the model can call.

    A tool may implement `KnowsChanges`, `ShowsRefusals` and `Replayable` as well. `run` emits the thread items of the
    call itself (started, then completed on every path). After a cancellation it leaves no process running and no file
    half-written.

    Raises:
        ToolError: its text becomes the output of the call. So does any other exception, see `Dispatch`.
    """

    name: str
    params: type[Any]
    """A `ToolParams`, or a pydantic model, of the arguments. A freeform tool has one field, `input: str`."""
    parallel: bool
    """False: runs alone, after all earlier calls and before all later ones."""

    async def run(self, params: ParamsT_contra, context: ToolContext) -> ToolOutput: ...


@runtime_checkable
class KnowsChanges(Protocol):
    """A tool that can tell which files a call will change."""

    def changes(self, params: Any, cwd: Path) -> Sequence[Path] | None:
        """The files, absolute; None if they are not known. `params` is an instance of `Tool.params`."""
        ...


@runtime_checkable
class ShowsRefusals(Protocol):
    def show_refusal(self, params: Any, error: ToolError, context: ToolContext) -> None:
        """Emit the item of a call that an extension refused, such as a hook."""
        ...


def changed_paths(use: "ToolUse") -> Sequence[Path] | None:
    """The files that a call will change, absolute; empty if none, None if they are not known."""
    tool = use.tool
    if isinstance(tool, KnowsChanges):
        return tool.changes(use.params, use.context.cwd)
    return None


@frozen
class ToolUse:
    """A call with its tool and its checked arguments, when its turn in the queue has come.

    `replace(use, params=…)` changes what runs. The history keeps the call as the model made it.
    """

    call: ToolCall
    tool: Tool[Any]
    params: Any
    """An instance of `tool.params`."""
    context: ToolContext


Dispatch: TypeAlias = Callable[[ToolUse], Awaitable[ToolOutput]]
"""Runs a call and returns its output. Whatever the tool raised has become an output already, unless it ends the turn.

A wrapper may skip the call, change it, repeat it, or add `ToolOutput.notes`. If it, or the tool, raises

- `ToolError` or `OSError`, its text becomes the output of this call;
- a `CodexError`, the turn ends with it: the other calls are cancelled, and each call without an output is
  answered `aborted: {error}`. Nothing is retried, not even after a `ModelError`. With a `TurnSuspended` the turn ends
  when the other calls have ended, and the session file has no output of this call, so that a later session can run it,
  see `ThreadState.open_call`;
- `CancelledError` because the call was cancelled, or `KeyboardInterrupt`, it is passed on;
- anything else, `SystemExit` included, it is a bug, which costs this call alone: its output is `internal error` with
  the code `UnknownError`, and `BugFound` has the traceback.

A group of exceptions counts as its first bug, or else as its first error.
"""

"""Running a call: the tool, what the call may know, and the seam around the run. LIGHT."""

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypeVar, runtime_checkable

from codex_py.protocol.approval import Approvals, AskForApproval, SandboxPolicy
from codex_py.protocol.events import EventSink
from codex_py.protocol.frozen import frozen
from codex_py.protocol.tools import ToolCall, ToolOutput


@frozen
class ToolContext:
    """What a call may know of the turn that it belongs to."""

    call_id: str
    cwd: Path
    """Absolute."""
    environment: dict[str, str]
    """For child processes; the policy of the configuration has been applied."""
    approval_policy: AskForApproval
    sandbox_policy: SandboxPolicy
    approvals: Approvals
    emit: EventSink
    next_item_id: Callable[[], str]
    """A fresh `item_N` for a thread item of this call."""
    output_token_limit: int = 10_000
    """How much of a result the model is given, tokens of about four bytes."""


ParamsT_contra = TypeVar("ParamsT_contra", contravariant=True)


class Tool(Protocol[ParamsT_contra]):
    """One thing that the model can do.

    A tool may be a `KnowsChanges` and a `ShownAgain` as well. `run` honours cancellation by leaving nothing behind it running or half-written, and emits the
    thread items of the call itself (started, then completed on every path).

    Raises:
        ToolError: the model is told its text.
    """

    name: str
    params: type[Any]
    """pydantic model of the arguments. A freeform tool has one field, `input: str`."""
    parallel: bool
    """False: runs alone, after all earlier calls and before all later ones."""

    async def run(self, params: ParamsT_contra, context: ToolContext) -> ToolOutput: ...


@runtime_checkable
class KnowsChanges(Protocol):
    """A tool that can tell which files a call will change."""

    def changes(self, params: Any, cwd: Path) -> Sequence[Path] | None:
        """The files, absolute; None if that cannot be told for this call. `params` are the tool's own."""
        ...


def changed_paths(use: "ToolUse") -> Sequence[Path] | None:
    """The files that a call will change, absolute. Empty: it changes none. None: that cannot be told."""
    tool = use.tool
    return tool.changes(use.params, use.context.cwd) if isinstance(tool, KnowsChanges) else None


@frozen
class ToolUse:
    """A call that was understood, and whose turn it is. `replace(use, params=…)` changes what runs.

    The history keeps the call as the model made it.
    """

    call: ToolCall
    tool: Tool[Any]
    params: Any
    """An instance of `tool.params`."""
    context: ToolContext


Dispatch: TypeAlias = Callable[[ToolUse], Awaitable[ToolOutput]]
"""Runs a call to its output. `ToolError` and `OSError` of a tool are outputs already.

A wrapper may skip the call, change it, repeat it, or add `ToolOutput.notes`. If it raises

- `ToolError`, the model is told its text as the output of this call;
- any other `CodexError`, the turn ends with it: the other calls are cancelled, and each call without an output is
  answered `aborted: {error}`. Nothing is tried again, not even after a `ModelError`;
- anything else, it is a bug: the turn ends as `internal error`, and whoever runs the turn gets the exception.
"""

"""The seam that every tool stands behind."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict

from codex_py.protocol.approval import Approver, AskForApproval, SandboxPolicy
from codex_py.protocol.events import EventSink
from codex_py.protocol.tools import ToolOutput


class ToolParams(BaseModel):
    """Arguments of a tool. Unknown keys are ignored, as Codex does: models invent them."""

    model_config = ConfigDict(extra="ignore", frozen=True)


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a call may know of the turn that it belongs to."""

    call_id: str
    cwd: Path
    """Absolute."""
    environment: dict[str, str]
    """For child processes; the policy of the configuration has been applied."""
    approval_policy: AskForApproval
    sandbox_policy: SandboxPolicy
    approver: Approver
    emit: EventSink
    next_item_id: Callable[[], str]
    """A fresh `item_N` for a thread item of this call."""
    output_token_limit: int = 10_000
    """How much of a result the model is given, tokens of about four bytes."""


ParamsT_contra = TypeVar("ParamsT_contra", bound=BaseModel, contravariant=True)


class Tool(Protocol[ParamsT_contra]):
    """One thing that the model can do.

    `run` honours cancellation by leaving nothing behind it running or half-written, and emits the
    thread items of the call itself (started, then completed on every path).

    Raises:
        ToolError: the model is told its text.
    """

    name: str
    params: type[Any]
    """pydantic model of the arguments. A freeform tool has one field, `input: str`."""
    parallel: bool
    """May run beside other calls. One that may not waits for those before it and holds up those after."""

    async def run(self, params: ParamsT_contra, context: ToolContext) -> ToolOutput: ...

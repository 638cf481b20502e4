"""A conversation with a model: the one owner of its state."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from codex_py.core.history import History
from codex_py.core.images import image_parts
from codex_py.core.turn import ItemHandlers, RetryBudget, Turn
from codex_py.errors import CodexError, TurnAborted
from codex_py.protocol.approval import ApprovalPolicy, SandboxPolicy
from codex_py.protocol.events import (
    AgentMessage,
    CallDenied,
    Error,
    ErrorInfo,
    ErrorItem,
    Event,
    EventSink,
    ItemCompleted,
    ThreadStarted,
    TurnCompleted,
    TurnFailed,
    TurnStarted,
    UsageReported,
)
from codex_py.protocol.messages import EncodedItem, input_text, message
from codex_py.protocol.stream import ModelClient, Prompt, Usage
from codex_py.protocol.tools import ToolSpec

if TYPE_CHECKING:
    # pydantic is not loaded before the first request is out.
    from codex_py.protocol.items import ResponseItem

_ABORTED_NOTE = (
    "<turn_aborted>\nThe user interrupted the previous turn on purpose. Commands that were running"
    " have been stopped and may have done part of their work: check before you repeat one.\n"
    "</turn_aborted>"
)


@dataclass(frozen=True, slots=True)
class TurnSettings:
    """What the turns of a session run with."""

    model: str
    provider: str
    """Its name for people."""
    cwd: Path
    approval_policy: ApprovalPolicy
    sandbox_policy: SandboxPolicy
    context_window: int
    """Tokens that the model takes in, less what is kept free."""
    reasoning_effort: str | None = None
    """As configured; None where the model's default holds."""
    reasoning_summary: str | None = None
    reasoning: dict[str, Any] | None = None
    """As sent."""
    verbosity: str | None = None
    service_tier: str | None = None
    image_detail: str = "high"
    tools: Sequence[ToolSpec] = ()
    parallel_tool_calls: bool = True
    max_responses: int = 1000
    """How often the model is asked within one turn before it is stopped."""


@dataclass(frozen=True, slots=True)
class TurnResult:
    last_message: str | None
    """Text of the turn's last agent message."""
    usage: Usage
    """Of the whole thread."""
    error: CodexError | None = None
    denied: bool = False
    """A call was not let run: by a policy, or by whoever was asked."""
    refusal: CodexError | None = None
    """Why the model could not do all it wanted on this machine, although the turn completed."""


class Recorder(Protocol):
    """Where a session is written as it happens."""

    def response_item(self, item: EncodedItem) -> None: ...
    def turn_context(self, payload: Mapping[str, Any]) -> None: ...
    def event_msg(self, payload: Mapping[str, Any]) -> None: ...


class Session:
    """One thread.

    Args:
        history: what the model has been told so far, the initial context included.
        load_handlers: see `Turn`.
        retries: gives each turn its budget.
        end_turn: awaited at the end of every turn, before its last event; again if it was
            interrupted.
    """

    def __init__(
        self,
        *,
        thread_id: str,
        settings: TurnSettings,
        history: History,
        usage: Usage,
        model: ModelClient,
        recorder: Recorder,
        load_handlers: Callable[["Session"], ItemHandlers],
        retries: Callable[[], RetryBudget],
        end_turn: Callable[["Session"], Awaitable[None]],
        sink: EventSink,
    ) -> None:
        self.thread_id = thread_id
        self.settings = settings
        self._sink = sink
        self._history = history
        self._usage = usage
        self._model = model
        self._recorder = recorder
        self._load_handlers = load_handlers
        self._retries = retries
        self._end_turn = end_turn
        self._next_item = 0
        self._output_schema: Any = None
        self._last_message: str | None = None
        self._denied = False
        self._refusal: CodexError | None = None

    def start(self) -> None:
        """Announce the thread."""
        self.emit(ThreadStarted(self.thread_id))

    def warn(self, text: str) -> None:
        """Tell the user something that does not end the turn."""
        self.emit(ItemCompleted(ErrorItem(id=self.next_item_id(), message=text)))

    def refuse(self, error: CodexError) -> None:
        """Tell the user, once, that something can not be done on this machine. The turn goes on."""
        if self._refusal is None:
            self._refusal = error
            self.warn(str(error))

    def next_item_id(self) -> str:
        """`item_0`, `item_1`, … in the order of first appearance."""
        name = f"item_{self._next_item}"
        self._next_item += 1
        return name

    async def run_turn(
        self, text: str, *, images: Sequence[Path] = (), output_schema: Any = None
    ) -> TurnResult:
        """Run one turn to its end.

        Emits `TurnStarted` and exactly one of `TurnCompleted` and `TurnFailed` on every path. What
        the user has to know of a failure is returned, not raised. When cancelled, the turn ends
        the same way, the history can be sent again, and the cancellation goes on.
        """
        self._output_schema = output_schema
        self._last_message = None
        self._denied = False
        self.emit(TurnStarted())
        turn = Turn(
            self,
            self._model,
            lambda: self._load_handlers(self),
            self._retries(),
            max_responses=self.settings.max_responses,
        )
        try:
            self._record_prompt(text, images)
            await turn.run()
            await self._end_turn(self)
        except CodexError as error:
            await self._fail(error)
            return self._result(error)
        except asyncio.CancelledError:
            self._record_abort()
            await self._fail(TurnAborted("the turn was interrupted"))
            raise
        except BaseException as error:
            # A mistake of ours. Whoever reads the events still gets an end; the traceback goes on.
            await self._fail(CodexError(f"internal error: {error!r}", code="internal"))
            raise
        self.emit(TurnCompleted(self._usage))
        return self._result()

    def prompt(self) -> Prompt:
        settings = self.settings
        return Prompt(
            model=settings.model,
            input=self._history.items,
            cache_key=self.thread_id,
            tools=settings.tools,
            parallel_tool_calls=settings.parallel_tool_calls,
            reasoning=settings.reasoning,
            verbosity=settings.verbosity,
            output_schema=self._output_schema,
            service_tier=settings.service_tier,
        )

    def emit(self, event: Event) -> None:
        if isinstance(event, ItemCompleted) and isinstance(event.item, AgentMessage):
            self._last_message = event.item.text
        elif isinstance(event, CallDenied):
            self._denied = True
        self._sink(event)

    def record(self, item: "ResponseItem") -> None:
        self._recorder.response_item(self._history.add(item))

    def add_usage(self, usage: Usage) -> None:
        self._usage += usage
        self.emit(UsageReported(usage, self._usage, self.settings.context_window))

    def _result(self, error: CodexError | None = None) -> TurnResult:
        return TurnResult(self._last_message, self._usage, error, self._denied, self._refusal)

    def _record_prompt(self, text: str, images: Sequence[Path]) -> None:
        detail = self.settings.image_detail
        parts = [
            part
            for n, path in enumerate(images, 1)
            for part in image_parts(path, n, detail, self.warn)
        ]
        self._recorder.turn_context(_turn_context(self.settings))
        self._record_message("user", [*parts, input_text(text)])
        self._recorder.event_msg(
            {"type": "user_message", "message": text, "images": [str(path) for path in images]}
        )

    def _record_abort(self) -> None:
        self._record_message("user", [input_text(_ABORTED_NOTE)])
        self._recorder.event_msg({"type": "turn_aborted", "reason": "interrupted"})

    def _record_message(self, role: str, parts: Sequence[dict[str, Any]]) -> None:
        self._recorder.response_item(self._history.add(message(role, parts)))

    async def _fail(self, error: CodexError) -> None:
        facts = (str(error), error.code, error.retryable, error.status)
        try:
            await self._end_turn(self)
        finally:
            self.emit(Error(*facts))
            self.emit(TurnFailed(ErrorInfo(*facts)))


def _turn_context(settings: TurnSettings) -> dict[str, Any]:
    """The classic line of a session file that says what a turn ran with."""
    policy = settings.sandbox_policy
    sandbox: dict[str, Any] = {"type": policy.mode}
    if policy.mode == "workspace-write":
        sandbox |= {
            "writable_roots": [str(root) for root in policy.writable_roots],
            "network_access": policy.network_access,
            "exclude_tmpdir_env_var": policy.exclude_tmpdir_env_var,
            "exclude_slash_tmp": policy.exclude_slash_tmp,
        }
    return {
        "cwd": str(settings.cwd),
        "approval_policy": str(settings.approval_policy),
        "sandbox_policy": sandbox,
        "model": settings.model,
        "effort": settings.reasoning_effort,
        "summary": settings.reasoning_summary or "auto",
    }

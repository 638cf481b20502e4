"""The state of one turn of a session, and its result."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from codex_py.core.turn import RetryBudget
from codex_py.errors import CodexError, ExitCode
from codex_py.protocol.denied import Denied
from codex_py.protocol.events import AgentMessage, CallDenied, Event, ItemCompleted
from codex_py.protocol.extension import TurnStart
from codex_py.protocol.frozen import frozen
from codex_py.protocol.stream import Usage

_ONCE_MORE = (
    "Your last message cannot be used: {}\n"
    "Send the whole answer again, as JSON that satisfies the schema, and nothing else."
)


@frozen
class TurnResult:
    last_message: str | None
    """Text of the turn's last agent message."""
    usage: Usage
    """Of the whole thread."""
    error: CodexError | None = None
    denied: bool = False
    """True if a policy, or the user, refused a call."""
    exit_code: int = 0
    """The exit code that an extension sets for a turn that completed."""

    def raise_for_error(self) -> None:
        """
        Raises:
            CodexError: the turn failed; `error` is raised.
        """
        if self.error is not None:
            raise self.error


@dataclass(slots=True)
class TurnState:
    """Made when a turn, or a compaction, begins. It runs in the current task."""

    start: TurnStart
    retries: RetryBudget
    output_schema: Any = None
    takes_steering: bool = False
    """The turn has a next request, with which steered prompts go out."""
    made_room: bool = False
    """The history was compacted because the last request was too long."""
    rounds: int = 0
    """How often `before_stop` of an extension continued the turn."""
    last_message: str | None = None
    denied: Denied = field(default_factory=Denied)
    ending: CodexError | None = None
    """Why the turn was cancelled, if not by its user."""
    is_ended: bool = False
    """The turn was cancelled by `end`."""
    is_over: bool = False
    """The last event of the turn is due: `end` is too late."""
    _task: "asyncio.Task[Any] | None" = field(default_factory=asyncio.current_task)
    _cancellations: int = 0

    def __post_init__(self) -> None:
        if self._task is not None:
            self._cancellations = self._task.cancelling()

    def watch(self, event: Event) -> None:
        match event:
            case ItemCompleted(AgentMessage(text=text)):
                self.last_message = text
            case CallDenied(cause=cause, allow=allow):
                self.denied = self.denied.plus(cause, allow)
            case _:
                pass

    def end(self, error: CodexError | None = None) -> None:
        """Cancel the turn, once. `error`: the reason; None if the user wants it."""
        if self._task is not None and not (self.is_ended or self.is_over):
            self.is_ended, self.ending = True, error
            self._task.cancel()

    async def be_cancelled(self) -> None:
        """Let the cancellation of `end` arrive, if the turn has awaited nothing since.

        Before Python 3.13, `uncancel` does not take back one that has not arrived: the caller's next `await` would get it.
        """
        if self.is_ended:
            await asyncio.sleep(0)

    def is_cancelled_by_others(self) -> bool:
        """Undo the cancellation by `end`. True if somebody else has cancelled the task too."""
        if self._task is None:
            return False
        if self.is_ended:
            self._task.uncancel()
        return self._task.cancelling() > self._cancellations

    def result(
        self, usage: Usage, error: CodexError | None, facts: Mapping[str, Any]
    ) -> TurnResult:
        denied, exit_code = self.denied.calls > 0, facts.get("exit_code") or 0
        return TurnResult(self.last_message, usage, error, denied, exit_code)


async def with_valid_answer(
    run: Callable[[str | None], Awaitable[TurnResult]],
    violation: Callable[[str], str | None],
    warn: Callable[[str], None],
) -> TurnResult:
    """Run a turn, and a second one if its answer breaks the output schema.

    Args:
        run: runs a turn with this prompt; None: with the prompt of the user.
        violation: says in one sentence how an answer breaks the schema; None if it does not.

    Returns:
        The last result. If its answer breaks the schema too, its `error` has the code `schema`.
    """
    first = await run(None)
    if first.error is not None or (wrong := violation(first.last_message or "")) is None:
        return first
    warn(f"{wrong}; asking once more")
    second = await run(_ONCE_MORE.format(wrong))
    second = replace(second, denied=first.denied or second.denied)
    if second.error is not None or (wrong := violation(second.last_message or "")) is None:
        return second
    return replace(second, error=CodexError(wrong, code="schema", exit_code=ExitCode.SCHEMA))

"""One turn of a session: its state, its requests from the history, and its results into it."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from codex_py.core.compact import Compactor
from codex_py.core.parts import SessionParts
from codex_py.core.turn import RetryBudget
from codex_py.errors import CodexError, ExitCode, ModelError, PromptRefused
from codex_py.protocol import event_items, events
from codex_py.protocol.approval import Denied
from codex_py.protocol.extension import TurnStart, TurnStop
from codex_py.protocol.frozen import frozen
from codex_py.protocol.prompts import Note, UserPrompt
from codex_py.protocol.stream import Prompt, Usage
from codex_py.protocol.tools import ToolCall


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
    """The exit code that an extension sets for a turn that completed; 3 if one was overridden, see `Extension.before_stop`."""

    def raise_for_error(self) -> None:
        """Raises `error`, a `CodexError`, if the turn failed."""
        if self.error is not None:
            raise self.error


class SessionTurn:
    """The `Conversation` of a turn. A compaction has one for its state.

    Made when the turn begins, in the task that runs it.

    Args:
        ran: see `Turn`.
    """

    def __init__(
        self,
        parts: SessionParts,
        compactor: Compactor,
        start: TurnStart,
        retries: RetryBudget,
        ran: list[ToolCall],
        output_schema: Any,
    ) -> None:
        self.start = start
        self.retries = retries
        self.takes_steering = False
        """The turn has a next request, with which steered prompts go out."""
        self.denied = Denied()
        self.ending: CodexError | None = None
        """Why the turn was cancelled, if not by its user."""
        self.is_ended = False
        """The turn was cancelled by `end`."""
        self.is_over = False
        """The last event of the turn is due: `end` is too late."""
        self.record, self.settle = parts.log.record, parts.log.settle
        self.emit = parts.thread.emit
        self.add_usage = parts.add_usage
        self._parts = parts
        self._compactor = compactor
        self._ran = ran
        self._output_schema = output_schema
        self._last_message: str | None = None
        self.overridden: events.StopOverridden | None = None
        """An extension wanted to continue the turn that ends."""
        task = asyncio.current_task()
        assert task is not None
        self._task: asyncio.Task[Any] = task
        self._cancellations = task.cancelling()

    async def begin(self) -> None:
        """Record the prompt. It is kept even if the turn fails, unless it is refused.

        Raises:
            CodexError: an extension ended the turn, or refused the prompt.
            StreamError: the history must be compacted, and the provider cannot be reached.
        """
        parts, prompt = self._parts, self.start.prompt
        self.takes_steering = True
        notes: Sequence[Note] = ()
        is_refused = False
        try:
            if prompt is not None:
                notes = await self._notes_of(prompt)
            await self._make_room("" if prompt is None else prompt.text)
        except PromptRefused:
            is_refused = True
            raise
        finally:
            if not is_refused:
                parts.log.begin_turn(parts.thread.settings, parts.extension.context)
                if prompt is not None:
                    self._record_prompt(prompt, notes)

    async def prompt(self) -> Prompt:
        parts = self._parts
        parts.send_notes()
        while parts.steered:
            await self._send(parts.steered[0])
            del parts.steered[0]
        parts.log.tell(await parts.extension.before_request())
        return parts.log.request(parts.thread.settings, self._output_schema)

    async def should_continue(self, *, follow_up: bool) -> bool:
        if not (follow_up or self._parts.steered or await self._extensions_continue()):
            self.takes_steering = False
            return False
        await self._make_room()
        return True

    async def recover(self, failure: ModelError, retries_left: int) -> bool:
        is_shorter = await self._compactor.recover(failure, self.retries)
        if not is_shorter and await self._parts.extension.recover(failure, retries_left):
            return True
        if not (is_shorter or await self._compactor.shorten(failure)):
            return False
        # A call that the new history does not contain is new if the model repeats it.
        items = self._parts.log.items
        self._ran[:] = [c for c in self._ran if any(c.call_id.encode() in item for item in items)]
        return True

    def watch(self, event: events.Event) -> None:
        match event:
            case events.ItemCompleted(event_items.AgentMessage(text=text)):
                self._last_message = text
            case events.CallDenied(cause=cause, allow=allow):
                self.denied = self.denied.plus(cause, allow)
            case _:
                pass

    def end(self, error: CodexError | None = None) -> None:
        """Cancel the turn, once. `error`: the reason; None if the user wants it."""
        if not (self.is_ended or self.is_over):
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
        if self.is_ended:
            self._task.uncancel()
        return self._task.cancelling() > self._cancellations

    def result(self, error: CodexError | None, facts: Mapping[str, Any]) -> TurnResult:
        exit_code: int = facts.get("exit_code") or (ExitCode.GATE if self.overridden else 0)
        usage = self._parts.usage
        return TurnResult(self._last_message, usage, error, self.denied.calls > 0, exit_code)

    async def _send(self, prompt: UserPrompt) -> None:
        """Record a steered prompt, unless an extension refuses it."""
        try:
            notes = await self._notes_of(prompt)
        except PromptRefused as error:
            self._parts.thread.warn(str(error))
            self.emit(events.SteeringRefused(prompt.text))
            return
        self._record_prompt(prompt, notes)
        item_id = self._parts.next_live_id()
        self.emit(
            events.ItemCompleted(
                event_items.UserMessage(id=item_id, text=prompt.text, images=prompt.images)
            )
        )

    async def _notes_of(self, prompt: UserPrompt) -> Sequence[Note]:
        settings = self._parts.thread.settings
        # Twice the usual number of characters in a token: a prompt that may fit is sent.
        tokens, window = len(prompt.text) // 8, settings.known_window
        if window is not None and tokens > window:
            text = f"The prompt is too long: it has at least about {tokens:,} tokens, and the context window"
            text += f" of {settings.model} has {window:,}."
            raise PromptRefused(text, code="context_length_exceeded", exit_code=ExitCode.USAGE)
        return await self._parts.extension.before_prompt(prompt)

    def _record_prompt(self, prompt: UserPrompt, notes: Sequence[Note]) -> None:
        thread = self._parts.thread
        self._parts.log.prompt(prompt, notes, thread.settings.image_detail, thread.warn)

    async def _extensions_continue(self) -> bool:
        parts = self._parts
        wanted = await parts.extension.before_stop(TurnStop(self.start, self._last_message))
        if isinstance(wanted, Note):
            parts.log.tell([wanted])
            return True
        # The user may have steered the turn meanwhile.
        if wanted is not None and not parts.steered:
            self.overridden = wanted
            rounds = f"as often as allowed ({wanted.rounds})"
            parts.thread.warn(
                f"The agent was kept going {rounds}, and the turn ends: {wanted.reason}"
            )
        return bool(parts.steered)

    async def _make_room(self, pending: str = "") -> None:
        """Compact a history that is nearly full. `pending`: a prompt that is about to be added."""
        used_tokens = self._parts.used_tokens + len(pending.encode()) // 4
        await self._compactor.make_room(self.retries, used_tokens=used_tokens)

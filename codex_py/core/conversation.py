"""Connects a turn to its session: requests from its history, results into it."""

from collections.abc import Sequence

from codex_py.core.compactor import Compactor
from codex_py.core.parts import SessionParts
from codex_py.core.turn_state import TurnState
from codex_py.errors import CodexError, ModelError, PromptRefused
from codex_py.protocol.events import Event, ItemCompleted, UserMessage
from codex_py.protocol.extension import TurnStop
from codex_py.protocol.items import ResponseItem
from codex_py.protocol.prompts import Note, UserPrompt
from codex_py.protocol.stream import Prompt, Usage
from codex_py.protocol.tools import ToolCall

_MAX_ROUNDS = 20
"""How often extensions may keep the agent going in one turn."""


class SessionTurn:
    """The `Conversation` of a turn.

    Args:
        ran: see `Turn`.
    """

    def __init__(
        self, parts: SessionParts, state: TurnState, compactor: Compactor, ran: list[ToolCall]
    ) -> None:
        self._thread = parts.thread
        self._extension = parts.extension
        self._log = parts.log
        self._tokens = parts.tokens
        self._outbox = parts.outbox
        self._next_live_id = parts.next_live_id
        self._state = state
        self._compactor = compactor
        self._ran = ran

    @property
    def ending(self) -> CodexError | None:
        return self._state.ending

    async def begin(self, prompt: UserPrompt | None) -> None:
        """Record the prompt. It is kept even if the turn fails, unless it is refused.

        Raises:
            CodexError: an extension ended the turn, or refused the prompt.
            StreamError: the history must be compacted, and the provider cannot be reached.
        """
        notes: Sequence[Note] = ()
        is_refused = False
        try:
            if prompt is not None:
                notes = await self._extension.before_prompt(prompt)
            await self._make_room()
        except PromptRefused:
            is_refused = True
            raise
        finally:
            if not is_refused:
                self._log.begin_turn(self._thread.settings, self._extension.context)
                if prompt is not None:
                    self._record_prompt(prompt, notes)

    async def prompt(self) -> Prompt:
        self._log.tell(self._outbox.take_notes())
        while self._outbox.steered:
            await self._send(self._outbox.steered[0])
            del self._outbox.steered[0]
        self._log.tell(await self._extension.before_request())
        return self._thread.settings.prompt(
            self._log.items, self._thread.thread_id, output_schema=self._state.output_schema
        )

    def record(self, item: ResponseItem | Note) -> None:
        self._log.item(item)

    def emit(self, event: Event) -> None:
        self._thread.emit(event)

    def add_usage(self, usage: Usage) -> None:
        self._tokens.add(usage)

    async def should_continue(self, *, follow_up: bool) -> bool:
        self._state.made_room = False
        if not (follow_up or self._outbox.steered or await self._extensions_continue()):
            self._state.takes_steering = False
            return False
        await self._make_room()
        return True

    async def recover(self, failure: ModelError, retries_left: int) -> bool:
        state = self._state
        if not state.made_room and await self._compactor.recover(failure, state.retries):
            state.made_room = True
            # The new history does not contain the calls that ran: if the model repeats them, they are new.
            self._ran.clear()
            return True
        return await self._extension.recover(failure, retries_left)

    async def _send(self, prompt: UserPrompt) -> None:
        """Record a steered prompt, unless an extension refuses it."""
        try:
            notes = await self._extension.before_prompt(prompt)
        except PromptRefused as error:
            self._thread.warn(str(error))
            return
        self._record_prompt(prompt, notes)
        item_id = self._next_live_id()
        self.emit(ItemCompleted(UserMessage(id=item_id, text=prompt.text, images=prompt.images)))

    def _record_prompt(self, prompt: UserPrompt, notes: Sequence[Note]) -> None:
        detail = self._thread.settings.image_detail
        self._log.prompt(prompt, notes, detail, self._thread.warn)

    async def _extensions_continue(self) -> bool:
        state = self._state
        stop = TurnStop(state.start, state.last_message, state.rounds)
        note = await self._extension.before_stop(stop)
        if note is not None and state.rounds == _MAX_ROUNDS:
            self._thread.warn(f"The agent was kept going {_MAX_ROUNDS} times: the turn ends now.")
        elif note is not None:
            state.rounds += 1
            self._log.tell([note])
            return True
        # The user may have steered the turn meanwhile.
        return bool(self._outbox.steered)

    async def _make_room(self) -> None:
        used_tokens = self._tokens.last.total_tokens
        await self._compactor.make_room(self._state.retries, used_tokens=used_tokens)

"""Compaction: a summary by the model replaces a history that fills the context window.

As in Codex with providers other than OpenAI: the whole history is sent once more with a
request for a hand-over note. The new history is the first context, the latest prompts of the user,
and the note.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Literal, NoReturn

from codex_py.core.parts import SessionParts
from codex_py.core.turn import ItemHandlers, RetryBudget, Turn
from codex_py.errors import CompactionFailed, ModelError, StreamError, TurnLimit
from codex_py.instructions import instruction_text
from codex_py.protocol import events
from codex_py.protocol.extension import Compaction
from codex_py.protocol.items import Message, ResponseItem
from codex_py.protocol.messages import EncodedItem, estimated_tokens, input_text, message
from codex_py.protocol.prompts import Note, context_length, user_prompt
from codex_py.protocol.response_order import Place
from codex_py.protocol.stream import ModelStream, Prompt

_BYTES_PER_TOKEN: Final = 4
_KEPT_PROMPT_TOKENS: Final = 20_000
_KEPT_PART_OF_WINDOW: Final = 4
"""Keep at most a quarter: a small window must not be full again at once."""
_TOO_LONG: Final = frozenset({"context_length_exceeded", "request_too_large"})
_SUMMARY_TOKENS: Final = 1_000
"""The usual length of a summary."""
_MAX_REQUESTS: Final = 20
"""Each request leaves out a quarter of the rest: no history needs more."""


class Compactor:
    """Compacts the history of a thread when it is nearly full, and when a request was too long."""

    def __init__(self, parts: SessionParts, model: ModelStream) -> None:
        self._parts = parts
        self._log = parts.log
        self._model = model

    async def make_room(self, retries: RetryBudget, *, used_tokens: int) -> None:
        """Compact a history that is nearly full. If there is no summary, keep the history and warn the user.

        A refused request for the summary is no error either: it would be refused in every later turn.

        Args:
            used_tokens: tokens of the last response, its input included.

        Raises:
            StreamError: the provider could not be reached, see `Turn.run`.
            CodexError: an extension ended the turn.
        """
        limit = self._parts.thread.settings.auto_compact_token_limit
        if limit is None or used_tokens < limit or not is_worth_compacting(self._log.items):
            return
        try:
            await self.compact(retries, "auto")
        except StreamError:
            raise
        except (ModelError, CompactionFailed) as error:
            self._parts.thread.warn(
                f"The conversation could not be compacted: {error}. It goes on in full length."
            )

    async def recover(self, failure: ModelError, retries: RetryBudget) -> bool:
        """Compact if that may help a failed request. True if the request is worth sending again.

        Raises:
            CodexError: there is no summary.
        """
        # If a summary would not be shorter, it does not help, whatever the provider means by "too long".
        items = self._log.items
        is_long = estimated_tokens(items[context_length(items) :]) > _SUMMARY_TOKENS
        if failure.code not in _TOO_LONG or not is_long or not is_worth_compacting(items):
            return False
        await self.compact(retries, "auto")
        return True

    async def compact(self, retries: RetryBudget, trigger: Literal["auto", "manual"]) -> None:
        """Replace the history by a summary of the model.

        Raises:
            CodexError: there is no summary. The history is unchanged.
        """
        parts = self._parts
        settings, emit = parts.thread.settings, parts.thread.emit
        item_id = parts.next_live_id()
        status = "failed"
        kept: list[Note] = []
        emit(events.ItemStarted(events.ContextCompaction(id=item_id)))
        try:
            async with parts.extension.around_compaction(Compaction(trigger, kept.append)):
                text = await self._summary(retries)
                summary = f"{instruction_text('compact/summary.md')}\n{text}"
                prompts = _latest_prompts(self._log.items, settings.context_window)
                self._log.compact(prompts, summary, settings, parts.extension.context)
                self._log.tell(kept)
                parts.estimate(estimated_tokens(self._log.items))
                status = "completed"
        finally:
            emit(events.ItemCompleted(events.ContextCompaction(id=item_id, status=status)))

    async def _summary(self, retries: RetryBudget) -> str:
        """Ask the model for a summary of the history.

        The request begins like every other one of the thread, tools included, so that the prompt cache
        applies. If it is too long itself, the oldest items are left out.
        """
        conversation = _Summarising(self._parts)
        turn = Turn(
            conversation, self._model, lambda: _NOTHING_RUNS, retries, max_responses=_MAX_REQUESTS
        )
        try:
            await turn.run()
        except TurnLimit as error:
            raise CompactionFailed(str(error), code=error.code) from error
        if not conversation.text.strip():
            raise CompactionFailed(
                "the model gave no summary of the conversation", code="no_summary"
            )
        return conversation.text


def is_worth_compacting(items: Sequence[EncodedItem]) -> bool:
    """True if the history has more than context and prompts."""
    return any(
        json.loads(item).get("role") in {None, "assistant"}
        for item in items[context_length(items) :]
    )


def _latest_prompts(history: Sequence[EncodedItem], context_window: int) -> list[str]:
    """The last prompts of the user, oldest first, as far as there is room for them; the first may be cut."""
    tokens = min(_KEPT_PROMPT_TOKENS, context_window // _KEPT_PART_OF_WINDOW)
    prompts = [found.text for item in history if (found := user_prompt(item)) is not None]
    kept: list[str] = []
    room = tokens * _BYTES_PER_TOKEN
    for text in reversed(prompts):
        kept.append(_cut(text, room))
        room -= len(text.encode())
        if room <= 0:
            break
    return [text for text in reversed(kept) if text]


class _Summarising:
    """The conversation of one compaction. Only the last text of the model is kept, and only `Reconnecting` is emitted."""

    ending = None

    def __init__(self, parts: SessionParts) -> None:
        self.text = ""
        self.add_usage = parts.add_usage
        self._emit = parts.thread.emit
        self._recover = parts.extension.recover
        self._prompt = parts.log.request(parts.thread.settings)
        self._items = list(self._prompt.input)
        request = parts.thread.settings.compact_prompt or instruction_text("compact/prompt.md")
        self._request = message("user", [input_text(request)])

    async def prompt(self) -> Prompt:
        self.text = ""
        return replace(self._prompt, input=[*self._items, self._request])

    def record(self, item: ResponseItem | Note, place: Place) -> None:  # noqa: ARG002
        if isinstance(item, Message) and item.role == "assistant":
            self.text = item.text or self.text

    def settle(self, *, whole: bool) -> None: ...

    def emit(self, event: events.Event) -> None:
        if isinstance(event, events.Reconnecting):
            self._emit(event)

    async def should_continue(self, *, follow_up: bool) -> bool:  # noqa: ARG002
        if self.text.strip() or not self._prompt.tools:
            return False
        # The model called a tool instead. Ask again without tools.
        self._prompt = replace(self._prompt, tools=())
        return True

    async def recover(self, failure: ModelError, retries_left: int) -> bool:
        shorter = _without_oldest(self._items) if failure.code in _TOO_LONG else None
        if shorter is None:
            return await self._recover(failure, retries_left)
        self._items = shorter
        return True


def _without_oldest(items: Sequence[EncodedItem]) -> list[EncodedItem] | None:
    """Drop the oldest quarter (in bytes) after the context; None if nothing can be dropped.

    Never cuts between a call and its output, or between reasoning and the item that follows it.
    """
    start = context_length(items)
    excess = sum(len(item) for item in items[start:]) // 4
    open_calls: list[str] = []
    before = ""
    for index, item in enumerate(items[start:], start):
        data = json.loads(item)
        kind = str(data.get("type", "message"))
        can_cut = not open_calls and before != "reasoning" and not kind.endswith("_output")
        if index > start and excess <= 0 and can_cut:
            return [*items[:start], *items[index:]]
        call_id = str(data.get("call_id") or data.get("id"))
        if kind.endswith("_call") and kind != "web_search_call":
            open_calls.append(call_id)
        elif kind.endswith("_output") and call_id in open_calls:
            open_calls.remove(call_id)
        excess -= len(item)
        before = kind
    return None


def _cut(text: str, max_bytes: int) -> str:
    data = text.encode()
    if len(data) <= max_bytes:
        return text
    kept = data[:max_bytes].decode(errors="ignore")
    return f"{kept}\n…{len(text) - len(kept)} characters cut…"


def _never_called(*_: object) -> NoReturn:
    raise NotImplementedError


_NOTHING_RUNS = ItemHandlers(
    build_tool_call=lambda _: None,
    dispatch=_never_called,
    answer=_never_called,
    item_events=lambda _: (),
)

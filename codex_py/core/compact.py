"""Compaction: a summary by the model replaces a history that fills the context window.

As in Codex with providers other than OpenAI: the whole history is sent once more with a
request for a hand-over note. The new history is the first context, the latest prompts of the user,
and the note.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from codex_py.core.turn import ItemHandlers, RetryBudget, Turn
from codex_py.errors import CompactionFailed, ModelError, TurnLimit
from codex_py.instructions import instruction_text
from codex_py.protocol.events import Event, Reconnecting
from codex_py.protocol.items import OutputItem, ResponseItem
from codex_py.protocol.messages import EncodedItem, input_text, message
from codex_py.protocol.prompts import Note, context_length, user_prompt
from codex_py.protocol.stream import ModelStream, Prompt, Usage
from codex_py.protocol.tools import ToolCall, ToolOutput

_BYTES_PER_TOKEN: Final = 4
_KEPT_PROMPT_TOKENS: Final = 20_000
_KEPT_PART_OF_WINDOW: Final = 4
"""Keep at most a quarter: a small window must not be full again at once."""
_TOO_LONG: Final = frozenset({"context_length_exceeded", "request_too_large"})
_SUMMARY_TOKENS: Final = 1_000
"""The usual length of a summary."""
_MAX_REQUESTS: Final = 20
"""Each request leaves out a quarter of the rest: no history needs more."""


def is_too_long(failure: ModelError) -> bool:
    """True if a request failed because it was too long for the model."""
    return failure.code in _TOO_LONG


def is_worth_compacting(items: Sequence[EncodedItem]) -> bool:
    """True if the history has more than context and prompts."""
    return any(_role(json.loads(item)) == "" for item in items[context_length(items) :])


def makes_room(items: Sequence[EncodedItem]) -> bool:
    """True if a summary would be shorter than the history. If not, a compaction does not help, whatever the provider
    means by "too long"."""
    later = items[context_length(items) :]
    return is_worth_compacting(items) and estimated_tokens(later) > _SUMMARY_TOKENS


async def summarise(
    prompt: Prompt,
    request: str | None,
    model: ModelStream,
    retries: RetryBudget,
    *,
    emit: Callable[[Event], None],
    add_usage: Callable[[Usage], None],
) -> str:
    """Ask the model for a summary of the history in `prompt`.

    The request begins like every other one of the thread, tools included, so that the prompt cache
    applies. If it is too long itself, the oldest items are left out.

    Args:
        request: replaces the built-in request for a summary.
        emit: gets `Reconnecting` events, and no others.

    Raises:
        ModelError: see `Turn.run`.
        CompactionFailed: the model gave no text.
    """
    asked = message("user", [input_text(request or instruction_text("compact/prompt.md"))])
    conversation = _Summarising(prompt, asked, emit, add_usage)
    turn = Turn(conversation, model, lambda: _NOTHING_RUNS, retries, max_responses=_MAX_REQUESTS)
    try:
        await turn.run()
    except TurnLimit as error:
        raise CompactionFailed(str(error), code=error.code) from error
    if not conversation.text.strip():
        raise CompactionFailed("the model gave no summary of the conversation", code="no_summary")
    return conversation.text


def summary_text(summary: str) -> str:
    """The text of the user message that replaces the history."""
    return f"{instruction_text('compact/summary.md')}\n{summary}"


def compacted_items(
    context: Sequence[EncodedItem],
    history: Sequence[EncodedItem],
    summary: str,
    *,
    context_window: int,
) -> list[EncodedItem]:
    """The history from now on, without the base prompt.

    Args:
        context: the first items that a new thread would have now.
        summary: as `summary_text` gives it.
        context_window: of the model, tokens.
    """
    tokens = min(_KEPT_PROMPT_TOKENS, context_window // _KEPT_PART_OF_WINDOW)
    prompts = [found.text for item in history if (found := user_prompt(item)) is not None]
    kept: list[str] = []
    room = tokens * _BYTES_PER_TOKEN
    for text in reversed(prompts):
        kept.append(_cut(text, room))
        room -= len(text.encode())
        if room <= 0:
            break
    texts = [text for text in reversed(kept) if text]
    return [*context, *(message("user", [input_text(text)]) for text in [*texts, summary])]


def estimated_tokens(items: Sequence[EncodedItem]) -> int:
    return sum(len(item) for item in items) // _BYTES_PER_TOKEN


class _Summarising:
    """The conversation of one compaction. Only the last text of the model is kept."""

    def __init__(
        self,
        prompt: Prompt,
        asked: EncodedItem,
        emit: Callable[[Event], None],
        add_usage: Callable[[Usage], None],
    ) -> None:
        self.text = ""
        self._add_usage = add_usage
        self._prompt = replace(prompt, output_schema=None)
        self._items = list(prompt.input)
        self._asked = asked
        self._emit = emit
        self.ending = None

    async def prompt(self) -> Prompt:
        self.text = ""
        return replace(self._prompt, input=[*self._items, self._asked])

    def record(self, item: ResponseItem | Note) -> None:
        if isinstance(item, Note):
            return
        if item.type == "message" and getattr(item, "role", None) == "assistant":
            self.text = str(getattr(item, "text", "")) or self.text

    def emit(self, event: Event) -> None:
        if isinstance(event, Reconnecting):
            self._emit(event)

    def add_usage(self, usage: Usage) -> None:
        self._add_usage(usage)

    async def should_continue(self, *, follow_up: bool) -> bool:  # noqa: ARG002
        if self.text.strip() or not self._prompt.tools:
            return False
        # The model called a tool instead. Ask again without tools.
        self._prompt = replace(self._prompt, tools=())
        return True

    async def recover(self, failure: ModelError, retries_left: int) -> bool:  # noqa: ARG002
        if not is_too_long(failure):
            return False
        shorter = _without_oldest(self._items)
        if shorter is None:
            return False
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


def _role(item: dict[str, Any]) -> str:
    """The role of a message; empty for items of the model and for outputs."""
    role = str(item.get("role", ""))
    return "" if role == "assistant" else role


def _cut(text: str, max_bytes: int) -> str:
    data = text.encode()
    if len(data) <= max_bytes:
        return text
    kept = data[:max_bytes].decode(errors="ignore")
    return f"{kept}\n…{len(text) - len(kept)} characters cut…"


async def _run_nothing(call: ToolCall) -> Sequence[OutputItem]:
    raise NotImplementedError(call.tool_name)


def _answer_nothing(call: ToolCall, output: ToolOutput) -> OutputItem:
    raise NotImplementedError(call.tool_name, output)


_NOTHING_RUNS = ItemHandlers(
    build_tool_call=lambda _: None,
    dispatch=_run_nothing,
    answer=_answer_nothing,
    item_events=lambda _: (),
)

"""Asks the model for a summary of the history, with one more message behind the usual request of the thread."""

from dataclasses import replace
from http import HTTPStatus
from typing import Final, NoReturn

from codex_py.core.host import Host
from codex_py.core.shorten import Size, shortened, weight
from codex_py.core.turn import ItemHandlers, RetryBudget, Turn
from codex_py.errors import CompactionFailed, ModelError
from codex_py.instructions import instruction_text
from codex_py.protocol import events
from codex_py.protocol.items import Message, ResponseItem
from codex_py.protocol.messages import input_text, message
from codex_py.protocol.prompts import Note, context_length
from codex_py.protocol.response_order import Place
from codex_py.protocol.stream import Prompt, Usage

_MAX_SHORTER: Final = 8
"""How often the request for a summary is shortened by a quarter. After that, a tenth of it is left."""
_MAX_SHORTER_IF_TOLD: Final = 3
"""The same if the provider says what fits."""
_MAX_REQUESTS: Final = 20
_SUMMARY_TOKENS: Final = 2_000
"""Room for the summary itself."""
_BYTES_PER_TOKEN: Final = 4


async def summary_by_model(host: Host, retries: RetryBudget) -> str:
    """The model's summary of the history, which is not changed.

    The request begins like every other one of the thread, tools included, so that the prompt cache
    applies. If it is too long itself, it is shortened.

    Raises:
        ModelError: there was no answer.
        CompactionFailed: there was one without a text.
    """
    conversation = _Summarising(host)
    turn = Turn(
        conversation, host.model, _NOTHING_RUNS, retries, max_responses=_MAX_REQUESTS
    )
    await turn.run()
    if not conversation.text.strip():
        raise CompactionFailed(
            "the model gave no summary of the conversation", code="no_summary"
        )
    return conversation.text


def size_for(failure: ModelError | None) -> Size:
    """How to measure items after a failure: in bytes if the request had too many of them, else by their place in the
    window."""
    is_in_bytes = (
        failure is not None and failure.status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    )
    if is_in_bytes:
        return len
    return weight


class _Summarising:
    """The conversation of one compaction. Only the last text of the model is kept, and only `Reconnecting` is
    emitted."""

    ending = None

    def __init__(self, host: Host) -> None:
        self.text = ""
        self._host = host
        self._shorter = 0
        self._prompt = host.log.request(host.settings)
        self._items = list(self._prompt.input)
        request = host.settings.compact_prompt or instruction_text("compact/prompt.md")
        self._request = message("user", [input_text(request)])

    async def prompt(self) -> Prompt:
        self.text = ""
        return replace(self._prompt, input=[*self._items, self._request])

    def record(self, item: ResponseItem | Note, place: Place) -> None:  # noqa: ARG002
        if isinstance(item, Message) and item.role == "assistant":
            self.text = item.text or self.text

    def leave_open(self, place: Place) -> None: ...

    def settle(self, *, whole: bool) -> None: ...

    def emit(self, event: events.Event) -> None:
        if isinstance(event, events.Reconnecting):
            self._host.emit(event)

    def report_hidden(self, bug: Exception) -> None:
        """Nothing is shown, so nothing can fail to be shown."""

    def add_usage(self, usage: Usage) -> None:
        self._host.count(usage, usage)

    async def should_continue(self, *, follow_up: bool) -> bool:  # noqa: ARG002
        if self.text.strip() or not self._prompt.tools:
            return False
        # The model called a tool instead. Ask again without tools.
        self._prompt = replace(self._prompt, tools=())
        return True

    async def recover(self, failure: ModelError, retries_left: int) -> bool:
        if self._shorter < _tries(failure):
            self._shorter += 1
            before = self._items
            size = size_for(failure)
            start = context_length(before)
            room = sum(map(size, before[start:])) * 3 // 4
            if failure.limit_tokens is not None and size is weight:
                fixed = replace(self._prompt, input=[*before[:start], self._request])
                left = failure.limit_tokens - fixed.estimated_tokens - _SUMMARY_TOKENS
                if left > 0:
                    room = min(room, _BYTES_PER_TOKEN * left)
            self._items = [
                *before[:start],
                *shortened(before[start:], room, size).items,
            ]
            if sum(map(len, self._items)) < sum(map(len, before)):
                return True
        return await self._host.extension.recover(failure, retries_left)


def _tries(failure: ModelError) -> int:
    """How often the request may be shortened."""
    if not failure.is_too_long:
        # What may only be a lack of room is worth one try.
        return int(failure.may_be_too_long)
    if failure.limit_tokens is None:
        return _MAX_SHORTER
    return _MAX_SHORTER_IF_TOLD


def _never_called(*_: object) -> NoReturn:
    raise NotImplementedError


_NOTHING_RUNS = ItemHandlers(
    build_tool_call=lambda _: None,
    dispatch=_never_called,
    answer=_never_called,
    item_events=lambda _: (),
)

"""Asks the model for a summary of the history, by a message at the end of the thread's usual
request."""

from dataclasses import replace
from http import HTTPStatus
from typing import Final

from codex_py.core.response import receive
from codex_py.core.retry import RetryBudget, recover
from codex_py.core.session_state import SessionState
from codex_py.core.shorten import Size, shortened, weight
from codex_py.errors import CompactionFailed, ModelError, TurnLimit
from codex_py.instructions import instruction_text
from codex_py.protocol.items import Message
from codex_py.protocol.messages import input_text, message
from codex_py.protocol.prompts import context_length
from codex_py.protocol.stream import Completed, OutputItemDone, ResponseEvent

_MAX_SHORTER: Final = 8
"""How often the request for a summary is shortened, by a quarter each time: a tenth of it is left
then."""
_MAX_SHORTER_IF_TOLD: Final = 3
"""The same limit if the provider reports how many tokens fit."""
_MAX_REQUESTS: Final = 20
_SUMMARY_TOKENS: Final = 2_000
"""Room for the summary itself."""
_BYTES_PER_TOKEN: Final = 4


async def summary_by_model(session: SessionState, retries: RetryBudget) -> str:
    """Ask the model for a summary of the history, which is not changed.

    The request begins like every other request of the thread, tools included, so that the prompt
    cache applies. If the request itself is too long, it is shortened.

    Raises:
        ModelError: there was no answer.
        CompactionFailed: the answer had no text.
    """
    return await _Summary(session, retries).text()


def size_for(failure: ModelError | None) -> Size:
    """The function that measures items after a failure.

    It counts bytes if the request had too many of them, else the size in the context window.
    """
    if failure is None or failure.status != HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        return weight
    return len


class _Summary:
    """The requests of one compaction.

    Only the last text of the model is kept. The only events are `Reconnecting`, and `UsageReported`
    with the tokens of each response.
    """

    def __init__(self, session: SessionState, retries: RetryBudget) -> None:
        self._session = session
        self._retries = retries
        self._text = ""
        """The text of the current response."""
        self._times_shortened = 0
        self._prompt = session.log.request(session.settings)
        self._items = list(self._prompt.input)
        wanted = session.settings.compact_prompt
        request = wanted or instruction_text("compact/prompt.md")
        self._request = message("user", [input_text(request)])

    async def text(self) -> str:
        """Send requests until there is a summary. See `summary_by_model`."""
        for _ in range(_MAX_REQUESTS):
            is_answered = await self._ask_with_retries()
            self._retries.renew()
            if not is_answered:
                continue
            if self._text.strip():
                return self._text
            if not self._prompt.tools:
                raise CompactionFailed(
                    "the model gave no summary of the conversation", code="no_summary"
                )
            # The model called a tool instead. Ask again without tools.
            self._prompt = replace(self._prompt, tools=())
        raise TurnLimit(f"the turn was stopped after {_MAX_REQUESTS} responses")

    async def _ask_with_retries(self) -> bool:
        """Send the request until it is answered, or until it was changed after a failure.

        True if it was answered.
        """
        while True:
            failure = await self._ask()
            if failure is None:
                return True
            if await recover(failure, self._retries, self._remedy, self._session):
                return False

    async def _ask(self) -> ModelError | None:
        """Send the request once. Returns the failure of its stream."""
        self._text = ""
        prompt = replace(self._prompt, input=[*self._items, self._request])
        try:
            await receive(self._session.model, prompt, self._take)
        except ModelError as error:
            return error
        return None

    def _take(self, event: ResponseEvent) -> None:
        match event:
            case OutputItemDone(_, Message(role="assistant") as item):
                self._text = item.text or self._text
            case Completed(usage, plan=plan):
                self._session.count(usage, usage, plan)
            case _:
                pass

    async def _remedy(self, failure: ModelError, retries_left: int) -> bool:
        """Shorten the request, or else let an extension change it. True if it is worth sending."""
        if self._times_shortened < _tries(failure):
            self._times_shortened += 1
            if self._shorten(failure):
                return True
        return await self._session.extension.recover(failure, retries_left)

    def _shorten(self, failure: ModelError) -> bool:
        """Shorten the history in the request by a quarter, or to a limit that the failure tells.

        True if it has become shorter.
        """
        before = self._items
        start = context_length(before)
        context = before[:start]
        rest = before[start:]
        size = size_for(failure)
        room = sum(map(size, rest)) * 3 // 4
        if failure.limit_tokens is not None and size is weight:
            fixed = replace(self._prompt, input=[*context, self._request])
            left = failure.limit_tokens - fixed.estimated_tokens - _SUMMARY_TOKENS
            if left > 0:
                room = min(room, _BYTES_PER_TOKEN * left)
        self._items = [*context, *shortened(rest, room, size).items]
        bytes_before = sum(map(len, before))
        return sum(map(len, self._items)) < bytes_before


def _tries(failure: ModelError) -> int:
    """The number of times that the request may be shortened."""
    if not failure.is_too_long:
        # A failure that may be a lack of room is worth one try.
        return int(failure.may_be_too_long)
    if failure.limit_tokens is None:
        return _MAX_SHORTER
    return _MAX_SHORTER_IF_TOLD

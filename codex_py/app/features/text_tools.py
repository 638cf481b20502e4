"""Tells a model that writes its calls as text why a block could not be read. LIGHT."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from codex_py.errors import CodexError
from codex_py.protocol.prompts import Note
from codex_py.protocol.stream import Completed, ResponseEvent

_MAX_STRIKES = 3


class FormatStrikes:
    """Counts messages with a mistake; three in a row end the turn."""

    def __init__(self) -> None:
        self._mistake: str | None = None
        """The mistake in the last message: a clause. None if there was none."""
        self._strikes = 0
        self._is_told = False
        """True if the note about the last message is already in the history."""

    @asynccontextmanager
    async def watched(
        self, response: AbstractAsyncContextManager[AsyncIterator[ResponseEvent]]
    ) -> AsyncGenerator[AsyncIterator[ResponseEvent]]:
        """Pass a response on, and remember its mistake."""
        async with response as events:
            yield self._watched(events)

    async def _watched(
        self, events: AsyncIterator[ResponseEvent]
    ) -> AsyncGenerator[ResponseEvent]:
        async for event in events:
            if isinstance(event, Completed) and event.mistake is not None:
                self._mistake = event.mistake
            yield event

    @asynccontextmanager
    async def ignored(self) -> AsyncGenerator[None]:
        """Ignore the mistakes of all responses within."""
        mistake = self._mistake
        try:
            yield
        finally:
            self._mistake = mistake

    def note(self, *, is_end: bool) -> Note | None:
        """Return the note about the last message, if it had a mistake.

        Args:
            is_end: True if the turn ends unless there is a note.

        Raises:
            CodexError: it was the third mistake in a row.
        """
        mistake = self._mistake
        self._mistake = None
        was_told = self._is_told
        self._is_told = is_end
        if mistake is None:
            # If the note was given at the end of the turn, there is no message since.
            if not was_told:
                self._strikes = 0
            return None
        self._strikes += 1
        if self._strikes == _MAX_STRIKES:
            self._strikes = 0
            raise CodexError(
                f"the model wrote its tool calls wrongly {_MAX_STRIKES} times in a row: {mistake}",
                code="tool_format",
            )
        from codex_py.model.text.format import FORMAT_REMINDER  # 4 ms

        sentence = f"{mistake[0].upper()}{mistake[1:]}, so it was not run."
        return Note(f"{sentence} {FORMAT_REMINDER}", "user")

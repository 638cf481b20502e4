"""Tells a model that writes its calls as text what is wrong with a block that could not be read. LIGHT."""

from collections.abc import Mapping

from codex_py.errors import CodexError
from codex_py.model.text.format import FORMAT_REMINDER, read_message
from codex_py.protocol.prompts import Note
from codex_py.protocol.tools import ToolSpec

_MAX_STRIKES = 3


class FormatStrikes:
    """Three messages in a row with a mistake end the turn."""

    def __init__(self) -> None:
        self._problem: str | None = None
        self._strikes = 0
        self._is_told = False
        """The note about the last message is in the history."""

    def read(self, text: str, tools: Mapping[str, ToolSpec]) -> None:
        """Read a message of the model. `tools`: those of the request, by name."""
        self._problem = read_message(text, tools).problem

    def note(self, *, is_end: bool) -> Note | None:
        """The note about the last message. `is_end`: the turn ends without one; else a request follows.

        Raises:
            CodexError: it was the third mistake.
        """
        wrong, self._problem = self._problem, None
        is_told, self._is_told = self._is_told, is_end
        if wrong is None:
            self._strikes = self._strikes if is_told else 0
            return None
        self._strikes += 1
        if self._strikes == _MAX_STRIKES:
            self._strikes = 0
            raise CodexError(
                f"the model wrote its tool calls wrongly {_MAX_STRIKES} times in a row: {wrong}",
                code="tool_format",
            )
        return Note(f"{wrong[0].upper()}{wrong[1:]}, so it was not run. {FORMAT_REMINDER}", "user")

"""Stops a model that repeats the same calls with the same results in successive responses.

LIGHT.
"""

import json
import re
from collections.abc import Sequence
from typing import Any, Final

from codex_py.app.options import SessionSetup
from codex_py.errors import CodexError, ExitCode
from codex_py.protocol.extension import Extension, Thread
from codex_py.protocol.prompts import Note

_NOTE_AFTER: Final = 3
_STOP_AFTER: Final = 10
_WAITS: Final = ("write_stdin", "wait_agent")
"""Tools that wait for something: their calls are meant to be repeated."""
_COMPARED: Final = (
    "type",
    "namespace",
    "name",
    "arguments",
    "input",
    "action",
    "output",
)
_VOLATILE: Final = r"\b(?:Wall time: [\d.]+|Chunk ID: \w+|session ID \d+)"


class LoopGuard:
    """Compares the calls of each response, as a whole, with those of the response before."""

    def __init__(self, _: SessionSetup) -> None:
        self._seen: int | None = None
        """The length of the history at the last request of this session."""
        self._turn = ""
        self._last: object = None
        self._times = 0

    def __call__(self, thread: Thread) -> Extension:
        self._thread = thread
        return Extension(before_request=self._before_request)

    async def _before_request(self) -> Sequence[Note]:
        """Return a note to the model if the same calls came `_NOTE_AFTER` times in a row.

        Raises:
            CodexError: they came `_STOP_AFTER` times in a row.
        """
        items = self._thread.items
        turn = self._thread.turn
        new = () if self._seen is None else items[self._seen :]
        self._seen = len(items)
        if turn is not None and turn.id != self._turn:
            self._turn = turn.id
            self._times = 0
        found: list[dict[str, Any]] = [
            json.loads(each) for each in new if b'"call_id"' in each
        ]
        if not found:
            return ()
        is_wait = any(str(item.get("name")).endswith(_WAITS) for item in found)
        # A failing wait for something that has ended or never existed would fail for ever.
        if is_wait and not any(
            str(item.get("output")).startswith("[ERROR:") for item in found
        ):
            self._times = 0
            return ()
        calls = [[str(item.get(key)) for key in _COMPARED] for item in found]
        for fields in calls:
            # The outputs may differ in their times alone.
            fields[-1] = re.sub(_VOLATILE, "", fields[-1])
        if self._times and calls == self._last:
            self._times = self._times + 1
        else:
            self._times = 1
        self._last = calls
        if self._times >= _STOP_AFTER:
            raise CodexError(
                f"the model made the same call {_STOP_AFTER} times in a row, with the same result; if that is meant,"
                " set `budget.loop_guard = false` in your own config.toml",
                code="loop",
                exit_code=ExitCode.TURN_LIMIT,
            )
        if self._times == _NOTE_AFTER:
            text = f"You made the same call {_NOTE_AFTER} times in a row, with the same result. Try something else."
            return (Note(f"<loop_guard>\n{text}\n</loop_guard>"),)
        return ()

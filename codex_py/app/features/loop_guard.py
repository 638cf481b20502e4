"""Stops a model that repeats the same calls with the same results in successive responses.

LIGHT.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from codex_py.app.options import SessionSetup
from codex_py.errors import CodexError, ExitCode
from codex_py.protocol.extension import Extension, Thread
from codex_py.protocol.prompts import Note

_NOTE_AFTER: Final = 3
_STOP_AFTER: Final = 10
_WAITS: Final = ("write_stdin", "wait_agent")
"""Tools that wait for something: their calls are meant to be repeated."""
_COMPARED: Final = ("type", "namespace", "name", "arguments", "input", "action")
"""The fields of calls and outputs that are compared, beside `output`."""
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
        turn = self._thread.turn
        if turn is not None and turn.id != self._turn:
            self._turn = turn.id
            self._times = 0
        found = self._new_items()
        if not found:
            return ()
        if _is_waiting(found):
            self._times = 0
            return ()
        self._count([_compared_fields(item) for item in found])
        if self._times >= _STOP_AFTER:
            raise CodexError(
                f"the model made the same call {_STOP_AFTER} times in a row, with the same result;"
                " if that is meant, set `budget.loop_guard = false` in your own config.toml",
                code="loop",
                exit_code=ExitCode.TURN_LIMIT,
            )
        if self._times == _NOTE_AFTER:
            text = (
                f"You made the same call {_NOTE_AFTER} times in a row, with the same result."
                " Try something else."
            )
            return (Note(f"<loop_guard>\n{text}\n</loop_guard>"),)
        return ()

    def _new_items(self) -> list[dict[str, Any]]:
        """Return the calls and outputs since the last request of this session."""
        items = self._thread.items
        seen = self._seen
        self._seen = len(items)
        if seen is None:
            return []
        return [json.loads(each) for each in items[seen:] if b'"call_id"' in each]

    def _count(self, calls: object) -> None:
        """Count the calls of a response as a repetition, or as the first of their kind."""
        if self._times and calls == self._last:
            self._times = self._times + 1
        else:
            self._times = 1
        self._last = calls


def _is_waiting(items: Sequence[Mapping[str, Any]]) -> bool:
    """True if a tool waits for something, and nothing failed.

    A failing wait counts as a repeated call: what has ended or never existed will fail for ever.
    """
    names = [str(item.get("name")) for item in items]
    outputs = [str(item.get("output")) for item in items]
    is_wait = any(name.endswith(_WAITS) for name in names)
    has_failed = any(output.startswith("[ERROR:") for output in outputs)
    return is_wait and not has_failed


def _compared_fields(item: Mapping[str, Any]) -> list[str]:
    """Return the text of the fields that are compared, without times in the output."""
    fields = [str(item.get(key)) for key in _COMPARED]
    output = str(item.get("output"))
    return [*fields, re.sub(_VOLATILE, "", output)]

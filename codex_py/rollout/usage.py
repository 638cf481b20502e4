"""Reads the token usage of a session from its file, for each turn, and its largest tool outputs."""

from heapq import nlargest
from pathlib import Path
from typing import Any, cast

from codex_py.protocol.frozen import frozen
from codex_py.protocol.json_fields import json_object, text_field
from codex_py.protocol.prompts import message_texts, prompt_of
from codex_py.protocol.stream import Usage
from codex_py.rollout.lines import ThreadLines
from codex_py.rollout.records import read_token_count

_LARGEST = 5


@frozen
class UsageRow:
    """The tokens that a prompt cost with one model, compactions and subagents included."""

    turn: int | None
    """Counts prompts from 1, steered ones and those taken back included. None: tokens from before the session was
    copied."""
    prompt: str
    model: str | None
    usage: Usage


@frozen
class LargeOutput:
    tool: str
    what: str
    """The command, or other arguments."""
    size: int
    """Bytes of text, as the model got them."""


@frozen
class SessionUsage:
    rows: tuple[UsageRow, ...]
    """Their sum is the usage of the whole session."""
    outputs: tuple[LargeOutput, ...] = ()
    """The largest ones first."""


def read_session_usage(path: Path) -> SessionUsage:
    """Raises a `SessionError` as `ThreadLines` does."""
    reading = _Reading()
    for line in ThreadLines(path, {"token_count"}).since():
        if line is not None:
            reading.take(line.kind, line.payload)
    return SessionUsage(tuple(reading.rows.values()), tuple(reading.outputs))


class _Reading:
    def __init__(self) -> None:
        self.rows: dict[tuple[int | None, str | None], UsageRow] = {}
        self.outputs: list[LargeOutput] = []
        """The largest so far, in order."""
        self._calls: dict[str, tuple[str, str]] = {}
        self._turn, self._prompt = 0, ""
        self._model: str | None = None
        self._total = Usage()

    def take(self, kind: str, payload: dict[str, Any]) -> None:
        match kind, payload:
            case "turn_context", {"model": str(model)}:
                self._model = model
            case "event_msg", {"type": "token_count"}:
                if (usages := read_token_count(payload)) is not None:
                    self._count(usages[0])
            case "response_item", _:
                self._item(payload)
            case _:
                pass

    def _item(self, item: dict[str, Any]) -> None:
        kind = text_field(item, "type")
        call_id = text_field(item, "call_id") or text_field(item, "id")
        if (prompt := prompt_of(item)) is not None:
            self._turn, self._prompt = self._turn + 1, prompt.text
        elif kind.endswith("_call"):
            self._calls[call_id] = text_field(item, "name") or kind, _arguments(item)
        elif "output" in item:
            size = len("".join(message_texts(item["output"])).encode(errors="replace"))
            self.outputs.append(LargeOutput(*self._calls.pop(call_id, ("", "")), size))
            self.outputs = nlargest(_LARGEST, self.outputs, key=lambda each: each.size)

    def _count(self, total: Usage) -> None:
        if total.total_tokens < self._total.total_tokens:
            # Another file of the thread begins to count anew.
            self._total = Usage()
        spent, self._total = total - self._total, total
        if not spent.total_tokens:
            return
        # The count of a copy begins with that of its original.
        turn, prompt = (None, "") if self._model is None else (self._turn, self._prompt)
        if (known := self.rows.get((turn, self._model))) is not None:
            spent = known.usage + spent
        self.rows[turn, self._model] = UsageRow(turn, prompt, self._model, spent)


def _arguments(call: dict[str, Any]) -> str:
    """The command of a call, or else all of its arguments."""
    text = text_field(call, "arguments") or text_field(call, "input")
    arguments = json_object(text) or call.get("action") or {}
    fields = cast("dict[str, Any]", arguments) if isinstance(arguments, dict) else {}
    command = fields.get("cmd") or fields.get("command")
    if isinstance(command, list):
        return " ".join(map(str, cast("list[Any]", command)))
    return command if isinstance(command, str) else text

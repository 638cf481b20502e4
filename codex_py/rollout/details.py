"""Reads facts about a session: its settings, prompts and changed files; its token usage for each turn,
and its largest tool outputs.

Files are read line by line, because they may be larger than memory.
"""

import re
from collections.abc import Mapping
from heapq import nlargest
from pathlib import Path
from typing import Any, Final, cast

from codex_py.protocol.frozen import frozen
from codex_py.protocol.json_fields import (
    as_object,
    json_object,
    object_field,
    text_field,
)
from codex_py.protocol.prompts import message_texts, prompt_of
from codex_py.protocol.stream import Usage
from codex_py.rollout.lines import ThreadLines
from codex_py.rollout.records import PAID_BY_PLAN, read_token_count

_DIFFED: Final = re.compile(r'^diff --git .* "?b/(.*?)"?$', re.MULTILINE)
_LARGEST = 5
"""The number of outputs that are kept."""


@frozen
class SessionDetails:
    settings: Mapping[str, str | None]
    """`model`, `reasoning_effort`, `approval_policy` and `sandbox_mode` of the last turn."""
    prompts: tuple[str, ...]
    """The prompts of the turns that were not taken back."""
    usage: Usage
    files: tuple[str, ...]
    """The paths that patches have changed, as the session file spells them."""
    damaged_lines: int


def read_details(path: Path) -> SessionDetails:
    """Read the details of a session. Raises the same `SessionError`s as `ThreadLines`."""
    context: Mapping[str, Any] = {}
    prompts: list[str] = []
    usage = Usage()
    damaged_lines = 0
    files: dict[str, None] = {}
    for line in ThreadLines(path).since():
        if line is None:
            damaged_lines += 1
            continue
        match line.kind, line.payload:
            case "response_item", payload if (prompt := prompt_of(payload)) is not None:
                prompts.append(prompt.text)
            case "turn_context", payload:
                context = payload
            case "event_msg", {
                "type": "thread_rolled_back",
                "num_turns": int(turns),
            } if turns > 0:
                del prompts[-turns:]
            case "event_msg", {"type": "token_count"} as payload:
                usages = read_token_count(payload)
                if usages is not None:
                    usage, _ = usages
            case "event_msg", {"type": "patch_applied", "diff": str(diff)}:
                files |= dict.fromkeys(_DIFFED.findall(diff))
            case "event_msg", {"item": {"type": "FileChange", "changes": changes}}:
                files |= dict.fromkeys(as_object(changes))
            case _:
                pass
    settings = {
        "model": context.get("model"),
        "reasoning_effort": context.get("effort"),
        "approval_policy": context.get("approval_policy"),
        "sandbox_mode": object_field(context, "sandbox_policy").get("type"),
    }
    known = {name: _text_or_none(value) for name, value in settings.items()}
    return SessionDetails(known, tuple(prompts), usage, tuple(files), damaged_lines)


def _text_or_none(value: Any) -> str | None:
    if isinstance(value, str):
        return value
    return None


@frozen
class UsageRow:
    """The tokens that a prompt cost with one model, compactions and subagents included."""

    turn: int | None
    """The number of the prompt, from 1. Steered prompts and those that were taken back count too.
    None for the tokens from before the session was copied."""
    prompt: str
    """The text of the prompt; empty if `turn` is None."""
    model: str | None
    usage: Usage
    paid_by_plan: bool = False
    """True if a ChatGPT plan has paid for the tokens."""


@frozen
class LargeOutput:
    tool: str
    what: str
    """The command, or the other arguments of the call."""
    size: int
    """The size of the text that the model got, in bytes."""


@frozen
class SessionUsage:
    rows: tuple[UsageRow, ...]
    """The rows in the order of their first usage. Their sum is the usage of the whole session."""
    outputs: tuple[LargeOutput, ...] = ()
    """The largest outputs, in descending order."""


def read_session_usage(path: Path) -> SessionUsage:
    """Read the token usage of a session. Raises the same `SessionError`s as `ThreadLines`."""
    reading = _UsageReading()
    for line in ThreadLines(path, {"token_count"}).since():
        if line is not None:
            reading.add(line.kind, line.payload)
    return SessionUsage(tuple(reading.rows.values()), tuple(reading.outputs))


class _UsageReading:
    """Gathers the usage of a session from its lines."""

    def __init__(self) -> None:
        self.rows: dict[tuple[int | None, str | None, bool], UsageRow] = {}
        """The rows by turn, model, and whether a plan has paid."""
        self.outputs: list[LargeOutput] = []
        """The largest outputs so far, in descending order."""
        self._calls: dict[str, tuple[str, str]] = {}
        """The tool and the arguments of each call without an output so far, by id."""
        self._turn = 0
        self._prompt = ""
        self._model: str | None = None
        """The model of the turn; None before the first turn of this session."""
        self._total = Usage()

    def add(self, kind: str, payload: dict[str, Any]) -> None:
        """Add a line."""
        match kind, payload:
            case "turn_context", {"model": str(model)}:
                self._model = model
            case "event_msg", {"type": "token_count"}:
                usages = read_token_count(payload)
                if usages is not None:
                    total, _ = usages
                    self._count(total, payload.get(PAID_BY_PLAN) is True)
            case "response_item", _:
                self._item(payload)
            case _:
                pass

    def _item(self, item: dict[str, Any]) -> None:
        kind = text_field(item, "type")
        call_id = text_field(item, "call_id") or text_field(item, "id")
        prompt = prompt_of(item)
        if prompt is not None:
            self._turn += 1
            self._prompt = prompt.text
        elif kind.endswith("_call"):
            name = text_field(item, "name") or kind
            self._calls[call_id] = (name, _arguments(item))
        elif "output" in item:
            text = "".join(message_texts(item["output"]))
            size = len(text.encode(errors="replace"))
            name, arguments = self._calls.pop(call_id, ("", ""))
            self.outputs.append(LargeOutput(name, arguments, size))
            self.outputs = nlargest(_LARGEST, self.outputs, key=lambda each: each.size)

    def _count(self, total: Usage, paid_by_plan: bool) -> None:
        """Add what was spent since the last count to the row of the turn."""
        if total.total_tokens < self._total.total_tokens:
            # Each file of a thread counts from zero.
            self._total = Usage()
        spent = total - self._total
        self._total = total
        if not spent.total_tokens:
            return
        turn = None
        prompt = ""
        # The count of a copy begins with the count of its original.
        if self._model is not None:
            turn = self._turn
            prompt = self._prompt
        place = (turn, self._model, paid_by_plan)
        known = self.rows.get(place)
        if known is not None:
            spent = known.usage + spent
        row = UsageRow(turn, prompt, self._model, spent, paid_by_plan)
        self.rows[place] = row


def _arguments(call: dict[str, Any]) -> str:
    """Return the command of a call; for other calls, all arguments."""
    text = text_field(call, "arguments") or text_field(call, "input")
    fields = json_object(text) or object_field(call, "action")
    command = fields.get("cmd", fields.get("command"))
    if isinstance(command, list):
        return " ".join(map(str, cast("list[Any]", command)))
    if isinstance(command, str):
        return command
    return text

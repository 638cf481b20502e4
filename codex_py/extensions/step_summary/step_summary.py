"""Writes the summary of a step in GitHub Actions: Markdown in the file `$GITHUB_STEP_SUMMARY`.

https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands#adding-a-job-summary
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from codex_py.api.events import (
    AgentMessage,
    Event,
    ItemCompleted,
    TurnCompleted,
    TurnFailed,
)
from codex_py.api.patches import changed_lines
from codex_py.api.streams import printable

_FLAGS: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK
"""Opening a pipe that nobody reads must not block."""
_MAX_CHARS: Final = 60_000
"""Limit for the answer. GitHub accepts 1 MB per step."""


class StepSummary:
    """An `EventSink` that writes the summary. `warn` is called if the file cannot be written."""

    def __init__(self, path: str, warn: Callable[[str], None]) -> None:
        self._path = Path(path)
        self._warn = warn
        self._answer = ""

    def __call__(self, event: Event) -> None:
        match event:
            case ItemCompleted(AgentMessage(text=text)):
                self._answer = text
            case TurnCompleted() | TurnFailed():
                lines = [*self._lines(event), ""]
                self._append("\n".join(lines))
            case _:
                pass

    def _append(self, text: str) -> None:
        try:
            descriptor = os.open(self._path, _FLAGS, 0o666)
            with open(  # noqa: PTH123
                descriptor, "a", encoding="utf-8", errors="replace"
            ) as file:
                file.write(text)
        except OSError as error:
            self._warn(f"GITHUB_STEP_SUMMARY cannot be written: {error.strerror}")

    def _lines(self, event: TurnCompleted | TurnFailed) -> Iterator[str]:
        """The paragraphs and the rows of the summary, without the newline at their ends."""
        if isinstance(event, TurnCompleted):
            yield "### codex-py: the turn completed\n"
            used = f", {event.usage.total_tokens:,} tokens"
        else:
            yield "### codex-py: the turn failed\n"
            yield f"{_code(event.error.message)}\n"
            used = ""
        if self._answer:
            yield _block(self._answer)
        gates: Sequence[Mapping[str, Any]] = event.facts.get("gates") or ()
        if gates:
            yield "| gate | status | |\n| --- | --- | --- |"
            for gate in gates:
                name = _code(gate["name"])
                reason = _code(gate.get("reason", ""))
                yield f"| {name} | {gate['status']} | {reason} |"
            yield ""
        diff = event.diff or ""
        files = len(re.findall("^diff --git ", diff, re.MULTILINE))
        counted = changed_lines(diff)
        lines = "many" if counted is None else f"{counted:,}"
        yield f"{files} files changed, {lines} lines{used}."


def _block(text: str) -> str:
    """Text as a block of code: a model's text must not become a link, an image or a mention."""
    inner = re.findall("`+", text)
    longest = max(map(len, inner), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{printable(text[:_MAX_CHARS])}\n{fence}\n"


def _code(text: str) -> str:
    """Text as code in one cell of a table; empty for an empty one."""
    inner = printable(" ".join(text.split()))
    inner = inner.replace("`", "'").replace("|", "\\|")
    if inner:
        return f"`{inner}`"
    return ""

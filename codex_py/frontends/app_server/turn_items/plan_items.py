"""Separates the plan that an answer proposes in Plan mode from the rest of it, as Codex does."""

from collections.abc import Iterator
from dataclasses import replace
from typing import TypeAlias

from codex_py.protocol.event_items import AgentMessage
from codex_py.protocol.frozen import frozen
from codex_py.protocol.plans import CLOSING, OPENING

Part: TypeAlias = tuple[bool, str]
"""True for a part of a plan, and the part."""


@frozen
class ProposedPlan:
    """A plan as an item of its own, which only this protocol has."""

    text: str
    """Markdown, with the newline at its end."""
    id: str = ""


class PlanSplitter:
    """Splits an answer while it is streamed. The lines that are tags are left out."""

    _is_plan = False
    _held = ""
    """The beginning of a line that may become a tag."""
    _is_in_line = False
    """True if the beginning of the line was passed on: it is no tag."""

    def feed(self, delta: str) -> Iterator[Part]:
        """Yield the parts that a delta completes."""
        for line in (self._held + delta).splitlines(keepends=True):
            self._held = ""
            tag = CLOSING if self._is_plan else OPENING
            if self._is_in_line:
                yield self._is_plan, line
            elif line.rstrip() == tag and line.endswith("\n"):
                self._is_plan = not self._is_plan
                continue
            elif tag.startswith(line) or line.rstrip(" \t") == tag:
                self._held = line
                continue
            else:
                yield self._is_plan, line
            self._is_in_line = not line.endswith("\n")

    def end(self) -> Iterator[Part]:
        """Yield what was held back, and begin anew."""
        held = self._held
        is_plan = self._is_plan
        self._is_plan = False
        self._held = ""
        self._is_in_line = False
        if held and held.rstrip(" \t") not in {OPENING, CLOSING}:
            yield is_plan, held


def separated(message: AgentMessage) -> list[AgentMessage | ProposedPlan]:
    """Return the message without its plan, and the plan, in the order in which they begin."""
    splitter = PlanSplitter()
    parts = [*splitter.feed(message.text), *splitter.end()]
    plan = "".join(text for is_plan, text in parts if is_plan)
    rest = "".join(text for is_plan, text in parts if not is_plan)
    found: list[AgentMessage | ProposedPlan] = []
    if rest:
        found.append(replace(message, text=rest))
    if plan:
        found.append(ProposedPlan(plan))
    begins_with_plan = bool(parts) and parts[0][0]
    if begins_with_plan:
        found.reverse()
    return found or [message]

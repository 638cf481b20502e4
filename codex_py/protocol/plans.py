"""Finds the plan that an answer proposes: Markdown between tags that have lines of their own, as in Codex."""

import re

OPENING = "<proposed_plan>"
CLOSING = "</proposed_plan>"
TAGS = (OPENING, CLOSING)
_PLAN = re.compile(
    rf"^{OPENING}[ \t]*\n(.*?)^{CLOSING}[ \t]*$\n?", re.DOTALL | re.MULTILINE
)


def proposed_plan(text: str) -> str | None:
    """The Markdown of the last plan; None if the text has no plan."""
    last = None
    for found in _PLAN.finditer(text):
        plan = found[1].strip()
        if plan:
            last = plan
    return last


def may_become_tag(line: str) -> bool:
    """True if a line that is still being streamed is the beginning of a tag."""
    return bool(line) and any(tag.startswith(line) for tag in TAGS)


def without_tags(text: str) -> str:
    if OPENING in text:
        return _PLAN.sub(r"\1", text)
    return text

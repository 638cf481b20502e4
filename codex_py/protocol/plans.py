"""Finds the plan that an answer proposes: Markdown between two lines that are tags, as in Codex."""

import re

OPENING = "<proposed_plan>"
CLOSING = "</proposed_plan>"
TAGS = (OPENING, CLOSING)
_PLAN = re.compile(
    rf"^{OPENING}[ \t]*\n(.*?)^{CLOSING}[ \t]*$\n?", re.DOTALL | re.MULTILINE
)
"""The lines of a plan, with its tags."""


def proposed_plan(text: str) -> str | None:
    """Return the Markdown of the last plan that is not empty; None if the text has none."""
    last = None
    for found in _PLAN.finditer(text):
        plan = found[1].strip()
        if plan:
            last = plan
    return last


def may_become_tag(line: str) -> bool:
    """True if a line that is still being streamed is the beginning of a tag, or all of it."""
    return bool(line) and any(tag.startswith(line) for tag in TAGS)


def without_tags(text: str) -> str:
    """Return the text with its plans as plain Markdown."""
    if OPENING in text:
        return _PLAN.sub(r"\1", text)
    return text

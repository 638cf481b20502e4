"""Removes the tags of a proposed plan from an answer while it is streamed.

Each tag has a line of its own, before or after the plan. An editor that draws Markdown would take
it for HTML.
"""

from codex_py.protocol.plans import TAGS, may_become_tag


class TagFilter:
    """Holds back the last line of an answer for as long as it may become a tag."""

    def __init__(self) -> None:
        self._held = ""

    def feed(self, delta: str) -> str:
        """Add a piece of the answer. Returns the text that can be shown now."""
        complete, newline, line = (self._held + delta).rpartition("\n")
        shown = without_tag_lines(complete + newline)
        if may_become_tag(line):
            self._held = line
            return shown
        self._held = ""
        return shown + line

    def finish(self) -> str:
        """End the answer. Returns the text that was held back, unless it is a tag."""
        held = self._held
        self._held = ""
        if held in TAGS:
            return ""
        return held

    def reset(self) -> None:
        """Forget an answer that has broken off."""
        self._held = ""


def without_tag_lines(text: str) -> str:
    """Return the text without the lines that are tags."""
    lines = text.splitlines(keepends=True)
    kept = [line for line in lines if line.rstrip() not in TAGS]
    return "".join(kept)

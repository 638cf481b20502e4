"""Takes the tags of a proposed plan out of an answer while it is streamed.

A plan stands between lines that Markdown would take for HTML.
"""

from codex_py.protocol.plans import TAGS, may_become_tag


class TagFilter:
    """Holds back the last line of an answer for as long as it may become a tag."""

    def __init__(self) -> None:
        self._held = ""

    def feed(self, delta: str) -> str:
        """The text that can be shown now."""
        complete, newline, line = (self._held + delta).rpartition("\n")
        shown = without_tag_lines(complete + newline)
        if may_become_tag(line):
            self._held = line
            return shown
        self._held = ""
        return shown + line

    def finish(self) -> str:
        """The text that was held back and is no tag, at the end of an answer."""
        held = self._held
        self._held = ""
        if held in TAGS:
            return ""
        return held

    def reset(self) -> None:
        """Forget an answer that has broken off."""
        self._held = ""


def without_tag_lines(text: str) -> str:
    lines = text.splitlines(keepends=True)
    return "".join(line for line in lines if line.rstrip() not in TAGS)

"""Reads Markdown without drawing it: headings, plain words, and text that is still arriving."""

import re
from typing import Final

_HEADING: Final = re.compile(r"\*\*([^*\n]+)\*\*")
_UNFINISHED: Final = re.compile(
    r"(?:^#{1,6}[ \t]*|(?<=[\s(])[*_~`]+|!?\[[^\]\n]*\]\([^)\s]*)\Z", re.MULTILINE
)
_MARKS: Final = re.compile(r"^#{1,6} +|(\*\*|`)(?=\S)(.+?)(?<=\S)\1", re.MULTILINE)
_PAIRS: Final = ("`", "**", "~~")


def heading_of(thought: str) -> str:
    """The last heading of a thought; empty if it has none."""
    found = _HEADING.findall(thought)
    if found:
        return found[-1].strip()
    return ""


def unmarked(text: str) -> str:
    """The text without Markdown marks, for a place that shows no Markdown."""
    return _MARKS.sub(r"\2", text)


def settled(text: str) -> str:
    """The arriving text with its unfinished marks removed or completed."""
    match = _UNFINISHED.search(text)
    if match is not None and "](" not in match[0]:
        text = text[: match.start()]
    elif match is not None:
        # Keep the words of a link.
        words, _, _ = match[0].partition("](")
        text = text[: match.start()] + words.lstrip("![")
    lines = text.split("\n")
    head = lines[0]
    if head.lstrip().startswith("|") and len(lines) <= 2:
        # A table is recognized by its second line, so complete it.
        columns = head.strip().strip("|").count("|") + 1
        return f"{head}\n|{'---|' * columns}"
    _, _, last = text.rpartition("\n\n")
    open_marks = [mark for mark in _PAIRS if last.count(mark) % 2 == 1]
    return text + "".join(open_marks)

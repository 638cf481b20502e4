"""Markdown without being drawn: its words, and what it will be when it has arrived whole."""

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
    """The words of a text, for a place that shows no Markdown."""
    return _MARKS.sub(r"\2", text)


def settled(text: str) -> str:
    """Without marks whose other half has not come."""
    match = _UNFINISHED.search(text)
    if match is not None and "](" not in match[0]:
        text = text[: match.start()]
    elif match is not None:
        # Of a link, its words.
        text = text[: match.start()] + match[0].partition("](")[0].lstrip("![")
    lines = text.split("\n")
    if lines[0].lstrip().startswith("|") and len(lines) <= 2:
        # A table is one from its second line on.
        return f"{lines[0]}\n|{'---|' * max(1, lines[0].strip().strip('|').count('|') + 1)}"
    last = text.rpartition("\n\n")[2]
    return text + "".join(mark for mark in _PAIRS if last.count(mark) % 2)

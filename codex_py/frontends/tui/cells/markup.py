"""Finds headings and marks in Markdown, and completes text that is still arriving."""

import re
from typing import Final

_HEADING: Final = re.compile(r"\*\*([^*\n]+)\*\*")
"""A heading of a thought, which models write in bold."""
_UNFINISHED: Final = re.compile(
    r"(?:^#{1,6}[ \t]*|(?<=[\s(])[*_~`]+|!?\[[^\]\n]*\]\([^)\s]*)\Z", re.MULTILINE
)
"""A mark at the end of the text whose rest has not arrived: of a heading, of bold text, of a link."""
_MARKS: Final = re.compile(r"^#{1,6} +|(\*\*|`)(?=\S)(.+?)(?<=\S)\1", re.MULTILINE)
"""The marks of a heading, or those around bold text or code."""
_PAIRS: Final = ("`", "**", "~~")
"""The marks that stand before and after what they mark."""


def heading_of(thought: str) -> str:
    """Return the last heading of a thought; empty if it has none."""
    found = _HEADING.findall(thought)
    if found:
        return found[-1].strip()
    return ""


def unmarked(text: str) -> str:
    """Return the text without Markdown marks, for a place that shows no Markdown."""
    return _MARKS.sub(r"\2", text)


def settled(text: str) -> str:
    """Return a text that is still arriving such that it can be drawn as Markdown.

    An unfinished mark at its end is removed. A table and a pair of marks that have begun are
    completed.
    """
    text = _without_unfinished_mark(text)
    lines = text.split("\n")
    head = lines[0]
    if head.lstrip().startswith("|") and len(lines) <= 2:
        return _completed_table(head)
    _, _, last_paragraph = text.rpartition("\n\n")
    open_marks = [mark for mark in _PAIRS if last_paragraph.count(mark) % 2 == 1]
    return text + "".join(open_marks)


def _without_unfinished_mark(text: str) -> str:
    match = _UNFINISHED.search(text)
    if match is None:
        return text
    before = text[: match.start()]
    link_text, is_link, _ = match[0].partition("](")
    if is_link:
        return before + link_text.lstrip("![")
    return before


def _completed_table(head: str) -> str:
    """Return the first line of a table, and the second, by which a table is recognized."""
    columns = head.strip().strip("|").count("|") + 1
    rule = "---|" * columns
    return f"{head}\n|{rule}"

"""Code fences of Markdown: what stands in them is text, whatever it looks like."""

import re
from collections.abc import Sequence

FENCE = r"[ \t]*(?P<fence>```+(?=[^`\n]*$)|~~~+)"
"""The opening of a fence at the start of a line, in a pattern with `re.MULTILINE`."""
_OPENING = re.compile(rf"^{FENCE}", re.MULTILINE)


def fence_end(text: str, opening: re.Match[str]) -> int:
    """The place after the fence that a match of `FENCE` opens; the end of the text if it is not closed."""
    mark = opening["fence"]
    pattern = rf"^[ \t]*{mark[0]}{{{len(mark)},}}[ \t]*$"
    closing = re.compile(pattern, re.MULTILINE).search(text, opening.end())
    return closing.end() if closing is not None else len(text)


def fences(text: str) -> Sequence[tuple[int, int]]:
    """Where the fences of a text begin and end."""
    spans: list[tuple[int, int]] = []
    start = 0
    while (opening := _OPENING.search(text, start)) is not None:
        start = fence_end(text, opening)
        spans.append((opening.start(), start))
    return spans

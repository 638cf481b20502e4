"""Blocks of code in Markdown, https://spec.commonmark.org/0.31.2/#fenced-code-blocks."""

import re
from typing import Final

_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
"""A line that opens or closes a block of code: its fence, and the words after it."""


def fenced(text: str, language: str = "") -> str:
    """Return a block of code with a fence that the text does not contain."""
    inner_fences: list[str] = re.findall("`{3,}", text)
    longest = max(map(len, inner_fences), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def closed(text: str) -> str:
    """Close a block of code that the text leaves open, so that the text after it stays outside."""
    open_fence = ""
    for line in text.split("\n"):
        match = _FENCE.match(line)
        if match is None:
            continue
        fence, words = match.groups()
        if not open_fence:
            open_fence = fence
        elif fence.startswith(open_fence) and not words.strip():
            open_fence = ""
    if open_fence:
        return f"{text}\n{open_fence}"
    return text

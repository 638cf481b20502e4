"""Removes code from Markdown, so that only its prose is searched. LIGHT."""

import re

_FENCE = r" {0,3}(`{3,}|~{3,})(.*)"
"""The line that begins or ends a block of code: its marks, and the rest of the line."""
_SPAN = r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)"
"""A span of code within a line, with its backticks."""


def without_code(text: str) -> str:
    """Return the text without blocks and spans of code.

    The lines of a block become empty, so that all other lines keep their numbers.
    """
    lines: list[str] = []
    open_fence = ""
    for line in text.splitlines():
        fence = re.match(_FENCE, line)
        if open_fence:
            lines.append("")
            if fence and _ends_block(fence, open_fence):
                open_fence = ""
        elif fence:
            lines.append("")
            open_fence = fence[1]
        else:
            lines.append(re.sub(_SPAN, " ", line))
    return "\n".join(lines)


def _ends_block(fence: re.Match[str], open_fence: str) -> bool:
    is_long_enough = fence[1].startswith(open_fence)
    return is_long_enough and not fence[2].strip()

"""Reads the prose of Markdown. LIGHT."""

import re

_FENCE = r" {0,3}(`{3,}|~{3,})(.*)"
_SPAN = r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)"


def without_code(text: str) -> str:
    """Return the text without blocks and spans of code. Its lines keep their numbers."""
    lines: list[str] = []
    fence = ""
    for line in text.splitlines():
        mark = re.match(_FENCE, line)
        if fence:
            if mark and mark[1].startswith(fence) and not mark[2].strip():
                fence = ""
            lines.append("")
        elif mark:
            fence = mark[1]
            lines.append("")
        else:
            lines.append(re.sub(_SPAN, " ", line))
    return "\n".join(lines)

"""Translates patterns of denied paths to regular expressions, as Codex reads them. LIGHT."""

import re
from collections.abc import Mapping
from functools import cache
from typing import Final

_TOKEN: Final = re.compile(r"\*\*/|\*\*|\*|\?|\[!?\]?[^\]/]*\]|.", re.DOTALL)
"""A wildcard, a set of characters such as `[a-z]` or `[!a-z]`, or a character that means itself."""
_WILDCARDS: Final[Mapping[str, str]] = {
    "**/": "(?:[^/]+/)*",
    "**": ".+",
    "*": "[^/]*",
    "?": "[^/]",
}


@cache
def expression(patterns: str, *, whole: bool = True) -> re.Pattern[str]:
    """Return a regular expression that matches the relative paths of any of the patterns.

    Args:
        patterns: one pattern a line.
        whole: if False, everything below a matching folder matches too.
    """
    parts = [_translated(pattern) for pattern in patterns.split("\n")]
    any_part = "|".join(parts)
    end = "" if whole else "(?:/.*)?"
    return re.compile(f"(?:{any_part}){end}", re.DOTALL)


def _translated(pattern: str) -> str:
    parts: list[str] = []
    for token in _TOKEN.findall(pattern):
        if token in _WILDCARDS:
            parts.append(_WILDCARDS[token])
        elif len(token) > 1:
            parts.append(_translated_set(token[1:-1]))
        else:
            parts.append(re.escape(token))
    return "".join(parts)


def _translated_set(members: str) -> str:
    """Translate the inside of `[…]`. A set of excluded characters never matches `/` either."""
    for special in ("\\", "[", "^"):
        members = members.replace(special, f"\\{special}")
    if members.startswith("!"):
        members = f"^/{members[1:]}"
    return f"[{members}]"

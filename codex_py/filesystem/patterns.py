"""Patterns of denied paths, with the meaning that Codex gives them. LIGHT."""

import re
from collections.abc import Mapping
from functools import cache
from typing import Final

_TOKEN: Final = re.compile(r"\*\*/|\*\*|\*|\?|\[!?\]?[^\]/]*\]|.", re.DOTALL)
_MEANING: Final[Mapping[str, str]] = {
    "**/": "(?:[^/]+/)*",
    "**": ".+",
    "*": "[^/]*",
    "?": "[^/]",
}


@cache
def expression(patterns: str, *, whole: bool = True) -> re.Pattern[str]:
    """A regular expression for relative paths. `whole`: paths inside a matching folder do not
    match."""
    end = "" if whole else "(?:/.*)?"
    parts = (_translated(pattern) for pattern in patterns.split("\n"))
    return re.compile(f"(?:{'|'.join(parts)}){end}", re.DOTALL)


def _translated(pattern: str) -> str:
    parts: list[str] = []
    for token in _TOKEN.findall(pattern):
        if token in _MEANING:
            parts.append(_MEANING[token])
        elif len(token) > 1:
            inner = token[1:-1]
            for special in ("\\", "[", "^"):
                inner = inner.replace(special, f"\\{special}")
            if inner.startswith("!"):
                inner = f"^/{inner[1:]}"
            parts.append(f"[{inner}]")
        else:
            parts.append(re.escape(token))
    return "".join(parts)

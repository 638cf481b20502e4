"""Which hooks an event concerns. Source: Codex 0.169, measured. LIGHT."""

import re
from collections.abc import Sequence
from typing import Final

_EXACT: Final = re.compile(r"[A-Za-z0-9_|]+")


def matches(matcher: str | None, names: Sequence[str]) -> bool:
    """True if the matcher accepts one of the names.

    Letters, digits, `_` and `|` alone are a list of exact names; anything else is a valid regular expression, unanchored.
    None, `""` and `*` accept everything.
    """
    if not matcher or matcher == "*":
        return True
    if _EXACT.fullmatch(matcher):
        return not set(matcher.split("|")).isdisjoint(names)
    return any(re.search(matcher, name) for name in names)

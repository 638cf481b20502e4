"""The limits of a ChatGPT plan, as `/status` and the status line show them."""

import time
from collections.abc import Iterator, Mapping
from contextlib import suppress

from codex_py.protocol.stream import PlanLimit, PlanUse

_NAMES = {300: "5h", 1440: "daily", 10_080: "weekly"}
"""The names of limits, by the minutes of their windows."""
_MINUTES_OF_DAY = 1440
_ITEMS = {"5h": "five-hour-limit", "weekly": "weekly-limit"}
"""The items of the status line, which Codex names so, by the names of the limits."""


def limit_rows(use: PlanUse) -> list[tuple[str, str]]:
    """The rows of `/status`: a name and a value in each. Not yet safe for a terminal."""
    rows = [("plan", use.plan or "ChatGPT")]
    for name, limit in _named(use):
        text = _left(limit)
        if limit.resets_at is not None:
            # The number comes from a server.
            with suppress(OverflowError, ValueError, OSError):
                end = time.localtime(limit.resets_at)
                text = f"{text}, until {time.strftime('%Y-%m-%d %H:%M', end)}"
        rows.append((f"{name} limit", text))
    return rows


def limit_items(use: PlanUse | None) -> Mapping[str, str]:
    """The items of the status line, by name. An item that is not known is empty."""
    items = dict.fromkeys(_ITEMS.values(), "")
    if use is None:
        return items
    for name, limit in _named(use):
        if name in _ITEMS:
            items[_ITEMS[name]] = f"{name} {_left(limit)}"
    return items


def _named(use: PlanUse) -> Iterator[tuple[str, PlanLimit]]:
    for kind, limit in (("first", use.primary), ("second", use.secondary)):
        if limit is not None:
            yield _name(limit, kind), limit


def _name(limit: PlanLimit, kind: str) -> str:
    minutes = limit.window_minutes
    if minutes is None:
        return kind
    if minutes in _NAMES:
        return _NAMES[minutes]
    if minutes % _MINUTES_OF_DAY == 0:
        return f"{minutes // _MINUTES_OF_DAY}d"
    if minutes % 60 == 0:
        return f"{minutes // 60}h"
    return f"{minutes}min"


def _left(limit: PlanLimit) -> str:
    return f"{max(0.0, 100 - limit.used_percent):.0f}% left"

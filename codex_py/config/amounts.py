"""Reads the amounts of the limits in `[budget]`. LIGHT."""

import re
from typing import Final

from codex_py.errors import ConfigError

LIMITS: Final = {
    "max_turns": ({"": 1}, "responses: write a whole number"),
    "max_tokens": ({"": 1, "k": 1_000, "m": 1_000_000}, "tokens: write 200000, 200k or 1.5m"),
    "max_cost": ({"": 1}, "dollars: write 2 or 0.50"),
    "max_time": ({"": 1, "s": 1, "m": 60, "h": 3600}, "time: write 90s, 30m or 2h"),
}
"""The units of each limit, and how to write one."""


def amount(limit: str, text: str) -> float:
    """Read the amount of one of `LIMITS`: `200k`, `1.5m`, `30m`; seconds for a time. Raises a `ConfigError`."""
    units, example = LIMITS[limit]
    found = re.fullmatch(r"([0-9][0-9_]*(?:\.[0-9]+)?)([a-z]?)", text.strip().lower())
    value = 0.0
    if found is not None and found[2] in units:
        value = float(found[1]) * units[found[2]]
    is_whole = value.is_integer()
    if not value or not (is_whole or limit in {"max_cost", "max_time"}):
        raise ConfigError(f"{text!r} is no amount of {example}")
    return int(value) if is_whole else value

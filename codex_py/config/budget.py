"""The limits of a run: `[budget]`, and `features.rollout_budget` of Codex. LIGHT.

The strongest layer that sets a limit decides, but a project can only tighten what would hold without it.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from codex_py.config.check import lookup
from codex_py.config.layers import Layers
from codex_py.errors import ConfigError
from codex_py.protocol.frozen import frozen

_ROLLOUT: Final = ("features", "rollout_budget")
LIMITS: Final = {
    "max_turns": ({"": 1}, "responses: write a whole number from 1"),
    "max_tokens": ({"": 1, "k": 1_000, "m": 1_000_000}, "tokens: write 200000, 200k or 1.5m"),
    "max_cost": ({"": 1}, "dollars: write 2 or 0.50"),
    "max_time": ({"": 1, "s": 1, "m": 60, "h": 3600}, "time: write 90s, 30m or 2h"),
}
"""The units of each limit, and how to write one."""


@frozen
class RolloutBudget:
    """A limit on weighted tokens; those from the cache weigh nothing."""

    limit_tokens: int
    reminders: Sequence[int]
    """The model is told when so many are left."""
    input_weight: float
    output_weight: float


@frozen(kw_only=True)
class Budget:
    """None: no limit."""

    max_turns: int | None
    """Responses of the model."""
    max_tokens: int | None
    max_cost: float | None
    """Dollars."""
    max_time: float | None
    """Seconds."""
    rollout: RolloutBudget | None
    loop_guard: bool

    @property
    def is_limited(self) -> bool:
        limits = (self.max_turns, self.max_tokens, self.max_cost, self.max_time, self.rollout)
        return any(limit is not None for limit in limits)


def configured_budget(layers: Layers) -> Budget:
    """
    Raises:
        ConfigError: an amount cannot be read, or the rollout budget has no limit.
    """

    def limit(name: str) -> Any:
        key = ("budget", name)

        def value(values: Mapping[str, Any]) -> Any:
            own = lookup(values, key)
            return amount(name, own) if isinstance(own, str) else own

        try:
            return _tightest(layers, value)
        except ConfigError as error:
            raise layers.located(ConfigError(f"`budget.{name}`: {error}", key=key)) from None

    guard = _tightest(layers, lambda values: lookup(values, ("budget", "loop_guard")), max, True)
    limits: Any = {name: limit(name) for name in LIMITS}
    return Budget(**limits, rollout=_rollout(layers), loop_guard=guard)


def _rollout(layers: Layers) -> RolloutBudget | None:
    def is_enabled(values: Mapping[str, Any]) -> Any:
        own = lookup(values, _ROLLOUT)
        return own if isinstance(own, bool) else lookup(values, (*_ROLLOUT, "enabled"))

    def read(name: str, pick: Callable[[Sequence[Any]], Any], default: Any = None) -> Any:
        return _tightest(layers, lambda values: lookup(values, (*_ROLLOUT, name)), pick, default)

    if not _tightest(layers, is_enabled, max):
        return None
    if (tokens := read("limit_tokens", min)) is None:
        message = "features.rollout_budget.limit_tokens is required when rollout_budget is enabled"
        raise layers.located(ConfigError(message, key=_ROLLOUT))
    return RolloutBudget(
        tokens,
        read("reminder_at_remaining_tokens", max, [tokens // 5]),
        read("prefill_token_weight", max, 1),
        read("sampling_token_weight", max, 1),
    )


def _tightest(
    layers: Layers,
    value_of: Callable[[Mapping[str, Any]], Any],
    pick: Callable[[Sequence[Any]], Any] = min,
    default: Any = None,
) -> Any:
    found: list[Any] = []
    for layer in layers.layers:
        if (value := value_of(layer.values)) is not None:
            found.append(value)
            if layer.name != "project":
                break
    else:
        found += [] if default is None else [default]
    return pick(found) if found else None


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

"""Reads the limits of a run: `[budget]` and `features.rollout_budget`. LIGHT.

The strongest layer that sets a limit decides, but a project can only tighten the limit that would
hold without it. `features.rollout_budget` is a key of Codex.
"""

import re
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from codex_py.config.check import KeyPath, dotted
from codex_py.config.declared import features as declared
from codex_py.config.declared.section import is_set
from codex_py.config.declared.settings import Settings
from codex_py.config.layers import Layers
from codex_py.errors import ConfigError
from codex_py.protocol.frozen import frozen

_T = TypeVar("_T")
_ROLLOUT: Final = ("features", "rollout_budget")
LIMITS: Final = {
    "max_turns": ({"": 1}, "responses: write a whole number from 1"),
    "max_tokens": (
        {"": 1, "k": 1_000, "m": 1_000_000},
        "tokens: write 200000, 200k or 1.5m",
    ),
    "max_cost": ({"": 1}, "dollars: write 2 or 0.50"),
    "max_time": ({"": 1, "s": 1, "m": 60, "h": 3600}, "time: write 90s, 30m or 2h"),
}
"""The units of each limit with their values, and a hint on how to write it."""
_MAY_BE_FRACTION: Final = ("max_cost", "max_time")
_AMOUNT: Final = r"([0-9][0-9_]*(?:\.[0-9]+)?)([a-z]?)"
"""Matches a number and a unit, which may be empty. Compiled when a text needs it."""


@frozen
class RolloutBudget:
    """A limit on weighted tokens; cached tokens weigh nothing."""

    limit_tokens: int
    reminders: Sequence[int]
    """The numbers of remaining tokens at which the model is told of the limit."""
    input_weight: float
    output_weight: float


@frozen(kw_only=True)
class Budget:
    """The limits of a run; None: no limit."""

    max_turns: int | None
    """The number of the model's responses."""
    max_tokens: int | None
    max_cost: float | None
    """The cost in dollars."""
    max_time: float | None
    """The time in seconds."""
    rollout: RolloutBudget | None
    loop_guard: bool

    @property
    def is_limited(self) -> bool:
        limits = (
            self.max_turns,
            self.max_tokens,
            self.max_cost,
            self.max_time,
            self.rollout,
        )
        return any(limit is not None for limit in limits)


def configured_budget(layers: Layers) -> Budget:
    """Read the limits.

    Raises:
        ConfigError: an amount cannot be read, or the rollout budget has no limit.
    """
    turns = _values(layers, lambda settings: settings.budget.max_turns)
    costs = _values(layers, lambda settings: settings.budget.max_cost)
    guards = _values(layers, _loop_guard, declared.Budget.loop_guard)
    return Budget(
        max_turns=min(turns, default=None),
        max_tokens=min(_values(layers, _max_tokens), default=None),
        max_cost=min(costs, default=None),
        max_time=min(_values(layers, _max_time), default=None),
        rollout=_rollout(layers),
        loop_guard=any(guards),
    )


def _loop_guard(settings: Settings) -> bool | None:
    if is_set(settings.budget, "loop_guard"):
        return settings.budget.loop_guard
    return None


def _max_tokens(settings: Settings) -> int | None:
    tokens = _amount("max_tokens", ("budget", "max_tokens"), settings.budget.max_tokens)
    if tokens is None:
        return None
    return int(tokens)


def _max_time(settings: Settings) -> float | None:
    return _amount("max_time", ("budget", "max_time"), settings.budget.max_time)


def _rollout(layers: Layers) -> RolloutBudget | None:
    if not any(_values(layers, _has_rollout)):
        return None
    limits = _values(layers, lambda settings: _rollout_of(settings).limit_tokens)
    if not limits:
        message = "features.rollout_budget.limit_tokens is required when rollout_budget is enabled"
        raise ConfigError(message, key=_ROLLOUT)
    tokens = min(limits)
    reminders = _values(
        layers,
        lambda settings: _rollout_of(settings).reminder_at_remaining_tokens,
        (tokens // 5,),
    )
    input_weights = _values(
        layers, lambda settings: _rollout_of(settings).prefill_token_weight, 1.0
    )
    output_weights = _values(
        layers, lambda settings: _rollout_of(settings).sampling_token_weight, 1.0
    )
    return RolloutBudget(
        limit_tokens=tokens,
        reminders=max(reminders),
        input_weight=max(input_weights),
        output_weight=max(output_weights),
    )


def _has_rollout(settings: Settings) -> bool | None:
    own = settings.features.rollout_budget
    if isinstance(own, declared.RolloutBudget):
        return own.enabled
    return own


def _rollout_of(settings: Settings) -> declared.RolloutBudget:
    own = settings.features.rollout_budget
    if isinstance(own, declared.RolloutBudget):
        return own
    return declared.RolloutBudget({})


def _values(
    layers: Layers,
    value_of: Callable[[Settings], _T | None],
    default: _T | None = None,
) -> list[_T]:
    """Return the values of a limit, of which the tightest holds.

    They are those of the projects, and that of the strongest other layer, or else the default.

    Args:
        value_of: reads the limit from the settings of a layer; None if the layer does not set it.
    """
    found: list[_T] = []
    for layer in layers.layers:
        value = value_of(layer.settings)
        if value is not None:
            found.append(value)
            if layer.name != "project":
                return found
    if default is not None:
        found.append(default)
    return found


def _amount(
    limit: str,
    key: KeyPath,
    value: float | str | None,
) -> float | None:
    if value is None:
        return None
    return _parsed(limit, key, value)


def seconds_of_key(key: KeyPath, value: float | str) -> float:
    """Return the value of a setting that is a time in seconds, or a text such as `30m`.

    Raises:
        ConfigError: the text is no time. The error has the key.
    """
    return _parsed("max_time", key, value)


def _parsed(
    limit: str,
    key: KeyPath,
    value: float | str,
) -> float:
    """The value of a setting; a text is parsed by `amount`."""
    if not isinstance(value, str):
        return value
    try:
        return amount(limit, value)
    except ConfigError as error:
        raise ConfigError(f"`{dotted(key)}`: {error}", key=key) from None


def seconds(text: str) -> float:
    """Parse a time: `90s`, `30m` or `2h`.

    Raises:
        ConfigError: it is not a time.
    """
    return amount("max_time", text)


def amount(limit: str, text: str) -> float:
    """Parse an amount for one of `LIMITS`: `200k`, `1.5m`, `30m`. Times are in seconds.

    Raises:
        ConfigError: it is not an amount.
    """
    units, example = LIMITS[limit]
    refusal = ConfigError(f"{text!r} is no amount of {example}")
    found = re.fullmatch(_AMOUNT, text.strip().lower())
    if found is None:
        raise refusal
    number, unit = found.groups()
    if unit not in units:
        raise refusal
    value = float(number) * units[unit]
    if not value:
        raise refusal
    if value.is_integer():
        return int(value)
    if limit not in _MAY_BE_FRACTION:
        raise refusal
    return value

"""Reads the limits of a run, `[budget]` and `features.rollout_budget`, and its `[gates]`. LIGHT.

A run must pass its gates to end well. The strongest layer that sets a limit decides, but a project
can only tighten the limit that would hold without it. Each layer adds to the gates of the weaker
ones and cannot remove any: a project adds to the user's gates, the command line to both.
`features.rollout_budget` is a key of Codex.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

from codex_py.config.check import KeyPath, dotted, lookup
from codex_py.config.layers import Layers
from codex_py.errors import ConfigError
from codex_py.protocol.frozen import frozen

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
"""The units of each limit, and a hint on how to write it."""
_TRIES: Final = 2
_TIMEOUT_S: Final = 600.0
Failure: TypeAlias = Literal["denied", "tool", "sandbox"]


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


@frozen(kw_only=True)
class GateSettings:
    verify: Sequence[str] = ()
    """Scripts that must exit with 0 once the model is done."""
    verify_tries: int = _TRIES
    """The number of failures that are sent back to the model."""
    verify_timeout_s: float = _TIMEOUT_S
    """The time that each script may take."""
    require_change: bool = False
    forbid_path: Sequence[str] = ()
    """Patterns of paths that must stay as they are; see `changed_in`."""
    max_diff_lines: int | None = None
    """The number of lines added and removed."""
    require_evidence: Sequence[str] = ()
    """Patterns of commands, each of which must have succeeded after the last change."""
    fail_on: Sequence[Failure] = ()

    @property
    def is_any(self) -> bool:
        return any(
            (self.verify, self.require_evidence, self.fail_on, self.looks_at_files)
        )

    @property
    def looks_at_files(self) -> bool:
        """True if a gate needs the changes that were made to files."""
        return (
            self.require_change
            or bool(self.forbid_path)
            or self.max_diff_lines is not None
        )


def configured_budget(layers: Layers) -> Budget:
    """Read the limits.

    Raises:
        ConfigError: an amount cannot be read, or the rollout budget has no limit.
    """

    def limit(name: str) -> Any:
        key = ("budget", name)
        return _tightest(layers, lambda values: _amount(name, key, lookup(values, key)))

    guard = _tightest(
        layers, lambda values: lookup(values, ("budget", "loop_guard")), max, True
    )
    limits: Any = {name: limit(name) for name in LIMITS}
    return Budget(**limits, rollout=_rollout(layers), loop_guard=guard)


def _rollout(layers: Layers) -> RolloutBudget | None:
    def is_enabled(values: Mapping[str, Any]) -> Any:
        own = lookup(values, _ROLLOUT)
        if isinstance(own, bool):
            return own
        return lookup(values, (*_ROLLOUT, "enabled"))

    def read(
        name: str, pick: Callable[[Sequence[Any]], Any], default: Any = None
    ) -> Any:
        return _tightest(
            layers, lambda values: lookup(values, (*_ROLLOUT, name)), pick, default
        )

    if not _tightest(layers, is_enabled, max):
        return None
    tokens = read("limit_tokens", min)
    if tokens is None:
        message = "features.rollout_budget.limit_tokens is required when rollout_budget is enabled"
        raise ConfigError(message, key=_ROLLOUT)
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
        value = value_of(layer.values)
        if value is not None:
            found.append(value)
            if layer.name != "project":
                break
    else:
        if default is None:
            found += []
        else:
            found += [default]
    if found:
        return pick(found)
    return None


def configured_gates(layers: Layers) -> GateSettings:
    """Read the gates.

    Raises:
        ConfigError: an amount cannot be read, or a script is empty.
    """

    def found(name: str) -> list[Any]:
        """The values of all layers, the strongest first."""
        values = (lookup(layer.values, ("gates", name)) for layer in layers.layers)
        return [value for value in values if value is not None]

    def listed(name: str) -> tuple[Any, ...]:
        return tuple(
            dict.fromkeys(one for value in reversed(found(name)) for one in value)
        )

    if not all(script.strip() for script in listed("verify")):
        # An unset variable may have been meant. An empty script would always succeed.
        raise ConfigError("`gates.verify` has an empty script", key=("gates", "verify"))
    timeout = next(iter(found("verify_timeout")), _TIMEOUT_S)
    return GateSettings(
        verify=listed("verify"),
        verify_tries=next(iter(found("verify_tries")), _TRIES),
        verify_timeout_s=_amount("max_time", ("gates", "verify_timeout"), timeout),
        require_change=any(found("require_change")),
        forbid_path=listed("forbid_path"),
        max_diff_lines=min(found("max_diff_lines"), default=None),
        require_evidence=listed("require_evidence"),
        fail_on=listed("fail_on"),
    )


def _amount(limit: str, key: KeyPath, value: Any) -> Any:
    """The value of a setting; a text is parsed by `amount`."""
    try:
        if isinstance(value, str):
            return amount(limit, value)
        return value
    except ConfigError as error:
        raise ConfigError(f"`{dotted(key)}`: {error}", key=key) from None


def amount(limit: str, text: str) -> float:
    """Parse an amount for one of `LIMITS`: `200k`, `1.5m`, `30m`. Times are in seconds.

    Raises:
        ConfigError: it is not an amount.
    """
    units, example = LIMITS[limit]
    found = re.fullmatch(r"([0-9][0-9_]*(?:\.[0-9]+)?)([a-z]?)", text.strip().lower())
    value = 0.0
    if found is not None and found[2] in units:
        value = float(found[1]) * units[found[2]]
    is_whole = value.is_integer()
    if not value or not (is_whole or limit in {"max_cost", "max_time"}):
        raise ConfigError(f"{text!r} is no amount of {example}")
    if is_whole:
        return int(value)
    return value

"""Reads the limits of a run, `[budget]` and `features.rollout_budget`, and its `[gates]`. LIGHT.

The strongest layer that sets a limit decides, but a project can only tighten the limit that would
hold without it. `features.rollout_budget` is a key of Codex.

A run must pass its gates to end well. Each layer adds to the gates of the weaker ones and cannot
remove any: a project adds to the user's gates, the command line to both.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Literal, TypeAlias, TypeVar

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
    """The gates of a run. Without settings, it has none."""

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
        """True if there is a gate."""
        others = (self.verify, self.require_evidence, self.fail_on)
        return self.looks_at_files or any(others)

    @property
    def looks_at_files(self) -> bool:
        """True if a gate needs the changes that were made to files."""
        has_limit = self.max_diff_lines is not None
        return has_limit or self.require_change or bool(self.forbid_path)


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


def configured_gates(layers: Layers) -> GateSettings:
    """Read the gates.

    Raises:
        ConfigError: an amount cannot be read, or a script is empty.
    """
    # The strongest first.
    gates = [layer.settings.gates for layer in layers.layers]
    verify = _listed(each.verify for each in gates)
    if not all(script.strip() for script in verify):
        # An unset variable may have been meant. An empty script would always succeed.
        raise ConfigError("`gates.verify` has an empty script", key=("gates", "verify"))
    timeout = _first((each.verify_timeout for each in gates), _TIMEOUT_S)
    return GateSettings(
        verify=verify,
        verify_tries=_first((each.verify_tries for each in gates), _TRIES),
        verify_timeout_s=_parsed("max_time", ("gates", "verify_timeout"), timeout),
        require_change=any(each.require_change for each in gates),
        forbid_path=_listed(each.forbid_path for each in gates),
        max_diff_lines=min(_given(each.max_diff_lines for each in gates), default=None),
        require_evidence=_listed(each.require_evidence for each in gates),
        fail_on=_listed(each.fail_on for each in gates),
    )


def _given(values: Iterable[_T | None]) -> list[_T]:
    return [value for value in values if value is not None]


def _first(values: Iterable[_T | None], default: _T) -> _T:
    return next(iter(_given(values)), default)


def _listed(values: Iterable[Sequence[_T] | None]) -> tuple[_T, ...]:
    """The entries of all layers, those of the weakest layer first, each once."""
    entries = [entry for value in reversed(_given(values)) for entry in value]
    return tuple(dict.fromkeys(entries))


def _amount(
    limit: str,
    key: KeyPath,
    value: float | str | None,
) -> float | None:
    if value is None:
        return None
    return _parsed(limit, key, value)


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

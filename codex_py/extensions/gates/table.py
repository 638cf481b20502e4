"""The keys of `[gates]`, and the gates of a run. LIGHT.

A run must pass its gates to end well. Each layer of the configuration adds to the gates of the weaker
ones and cannot remove any: a project adds to the user's gates, the command line to both.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, TypeVar

from codex_py.api.tables import (
    ClaimedTable,
    ConfigError,
    Count,
    Feature,
    Layers,
    Place,
    Positive,
    SessionSetup,
    Verification,
    key,
    seconds_of_key,
)
from codex_py.extensions.gates.settings import (
    TIMEOUT_S,
    TRIES,
    Failure,
    GateSettings,
)

_T = TypeVar("_T")
_NAME: Final = "gates"


class GatesTable(ClaimedTable):
    """`[gates]`"""

    in_project = True
    protects = True
    place = Place.BEHIND_HOOKS

    verify: tuple[str, ...] | None = key(
        "Commands that must succeed before a turn ends."
    )
    forbid_path: tuple[str, ...] | None = key("Patterns of paths that must not change.")
    require_evidence: tuple[str, ...] | None = key(
        "Patterns of commands that must have succeeded after the last change."
    )
    verify_tries: Count | None = key(
        "The number of failures that are sent back to the model (2)."
    )
    verify_timeout: Positive | str | None = key(
        'The time limit of each command: seconds, or such as `"10m"`.'
    )
    require_change: bool | None = key("A run must change a file.")
    max_diff_lines: Count | None = key("The most lines that may be added and removed.")
    fail_on: tuple[Failure, ...] | None = key("Events that make a run fail.")

    @classmethod
    def check(cls, layers: Layers) -> None:
        configured_gates(layers)

    @classmethod
    def verification(cls, layers: Layers) -> Verification:
        gates = configured_gates(layers)
        return Verification(gates.verify, gates.verify_timeout_s)

    def feature(self, setup: SessionSetup) -> Feature | None:
        settings = configured_gates(setup.config.layers)
        if setup.options.can_review:
            # A review need not pass the conditions for a run that changes files.
            settings = GateSettings(fail_on=settings.fail_on)
        if setup.options.source != "exec" or not settings.is_any:
            return None
        from codex_py.extensions.gates.feature import Gates  # 5 ms

        return Gates(setup, settings)


def configured_gates(layers: Layers) -> GateSettings:
    """Read the gates.

    Raises:
        ConfigError: an amount cannot be read, or a script is empty.
    """
    # The strongest first.
    found = [layer.settings.claimed.get(_NAME) for layer in layers.layers]
    gates = [each for each in found if isinstance(each, GatesTable)]
    verify = _listed(each.verify for each in gates)
    if not all(script.strip() for script in verify):
        # An unset variable may have been meant. An empty script would always succeed.
        raise ConfigError("`gates.verify` has an empty script", key=(_NAME, "verify"))
    timeout = _first((each.verify_timeout for each in gates), TIMEOUT_S)
    return GateSettings(
        verify=verify,
        verify_tries=_first((each.verify_tries for each in gates), TRIES),
        verify_timeout_s=seconds_of_key((_NAME, "verify_timeout"), timeout),
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

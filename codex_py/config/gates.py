"""What a run must satisfy to end well: `[gates]`. LIGHT.

Each layer adds to the gates of the weaker ones and can take none of them away: a project adds to the user's, the
command line to both.
"""

from collections.abc import Sequence
from typing import Any, Final, Literal, TypeAlias

from codex_py.config.budget import amount
from codex_py.config.check import lookup
from codex_py.config.layers import Layers
from codex_py.errors import ConfigError
from codex_py.protocol.frozen import frozen

Failure: TypeAlias = Literal["denied", "tool", "sandbox"]
_TRIES: Final = 2
_TIMEOUT_S: Final = 600.0


@frozen(kw_only=True)
class GateSettings:
    verify: Sequence[str] = ()
    """Scripts that must exit with 0 when the model is done."""
    verify_tries: int = _TRIES
    """How often a failure goes back to the model."""
    verify_timeout_s: float = _TIMEOUT_S
    """Of each script."""
    require_change: bool = False
    forbid_path: Sequence[str] = ()
    """Patterns of paths that must stay as they are; see `changed_in`."""
    max_diff_lines: int | None = None
    """Lines added and removed."""
    require_evidence: Sequence[str] = ()
    """Patterns of commands, each of which must have succeeded after the last change."""
    fail_on: Sequence[Failure] = ()

    @property
    def is_any(self) -> bool:
        return any((self.verify, self.require_evidence, self.fail_on, self.looks_at_files))

    @property
    def looks_at_files(self) -> bool:
        """True if what was changed is looked at."""
        return self.require_change or bool(self.forbid_path) or self.max_diff_lines is not None


def configured_gates(layers: Layers) -> GateSettings:
    """Raises a `ConfigError` if an amount cannot be read, or a script is empty."""

    def found(name: str) -> list[Any]:
        """The values of all layers, the strongest first."""
        values = (lookup(layer.values, ("gates", name)) for layer in layers.layers)
        return [value for value in values if value is not None]

    def listed(name: str) -> tuple[Any, ...]:
        return tuple(dict.fromkeys(one for value in reversed(found(name)) for one in value))

    if not all(script.strip() for script in listed("verify")):
        # As of a variable that was not set: it would always succeed.
        empty = ConfigError("`gates.verify` has an empty script", key=("gates", "verify"))
        raise layers.located(empty)
    timeout = next(iter(found("verify_timeout")), _TIMEOUT_S)
    try:
        timeout_s = amount("max_time", timeout) if isinstance(timeout, str) else timeout
    except ConfigError as error:
        key = ("gates", "verify_timeout")
        raise layers.located(ConfigError(f"`gates.verify_timeout`: {error}", key=key)) from None
    return GateSettings(
        verify=listed("verify"),
        verify_tries=next(iter(found("verify_tries")), _TRIES),
        verify_timeout_s=timeout_s,
        require_change=any(found("require_change")),
        forbid_path=listed("forbid_path"),
        max_diff_lines=min(found("max_diff_lines"), default=None),
        require_evidence=listed("require_evidence"),
        fail_on=listed("fail_on"),
    )

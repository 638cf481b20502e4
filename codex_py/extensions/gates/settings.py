"""The gates of a run, read from all layers of the configuration. LIGHT."""

from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

from codex_py.api.tables import frozen

TRIES: Final = 2
TIMEOUT_S: Final = 600.0
Failure: TypeAlias = Literal["denied", "tool", "sandbox"]


@frozen(kw_only=True)
class GateSettings:
    """The gates of a run. Without settings, it has none."""

    verify: Sequence[str] = ()
    """Scripts that must exit with 0 once the model is done."""
    verify_tries: int = TRIES
    """The number of failures that are sent back to the model."""
    verify_timeout_s: float = TIMEOUT_S
    """The time that each script may take."""
    require_change: bool = False
    forbid_path: Sequence[str] = ()
    """Patterns of paths that must stay as they are; see `checks.changed_in`."""
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

"""The keys of `[auto_review]`. LIGHT."""

from __future__ import annotations

from typing import Literal

from codex_py.api.tables import ClaimedTable, key, no_effect


class AutoReview(ClaimedTable):
    """`[auto_review]`"""

    policy: str | None = key(
        "Instructions for the reviewing model about the actions that it may allow."
    )
    circuit_break_action: Literal["default", "strict"] | None = no_effect("default")

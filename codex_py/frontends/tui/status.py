"""The line below the composer, and the one above it while the agent works."""

import time
from dataclasses import dataclass
from pathlib import Path

from codex_py.core.settings import TurnSettings
from codex_py.frontends.tui.render import Fragments
from codex_py.frontends.tui.theme import Theme
from codex_py.protocol.events import UsageReported


@dataclass(slots=True)
class Status:
    """What is known of the conversation right now."""

    settings: TurnSettings | None = None
    usage: UsageReported | None = None
    branch: str | None = None
    working_since: float | None = None
    """`time.monotonic()`; None while nothing is worked on."""

    def line(self, theme: Theme, home: Path) -> Fragments:
        settings = self.settings
        if settings is None:
            return [("", "")]
        cwd = str(settings.cwd)
        if settings.cwd.is_relative_to(home):
            cwd = "~" + cwd[len(str(home)) :]
        parts = [
            " ".join(word for word in (settings.model, settings.reasoning_effort) if word),
            cwd,
            self.branch or "",
            settings.sandbox_policy.mode,
        ]
        return [("class:quiet", f" {theme.glyph('dot')} ".join(part for part in parts if part))]

    def working(self, theme: Theme) -> Fragments:
        """Empty while nothing is worked on."""
        if self.working_since is None:
            return []
        seconds = int(time.monotonic() - self.working_since)
        return [
            ("class:accent", f"{theme.glyph('bullet')} Working "),
            ("class:quiet", f"({duration(seconds)} {theme.glyph('bullet')} esc to interrupt)"),
        ]


def duration(seconds: int) -> str:
    """`42s`, `3m 05s`, `1h 02m`."""
    minutes, seconds = divmod(seconds, 60)
    if not minutes:
        return f"{seconds}s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h {minutes:02}m" if hours else f"{minutes}m {seconds:02}s"

"""The border between the two halves of the terminal: what each offers to the other.

The first frame needs the light half alone; `loaded.py` is the other one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from codex_py.config.config import Config
from codex_py.frontends.arguments import SessionTarget
from codex_py.frontends.tui.compose.sources import CommandName, SkillSource
from codex_py.frontends.tui.compose.submission import Outbox, Submission
from codex_py.frontends.tui.composer import Composer
from codex_py.frontends.tui.fitting import Fragments
from codex_py.frontends.tui.hints import Hints, Tasks
from codex_py.frontends.tui.leaving import Leaving
from codex_py.frontends.tui.notifications import Notifications
from codex_py.frontends.tui.panels import Panels
from codex_py.frontends.tui.screen import Screen
from codex_py.frontends.tui.status import Status


@dataclass(frozen=True, slots=True)
class Launch:
    """What the program is started with."""

    config: Config
    reload: Callable[[], Config]
    """Reads the configuration again."""
    target: SessionTarget
    add_dirs: tuple[Path, ...]
    """Writable roots beside those of the configuration; absolute."""
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Surface:
    """The parts of the light half."""

    environment: Mapping[str, str]
    safe_environment: Mapping[str, str]
    """For programs such as git: its `PATH` leads to none that the project or the model can have made."""
    cwd: Path
    screen: Screen
    status: Status
    hints: Hints
    tasks: Tasks
    outbox: Outbox
    composer: Composer
    skills: SkillSource
    panels: Panels
    notify: Notifications
    leaving: Leaving


class LoadedHalf(Protocol):
    """What the keys and the frame need of `loaded.py`."""

    @property
    def commands(self) -> Sequence[CommandName]: ...

    @property
    def is_working(self) -> bool:
        """A turn or a command of the user is under way."""
        ...

    def live(self, width: int, max_rows: int) -> list[Fragments]:
        """The rows of what may still change."""
        ...

    def submitted(self, submission: Submission) -> None:
        """The user has sent this off."""
        ...

    def run_command(self, name: str) -> None:
        """Run a command of the terminal, by its name without the slash."""
        ...

    def interrupt(self) -> bool:
        """End what is under way, or stop waiting for it; True if there was something."""
        ...

    async def begin(self) -> None:
        """Open the first session."""
        ...

    async def close(self) -> str:
        """Close the session. Returns what to print when the terminal is the shell's again."""
        ...


class LateHalf:
    """The other half, loaded when it is first called for."""

    def __init__(self, load: Callable[[], LoadedHalf]) -> None:
        self._load = load
        self.loaded: LoadedHalf | None = None

    def __call__(self) -> LoadedHalf:
        if self.loaded is None:
            self.loaded = self._load()
        return self.loaded

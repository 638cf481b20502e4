"""The options of the command line for the terminal. LIGHT."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from codex_py.command_line.target import SessionTarget
from codex_py.config.config import Config
from codex_py.frontends.tui.theme import Theme


@dataclass(frozen=True, slots=True)
class Launch:
    config: Config
    theme: Theme
    reload: Callable[[], Config]
    """Reads the configuration again."""
    target: SessionTarget
    add_dirs: tuple[Path, ...]
    """Writable roots beside those of the configuration; absolute."""
    environment: Mapping[str, str]
    needs_own_worktree: bool = False
    """True if no option names a folder for the session that is resumed."""
    bypass_hook_trust: bool = False
    """Run hooks that the user has not reviewed, too."""
    plan: bool = False
    """Begin in Plan mode."""
    images: tuple[Path, ...] = ()
    """Images of the first prompt; absolute."""
    replay: Path | None = None
    """A tape: show its turn for the prompt without a composer, and leave."""

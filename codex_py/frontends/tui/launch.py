"""Holds the options with which the terminal's frontend is started. LIGHT."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codex_py.command_line.target import SessionTarget
from codex_py.config.config import Config
from codex_py.frontends.tui.theme import Theme


@dataclass(frozen=True, slots=True)
class Launch:
    """The options of a start in the terminal, from the command line and the configuration."""

    config: Config
    theme: Theme
    reload: Callable[[], Config]
    """Reads the configuration again."""
    target: SessionTarget
    add_dirs: tuple[Path, ...]
    """Writable roots beside those of the configuration; absolute."""
    environment: Mapping[str, str]
    needs_own_worktree: bool = False
    """True if a session is resumed, and no option names a folder for it."""
    bypass_hook_trust: bool = False
    """Also run hooks that the user has not reviewed."""
    plan: bool = False
    """Begin in Plan mode."""
    images: tuple[Path, ...] = ()
    """Images of the first prompt; absolute."""
    of_extensions: Sequence[Any] = ()
    """Options of extensions, as in `Arguments`. They take part in each session."""
    is_unattended: bool = False
    """Show one turn, without a composer, and then end."""

"""Tells a user who looks elsewhere that a turn is over, or that there is a question."""

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

from codex_py.frontends.terminal import printable
from codex_py.frontends.tui.screen import Screen

Kind: TypeAlias = Literal["agent-turn-complete", "approval-requested"]
"""As `tui.notifications` names them."""

_LONGEST: Final = 200
_KNOW_OSC9: Final = ("iTerm.app", "WezTerm", "ghostty", "WarpTerminal")
"""By `TERM_PROGRAM`. The others may show the text of a sequence that they do not know."""


class Notifications:
    """As the table `tui` of the configuration has them set."""

    def __init__(
        self, settings: Mapping[str, Any], environment: Mapping[str, str], screen: Screen
    ) -> None:
        self._wanted: bool | list[str] = settings.get("notifications", True)
        self._always = settings.get("notification_condition") == "always"
        method = settings.get("notification_method", "auto")
        self._method = _best_method(environment) if method == "auto" else str(method)
        self._screen = screen

    def __call__(self, kind: Kind, text: str) -> None:
        """Send it, if the user wants this kind of notification and looks elsewhere."""
        wanted = self._wanted if isinstance(self._wanted, bool) else kind in self._wanted
        if not wanted or (self._screen.is_focused and not self._always):
            return
        line = printable(" ".join(text.split()))[:_LONGEST]
        match self._method:
            case "osc9":
                self._screen.send(f"\x1b]9;{line}\x07")
            case "osc777":
                # Its parts are told apart by semicolons.
                self._screen.send(f"\x1b]777;notify;codex-py;{line.replace(';', ',')}\x07")
            case _:
                self._screen.send("\x07")


def _best_method(environment: Mapping[str, str]) -> Literal["osc9", "bel"]:
    if "TMUX" in environment or "STY" in environment:
        # They keep sequences to themselves, and pass a bell on.
        return "bel"
    is_kitty = "KITTY_WINDOW_ID" in environment or environment.get("TERM") == "xterm-kitty"
    return "osc9" if is_kitty or environment.get("TERM_PROGRAM") in _KNOW_OSC9 else "bel"

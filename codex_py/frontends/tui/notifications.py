"""Tells a user who looks elsewhere that a turn is over, or that there is a question."""

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, TypeAlias

from codex_py.frontends.terminal import printable
from codex_py.frontends.tui.screen import Screen

Kind: TypeAlias = Literal["agent-turn-complete", "approval-requested"]
"""As `tui.notifications` names them."""
Notify: TypeAlias = Callable[[Kind, str], None]

_LONGEST: Final = 200
_KNOW_OSC9: Final = ("iTerm.app", "WezTerm", "ghostty", "WarpTerminal")
"""By `TERM_PROGRAM`. The others may show the text of a sequence that they do not know."""


def notifications(
    settings: Mapping[str, Any], environment: Mapping[str, str], screen: Screen
) -> Notify:
    """Sends what the table `tui` of the configuration asks for, if the user looks elsewhere."""
    wanted: bool | list[str] = settings.get("notifications", True)
    is_always = settings.get("notification_condition") == "always"
    method = settings.get("notification_method", "auto")
    method = _best_method(environment) if method == "auto" else str(method)

    def notify(kind: Kind, text: str) -> None:
        is_wanted = wanted if isinstance(wanted, bool) else kind in wanted
        if not is_wanted or (screen.is_focused and not is_always):
            return
        line = printable(" ".join(text.split()))[:_LONGEST]
        match method:
            case "osc9":
                screen.send(f"\x1b]9;{line}\x07")
            case "osc777":
                # Its parts are told apart by semicolons.
                screen.send(f"\x1b]777;notify;codex-py;{line.replace(';', ',')}\x07")
            case _:
                screen.send("\x07")

    return notify


def _best_method(environment: Mapping[str, str]) -> Literal["osc9", "bel"]:
    if "TMUX" in environment or "STY" in environment:
        # They keep sequences to themselves, and pass a bell on.
        return "bel"
    is_kitty = "KITTY_WINDOW_ID" in environment or environment.get("TERM") == "xterm-kitty"
    return "osc9" if is_kitty or environment.get("TERM_PROGRAM") in _KNOW_OSC9 else "bel"

"""Styles of the terminal's text, in the colours of its own palette, so that any background will do."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

ColorSystem: TypeAlias = Literal["standard", "256", "truecolor"]

STYLES = {
    "user": "bold",
    "accent": "cyan",
    "heading": "bold",
    "title": "bold underline",
    "strong": "bold",
    "emphasis": "italic",
    "struck": "strike",
    "quiet": "dim",
    "thought": "dim italic",
    "action": "bold",
    "text": "",
    "code": "cyan",
    "link": "underline",
    "ok": "green",
    "error": "red",
    "warning": "yellow",
    "added": "green",
    "removed": "red",
    "plan": "magenta",
    "step": "bold cyan",
    "step done": "dim strike",
    # The parts of a program, in an answer.
    "syntax comment": "dim",
    "syntax keyword": "magenta",
    "syntax name": "bright_blue",
    "syntax type": "yellow",
    "syntax string": "green",
    "syntax number": "cyan",
    "syntax markup": "bold",
}

_ON_LIGHT = {
    # The bright half of most palettes, and their yellow, cannot be read on white.
    "warning": "magenta",
    "syntax name": "blue",
    "syntax type": "blue",
}

_ATTRIBUTES = {"bold", "dim", "italic", "underline", "strike"}
_IN_FRAGMENTS = ("quiet", "accent", "error", "warning", "ok", "user")
"""Styles that fragments name too: `class:quiet`."""

PROMPT = "\u203a"
ASCII_SIGNS = {
    **dict(zip(f"•└│{PROMPT}✔□▸✗■⚠↵─·", "*`|>x->x#!|--", strict=True)),
    "…": "...",
    "→": "->",
}
"""The ASCII forms of signs; all others are one column wide too."""


@dataclass(frozen=True, slots=True)
class Theme:
    color: bool = True
    """False: not one colour; bold and dim stay unless the terminal is dumb."""
    unicode: bool = True
    background: Literal["dark", "light"] = "dark"
    color_system: ColorSystem = "standard"
    dumb: bool = False
    """The terminal knows no control sequences but for moving the cursor."""
    shell: str = ""
    """Path of the user's shell. Commands are shown without it, and without a shell of the system."""
    cwd: str = ""
    """Of the session: a command that runs elsewhere says where."""

    def style(self, name: str) -> str:
        """The style of a part of the text, for rich; empty if the terminal has no styles."""
        if self.dumb:
            return ""
        style = STYLES[name]
        if self.background == "light":
            style = _ON_LIGHT.get(name, style)
        if not self.color:
            style = " ".join(word for word in style.split() if word in _ATTRIBUTES)
        return style

    def fragment_styles(self) -> dict[str, str]:
        """The same for prompt-toolkit, by the names that fragments use."""
        styles = {name: self.style(name).split() for name in _IN_FRAGMENTS}
        return {
            name: " ".join(word if word in _ATTRIBUTES else f"ansi{word}" for word in words)
            for name, words in styles.items()
        }

    def sign(self, sign: str) -> str:
        """The sign, or its ASCII form where the terminal has no Unicode."""
        return sign if self.unicode else ASCII_SIGNS[sign]


def terminal_theme(
    environment: Mapping[str, str], wanted: object = None, *, cwd: str = ""
) -> Theme:
    """Read the abilities of the terminal from the environment.

    Of `tui.theme`, which is `wanted`, `dark` and `light` count; the palettes that Codex names there do not.
    """
    dumb = environment.get("TERM", "") in {"", "dumb"}
    # The first of these that is set decides, as setlocale(3) says.
    locale = (
        environment.get("LC_ALL") or environment.get("LC_CTYPE") or environment.get("LANG")
    ) or ""
    background = wanted
    if background not in ("dark", "light"):
        # `foreground;background`, by the numbers of the palette: 7 and 15 are whites.
        is_light = environment.get("COLORFGBG", "").rpartition(";")[2] in {"7", "15"}
        background = "light" if is_light else "dark"
    color_system: ColorSystem = "256" if "256" in environment.get("TERM", "") else "standard"
    if environment.get("COLORTERM", "").lower() in {"truecolor", "24bit"}:
        color_system = "truecolor"
    return Theme(
        color=not environment.get("NO_COLOR") and not dumb,
        unicode="utf" in locale.lower(),
        background=background,
        color_system=color_system,
        dumb=dumb,
        shell=environment.get("SHELL", ""),
        cwd=cwd,
    )

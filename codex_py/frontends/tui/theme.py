"""How the terminal's text looks: colours of the terminal's own palette, so that any background does."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

ColorSystem: TypeAlias = Literal["standard", "256", "truecolor"]

_STYLES = {
    "user": "bold",
    "accent": "cyan",
    "heading": "bold",
    "quiet": "dim",
    "command": "bold",
    "code": "cyan",
    "link": "underline",
    "ok": "green",
    "error": "red",
    "warning": "yellow",
    "added": "green",
    "removed": "red",
    "plan": "magenta",
}

_GLYPHS = {
    "bullet": ("•", "*"),
    "branch": ("└", "`"),
    "bar": ("│", "|"),
    "prompt": ("\u203a", ">"),
    "done": ("✔", "x"),
    "open": ("□", "-"),
    "no": ("✗", "x"),
    "stop": ("■", "#"),
    "more": ("…", "..."),
    "line": ("─", "-"),
    "dot": ("·", "-"),
}
"""A sign and its ASCII form, each one column wide but for `more`."""


@dataclass(frozen=True, slots=True)
class Theme:
    color: bool = True
    """False: not one colour; bold and dim stay unless the terminal is dumb."""
    unicode: bool = True
    background: Literal["dark", "light"] = "dark"
    color_system: ColorSystem = "standard"
    dumb: bool = False
    """The terminal knows no control sequences but for moving the cursor."""

    def style(self, name: str) -> str:
        """What a part of the text looks like, for rich; empty where nothing can be shown."""
        style = _STYLES[name]
        if self.dumb:
            return ""
        if not self.color and style in {"red", "green", "yellow", "magenta", "cyan"}:
            return ""
        return style

    def glyph(self, name: str) -> str:
        """A sign, or its ASCII form where the terminal has no Unicode."""
        return _GLYPHS[name][not self.unicode]

    @property
    def syntax(self) -> str:
        """The highlighting of code: rich's themes made of the terminal's own colours."""
        return "ansi_light" if self.background == "light" else "ansi_dark"


def terminal_theme(environment: Mapping[str, str]) -> Theme:
    """What the environment says of the terminal."""
    dumb = environment.get("TERM", "") in {"", "dumb"}
    return Theme(
        color=not environment.get("NO_COLOR") and not dumb,
        unicode=_has_unicode(environment),
        background=_background(environment),
        color_system=_color_system(environment),
        dumb=dumb,
    )


def _has_unicode(environment: Mapping[str, str]) -> bool:
    # The first of these that is set decides, as setlocale(3) says.
    for name in ("LC_ALL", "LC_CTYPE", "LANG"):
        if value := environment.get(name):
            return "utf" in value.lower()
    return False


def _background(environment: Mapping[str, str]) -> Literal["dark", "light"]:
    # `COLORFGBG` is `foreground;background`, by the numbers of the palette: 7 and 15 are whites.
    last = environment.get("COLORFGBG", "").rpartition(";")[2]
    return "light" if last in {"7", "15"} else "dark"


def _color_system(environment: Mapping[str, str]) -> ColorSystem:
    if environment.get("COLORTERM", "").lower() in {"truecolor", "24bit"}:
        return "truecolor"
    return "256" if "256" in environment.get("TERM", "") else "standard"


def terminal_size(fd: int) -> tuple[int, int]:
    """Columns and rows; 80 and 24 where the terminal does not say."""
    try:
        size = os.get_terminal_size(fd)
    except OSError:
        return 80, 24
    return size.columns or 80, size.lines or 24

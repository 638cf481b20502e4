"""The colours of a terminal's screen in pictures, on a dark and on a light background."""

from typing import Final, Literal, NamedTuple, TypeAlias

from pyte.screens import Char

Look: TypeAlias = Literal["dark", "light"]
LOOKS: Final[tuple[Look, ...]] = ("dark", "light")


class Ground(NamedTuple):
    paper: str
    ink: str


GROUNDS: Final[dict[Look, Ground]] = {
    "dark": Ground("#111317", "#d7dae0"),
    "light": Ground("#ffffff", "#24292f"),
}
BORDERS: Final[dict[Look, str]] = {"dark": "#30363d", "light": "#d0d7de"}
BACKGROUNDS: Final[dict[Look, str]] = {
    "dark": "rgb:1111/1313/1717",
    "light": "rgb:ffff/ffff/ffff",
}
"""What a terminal answers to a program that asks for its background."""
_NAMED: Final[dict[Look, dict[str, str]]] = {
    "dark": {
        "black": "#3b4048",
        "red": "#e06c75",
        "green": "#7fbf6b",
        "brown": "#d9b25f",
        "blue": "#5b9fe3",
        "magenta": "#c678dd",
        "cyan": "#56b6c2",
        "white": "#c8ccd4",
    },
    "light": {
        "black": "#24292f",
        "red": "#cf222e",
        "green": "#1a7f37",
        "brown": "#7d5d00",
        "blue": "#0969da",
        "magenta": "#8250df",
        "cyan": "#1b7c83",
        "white": "#6e7781",
    },
}


def ground_of(cell: Char, look: Look) -> Ground:
    """The colours of a cell, as `#rrggbb`."""
    paper = _color(cell.bg, look, GROUNDS[look].paper)
    ink = _color(cell.fg, look, GROUNDS[look].ink)
    if cell.reverse:
        return Ground(ink, paper)
    return Ground(paper, ink)


def _color(name: str, look: Look, default: str) -> str:
    if name == "default":
        return default
    named = _NAMED[look].get(name.removeprefix("bright"))
    if named is not None:
        return named
    if len(name) == 6:
        return f"#{name}"
    return default

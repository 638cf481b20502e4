"""`scripts/screens FOLDER`: what the terminal shows in each situation, as pictures.

The situations are those of the tests, where they are kept as text: tests/frontends/tui/situations.py. With
`--sessions`, it is a session of this program instead, beside the same one of the released Codex.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import pyte
from PIL import Image, ImageDraw, ImageFont
from pyte.screens import Char

from scripts.session_screens import session_screens
from tests.frontends.tui.situations import SITUATIONS, THEMES, WIDTHS

_FONTS = (
    "/usr/share/fonts/truetype/dejavu/DejaVuSans{}.ttf",
    "/usr/share/fonts/TTF/DejaVuSans{}.ttf",
    "/Library/Fonts/DejaVuSans{}.ttf",
)
_README = {"2 running": "working", "3 question": "question", "4 answered": "answer"}
_README_COLUMNS = 90
_NOT_IN_MONO = set("⠋⠙⠸⠴⠦⠇")
"""They are in DejaVu Sans."""
_SIZE, _ROW, _COLUMN, _EDGE = 15, 20, 9, 10
_GROUND = {"dark": ("#111317", "#d7dae0"), "light": ("#ffffff", "#24292f")}
_NAMED = {
    "black": "#3b4048",
    "red": "#e06c75",
    "green": "#7fbf6b",
    "brown": "#d9b25f",
    "blue": "#5b9fe3",
    "magenta": "#c678dd",
    "cyan": "#56b6c2",
    "white": "#c8ccd4",
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/screens", description=__doc__)
    parser.add_argument("folder", type=Path, help="where the pictures go")
    parser.add_argument("names", nargs="*", help="of situations; default: all")
    parser.add_argument(
        "--sessions", action="store_true", help="a session in a real terminal"
    )
    parser.add_argument(
        "--readme", action="store_true", help="the pictures of the README: docs"
    )
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    if arguments.readme:
        for stage, screen in session_screens(_README_COLUMNS, alone=True):
            if name := _README.get(stage):
                picture = _drawn(screen, "dark")
                picture.save(arguments.folder / f"terminal-{name}.png", optimize=True)
        return
    if arguments.sessions:
        for width in WIDTHS:
            pictures: dict[str, list[Image.Image]] = {}
            for stage, screen in session_screens(width):
                pictures.setdefault(stage, []).append(_drawn(screen, "dark"))
                _beside(pictures[stage]).save(arguments.folder / f"{stage}-{width}.png")
        return
    for name in arguments.names or SITUATIONS:
        for look, theme in THEMES.items():
            for width in WIDTHS:
                picture = _picture(SITUATIONS[name](width, theme), width, look)
                picture.save(arguments.folder / f"{name}-{look}-{width}.png")


def _picture(text: str, width: int, look: str) -> Image.Image:
    # Long lines are wrapped by the terminal.
    screen = pyte.Screen(width, 400)
    pyte.Stream(screen).feed(text.replace("\n", "\r\n"))
    return _drawn(screen, look)


def _beside(pictures: Sequence[Image.Image]) -> Image.Image:
    width = sum(each.width + _EDGE for each in pictures) - _EDGE
    whole = Image.new("RGB", (width, max(each.height for each in pictures)), "#808080")
    left = 0
    for each in pictures:
        whole.paste(each, (left, 0))
        left += each.width + _EDGE
    return whole


def _drawn(screen: pyte.Screen, look: str) -> Image.Image:
    rows = [y for y, row in enumerate(screen.display) if row.strip()]
    height = rows[-1] + 1 if rows else 1
    ground = _GROUND.get(look, _GROUND["dark"])
    size = screen.columns * _COLUMN + 2 * _EDGE, height * _ROW + 2 * _EDGE
    image = Image.new("RGB", size, ground[0])
    draw = ImageDraw.Draw(image)
    fonts = [
        _font(f"Mono{suffix}") for suffix in ("", "-Bold", "-Oblique", "-BoldOblique")
    ]
    fonts.append(_font(""))
    for y in range(height):
        for x in range(screen.columns):
            _draw_cell(draw, screen.buffer[y][x], (x, y), ground, fonts)
    return image


def _draw_cell(
    draw: ImageDraw.ImageDraw,
    cell: Char,
    place: tuple[int, int],
    ground: tuple[str, str],
    fonts: Sequence[ImageFont.FreeTypeFont],
) -> None:
    paper, ink = _color(cell.bg, ground[0]), _color(cell.fg, ground[1])
    if cell.reverse:
        paper, ink = ink, paper
    left, top = _EDGE + place[0] * _COLUMN, _EDGE + place[1] * _ROW
    if paper != ground[0]:
        draw.rectangle((left, top, left + _COLUMN - 1, top + _ROW - 1), paper)
    font = fonts[4 if cell.data in _NOT_IN_MONO else cell.bold + 2 * cell.italics]
    if cell.data != " ":
        draw.text((left, top + 1), cell.data, ink, font)
    for line, y in ((cell.underscore, 17), (cell.strikethrough, 10)):
        if line:
            draw.line((left, top + y, left + _COLUMN - 1, top + y), ink)


def _color(name: str, default: str) -> str:
    if name == "default":
        return default
    return _NAMED.get(
        name.removeprefix("bright"), f"#{name}" if len(name) == 6 else default
    )


def _font(suffix: str) -> ImageFont.FreeTypeFont:
    for name in _FONTS:
        if (path := Path(name.format(suffix))).exists():
            return ImageFont.truetype(path, _SIZE)
    raise SystemExit("Error: the DejaVu fonts are not installed")


if __name__ == "__main__":
    main()

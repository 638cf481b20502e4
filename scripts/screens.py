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

from scripts.animated_svg import animated_svg
from scripts.demo_movie import DESCRIPTION, recorded_movie
from scripts.screen_colors import BORDERS, GROUNDS, LOOKS, Look, ground_of
from scripts.session_screens import session_screens
from tests.frontends.tui.situations import SITUATIONS, THEMES, WIDTHS

_FONTS = (
    "/usr/share/fonts/truetype/dejavu/DejaVuSans{}.ttf",
    "/usr/share/fonts/TTF/DejaVuSans{}.ttf",
    "/Library/Fonts/DejaVuSans{}.ttf",
)
_README: dict[Look, dict[str, str]] = {
    "dark": {
        "2 running": "terminal-working.png",
        "3 question": "terminal-question.png",
        "5 going back": "terminal-rewind.png",
    },
    "light": {
        "3 question": "terminal-question-light.png",
        "5 going back": "terminal-rewind-light.png",
    },
}
"""The file of each stage of a session."""
_FIRST_TEXTS = {"5 going back": "Go back to"}
"""The text of the first row that is drawn, if that is not the first one."""
_README_COLUMNS = 90
_NOT_IN_MONO = set("⠋⠙⠸⠴⠦⠇")
"""They are in DejaVu Sans."""
_SIZE, _ROW, _COLUMN, _EDGE = 15, 20, 9, 10


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
    parser.add_argument(
        "--animated", action="store_true", help="the moving picture of the README: docs"
    )
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    if arguments.animated:
        _draw_demo(arguments.folder)
    elif arguments.readme:
        _draw_readme(arguments.folder)
    elif arguments.sessions:
        _draw_sessions(arguments.folder)
    else:
        _draw_situations(arguments.folder, arguments.names or list(SITUATIONS))


def _draw_demo(folder: Path) -> None:
    for look in LOOKS:
        frames, end_s = recorded_movie(look)
        picture = animated_svg(frames, end_s, look, DESCRIPTION)
        (folder / f"demo-{look}.svg").write_text(picture, encoding="utf-8")


def _draw_readme(folder: Path) -> None:
    for look, names in _README.items():
        stages = session_screens(_README_COLUMNS, alone=True, look=look)
        for stage, screen in stages:
            if stage in names:
                picture = _drawn(screen, look, _FIRST_TEXTS.get(stage, ""))
                picture.save(folder / names[stage], optimize=True)


def _draw_sessions(folder: Path) -> None:
    for width in WIDTHS:
        pictures: dict[str, list[Image.Image]] = {}
        for stage, screen in session_screens(width):
            pictures.setdefault(stage, []).append(_drawn(screen, "dark"))
            _beside(pictures[stage]).save(folder / f"{stage}-{width}.png")


def _draw_situations(folder: Path, names: Sequence[str]) -> None:
    for name in names:
        for theme_name, theme in THEMES.items():
            look: Look = "light" if theme_name == "light" else "dark"
            for width in WIDTHS:
                picture = _picture(SITUATIONS[name](width, theme), width, look)
                picture.save(folder / f"{name}-{theme_name}-{width}.png")


def _picture(text: str, width: int, look: Look) -> Image.Image:
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


def _drawn(screen: pyte.Screen, look: Look, first_text: str = "") -> Image.Image:
    """Draw the rows from the one with the text to the last one that is not empty."""
    first = next(y for y, row in enumerate(screen.display) if first_text in row)
    rows = [y for y, row in enumerate(screen.display) if row.strip()]
    last = rows[-1] if rows else first
    height = last - first + 1
    size = screen.columns * _COLUMN + 2 * _EDGE, height * _ROW + 2 * _EDGE
    image = Image.new("RGB", size, GROUNDS[look].paper)
    draw = ImageDraw.Draw(image)
    draw.rectangle((0, 0, size[0] - 1, size[1] - 1), outline=BORDERS[look])
    fonts = [
        _font(f"Mono{suffix}") for suffix in ("", "-Bold", "-Oblique", "-BoldOblique")
    ]
    fonts.append(_font(""))
    for y in range(height):
        for x in range(screen.columns):
            _draw_cell(draw, screen.buffer[first + y][x], (x, y), look, fonts)
    return image


def _draw_cell(
    draw: ImageDraw.ImageDraw,
    cell: Char,
    place: tuple[int, int],
    look: Look,
    fonts: Sequence[ImageFont.FreeTypeFont],
) -> None:
    paper, ink = ground_of(cell, look)
    left, top = _EDGE + place[0] * _COLUMN, _EDGE + place[1] * _ROW
    if paper != GROUNDS[look].paper:
        draw.rectangle((left, top, left + _COLUMN - 1, top + _ROW - 1), paper)
    font = fonts[4 if cell.data in _NOT_IN_MONO else cell.bold + 2 * cell.italics]
    if cell.data != " ":
        draw.text((left, top + 1), cell.data, ink, font)
    for line, y in ((cell.underscore, 17), (cell.strikethrough, 10)):
        if line:
            draw.line((left, top + y, left + _COLUMN - 1, top + y), ink)


def _font(suffix: str) -> ImageFont.FreeTypeFont:
    for name in _FONTS:
        if (path := Path(name.format(suffix))).exists():
            return ImageFont.truetype(path, _SIZE)
    raise SystemExit("Error: the DejaVu fonts are not installed")


if __name__ == "__main__":
    main()

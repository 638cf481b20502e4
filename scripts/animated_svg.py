"""Draws screens of a terminal as an SVG that moves without scripts: a strip of frames behind a window.

An `<img>` loads no fonts and runs no scripts. The glyphs of whatever font a reader has are fitted into
the columns with `textLength`.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias
from xml.sax.saxutils import escape

from pyte.screens import Char

from scripts.screen_colors import BORDERS, GROUNDS, Look, ground_of

_COLUMN, _ROW, _EDGE, _FONT_SIZE = 9, 20, 14, 15
_BASELINE = 15
_FONTS = (
    "ui-monospace,SFMono-Regular,'SF Mono',Menlo,Consolas,'DejaVu Sans Mono',"
    "'Liberation Mono',monospace"
)

Row: TypeAlias = tuple[Char, ...]


class Frame(NamedTuple):
    """A screen, and when it is shown, in seconds."""

    at_s: float
    rows: tuple[Row, ...]


class _Run(NamedTuple):
    """Neighbours that look the same."""

    column: int
    text: str
    style: Char


def animated_svg(
    frames: Sequence[Frame], end_s: float, look: Look, description: str
) -> str:
    """The frames from the first one's time to `end_s`, then again from the first.

    Where nothing moves, the last frame is shown.
    """
    columns, lines = len(frames[0].rows[0]), len(frames[0].rows)
    width, height = columns * _COLUMN + 2 * _EDGE, lines * _ROW + 2 * _EDGE
    styles: dict[str, str] = {}
    names: dict[Row, str] = {}
    strip: list[str] = []
    for number, frame in enumerate(frames):
        strip.append(f'<g transform="translate({number * width})">')
        for y, row in enumerate(frame.rows):
            if not _is_blank(row, look):
                name = names.setdefault(row, f"r{len(names)}")
                strip.append(f'<use href="#{name}" y="{_EDGE + y * _ROW}"/>')
        strip.append("</g>")
    drawn = [
        f'<g id="{name}">{"".join(_drawn_row(row, look, styles))}</g>'
        for row, name in names.items()
    ]
    rules = [f".{name}{{{rule}}}" for rule, name in styles.items()]
    ground = GROUNDS[look]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"'
            f' width="{width}" height="{height}" role="img">',
            f"<title>{escape(description)}</title>",
            "<style>",
            f"text{{font:{_FONT_SIZE}px {_FONTS};fill:{ground.ink}}}",
            *rules,
            *_motion(frames, end_s, width),
            "</style>",
            f"<defs>{''.join(drawn)}</defs>",
            f'<rect x=".5" y=".5" width="{width - 1}" height="{height - 1}" rx="8"'
            f' fill="{ground.paper}" stroke="{BORDERS[look]}"/>',
            f'<g id="strip">{"".join(strip)}</g>',
            "</svg>",
            "",
        ]
    )


def _motion(frames: Sequence[Frame], end_s: float, width: int) -> Iterator[str]:
    """The rules that move the strip by one frame after the other."""
    start_s = frames[0].at_s
    whole_s = end_s - start_s
    yield "@keyframes play{"
    for number, frame in enumerate(frames):
        percent = 100 * (frame.at_s - start_s) / whole_s
        yield f"{percent:.2f}%{{transform:translateX({-number * width}px)}}"
    last = -(len(frames) - 1) * width
    yield f"to{{transform:translateX({last}px)}}}}"
    yield f"#strip{{transform:translateX({last}px);animation:play {whole_s:.2f}s step-end infinite}}"
    yield "@media (prefers-reduced-motion:reduce){#strip{animation:none}}"


def _drawn_row(row: Row, look: Look, styles: dict[str, str]) -> Iterator[str]:
    """The elements of a row: backgrounds, then texts. New rules of style are added to `styles`."""
    runs = list(_runs(row))
    for run in runs:
        paper = ground_of(run.style, look).paper
        if paper != GROUNDS[look].paper:
            left, wide = _EDGE + run.column * _COLUMN, len(run.text) * _COLUMN
            yield f'<rect x="{left}" width="{wide}" height="{_ROW}" fill="{paper}"/>'
    for run in runs:
        rule = _rule(run.style, look)
        shown = ""
        if rule:
            shown = f' class="{styles.setdefault(rule, f"s{len(styles)}")}"'
        for column, text in _words(run):
            left, wide = _EDGE + column * _COLUMN, len(text) * _COLUMN
            yield (
                f'<text x="{left}" y="{_BASELINE}" textLength="{wide}"'
                f' lengthAdjust="spacingAndGlyphs"{shown}>{escape(text)}</text>'
            )


def _runs(row: Row) -> Iterator[_Run]:
    start = 0
    for end in range(1, len(row) + 1):
        if end == len(row) or row[end]._replace(data="") != row[start]._replace(
            data=""
        ):
            text = "".join(cell.data for cell in row[start:end])
            yield _Run(start, text, row[start])
            start = end


def _words(run: _Run) -> Iterator[tuple[int, str]]:
    """The texts of a run with their columns.

    Several blanks separate two texts, as SVG folds them. A character that a font may not have is a text
    of its own, so that the glyph of another font moves no neighbour.
    """
    for match in re.finditer(r"[!-~]+(?: [!-~]+)*|[^ -~]", run.text):
        yield run.column + match.start(), match.group()


def _rule(cell: Char, look: Look) -> str:
    """What the style sheet says of the text of such a cell."""
    rules: list[str] = []
    ink = ground_of(cell, look).ink
    if ink != GROUNDS[look].ink:
        rules.append(f"fill:{ink}")
    if cell.bold:
        rules.append("font-weight:bold")
    if cell.italics:
        rules.append("font-style:italic")
    lines: list[str] = []
    if cell.underscore:
        lines.append("underline")
    if cell.strikethrough:
        lines.append("line-through")
    if lines:
        rules.append(f"text-decoration:{' '.join(lines)}")
    return ";".join(rules)


def _is_blank(row: Row, look: Look) -> bool:
    is_empty = all(cell.data == " " for cell in row)
    paper = GROUNDS[look].paper
    return is_empty and all(ground_of(cell, look).paper == paper for cell in row)

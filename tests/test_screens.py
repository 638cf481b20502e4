"""Tests the moving pictures of the README, and `scripts/animated_svg.py`, which draws them."""

import re
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest
from PIL import Image
from pyte.screens import Char

from scripts.animated_svg import Frame, Row, animated_svg
from scripts.demo_movie import DESCRIPTION
from scripts.screen_colors import GROUNDS, LOOKS, Look

ROOT = Path(__file__).parent.parent
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
_SVG = "{http://www.w3.org/2000/svg}"
_MOST_BYTES = 1_000_000
_REMOVED = {"dark": (0x3A, 0x1A, 0x1D), "light": (0xFD, 0xE5, 0xE4)}
"""The background of a line that a patch removes."""


def picture(look: Look) -> str:
    return (ROOT / "docs" / f"demo-{look}.svg").read_text(encoding="utf-8")


def row(text: str, **style: object) -> Row:
    return tuple(Char(letter)._replace(**style) for letter in text)


@pytest.mark.parametrize("look", LOOKS)
def test_a_moving_picture_is_small_and_needs_nothing_else(look: Look) -> None:
    text = picture(look)
    assert len(text.encode()) < _MOST_BYTES
    root = ElementTree.fromstring(text)
    assert root.tag == f"{_SVG}svg"
    assert root.get("viewBox")
    names = {element.tag.removeprefix(_SVG) for element in root.iter()}
    assert names == {"svg", "title", "style", "defs", "g", "rect", "text", "use"}
    attributes = [item for element in root.iter() for item in element.attrib.items()]
    assert [name for name, _ in attributes if name.startswith("on")] == []
    targets = [value for name, value in attributes if name.endswith("href")]
    assert targets
    assert [target for target in targets if not target.startswith("#r")] == []
    assert re.findall(r"url\(|@import|@font-face", text) == []


@pytest.mark.parametrize("look", LOOKS)
def test_a_moving_picture_is_over_in_seconds(look: Look) -> None:
    (seconds,) = re.findall(
        r"animation:play ([\d.]+)s step-end infinite", picture(look)
    )
    assert 8 <= float(seconds) <= 14


@pytest.mark.parametrize("look", LOOKS)
def test_a_moving_picture_shows_what_its_description_says(look: Look) -> None:
    root = ElementTree.fromstring(picture(look))
    assert root.findtext(f"{_SVG}title") == DESCRIPTION
    rows = {
        f"#{group.get('id')}": " ".join(group.itertext())
        for group in root.findall(f"{_SVG}defs/{_SVG}g")
    }
    (strip,) = root.findall(f"{_SVG}g")
    frames = [
        "\n".join(rows[use.attrib["href"]] for use in frame)
        for frame in strip.findall(f"{_SVG}g")
    ]
    moments = "FAILED test_a_discount", "return subtotal * (100", "All four tests pass."
    firsts = [
        next(number for number, text in enumerate(frames) if moment in text)
        for moment in moments
    ]
    assert firsts == sorted(firsts)
    assert "passed test_a_discount" in frames[-1]
    assert [text for text in frames if "Trying again" in text] == []


def test_frames_are_shown_one_after_the_other_and_the_last_one_where_nothing_moves() -> (
    None
):
    frames = [Frame(2.0, (row("ab"),)), Frame(3.0, (row("cd"),))]
    drawn = animated_svg(frames, 6.0, "dark", "Two letters, then two others")
    assert "0.00%{transform:translateX(0px)}" in drawn
    assert "25.00%{transform:translateX(-46px)}" in drawn
    assert "#strip{transform:translateX(-46px);animation:play 4.00s" in drawn


def test_a_row_that_comes_back_is_drawn_once() -> None:
    frames = [Frame(float(second), (row("ab"), row("  "))) for second in range(3)]
    drawn = animated_svg(frames, 4.0, "light", "Two letters that stay")
    assert drawn.count("<text") == 1
    assert drawn.count("<use") == 3


def test_text_is_escaped_and_stands_in_its_columns() -> None:
    frames = [Frame(0.0, (row("<b> a b   c✔d"),))]
    root = ElementTree.fromstring(animated_svg(frames, 1.0, "dark", "Text with <b>"))
    placed = [
        (element.text, element.get("x"), element.get("textLength"))
        for element in root.iter(f"{_SVG}text")
    ]
    assert placed == [
        ("<b> a b", "14", "63"),
        ("c", "104", "9"),
        ("✔", "113", "9"),
        ("d", "122", "9"),
    ]


def test_styles_and_backgrounds_are_drawn() -> None:
    frames = [Frame(0.0, (row("a", fg="red", bold=True) + row(" ", bg="00ff00"),))]
    drawn = animated_svg(frames, 1.0, "light", "A red letter")
    assert ".s0{fill:#cf222e;font-weight:bold}" in drawn
    assert '<rect x="23" width="9" height="20" fill="#00ff00"/>' in drawn


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
@pytest.mark.parametrize("look", LOOKS)
def test_a_browser_shows_the_patch_at_the_end_but_not_at_the_beginning(
    tmp_path: Path, look: Look
) -> None:
    first = colors(look, 0.0, tmp_path)
    last = colors(look, 9.0, tmp_path)
    paper = tuple(bytes.fromhex(GROUNDS[look].paper[1:]))
    assert paper in first
    assert len(first) > 5
    assert paper in last
    assert _REMOVED[look] not in first
    assert _REMOVED[look] in last


def colors(look: Look, second: float, folder: Path) -> set[object]:
    """The colours that a browser shows at that time."""
    still = f"step-end infinite;animation-delay:-{second}s;animation-play-state:paused"
    text = picture(look).replace("step-end infinite", still)
    (folder / "still.svg").write_text(text, encoding="utf-8")
    page = folder / "page.html"
    page.write_text('<img src="still.svg">', encoding="utf-8")
    shot = folder / "shot.png"
    command = [
        str(CHROMIUM),
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        f"--user-data-dir={folder / 'profile'}",
        f"--screenshot={shot}",
        "--window-size=830,640",
        page.as_uri(),
    ]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    with Image.open(shot) as image:
        found = image.convert("RGB").getcolors(maxcolors=1_000_000)
    assert found is not None
    return {color for _, color in found}

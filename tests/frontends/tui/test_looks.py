"""Each situation at several widths, dark and light, as text with styles: see `situations.py`."""

import re
from pathlib import Path

import pytest

from codex_py.frontends.tui.theme import Theme
from tests.frontends.tui.situations import SITUATIONS, THEMES, WIDTHS
from tests.support.snapshots import check_snapshot

SNAPSHOTS = Path(__file__).parent / "snapshots" / "looks"


@pytest.mark.parametrize("name", SITUATIONS)
def test_situations_look_as_they_did(name: str) -> None:
    parts = [
        f"=== {width} columns, {look}\n{SITUATIONS[name](width, theme)}\n"
        for look, theme in THEMES.items()
        for width in WIDTHS
    ]
    check_snapshot(SNAPSHOTS / f"{name.replace(' ', '_')}.txt", "".join(parts))


@pytest.mark.parametrize("name", SITUATIONS)
def test_without_colours_no_situation_has_one_and_all_words_are_there(
    name: str,
) -> None:
    def words(theme: Theme) -> str:
        text = SITUATIONS[name](80, theme)
        assert theme.color or not re.search(
            r"\x1b\[[0-9;]*(3[0-9]|4[0-9]|9[0-7])[0-9;]*m", text
        )
        # Without styles, headings keep their marks; rows are broken where they are.
        return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|#+ |\s", "", text)

    colored = words(THEMES["dark"])
    assert words(Theme(color=False)) == colored
    assert words(Theme(color=False, dumb=True)) == colored

from pathlib import Path

import pytest
from rich.color import ColorSystem
from rich.style import Style
from rich.terminal_theme import TerminalTheme

from codex_py.errors import ConfigError
from codex_py.frontends.tui.theme import (
    STYLES,
    Theme,
    background_of,
    own_styles,
    terminal_theme,
)


@pytest.mark.parametrize(
    ("environment", "theme"),
    [
        ({"TERM": "xterm", "LANG": "en_US.UTF-8"}, Theme()),
        ({"TERM": "xterm-256color", "LC_ALL": "C.utf8"}, Theme(color_system="256")),
        (
            {"TERM": "x", "LANG": "C.UTF-8", "COLORTERM": "truecolor"},
            Theme(color_system="truecolor"),
        ),
        (
            {"TERM": "x", "LANG": "C.UTF-8", "COLORFGBG": "0;15"},
            Theme(background="light"),
        ),
        (
            {"TERM": "x", "LANG": "C.UTF-8", "COLORFGBG": "15;0"},
            Theme(background="dark"),
        ),
        ({"TERM": "x", "LANG": "C.UTF-8", "VTE_VERSION": "7600"}, Theme(links=True)),
        (
            {"TERM": "dumb", "LANG": "C.UTF-8", "VTE_VERSION": "1"},
            Theme(color=False, dumb=True),
        ),
        ({"TERM": "x", "LANG": "C.UTF-8", "NO_COLOR": "1"}, Theme(color=False)),
        ({"TERM": "x", "LANG": "C.UTF-8", "NO_COLOR": ""}, Theme()),
        ({"TERM": "dumb", "LANG": "C.UTF-8"}, Theme(color=False, dumb=True)),
        # Neither names a character set.
        ({"TERM": "x", "LANG": "de_DE.ISO-8859-1", "LC_ALL": "C"}, Theme()),
        ({"TERM": "x", "LC_CTYPE": "POSIX"}, Theme()),
        ({"TERM": "x"}, Theme()),
        (
            {"TERM": "x", "LANG": "C.UTF-8", "LC_ALL": "de_DE.ISO-8859-1"},
            Theme(unicode=False),
        ),
        ({"TERM": "x", "LANG": "ja_JP.eucJP"}, Theme(unicode=False)),
        ({"TERM": "x", "LANG": "de_DE@euro"}, Theme(unicode=False)),
    ],
)
def test_the_environment_says_what_the_terminal_can(
    environment: dict[str, str], theme: Theme
) -> None:
    assert terminal_theme(environment) == theme


def test_without_colours_weight_stays() -> None:
    assert Theme(color=False).style("step") == "bold"
    assert Theme(color=False).style("error") == ""
    assert Theme(dumb=True).style("step") == ""
    assert Theme().style("step") == "bold cyan"


def luminance(color: tuple[int, int, int]) -> float:
    """As WCAG 2 defines it."""
    parts = [part / 255 for part in color]
    linear = [
        part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4
        for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: tuple[int, int, int], other: tuple[int, int, int]) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("system", [ColorSystem.TRUECOLOR, ColorSystem.EIGHT_BIT])
@pytest.mark.parametrize(
    ("background", "grounds", "ink"),
    [
        ("dark", [(0, 0, 0), (30, 30, 30)], (200, 200, 200)),
        ("light", [(255, 255, 255), (250, 250, 245)], (40, 40, 40)),
    ],
)
def test_all_can_be_read(
    background: str,
    grounds: list[tuple[int, int, int]],
    ink: tuple[int, int, int],
    system: ColorSystem,
) -> None:
    """WCAG asks for 4.5; syntax stands on the grounds of changes too."""
    theme = Theme(color_system="truecolor", background=background)  # pyright: ignore[reportArgumentType]
    terminal = TerminalTheme(grounds[0], ink, [(0, 0, 0)] * 8)

    def color(style: Style, *, foreground: bool) -> tuple[int, int, int] | None:
        found = style.color if foreground else style.bgcolor
        return (
            None if found is None else found.downgrade(system).get_truecolor(terminal)
        )

    styles = {name: Style.parse(theme.style(name)) for name in STYLES}
    bands = [styles[name] for name in ("added", "removed", "code block")]
    for name, style in styles.items():
        own = color(style, foreground=False)
        others = (
            [color(band, foreground=False) for band in bands]
            if "syntax" in name
            else []
        )
        for ground in [own] if own else [*grounds, *(each for each in others if each)]:
            text = color(style, foreground=True) or ink
            least = 3.0 if system is ColorSystem.EIGHT_BIT or ground in others else 4.5
            assert contrast(text, ground) >= least, (name, text, ground)


@pytest.mark.parametrize(
    ("report", "background"),
    [
        ("rgb:0000/0000/0000", "dark"),
        ("rgb:ff/ff/ff", "light"),
        ("rgb:fdfd/f6f6/e3e3", "light"),
        ("rgba:2828/2c2c/3434/ffff", "dark"),
        ("rgb:1/2", None),
        ("#ffffff", None),
    ],
)
def test_a_report_says_whether_the_background_is_dark(
    report: str, background: str
) -> None:
    assert background_of(report) == background


def test_only_who_has_colours_and_does_not_know_the_background_asks() -> None:
    assert Theme(color_system="256").asks_for_background
    assert not Theme(color_system="256", background="light").asks_for_background
    assert not Theme(color_system="256", color=False).asks_for_background
    assert not Theme().asks_for_background


def test_the_users_styles_come_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "theme.toml"
    assert own_styles(path) == {}
    path.write_text('user = "bold bright_red on #202020"\n', encoding="utf-8")
    theme = Theme(own=own_styles(path))
    assert theme.style("user") == "bold bright_red on #202020"
    assert theme.fragment_styles()["user"] == "bold ansibrightred bg:#202020"
    assert Theme(own=own_styles(path), color=False).style("user") == "bold"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('usr = "bold"', "no style 'usr'"),
        ('user = "very bold"', "'user' is not like"),
        ("user = 1", "'user' is not like"),
        ("user", "cannot be read"),
    ],
)
def test_a_file_of_styles_with_a_mistake_is_refused(
    tmp_path: Path, text: str, told: str
) -> None:
    path = tmp_path / "theme.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=told):
        own_styles(path)

"""Tests `streams/plain_text.py`."""

import pytest

from codex_py.frontends.tui.cells.layout import one_line
from codex_py.streams.plain_text import command_output, plain


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]8;;https://x\x1b\\link\x1b]8;;\x07", "link"),
        ("\x1b(Bplain\x1b=", "plain"),
        ("10%\r20%\r30%", "30%"),
        ("a\r\nb\r\r\n", "a\nb\n"),
        ("N\x08Na\x08ame", "Name"),
        ("a\tb", "a       b"),
        ("\x07bell\x00", "␇bell␀"),
        ("cut off \x1b[", "cut off "),
    ],
)
def test_output_is_shown_as_a_terminal_would_in_the_end(text: str, shown: str) -> None:
    assert command_output(text) == shown


def test_marks_do_not_pile_up() -> None:
    assert plain("e" + "\u0301" * 1000 + "n\u0303") == "e" + "\u0301" * 6 + "n\u0303"


def test_a_line_is_one_line() -> None:
    assert one_line("a\n b\tc\u2028d", 100) == "a b c d"
    assert one_line("x" * 1000, 10) == "xxxxxxxxxx…"

from prompt_toolkit.application import Application
from prompt_toolkit.application.current import set_app
from prompt_toolkit.data_structures import Size
from prompt_toolkit.input import DummyInput
from prompt_toolkit.layout import Layout, Window
from prompt_toolkit.layout.controls import FormattedTextControl
from prompt_toolkit.output import DummyOutput

from codex_py.frontends.tui.fitting import Fragments
from codex_py.frontends.tui.page import Page


class Terminal(DummyOutput):
    def __init__(self, columns: int, rows: int) -> None:
        self._size = Size(rows=rows, columns=columns)

    def get_size(self) -> Size:
        return self._size


def rows_of(
    above: list[str], body: str, below: list[str], columns: int, rows: int
) -> list[str]:
    """A page as it is drawn on a screen of this size."""

    def fragments(texts: list[str]) -> list[Fragments]:
        return [[("", text)] for text in texts]

    window = Window(FormattedTextControl(body), dont_extend_height=True)
    page = Page(window, lambda: fragments(above), lambda: fragments(below))
    app = Application[None](
        Layout(page), input=DummyInput(), output=Terminal(columns, rows)
    )
    with set_app(app):
        app.renderer.render(app, app.layout)
    screen = app.renderer.last_rendered_screen
    assert screen is not None
    return [
        "".join(screen.data_buffer[y][x].char for x in range(columns)).rstrip()
        for y in range(screen.height)
    ]


def test_the_body_stands_between_its_rows() -> None:
    assert rows_of(["a", "b"], "body", ["c"], 10, 10) == ["a", "b", "body", "c"]


def test_on_a_low_screen_the_first_rows_are_left_out() -> None:
    assert rows_of(["a", "b", "c"], "one\ntwo", ["d"], 10, 4) == [
        "c",
        "one",
        "two",
        "d",
    ]
    assert rows_of(["a"], "one\ntwo", ["b", "c"], 10, 2) == ["one", "b"]
    assert rows_of(["a"], "one", ["b"], 10, 1) == ["one"]


def test_a_row_is_cut_at_the_edge_and_no_wide_character_in_two() -> None:
    assert rows_of(["abcdefgh"], "x", [], 5, 5) == ["abcd\u2026", "x"]
    assert rows_of(["ab\u65e5\u672c\u8a9e"], "x", [], 5, 5) == ["ab\u65e5\u2026", "x"]
    assert rows_of(["abc\u65e5\u672c"], "x", [], 5, 5) == ["abc\u2026", "x"]


def test_marks_join_the_character_before_and_only_a_few() -> None:
    shown, _ = rows_of(["\u65e5\u0301e" + "\u0301" * 10_000 + "!"], "x", [], 9, 5)
    assert shown == "\u65e5\u0301e" + "\u0301" * 7 + "!"

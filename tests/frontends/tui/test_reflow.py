import pytest

from codex_py.frontends.tui.output import Frame, reflows


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"TERM": "xterm-256color"}, False),
        ({"TERM": "xterm-256color", "XTERM_VERSION": "XTerm(388)"}, False),
        ({"TERM": "screen", "STY": "1.a"}, False),
        ({"TERM": "tmux-256color", "TMUX": "/tmp/t,1,0", "XTERM_VERSION": "XTerm(388)"}, True),
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor"}, True),
        ({"TERM": "xterm-kitty"}, True),
    ],
)
def test_it_is_known_which_terminals_lay_lines_out_anew(
    environment: dict[str, str], expected: bool
) -> None:
    assert reflows(environment) is expected


@pytest.mark.parametrize(("columns", "rows"), [(100, 3), (50, 4), (40, 5), (10, 15)])
def test_rows_that_are_laid_out_anew_are_counted(columns: int, rows: int) -> None:
    assert Frame([0, 100, 37, 40], cursor=4).rows_above(columns) == rows

import pytest

from codex_py.frontends.tui.theme import Theme, terminal_theme


@pytest.mark.parametrize(
    ("environment", "theme"),
    [
        ({"TERM": "xterm", "LANG": "en_US.UTF-8"}, Theme()),
        ({"TERM": "xterm-256color", "LC_ALL": "C.utf8"}, Theme(color_system="256")),
        (
            {"TERM": "x", "LANG": "C.UTF-8", "COLORTERM": "truecolor"},
            Theme(color_system="truecolor"),
        ),
        ({"TERM": "x", "LANG": "C.UTF-8", "COLORFGBG": "0;15"}, Theme(background="light")),
        ({"TERM": "x", "LANG": "C.UTF-8", "NO_COLOR": "1"}, Theme(color=False)),
        ({"TERM": "x", "LANG": "C.UTF-8", "NO_COLOR": ""}, Theme()),
        ({"TERM": "dumb", "LANG": "C.UTF-8"}, Theme(color=False, dumb=True)),
        ({"TERM": "x", "LANG": "en_US.UTF-8", "LC_ALL": "C"}, Theme(unicode=False)),
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

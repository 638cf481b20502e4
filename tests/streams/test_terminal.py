import pytest

from codex_py.streams.terminal import Style, printable, some_of, wants_color


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\ttext\nünï 漢字 👩‍👩‍👧\n", "plain\ttext\nünï 漢字 👩‍👩‍👧\n"),
        ("a\r\nb", "a\nb"),
        ("50%\r100%", "50%␍100%"),
        ("\x1b]0;title\x07\x1b[2J", "␛]0;title␇␛[2J"),
        ("\x00\x08\x7f", "␀␈␡"),
        ("\x9b31m", "\\x9b31m"),
        ("if admin\u202e{ \u2066", "if admin\\u202e{ \\u2066"),
        ("\ud800", "\\ud800"),
        ("a\u200bb\u2060c\ufeff", "a\\u200bb\\u2060c\\ufeff"),
        ("rm\u200c -f\u200d", "rm\\u200c -f\\u200d"),
        ("a\U000e0072\U000e006d", "a\\U000e0072\\U000e006d"),
        ("\u200d\u200dx", "\\u200d\\u200dx"),
        # A message can be hidden in selectors; one of them chooses a form.
        ("☺\ufe0e❤️\ufe01", "☺\ufe0e❤️\\ufe01"),
        ("葛\U000e0100", "葛\U000e0100"),
        ("👩‍💻 ❤️‍🔥 👨🏽‍🚀 1️⃣", "👩‍💻 ❤️‍🔥 👨🏽‍🚀 1️⃣"),
        (
            "\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",
            "🏴󠁧󠁢󠁳󠁣󠁴󠁿",
        ),
        ("क्\u200dष \u0645\u06cc\u200c\u062e", "क्\u200dष \u0645\u06cc\u200c\u062e"),
    ],
)
def test_nothing_that_steers_a_terminal_is_left(text: str, shown: str) -> None:
    assert printable(text) == shown


@pytest.mark.parametrize(
    ("choice", "environment", "isatty", "expected"),
    [
        ("auto", {}, True, True),
        ("auto", {}, False, False),
        ("auto", {"NO_COLOR": "1"}, True, False),
        ("auto", {"NO_COLOR": ""}, True, True),
        ("auto", {"TERM": "dumb"}, True, False),
        ("always", {"NO_COLOR": "1"}, False, True),
        ("never", {}, True, False),
    ],
)
def test_color_is_chosen_by_option_then_environment(
    choice: str, environment: dict[str, str], isatty: bool, expected: bool
) -> None:
    assert wants_color(choice, environment, isatty=isatty) is expected  # pyright: ignore[reportArgumentType]


def test_without_color_text_stays_as_it_is() -> None:
    assert (Style(color=False)("red", "x"), Style(color=True)("red", "x")) == (
        "x",
        "\x1b[31mx\x1b[0m",
    )


def test_files_are_named_in_one_line_whatever_they_are_called():
    assert some_of(["new\nline", "a\ttab"]) == "new\u240aline, a\u2409tab"

"""The forms are those of Codex 0.169."""

import pytest

from codex_py.tools.truncate import (
    line_count,
    token_count,
    truncate_middle,
    truncate_output,
)


def test_text_within_the_limit_is_left_alone() -> None:
    text = "é" * 20
    assert truncate_output(text, 10) is text
    assert truncate_middle("", 0) == ""


def test_both_ends_are_kept_under_a_warning() -> None:
    text = "".join(f"{number:04}\n" for number in range(100))
    assert truncate_output(text, 5) == (
        "Warning: truncated output (original token count: 125)\n"
        "Total output lines: 100\n"
        "\n"
        "0000\n0001\n…120 tokens truncated…0098\n0099\n"
    )


def test_codex_figures_for_a_long_listing() -> None:
    # `seq 20000` under the default limit.
    text = "".join(f"{number}\n" for number in range(1, 20001))
    cut = truncate_output(text, 10_000)
    assert cut.startswith(
        "Warning: truncated output (original token count: 27224)\nTotal output lines: 20000\n\n1\n2\n"
    )
    head, note, tail = cut.partition("…17224 tokens truncated…")
    assert note
    assert (len(head.partition("\n\n")[2]), len(tail)) == (20_000, 20_000)


def test_totals_speak_of_all_that_was_printed() -> None:
    cut = truncate_output("x" * 100, 10, total_bytes=4_000, total_lines=7)
    assert cut == (
        "Warning: truncated output (original token count: 1000)\nTotal output lines: 7\n\n"
        + "x" * 20
        + "…15 tokens truncated…"
        + "x" * 20
    )


@pytest.mark.parametrize("character", ["é", "€", "🙂"])
@pytest.mark.parametrize("limit", range(12))
def test_characters_stay_whole(character: str, limit: int) -> None:
    cut = truncate_middle(character * 50, limit, "bytes")
    head, _, rest = cut.partition("…")
    tail = rest.rpartition("…")[2]
    kept = len(head) + len(tail)
    assert set(head + tail) <= {character}
    assert cut == f"{head}…{50 - kept} chars truncated…{tail}"
    assert len((head + tail).encode()) <= limit


@pytest.mark.parametrize(
    ("text", "lines"), [("", 0), ("a", 1), ("a\n", 1), ("\n\nb", 3)]
)
def test_lines_are_counted_with_the_unfinished_one(text: str, lines: int) -> None:
    assert line_count(text) == lines


@pytest.mark.parametrize(("size", "tokens"), [(0, 0), (1, 1), (4, 1), (5, 2)])
def test_a_started_token_counts(size: int, tokens: int) -> None:
    assert token_count(size) == tokens

import sys
import time

import pytest

from codex_py.errors import PatchError
from codex_py.patch.match import Level, LineIndex, Match


def find(lines: list[str], block: list[str], start: int = 0) -> Match | None:
    return LineIndex(lines, block, "f").find(block, start)


def test_the_first_place_from_the_start_on_is_found():
    assert find(["a", "b", "a", "b"], ["a", "b"]) == Match(0, 2, Level.EXACT)
    assert find(["a", "b", "a", "b"], ["a", "b"], 1) == Match(2, 2, Level.EXACT)
    assert find(["a"], ["a", "b"]) is None


def test_a_stricter_level_wins_over_an_earlier_place():
    assert find(["  x", "x ", "x"], ["x"]) == Match(2, 1, Level.EXACT)
    assert find(["  x", "x "], ["x"]) == Match(1, 1, Level.TRAILING_BLANKS)
    assert find(["\u2003x"], ["x\t"]) == Match(0, 1, Level.INDENTATION)


@pytest.mark.parametrize(
    ("line", "ascii_form"),
    [
        ("a\u2010\u2011\u2012\u2013\u2014\u2015\u2212b", "a-------b"),
        ("a\u2018\u2019\u201a\u201bb", "a''''b"),
        ("a\u201c\u201d\u201e\u201fb", 'a""""b'),
        ("a\xa0\u2002\u2003\u200a\u202f\u205f\u3000b", "a       b"),
    ],
)
def test_typographic_characters_match_their_ascii_forms_last(
    line: str, ascii_form: str
):
    assert find([line], [ascii_form]) == Match(0, 1, Level.PUNCTUATION)
    assert find([ascii_form], [line]) == Match(0, 1, Level.PUNCTUATION)


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("a\u2000b", "a b"),
        ("…", "..."),
        ("«", '"'),
        ("\u200bx", "x"),
        ("\x1cx", "x"),
        ("X", "x"),
    ],
)
def test_other_characters_match_only_themselves(line: str, wanted: str):
    assert find([line], [wanted]) is None


def test_a_single_level_of_tolerance_applies_to_all_lines_of_a_block():
    assert find(["a ", "b", " a", "b-"], [" a", "b\u2013"]) == Match(
        2, 2, Level.PUNCTUATION
    )


def test_the_last_lines_are_found_at_the_end_only():
    index = LineIndex(["a", "b", "a "], ["a", "b"], "f")
    assert index.find_last(["a"]) == Match(2, 1, Level.TRAILING_BLANKS)
    assert index.find_last(["b"]) is None
    assert index.find_last(["a"], 3) is None


def test_the_nearest_place_is_found_on_either_side():
    index = LineIndex(["a", "x", "x", "a", "x", "x", "x", "a"], ["a"], "f")
    places = {
        target: index.find_nearest(["a"], 0, target) for target in (0, 1, 2, 5, 6, 99)
    }
    assert {t: m.start for t, m in places.items() if m} == {
        0: 0,
        1: 0,
        2: 3,
        5: 7,
        6: 7,
        99: 7,
    }
    assert index.find_nearest(["a"], 4, 0) == Match(7, 1, Level.EXACT)


def test_other_places_are_counted_up_to_a_limit():
    index = LineIndex(["a"] * 10, ["a"], "f")
    assert index.places_at(Level.EXACT, ["a"], 2, 3) == [2, 3, 4]


def test_a_block_that_fails_on_its_last_line_is_given_up_in_linear_time():
    block = ["same"] * 1999 + ["other"]
    index = LineIndex(["same"] * 20_000, block, "f")
    started = time.process_time()
    assert index.find(block) is None
    assert time.process_time() - started < 1


def test_a_block_is_searched_for_in_linear_time_where_its_last_line_occurs():
    lines = ["same"] * 20_000 + ["other"]
    block = ["same"] * 1000 + ["x"] + ["same"] * 999
    started = time.process_time()
    assert LineIndex([*lines, "x"], block, "f").find(block) is None
    assert time.process_time() - started < 1


def test_a_patch_of_more_lines_than_there_are_characters_is_refused():
    wanted = map(str, range(sys.maxunicode))
    with pytest.raises(PatchError, match="too many distinct lines"):
        LineIndex([], wanted, "f").find(["0"])

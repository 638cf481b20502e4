from typing import Any

import pytest

from codex_py.extensions.tape.match import first_difference, normalised


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "Chunk ID: d97d4c\nWall time: 0.0123 seconds",
            "Chunk ID: 000000\nWall time: 1 seconds",
        ),
        ("Process running with session ID 65819", "Process running with session ID 1"),
        ("3 passed in 0.003s", "3 passed in 12.5s"),
        ("<object at 0x7f3a2b1c>", "<object at 0xdeadbeef00>"),
        (
            "id 0194e5c2-0000-7000-8000-000000000001",
            "id 0194e5c2-ffff-7000-8000-00000000000f",
        ),
        (
            "<current_date>2026-11-20</current_date><timezone>Etc/UTC</timezone><shell>sh</shell>",
            "<current_date>2027-01-01</current_date><timezone>Asia/Tokyo</timezone><shell>zsh</shell>",
        ),
        ('{"duration_seconds":0.1}', '{"duration_seconds":12.0}'),
        (["<cwd>/a/repo</cwd>", "/a/repo/x.py"], ["<cwd>/b</cwd>", "/b/x.py"]),
        ({"prompt_cache_key": "1", "client_metadata": {}}, {"prompt_cache_key": "2"}),
    ],
)
def test_values_that_change_from_run_to_run_are_no_difference(
    one: Any, other: Any
) -> None:
    assert normalised(one) == normalised(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Process exited with code 0", "Process exited with code 1"),
        ("in 5 steps", "in 6 steps"),
        (["<cwd>/a</cwd>", "/ab/x"], ["<cwd>/b</cwd>", "/bb/x"]),
        (["<cwd>/</cwd>", "a/b"], ["<cwd>/x</cwd>", "a/c"]),
    ],
)
def test_values_that_tell_two_runs_apart_stay(one: Any, other: Any) -> None:
    assert normalised(one) != normalised(other)


def test_equal_values_do_not_differ() -> None:
    value = {"a": [1, "x", None, {"b": True}]}
    assert first_difference(value, dict(value)) is None


@pytest.mark.parametrize(
    ("expected", "actual", "difference"),
    [
        ({"a": 1}, {"a": 2}, "a: expected 1, got 2"),
        ({"a": 1}, {"a": True}, "a: expected 1, got True"),
        ({"a": 1}, {}, "a: expected 1, got nothing"),
        ({}, {"a": 1}, "a: expected nothing, got 1"),
        ({"a": [1, 2]}, {"a": [1]}, "a[1]: expected 2, got nothing"),
        ({"a": [1]}, {"a": [1, 2]}, "a[1]: expected nothing, got 2"),
        (
            {"a": {"b": [0, "x"]}},
            {"a": {"b": [0, "y"]}},
            "a.b[1]: expected 'x', got 'y'",
        ),
        (
            {"a": "1\n2\n3"},
            {"a": "1\n2\nthree"},
            "a: line 3: expected '3', got 'three'",
        ),
        ({"a": "1\n2"}, {"a": "1"}, "a: line 2: expected '2', got the end"),
        ({"a": "1"}, {"a": "1\n2"}, "a: line 2: expected the end, got '2'"),
        ({"a": "1"}, {"a": ["1"]}, "a: expected '1', got ['1']"),
    ],
)
def test_the_first_difference_is_named(
    expected: Any, actual: Any, difference: str
) -> None:
    assert first_difference(expected, actual) == difference


def test_a_difference_far_along_a_line_is_shown_and_nothing_else() -> None:
    difference = first_difference({"a": "x" * 5_000}, {"a": "x" * 4_000 + "y" * 1_000})
    assert difference == f"a: expected {'x' * 120!r}, got {'x' * 60 + 'y' * 60!r}"


def test_quotations_of_a_difference_are_short() -> None:
    difference = first_difference({"a": 1}, {"a": ["x" * 5_000]})
    assert difference is not None
    assert len(difference) < 200

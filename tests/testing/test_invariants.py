"""The rules of pairs and prefixes that every request of a test is checked with.

Tests `testing/rules.py`.
"""

from typing import Any

import pytest

from codex_py.testing import pairing_problem, prefix_problem


def call(call_id: str, kind: str = "function_call") -> dict[str, Any]:
    return {"type": kind, "call_id": call_id}


def output(call_id: str, kind: str = "function_call_output") -> dict[str, Any]:
    return {"type": kind, "call_id": call_id, "output": "done"}


MESSAGE: dict[str, Any] = {"type": "message", "role": "user", "content": []}


@pytest.mark.parametrize(
    "items",
    [
        [],
        [MESSAGE, {"role": "user", "content": "a message may have no type"}],
        [call("a"), call("b"), output("a"), output("b")],
        [call("a", "custom_tool_call"), output("a", "custom_tool_call_output")],
        [{"type": "local_shell_call", "id": "a"}, output("a")],
        # An id may come again, in a later turn or at once.
        [call("a"), output("a"), MESSAGE, call("a"), output("a")],
        [call("a"), call("a"), output("a"), output("a")],
    ],
)
def test_paired_calls_are_fine(items: list[dict[str, Any]]):
    assert pairing_problem(items) is None


@pytest.mark.parametrize(
    ("items", "problem"),
    [
        ([call("a")], "calls without output: ['a']"),
        ([call("a"), call("a"), output("a")], "calls without output: ['a']"),
        ([output("a")], "an output without its call: 'a'"),
        ([output("a"), call("a")], "an output without its call: 'a'"),
        ([call("a"), output("a"), output("a")], "an output without its call: 'a'"),
    ],
)
def test_a_call_or_an_output_alone_is_named(items: list[dict[str, Any]], problem: str):
    assert pairing_problem(items) == problem


def test_an_input_may_repeat_or_lengthen_the_last_one():
    assert prefix_problem([], [1]) is None
    assert prefix_problem([1], [1]) is None
    assert prefix_problem([1], [1, 2]) is None


def test_a_changed_or_missing_item_is_named():
    assert prefix_problem([1, 2], [1, 3, 4]) == (
        "the input does not begin with the last one: item 1 was 2, is 3"
    )
    assert prefix_problem([1, 2], [1]) == (
        "the input is shorter than the last one: 1 items, 2 before"
    )

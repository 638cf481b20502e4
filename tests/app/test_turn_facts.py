"""Tests `app/turn_facts.py`; `test_extensions.py` has the turn that bad facts end."""

from typing import Any

import pytest

from codex_py.app.turn_facts import facts_problem
from codex_py.protocol.stream import Usage


@pytest.mark.parametrize(
    "facts",
    [
        {},
        {"exit_code": None, "diff": None},
        {"exit_code": 255, "diff": "+\udcff"},
        {"usage": Usage(1, output_tokens=2)},
        {"words": {"a": [1, None, float("nan")]}, "type": "x"},
    ],
)
def test_an_event_has_facts_of_json(facts: dict[str, Any]) -> None:
    assert facts_problem(facts) is None


def test_a_circle_is_no_json() -> None:
    circle: list[Any] = []
    circle.append(circle)
    problem = facts_problem({"words": circle})
    assert problem is not None
    assert problem.startswith("`words` cannot be written as JSON: ")

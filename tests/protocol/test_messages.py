"""JSON as the program writes it."""

import json
from math import inf, nan
from typing import Any, NoReturn

import pytest

from codex_py.protocol.messages import encode_json


def _refuse(name: str) -> NoReturn:
    raise AssertionError(name)


@pytest.mark.parametrize(
    ("value", "read"),
    [
        (nan, None),
        ([inf, -inf, 1.5], [None, None, 1.5]),
        ({"a": {"b": (nan, "NaN")}}, {"a": {"b": [None, "NaN"]}}),
        ({nan: 1, 0.5: 2, 3: 3}, {"nan": 1, "0.5": 2, "3": 3}),
        ({"a": inf, "b": "\ud800"}, {"a": None, "b": "\ufffd"}),
        ({"a": 1e308, "b": 10**400}, {"a": 1e308, "b": 10**400}),
    ],
)
def test_encoded_messages_are_json_for_every_parser(value: Any, read: Any) -> None:
    assert json.loads(encode_json(value), parse_constant=_refuse) == read


def test_a_value_that_holds_itself_is_an_error() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises((ValueError, RecursionError)):
        encode_json(value)

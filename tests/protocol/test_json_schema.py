from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Any, Literal

import jsonschema
import pytest

from codex_py.protocol.annotations import CamelCase, Plain
from codex_py.protocol.checked import read
from codex_py.protocol.frozen import frozen
from codex_py.protocol.json_schema import schema_of_class

Digits = Annotated[str, Plain("digits", "some digits", (str,), str.isdecimal)]


@frozen(kw_only=True)
class Inner(CamelCase):
    kind: Literal["a", "b"]


@frozen(kw_only=True)
class Outer(CamelCase):
    first_name: str
    digits: Digits = "0"
    inner: list[Inner] = field(default_factory=list[Inner])
    rest: Mapping[str, int] = field(default_factory=dict[str, int])
    size: int | Literal["all"] | None = None
    anything: Any = None
    is_open: bool = False


def test_a_schema_says_types_defaults_and_what_must_be_there() -> None:
    schema = schema_of_class(Outer)
    assert schema["required"] == ["firstName"]
    assert schema["properties"]["firstName"] == {"type": "string"}
    assert schema["properties"]["digits"] == {
        "type": "string",
        "description": "some digits",
        "default": "0",
    }
    assert schema["properties"]["isOpen"] == {"type": "boolean", "default": False}
    assert schema["properties"]["inner"]["items"]["properties"] == {
        "kind": {"enum": ["a", "b"], "type": "string"}
    }


DATA: list[dict[str, Any]] = [
    {"firstName": "x"},
    {"firstName": "x", "inner": [{"kind": "b"}], "size": "all", "anything": [1]},
    {"firstName": "x", "rest": {"a": 1}, "size": 3, "isOpen": True},
    {},
    {"firstName": 1},
    {"firstName": "x", "inner": [{"kind": "c"}]},
    {"firstName": "x", "inner": [{}]},
    {"firstName": "x", "rest": {"a": "b"}},
    {"firstName": "x", "size": "some"},
    {"firstName": "x", "other": 1},
    {"firstName": "x", "isOpen": 1},
]


@pytest.mark.parametrize("data", DATA)
def test_a_schema_takes_what_the_reader_takes(data: dict[str, Any]) -> None:
    _, mistakes = read(Outer, data, exact=True)
    validator: Any = jsonschema.Draft202012Validator(schema_of_class(Outer))
    assert validator.is_valid(data) == (mistakes == [])

from typing import Any

import pytest

from codex_py.tools.mcp.schema import repaired_parameters

VALID: list[dict[str, Any]] = [
    {"type": "object", "properties": {}},
    {
        "type": "object",
        "properties": {"a": {"type": ["string", "null"], "default": None}},
    },
    {
        "type": "object",
        "properties": {"a": {"enum": ["x", None]}, "b": {"const": None}},
    },
    {
        "type": "object",
        "properties": {"a": True},
        "required": ["a"],
        "additionalProperties": False,
    },
    {
        "type": "object",
        "properties": {"a": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/x"}]}},
        "$defs": {"x": {"type": "array", "items": {"type": "string"}}},
    },
    {
        "type": "object",
        "properties": {"a": {"type": "array", "prefixItems": [{"type": "null"}]}},
    },
    {
        "type": "object",
        "properties": {"type": {"type": "string"}, "required": {"type": "number"}},
    },
    {"type": "object", "properties": {"a": {"type": "array", "items": False}}},
]


@pytest.mark.parametrize("schema", VALID)
def test_a_valid_schema_goes_as_it_came(schema: dict[str, Any]) -> None:
    assert repaired_parameters(schema) == schema


BROKEN: list[tuple[Any, Any]] = [
    ({"type": "array"}, {"type": "array", "items": {}}),
    ({"type": ["array", "null"]}, {"type": ["array", "null"], "items": {}}),
    ({"type": None}, {}),
    ({"type": "any"}, {}),
    ({"type": "str", "description": None}, {"type": "string"}),
    ({"type": "List"}, {"type": "array", "items": {}}),
    ({"type": ["int", "none?"]}, {"type": ["integer"]}),
    ({"type": "object", "properties": None}, {"type": "object", "properties": {}}),
    ({"type": "object", "properties": []}, {"type": "object", "properties": {}}),
    ({"type": "string", "required": True}, {"type": "string"}),
    ({"type": "object", "required": None}, {"type": "object"}),
    ({"type": "object", "required": ["a", 3]}, {"type": "object", "required": ["a"]}),
    ({"enum": []}, {}),
    ({"enum": None}, {}),
    ({"anyOf": None}, {}),
    ({"anyOf": [{"type": "array"}]}, {"anyOf": [{"type": "array", "items": {}}]}),
    ({"items": {"type": "array"}}, {"items": {"type": "array", "items": {}}}),
    (None, {}),
    ("string", {}),
]


@pytest.mark.parametrize(("broken", "repaired"), BROKEN)
def test_the_usual_mistakes_are_repaired_wherever_they_stand(
    broken: object, repaired: object
) -> None:
    schema = {"type": "object", "properties": {"a": broken, "b": {"type": "string"}}}
    kept = {"a": repaired, "b": {"type": "string"}}
    assert repaired_parameters(schema) == {"type": "object", "properties": kept}


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": None},
        {"type": "string"},
        {"properties": None, "required": None},
        {"type": ["object"], "properties": []},
    ],
)
def test_arguments_are_always_an_object(schema: dict[str, Any]) -> None:
    assert repaired_parameters(schema) == {"type": "object", "properties": {}}


def test_a_schema_without_end_is_repaired_to_a_depth() -> None:
    schema: dict[str, Any] = {"type": "array"}
    for _ in range(500):
        schema = {"type": "array", "items": schema}
    assert repaired_parameters({"properties": {"a": schema}})["properties"]["a"][
        "items"
    ]

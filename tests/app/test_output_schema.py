"""Also tests `app/features/output_schema.py`."""

import json
from pathlib import Path
from typing import Any

import pytest

from codex_py.app.output_schema import answer_check, load_schema
from codex_py.errors import ConfigError, ExitCode

_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"files": {"type": "array", "items": {"type": "string"}}},
    "required": ["files"],
    "additionalProperties": False,
}


def broken(schema: Any, text: str) -> str | None:
    return answer_check(schema)(text)


def _file(folder: Path, text: str) -> Path:
    path = folder / "schema.json"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_schema_is_read_as_it_stands(tmp_path: Path) -> None:
    assert load_schema(_file(tmp_path, json.dumps(_SCHEMA))) == _SCHEMA


@pytest.mark.parametrize(
    "schema", [True, {}, {"$schema": "http://json-schema.org/draft-04/schema#"}]
)
def test_schemas_of_every_draft_and_shape_are_taken(
    tmp_path: Path, schema: object
) -> None:
    assert load_schema(_file(tmp_path, json.dumps(schema))) == schema
    assert broken(schema, "1") is None


def test_a_missing_schema_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "none.json"
    with pytest.raises(ConfigError) as caught:
        load_schema(path)
    assert str(caught.value) == (
        f"Failed to read output schema file {path}: No such file or directory"
    )
    assert caught.value.exit_code == ExitCode.USAGE


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not valid JSON: Expecting property name"),
        ("NaN", "is not valid JSON: NaN is not JSON"),
        ("[" * 100_000, "is not valid JSON: "),
        (
            '{"type":"strng"}',
            "is not a valid JSON Schema: at $.type: 'strng' is not valid",
        ),
        ('"a text"', "is not a valid JSON Schema: at $: 'a text' is not of type"),
        ("5", "is not a valid JSON Schema: at $: 5 is not of type"),
        (
            '{"$schema":[]}',
            "is not a valid JSON Schema: at $['$schema']: [] is not of type",
        ),
    ],
    ids=[
        "cut",
        "no JSON number",
        "deep",
        "unknown type",
        "no schema",
        "number",
        "odd draft",
    ],
)
def test_a_file_that_is_no_schema_is_refused(
    tmp_path: Path, text: str, message: str
) -> None:
    path = _file(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        load_schema(path)
    assert str(caught.value).startswith(f"Output schema file {path} {message}")


def test_an_answer_that_satisfies_the_schema_has_nothing_wrong() -> None:
    assert broken(_SCHEMA, ' {"files": ["a"]}\n') is None


@pytest.mark.parametrize(
    ("answer", "violation"),
    [
        (
            '{"files": ["a", 1]}',
            "the final answer does not satisfy the output schema: "
            "at $.files[1]: 1 is not of type 'string'",
        ),
        (
            "{}",
            "the final answer does not satisfy the output schema: "
            "at $: 'files' is a required property",
        ),
        (
            "Here it is: {}",
            "the final answer is not valid JSON: Expecting value: line 1 column 1 (char 0)",
        ),
        ('{"files": NaN}', "the final answer is not valid JSON: NaN is not JSON"),
    ],
    ids=["type", "required", "prose", "no JSON number"],
)
def test_a_value_that_breaks_the_schema_is_reported_with_its_place(
    answer: str, violation: str
) -> None:
    assert broken(_SCHEMA, answer) == violation


def test_a_huge_answer_is_not_quoted_whole() -> None:
    violation = broken({"type": "integer"}, json.dumps("x" * 100_000))
    assert violation is not None
    assert len(violation) < 400
    assert violation.endswith("is not of type 'integer'")


def test_a_reference_to_elsewhere_is_not_followed(tmp_path: Path) -> None:
    schema = load_schema(_file(tmp_path, '{"$ref": "http://127.0.0.1:1/schema.json"}'))
    with pytest.raises(ConfigError, match="reference that cannot be resolved"):
        broken(schema, "1")


def test_a_reference_within_the_schema_is_followed() -> None:
    schema = {"$defs": {"n": {"type": "integer"}}, "$ref": "#/$defs/n"}
    assert broken(schema, "1") is None
    assert broken(schema, '"1"') is not None


def test_an_answer_that_is_nested_too_deep_breaks_the_schema() -> None:
    schema = {
        "$defs": {"n": {"additionalProperties": {"$ref": "#/$defs/n"}}},
        "$ref": "#/$defs/n",
    }
    assert broken(schema, '{"a":' * 5 + "1" + "}" * 5) is None
    for too_deep in (
        broken(schema, '{"a":' * 900 + "1" + "}" * 900),
        broken({"$ref": "#"}, "1"),
    ):
        assert too_deep is not None
        assert "nested too deeply" in too_deep

"""Write `instructions/tools/schemas.json`: the parameters of our own tools as a model reads them.

They leave with the first request, before pydantic and the tools are loaded, so they are kept as data.
"""

import inspect
import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from codex_py.tools.past import own_tools

SCHEMAS = Path(__file__).parent.parent / "instructions" / "tools" / "schemas.json"


def schemas() -> dict[str, dict[str, Any]]:
    """The schema of each tool's parameters, by the name of the tool, in the order of the tools."""
    return {tool.name: _object(tool.params) for tool in own_tools()}


def text() -> str:
    return json.dumps(schemas(), indent=1, ensure_ascii=False) + "\n"


def _object(model: type[BaseModel]) -> dict[str, Any]:
    schema = model.model_json_schema(by_alias=False)
    definitions = schema.get("$defs", {})
    properties = {
        name: _value(schema["properties"][name], definitions)
        for name in _in_order(model)
        if name in schema["properties"]
    }
    return _shape(properties, schema.get("required", []))


def _in_order(model: type[BaseModel]) -> list[str]:
    """The names of the fields: those that the class declares, then those of its bases."""
    classes = [base for base in model.__mro__ if issubclass(base, BaseModel)]
    declared = [name for base in classes for name in inspect.get_annotations(base)]
    return [name for name in dict.fromkeys(declared) if name in model.model_fields]


def _value(schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """One value, without titles, defaults and limits. Of alternatives, the first is offered."""
    schema = {**schema.get("anyOf", [{}])[0], **schema}
    if "$ref" in schema:
        schema = definitions[schema["$ref"].rpartition("/")[2]]
    if "properties" in schema:
        properties = {k: _value(v, definitions) for k, v in schema["properties"].items()}
        return _shape(properties, schema.get("required", []))
    kind = "number" if schema["type"] == "integer" else schema["type"]
    value: dict[str, Any] = {"type": kind}
    if "enum" in schema:
        value["enum"] = schema["enum"]
    items = _value(schema["items"], definitions) if "items" in schema else None
    # What describes a list stands before a long description of its items.
    if items is not None and "properties" not in items:
        value["items"] = items
    if "description" in schema:
        value["description"] = schema["description"]
    if items is not None:
        value["items"] = items
    return value


def _shape(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


if __name__ == "__main__":
    SCHEMAS.write_text(text(), encoding="utf-8")

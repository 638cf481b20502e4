"""Write `instructions/tools/schemas.json`: the parameters of our own tools as a model reads them.

They leave with the first request, before the tools are loaded, so they are kept as data.
"""

import inspect
import json
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, get_args, get_origin

from codex_py.tools.past import own_tools

SCHEMAS = Path(__file__).parent.parent / "instructions" / "tools" / "schemas.json"
_TYPES = {str: "string", bool: "boolean", int: "number", float: "number"}
_NOT_OFFERED = {("shell", "prefix_rule")}
"""Of a tool; Codex has it in newer ones only."""


def schemas() -> dict[str, dict[str, Any]]:
    """The schema of each tool's parameters, by the name of the tool, in the order of the tools."""
    return {tool.name: _object(tool.params, tool.name) for tool in own_tools()}


def text() -> str:
    return json.dumps(schemas(), indent=1, ensure_ascii=False) + "\n"


def _object(params: type[Any], tool: str = "") -> dict[str, Any]:
    found = {each.name: each for each in fields(params)}
    # The fields that the class declares, then those of its bases.
    declared = [
        name for base in params.__mro__ for name in inspect.get_annotations(base)
    ]
    names = [
        name for name in dict.fromkeys(declared) if (tool, name) not in _NOT_OFFERED
    ]
    return _shape(
        {name: _value(found[name].type) for name in names},
        [each.name for each in found.values() if each.default is MISSING],
    )


def _value(annotation: Any) -> dict[str, Any]:
    """One value, without defaults. Of alternatives, the first is offered."""
    description: dict[str, Any] = {}
    if get_origin(annotation) is Annotated:
        annotation, text, *_ = get_args(annotation)
        description = {"description": text}
    if isinstance(annotation, UnionType):
        annotation = get_args(annotation)[0]
    kind, inner = get_origin(annotation) or annotation, get_args(annotation)
    if is_dataclass(kind):
        return _object(annotation)
    if kind is Literal:
        return {"type": "string", "enum": [*inner], **description}
    if kind not in (list, tuple):
        return {"type": _TYPES[kind], **description}
    items = _value(inner[0])
    # What describes a list stands before a long description of its items.
    if "properties" in items:
        return {"type": "array", **description, "items": items}
    return {"type": "array", "items": items, **description}


def _shape(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


if __name__ == "__main__":
    SCHEMAS.write_text(text(), encoding="utf-8")

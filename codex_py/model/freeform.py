"""Converts freeform tools to functions with a single text parameter, for APIs that have only
functions."""

from collections.abc import Collection, Sequence
from typing import Any, cast

from codex_py.protocol.json_fields import json_or
from codex_py.protocol.messages import encode_json
from codex_py.protocol.stream import Prompt
from codex_py.protocol.tools import FreeformSpec, FunctionSpec, ToolSpec

_INPUT = "input"


def as_function(spec: FreeformSpec) -> FunctionSpec:
    """The tool as a function.

    The grammar, which only the Responses API accepts, becomes part of the description.
    """
    description = (
        f"{spec.description}\n\nThe input follows this grammar, in Lark notation:"
        f"\n\n{spec.grammar}"
    )
    text = {
        "type": "string",
        "description": "The whole input, in the format of the grammar.",
    }
    parameters = {
        "type": "object",
        "properties": {_INPUT: text},
        "required": [_INPUT],
        "additionalProperties": False,
    }
    return FunctionSpec(spec.name, description, parameters)


def function_specs(tools: Sequence[ToolSpec]) -> list[FunctionSpec]:
    """The tools for an API that has only functions; hosted tools are left out."""
    functions: list[FunctionSpec] = []
    for spec in tools:
        if isinstance(spec, FreeformSpec):
            functions.append(as_function(spec))
        elif isinstance(spec, FunctionSpec):
            functions.append(spec)
    return functions


def freeform_names(prompt: Prompt) -> frozenset[str]:
    """The names of the freeform tools that a request offers."""
    freeform = (spec for spec in prompt.tools if isinstance(spec, FreeformSpec))
    return frozenset(spec.name for spec in freeform)


def wrapped_item(item: dict[str, Any]) -> dict[str, Any]:
    """Convert a freeform tool's call, or its output, to a function's; other items are unchanged."""
    match item.get("type"):
        case "custom_tool_call":
            arguments = wrapped(str(item.get(_INPUT)))
            rest = _without(item, "id", _INPUT)
            return {**rest, "type": "function_call", "arguments": arguments}
        case "custom_tool_call_output":
            return {**item, "type": "function_call_output"}
        case _:
            return item


def unwrapped_item(
    item: dict[str, Any],
    freeform: Collection[str],
) -> dict[str, Any]:
    """Convert such a function's call to the freeform tool's; other items are unchanged.

    `freeform`: the names of the freeform tools.
    """
    if item.get("type") != "function_call" or item.get("name") not in freeform:
        return item
    text = unwrapped(str(item.get("arguments")))
    rest = _without(item, "id", "arguments")
    return {**rest, "type": "custom_tool_call", _INPUT: text}


def _without(
    item: dict[str, Any],
    *names: str,
) -> dict[str, Any]:
    return {name: value for name, value in item.items() if name not in names}


def wrapped(text: str) -> str:
    """The arguments of the function for a freeform tool's input."""
    return encode_json({_INPUT: text}).decode()


def unwrapped(arguments: str) -> str:
    """The input in such a function's arguments; the arguments themselves if they have no text."""
    value = json_or(arguments, arguments)
    if isinstance(value, str):
        return value
    if not isinstance(value, dict):
        return arguments
    fields = cast("dict[str, Any]", value)
    for text in (fields.get(_INPUT), *fields.values()):
        if isinstance(text, str):
            return text
    return arguments

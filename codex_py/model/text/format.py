"""Calls of tools within the text of a message, for models that cannot call them otherwise.

A block begins with `<tool name="NAME">` and ends with `</tool>`, each at the start of a line. Its body is the raw input of
a freeform tool, or a JSON object with the arguments of a function. Blocks within code fences are text.
"""

import json
import re
from collections.abc import Mapping, Sequence
from html import unescape
from typing import Any, TypeAlias

from codex_py.instructions import instruction_text
from codex_py.model.freeform import unwrapped
from codex_py.model.text.leaks import leaked_calls
from codex_py.protocol.frozen import frozen
from codex_py.protocol.json_fields import json_or
from codex_py.protocol.tools import FreeformSpec, FunctionSpec, HostedSpec, ToolSpec, called_tool

_FENCE = r"[ \t]*(?P<fence>```+(?=[^`\n]*$)|~~~+)"
"""The opening of a fence at the start of a line, in a pattern with `re.MULTILINE`."""
_FENCE_OPENING = re.compile(rf"^{_FENCE}", re.MULTILINE)
_OPENING = re.compile(r"^<tool\b([^>\n]*)>[ \t]*\n?", re.MULTILINE | re.IGNORECASE)
_MARK = re.compile(
    rf"(?P<opening>{_OPENING.pattern})|^(?:{_FENCE}|[ \t]*(?P<result><tool_result\b))",
    re.MULTILINE | re.IGNORECASE,
)
_CLOSING = re.compile(r"\n?^</tool>", re.MULTILINE | re.IGNORECASE)
_CLOSING_IN_LINE = re.compile(r"</tool>", re.IGNORECASE)
_NAME = re.compile(r"""\bname\s*=\s*["']?([^"'\s>]+)""")
_CDATA = re.compile(r"\s*<!\[CDATA\[(.*)\]\]>\s*", re.DOTALL)
_CHILD = re.compile(r"\s*<(\w+)>")

FORMAT_REMINDER = (
    'Write a call as a block, with both tags on lines of their own:\n\n<tool name="exec_command">\n'
    '{"cmd": "ls -l"}\n</tool>'
)


@frozen
class TextCall:
    name: str
    body: str
    """The input of a freeform tool, or JSON arguments."""
    is_freeform: bool


@frozen
class ReadMessage:
    text: str
    """What is left without the calls."""
    calls: Sequence[TextCall] = ()
    problem: str | None = None
    """What is wrong with a block that could not be read, for the model."""


Specs: TypeAlias = Mapping[str, ToolSpec]


def tools_text(tools: Sequence[ToolSpec]) -> str:
    """The part of the instructions that describes the format and the tools."""
    parts = [instruction_text("tools/text_format.md")]
    for spec in tools:
        match spec:
            case FreeformSpec(name, description, grammar):
                parts.append(f"## {name} (raw)\n\n{description}\n\nThe grammar:\n\n{grammar}")
            case FunctionSpec(name, description, parameters) if is_raw(spec):
                (text,) = parameters["properties"].values()
                about = text.get("description", "")
                parts.append(f"## {name} (raw)\n\n{description}\n\nThe input: {about}".rstrip(": "))
            case FunctionSpec(name, description, parameters):
                schema = json.dumps(parameters, ensure_ascii=False)
                parts.append(f"## {name}\n\n{description}\n\nParameters (JSON Schema): {schema}")
            case HostedSpec():
                pass
    return "\n\n".join(parts)


def is_raw(spec: ToolSpec | None) -> bool:
    """True if the body of a call is the tool's input as it is: its only parameter is a text."""
    if not isinstance(spec, FunctionSpec):
        return isinstance(spec, FreeformSpec)
    properties: Mapping[str, Any] = spec.parameters.get("properties", {})
    return len(properties) == 1 and all(p.get("type") == "string" for p in properties.values())


def call_text(name: str, arguments: str, *, is_freeform: bool, spec: ToolSpec | None) -> str:
    """A call as the model is to write it."""
    body = unwrapped(arguments) if is_raw(spec) and not is_freeform else arguments
    return f'<tool name="{name}">\n{body}\n</tool>'


def result_text(name: str, call_id: str, output: str) -> str:
    return f'<tool_result name="{name}" id="{call_id}">\n{output}\n</tool_result>'


def read_message(text: str, specs: Specs) -> ReadMessage:
    """Find the calls in the text of a message."""
    calls: list[TextCall] = []
    rest: list[str] = []
    problem: str | None = None
    start = place = 0
    while (mark := _MARK.search(text, place)) is not None:
        if mark["fence"]:
            place = _fence_end(text, mark)
            continue
        if mark["result"]:
            # The model made results up: what follows rests on them.
            text = text[: mark.start()]
            break
        other = _OPENING.search(text, mark.end())
        limit = other.start() if other is not None else len(text)
        closing = _CLOSING.search(text, mark.end(), limit)
        closing = closing or _CLOSING_IN_LINE.search(text, mark.end(), limit)
        name = _NAME.search(mark["opening"])
        # Some servers stop at the closing tag, and leave it out.
        end, place = closing.span() if closing is not None else (limit, limit)
        if name is None or (closing is None and other is not None):
            what = 'has no name="…"' if name is None else "does not end with </tool>"
            problem = problem or f"a <tool> block {what}"
            rest.append(text[start:place])
        else:
            rest.append(text[start : mark.start()])
            calls.append(_call(name[1], text[mark.end() : end], specs))
        start = place
    rest.append(text[start:])
    remaining = "".join(rest)
    if not calls:
        leaked, remaining = leaked_calls(remaining, _fences(remaining))
        calls = [_call(name, body, specs) for name, body in leaked]
    return ReadMessage(remaining.strip() if calls else remaining, calls, problem)


def _fence_end(text: str, opening: re.Match[str]) -> int:
    """The place after the fence that a match of `_FENCE` opens; the end of the text if it is not closed."""
    mark = opening["fence"]
    pattern = rf"^[ \t]*{mark[0]}{{{len(mark)},}}[ \t]*$"
    closing = re.compile(pattern, re.MULTILINE).search(text, opening.end())
    return closing.end() if closing is not None else len(text)


def _fences(text: str) -> Sequence[tuple[int, int]]:
    """Where the fences of a text begin and end."""
    spans: list[tuple[int, int]] = []
    start = 0
    while (opening := _FENCE_OPENING.search(text, start)) is not None:
        start = _fence_end(text, opening)
        spans.append((opening.start(), start))
    return spans


def _call(name: str, body: str, specs: Specs) -> TextCall:
    name = called_tool(None, name)
    by_lower = {known.lower(): known for known in specs}
    name = by_lower.get(name.lower(), name)
    spec = specs.get(name)
    if (cdata := _CDATA.fullmatch(body)) is not None:
        body = cdata[1]
    elif "&quot;" in body and not _is_json(body) and _is_json(plain := unescape(body)):
        # Arguments that the model escaped. Other bodies mean what they say: `?a=1&copy=2` is no copyright sign.
        body = plain
    if isinstance(spec, FreeformSpec):
        return TextCall(name, unwrapped(body) if _is_json(body) else body, is_freeform=True)
    if _is_json(body):
        return TextCall(name, body.strip(), is_freeform=False)
    if is_raw(spec):
        assert isinstance(spec, FunctionSpec)
        (parameter,) = spec.parameters["properties"]
        return TextCall(name, json.dumps({parameter: body}, ensure_ascii=False), is_freeform=False)
    return TextCall(name, _from_children(body, spec) or body.strip(), is_freeform=False)


def _is_json(body: str) -> bool:
    return isinstance(json_or(body, None), dict)


def _from_children(body: str, spec: ToolSpec | None) -> str | None:
    """Arguments written as `<name>value</name>`, as JSON; None for another body."""
    children: list[tuple[str, str]] = []
    place = 0
    while (child := _CHILD.match(body, place)) is not None:
        closing = f"</{child[1]}>"
        end = body.find(closing, child.end())
        if end < 0:
            return None
        children.append((child[1], body[child.end() : end].strip("\n")))
        place = end + len(closing)
    if not children or body[place:].strip():
        return None
    properties: Mapping[str, Any] = (
        spec.parameters.get("properties", {}) if isinstance(spec, FunctionSpec) else {}
    )
    values = {
        name: text
        if properties.get(name, {}).get("type") in (None, "string")
        else json_or(text, text)
        for name, text in children
    }
    return json.dumps(values, ensure_ascii=False)

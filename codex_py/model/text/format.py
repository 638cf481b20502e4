"""Tool calls in the text of a message, for models that cannot call tools otherwise.

A block begins with `<TAG name="NAME">` and ends with `</TAG>`, each at the start of a line. Its
body is the raw input of a freeform tool, or a JSON object with the arguments of a function. Blocks
within code fences are text. The tag differs from session to session, so that a block in a file or a
result is not a call when the model quotes it.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from html import unescape
from typing import Any, TypeAlias
from zlib import crc32

from codex_py.instructions import instruction_text
from codex_py.model.freeform import unwrapped
from codex_py.model.text.calls_in_text import calls_at_end
from codex_py.protocol.frozen import frozen
from codex_py.protocol.json_fields import json_or
from codex_py.protocol.tools import (
    FreeformSpec,
    FunctionSpec,
    HostedSpec,
    ToolSpec,
    called_tool,
)

_FENCE = r"[ \t]*(?P<fence>```+(?=[^`\n]*$)|~~~+)"
"""The opening of a fence at the start of a line, in a pattern with `re.MULTILINE`."""
# An opening tag that a model may write for a call, with any name such as `tool` or `tool_1a2b3c4d`,
# but not one for a result.
_OPENING = (
    r"^<(?P<tag>tool(?:_(?!calls?\b|res(?:ult|ponse)s?\b)\w+)?)\b"
    r"(?P<attributes>[^>\n]*)>[ \t]*\n?"
)
_MARK = re.compile(
    rf"{_OPENING}|^(?:{_FENCE}|[ \t]*(?P<result><tool_res(?:ult|ponse)\b))",
    re.MULTILINE | re.IGNORECASE,
)
_NAME = re.compile(r"""\bname\s*=\s*["']?([^"'\s>]+)""")
_CDATA = re.compile(r"\s*<!\[CDATA\[(.*)\]\]>\s*", re.DOTALL)
_CHILD = re.compile(r"\s*<(\w+)>(.*?)</\1>", re.DOTALL)

ANY_TAG = r"tool_[0-9a-f]{8}"
"""A pattern for the tags of all sessions."""
UNTAGGED = "[tag]"
"""Replaces the tag of the session in texts that the model did not write."""
FORMAT_REMINDER = (
    "Write a call as a block, with both tags on lines of their own:\n\n"
    f'<{UNTAGGED} name="exec_command">\n{{"cmd": "ls -l"}}\n</{UNTAGGED}>\n\n'
    "What you only quote belongs into a code fence."
)
"""The one text of a history in which the model sees the tag instead of `UNTAGGED`."""


def session_tag(session_id: str) -> str:
    """Make the tag of a session's calls."""
    return f"tool_{crc32(session_id.encode()):08x}"


@frozen
class TextCall:
    name: str
    body: str
    """The input of a freeform tool, or JSON arguments."""
    is_freeform: bool


@frozen
class ReadMessage:
    text: str
    """The text without the calls."""
    calls: Sequence[TextCall] = ()
    problem: str | None = None
    """The mistake in a block that could not be read, for the model."""


Specs: TypeAlias = Mapping[str, ToolSpec]
IsQuoted: TypeAlias = Callable[[str], bool]


def tools_text(tools: Sequence[ToolSpec], tag: str) -> str:
    """Write the part of the instructions that describes the format and the tools."""
    parts = [instruction_text("tools/text_format.md").replace("TAG", tag)]
    for spec in tools:
        match spec:
            case FreeformSpec(name, description, grammar):
                parts.append(
                    f"## {name} (raw)\n\n{description}\n\nThe grammar:\n\n{grammar}"
                )
            case FunctionSpec(name, description, parameters) if is_raw(spec):
                (text,) = parameters["properties"].values()
                about = text.get("description", "")
                # No colon is left over if the parameter has no description.
                about_input = f"The input: {about}".rstrip(": ")
                parts.append(f"## {name} (raw)\n\n{description}\n\n{about_input}")
            case FunctionSpec(name, description, parameters):
                schema = json.dumps(parameters, ensure_ascii=False)
                parts.append(
                    f"## {name}\n\n{description}\n\nParameters (JSON Schema): {schema}"
                )
            case HostedSpec():
                pass
    return "\n\n".join(parts)


def is_raw(spec: ToolSpec | None) -> bool:
    """True if a call's body is raw: the tool is freeform, or its only parameter is a text."""
    if not isinstance(spec, FunctionSpec):
        return isinstance(spec, FreeformSpec)
    properties: Mapping[str, Any] = spec.parameters.get("properties", {})
    return len(properties) == 1 and all(
        p.get("type") == "string" for p in properties.values()
    )


def call_text(
    name: str, arguments: str, tag: str, *, is_freeform: bool, spec: ToolSpec | None
) -> str:
    """Write a call in the format in which the model should write it."""
    if is_raw(spec) and not is_freeform:
        body = unwrapped(arguments)
    else:
        body = arguments
    return f'<{tag} name="{name}">\n{body}\n</{tag}>'


def result_text(
    name: str,
    call_id: str,
    output: str,
) -> str:
    return f'<tool_result name="{name}" id="{call_id}">\n{output}\n</tool_result>'


def read_message(
    text: str,
    specs: Specs,
    tag: str,
    is_quoted: IsQuoted,
) -> ReadMessage:
    """Find the calls in the text of a message.

    Args:
        tag: a pattern for the tag of calls. A block with another tag is not a call.
        is_quoted: returns True for a block that the model may have copied from a file or a result.
            Such a block is not reported as a problem.
    """
    calls: list[TextCall] = []
    outside: list[str] = []
    """The texts between the calls."""
    fences: list[tuple[int, int]] = []
    problem: str | None = None
    outside_start = 0
    place = 0
    mark = _MARK.search(text)
    while mark is not None:
        if mark["result"]:
            # The model invented a result: the text after it relies on it.
            text = text[: mark.start()]
            break
        if mark["fence"]:
            place = _fence_end(text, mark)
            fences.append((mark.start(), place))
        else:
            is_own = re.fullmatch(tag, mark["tag"]) is not None
            block_tag = tag if is_own else r"tool\w*"
            end, place, is_open = _block_end(text, mark.end(), block_tag)
            block = text[mark.start() : place]
            name = _NAME.search(mark["attributes"])
            if is_own and name is not None and not is_open:
                outside.append(text[outside_start : mark.start()])
                body = text[mark.end() : end]
                calls.append(_call(name[1], body, specs))
                outside_start = place
            elif problem is None and (is_own or not is_quoted(block)):
                mistake = _mistake(is_own=is_own, has_name=name is not None)
                problem = f"a <{mark['tag']}> block {mistake}"
        mark = _MARK.search(text, place)
    outside.append(text[outside_start:])
    remaining = "".join(outside)
    if not calls:
        leaked, remaining, is_broken = calls_at_end(remaining, fences, is_quoted)
        calls = [_call(name, body, specs) for name, body in leaked]
        if is_broken and problem is None:
            problem = "a block for a tool call cannot be read"
    if calls:
        remaining = remaining.strip()
    return ReadMessage(remaining, calls, problem)


def _mistake(*, is_own: bool, has_name: bool) -> str:
    """Return the predicate about a block that is not a call."""
    if not is_own:
        return "does not have the tag of this session"
    if not has_name:
        return 'has no name="…"'
    return "does not end"


def _block_end(
    text: str,
    start: int,
    tag: str,
) -> tuple[int, int, bool]:
    """Find the ends of a block's body and of its closing tag; True if another block begins first.

    The last block may lack the closing tag, because some servers stop at it and leave it out.
    """
    other = re.compile(rf"^<{tag}\b[^>\n]*>", re.MULTILINE).search(text, start)
    is_open = other is not None
    limit = len(text) if other is None else other.start()
    for closing in (rf"\n?^</{tag}>", rf"</{tag}>", r"\n?^</tool>", "</tool>"):
        found = re.compile(closing, re.MULTILINE).search(text, start, limit)
        if found is not None:
            return found.start(), found.end(), False
    return limit, limit, is_open


def _fence_end(text: str, opening: re.Match[str]) -> int:
    """Find the place after the fence that a match of `_FENCE` opens, or the end of the text."""
    mark = opening["fence"]
    pattern = rf"^[ \t]*{mark[0]}{{{len(mark)},}}[ \t]*$"
    closing = re.compile(pattern, re.MULTILINE).search(text, opening.end())
    if closing is not None:
        return closing.end()
    return len(text)


def _call(
    name: str,
    body: str,
    specs: Specs,
) -> TextCall:
    name = called_tool(None, name)
    by_lower = {known.lower(): known for known in specs}
    name = by_lower.get(name.lower(), name)
    spec = specs.get(name)
    body = _unescaped(body)
    if isinstance(spec, FreeformSpec):
        if _is_json(body):
            body = unwrapped(body)
        return TextCall(name, body, is_freeform=True)
    return TextCall(name, _arguments(body, spec), is_freeform=False)


def _unescaped(body: str) -> str:
    """Take a body out of its CDATA section, or undo the escapes in its JSON."""
    cdata = _CDATA.fullmatch(body)
    if cdata is not None:
        return cdata[1]
    if "&quot;" in body and not _is_json(body):
        plain = unescape(body)
        # Other bodies stay as they are: `?a=1&copy=2` has no copyright sign.
        if _is_json(plain):
            return plain
    return body


def _arguments(body: str, spec: ToolSpec | None) -> str:
    """Make the JSON arguments of a function from the body of a block."""
    if _is_json(body):
        return body.strip()
    if is_raw(spec):
        assert isinstance(spec, FunctionSpec)
        (parameter,) = spec.parameters["properties"]
        return json.dumps({parameter: body}, ensure_ascii=False)
    return _from_children(body, spec) or body.strip()


def _is_json(body: str) -> bool:
    return isinstance(json_or(body, None), dict)


def _from_children(body: str, spec: ToolSpec | None) -> str | None:
    """Convert arguments written as `<name>value</name>` to JSON; None for another body."""
    children: dict[str, str] = {}
    place = 0
    child = _CHILD.match(body)
    while child is not None:
        children[child[1]] = child[2].strip("\n")
        place = child.end()
        child = _CHILD.match(body, place)
    if not children or body[place:].strip():
        return None
    properties: Mapping[str, Any] = {}
    if isinstance(spec, FunctionSpec):
        properties = spec.parameters.get("properties", {})
    values: dict[str, Any] = {}
    for name, text in children.items():
        kind = properties.get(name, {}).get("type")
        if kind in (None, "string"):
            values[name] = text
        else:
            values[name] = json_or(text, text)
    return json.dumps(values, ensure_ascii=False)

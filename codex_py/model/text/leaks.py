"""Calls in the markup of other model families, which servers without the right parser leave in the text.

Sources: the chat templates of Hermes and Qwen (`<tool_call>`, `<function=…>`), gpt-oss (Harmony), DeepSeek (`tool▁calls`
and DSML), Kimi (`tool_calls_section`) and Mistral (`[TOOL_CALLS]`).
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias, cast

from codex_py.protocol.json_fields import as_object, json_or

Found: TypeAlias = tuple[str, str]
"""The name of a tool, and JSON arguments."""
_ENDS = ("|>", "｜>", "}", "```")
"""How a text ends that ends with a call: with a token, or with the arguments."""


def leaked_calls(text: str, quoted: Sequence[tuple[int, int]]) -> tuple[list[Found], str]:
    """The calls in a text, and the text before them. `quoted`: where code fences begin and end.

    Markup within a line is a call only if it ends the text, as the special tokens of DeepSeek, Kimi and gpt-oss do;
    otherwise it is talked about, as it is in backticks.
    """
    for pattern, read in _FAMILIES:
        start = re.search(pattern, text, re.MULTILINE)
        if start is None or any(begin <= start.start() < end for begin, end in quoted):
            continue
        before = text[text.rfind("\n", 0, start.start()) + 1 : start.start()]
        is_last = text.rstrip().endswith(_ENDS)
        if before.strip() and not (is_last and before.count("`") % 2 == 0):
            continue
        if calls := list(read(text[start.start() :])):
            return calls, text[: start.start()]
    return [], text


def _between(opening: str, text: str, closing: str) -> Iterator[tuple[re.Match[str], str]]:
    """The openings that are closed, each with what is between. Looks no further behind one that nothing closes: the time
    would grow with the square of the text."""
    openings, closings = re.compile(opening), re.compile(closing)
    place = 0
    while (start := openings.search(text, place)) and (end := closings.search(text, start.end())):
        yield start, text[start.end() : end.start()]
        place = end.end()


def _tagged(text: str) -> Iterator[Found]:
    """`<tool_call>{"name": …, "arguments": …}</tool_call>`; GLM has the name and `<arg_key>`, `<arg_value>` in it."""
    for body in re.findall(r"<tool_call>(.*?)(?:</tool_call>|\Z)", text, re.DOTALL):
        if "<function=" in body:
            yield from _functions(body)
        elif "<arg_key>" in body:
            name = body.partition("<")[0].strip()
            found = _between(r"<arg_key>([^<]*)</arg_key>\s*<arg_value>", body, "</arg_value>")
            yield name, _as_json([(start[1], value) for start, value in found])
        else:
            yield from _named_object(body)


def _functions(text: str) -> Iterator[Found]:
    """`<function=NAME><parameter=KEY>VALUE</parameter></function>`, or JSON between the tags."""
    for name, body in re.findall(r"<function=([^<>\s]+)>(.*?)(?:</function>|\Z)", text, re.DOTALL):
        found = _between(r"<parameter=([^<>\s]+)>", body, "</parameter>")
        pairs = [(start[1], value) for start, value in found]
        yield name, _as_json(pairs) if pairs else (body.strip() or "{}")


def _harmony(text: str) -> Iterator[Found]:
    """`<|channel|>commentary to=functions.NAME <|constrain|>json<|message|>{…}<|call|>`."""
    place = 0
    for start, body in _between(r"<\|message\|>", text, r"<\|call\|>|<\|end\|>|\Z"):
        called = re.search(r"to=(?:functions\.)?([\w.-]+)", text[place : start.start()])
        if called is not None:
            yield called[1], body.strip()
        place = start.end() + len(body)


def _deepseek(text: str) -> Iterator[Found]:
    """`<｜tool▁call▁begin｜>function<｜tool▁sep｜>NAME` and a JSON fence; newer models leave the kind and the fence out."""
    for body in re.findall(
        r"<｜tool▁call▁begin｜>(.*?)(?:<｜tool▁call▁end｜>|\Z)", text, re.DOTALL
    ):
        before, _, after = body.partition("<｜tool▁sep｜>")
        fenced = re.search(r"```(?:json)?\n(.*?)\n?```", after, re.DOTALL)
        if fenced is not None:
            yield after[: fenced.start()].strip(), fenced[1].strip()
        elif before.strip() == "function":
            name, _, arguments = after.strip().partition("\n")
            yield name, arguments.strip() or "{}"
        else:
            yield before.strip(), after.strip() or "{}"


def _dsml(text: str) -> Iterator[Found]:
    """`<｜DSML｜invoke name="NAME"><｜DSML｜parameter name="KEY" string="true">VALUE</｜DSML｜parameter>…`."""
    for name, body in re.findall(
        r'<(?:｜DSML｜)?invoke name="([^"]+)">(.*?)(?:</(?:｜DSML｜)?invoke>|\Z)', text, re.DOTALL
    ):
        found = _between(
            r'<(?:｜DSML｜)?parameter name="([^"]+)"([^<>]*)>', body, "</(?:｜DSML｜)?parameter>"
        )
        values = {
            start[1]: _json_or_text(value) if 'string="false"' in start[2] else value
            for start, value in found
        }
        yield name, json.dumps(values, ensure_ascii=False)


def _kimi(text: str) -> Iterator[Found]:
    """`<|tool_call_begin|>functions.NAME:0<|tool_call_argument_begin|>{…}<|tool_call_end|>`."""
    for name, body in re.findall(
        r"<\|tool_call_begin\|>\s*(?:functions\.)?([\w.-]+?)(?::\d+)?\s*<\|tool_call_argument_begin\|>"
        r"(.*?)(?:<\|tool_call_end\|>|\Z)",
        text,
        re.DOTALL,
    ):
        yield name, body.strip()


def _mistral(text: str) -> Iterator[Found]:
    """`[TOOL_CALLS][{"name": …, "arguments": …}]`, or `[TOOL_CALLS]NAME[ARGS]{…}`."""
    body = text.partition("[TOOL_CALLS]")[2].strip()
    if not body.startswith("["):
        for call in body.split("[TOOL_CALLS]"):
            name, mark, arguments = call.partition("[ARGS]")
            if mark:
                yield name.partition("[CALL_ID]")[0].strip(), arguments.strip()
        return
    yield from _named_object(body)


def _named_object(text: str) -> Iterator[Found]:
    """`{"name": …, "arguments": …}`, or a list of such objects; what follows is not read."""
    try:
        value, _ = json.JSONDecoder().raw_decode(text.strip())
    except (ValueError, RecursionError):
        return
    values: list[Any] = cast("list[Any]", value) if isinstance(value, list) else [value]
    for each in values:
        call = as_object(each)
        name, arguments = call.get("name"), call.get("arguments", call.get("parameters", {}))
        if isinstance(name, str):
            text = arguments if isinstance(arguments, str) else json.dumps(arguments)
            yield name, text


def _as_json(pairs: Sequence[tuple[str, str]]) -> str:
    values = {key.strip(): _json_or_text(value) for key, value in pairs}
    return json.dumps(values, ensure_ascii=False)


def _json_or_text(value: str) -> Any:
    """A value without quotation marks is text, unless it is a number, a list or the like."""
    text = value.strip("\n")
    return json_or(text, text)


_FAMILIES: Sequence[tuple[str, Callable[[str], Iterator[Found]]]] = (
    (r"^[ \t]*<tool_call>", _tagged),
    (r"^[ \t]*<function=", _functions),
    (r"<\|channel\|>commentary[^<]*to=|^[ \t]*<\|start\|>assistant[^<]*to=", _harmony),
    (r"<｜tool▁calls?▁begin｜>", _deepseek),
    (r"^[ \t]*<(?:｜DSML｜)?(?:function_calls|tool_calls|invoke)\b", _dsml),
    (r"<\|tool_calls_section_begin\|>|<\|tool_call_begin\|>", _kimi),
    (r"^[ \t]*\[TOOL_CALLS\]", _mistral),
)

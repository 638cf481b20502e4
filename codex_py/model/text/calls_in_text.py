"""Finds calls in the markup of various model families, which servers without the right parser leave
in the text.

Sources: the chat templates of Hermes and Qwen (`<tool_call>`, `<function=…>`), gpt-oss (Harmony),
DeepSeek (`tool▁calls` and DSML), Kimi (`tool_calls_section`) and Mistral (`[TOOL_CALLS]`).
"""

import json
import re
from bisect import bisect
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias, cast

from codex_py.protocol.json_fields import as_object, json_or

Found: TypeAlias = tuple[str, str]
"""The name of a tool, and JSON arguments."""
_END = re.compile(r"(?:[|｜]>|[]}]|```|</[｜\w]+>)\Z")
"""Matches the end of a text that ends with a call: a token, or the arguments."""
_END_CHARACTERS = 50
"""The part of the text that is searched for its end."""
_MARKUP = re.compile(
    r"\s|<\|[^|<>]*\|>|<｜[^｜<>]*｜>|</?(?:｜DSML｜)?(?:\w+_calls?|function)>|</s>"
)
"""Matches markup and white space that may stand between calls and after them."""
_ASIDE = re.compile(r"[ \t]*(?:>|[-*+#] |\d+[.)] )| {4}|\t")
"""Matches the beginning of a line in a quotation, a list or an indented block."""


def calls_at_end(
    text: str,
    fences: Sequence[tuple[int, int]],
    is_quoted: Callable[[str], bool],
) -> tuple[list[Found], str, bool]:
    """Find the calls at the end of a text.

    Markup is only a mention if more text follows it, or if it is in a fence, a quotation, a list or
    backticks.

    Args:
        fences: the start and the end of each code fence.
        is_quoted: see `read_message`.

    Returns:
        The calls, the text before them, and True if a block cannot be read; then there are no
        calls.
    """
    is_broken = False
    for opening, block, read in _FAMILIES:
        first = re.search(opening, text, re.MULTILINE)
        if first is None:
            continue
        blocks = re.compile(block, re.DOTALL).finditer(text, first.start())
        outside = (each for each in blocks if not _is_in_fence(each.start(), fences))
        last = _last_calls(text, first.start(), outside, read, is_quoted)
        is_broken = is_broken or last.is_broken
        if is_broken or _has_text(text[last.end :]):
            continue
        line_start = text.rfind("\n", 0, last.start) + 1
        if _is_mention(text[line_start : last.start], opening):
            continue
        if last.calls and _END.search(text.rstrip()[-_END_CHARACTERS:]):
            return last.calls, text[: last.start], False
    return [], text, is_broken


class _LastCalls(NamedTuple):
    """The last calls in a text with nothing but markup between them."""

    calls: list[Found]
    start: int
    """The index at which the first of them begins."""
    end: int
    """The index after the last of them."""
    is_broken: bool
    """True if any block of the text cannot be read."""


def _last_calls(
    text: str,
    start: int,
    blocks: Iterable[re.Match[str]],
    read: Callable[[str], Iterator[Found]],
    is_quoted: Callable[[str], bool],
) -> _LastCalls:
    """Read the blocks of one family of models. `start`: where its markup begins."""
    calls: list[Found] = []
    end = start
    is_broken = False
    for each in blocks:
        if _has_text(text[end : each.start()]):
            # The calls before the text are only mentioned.
            calls = []
            start = each.start()
        if is_quoted(each[0]):
            # Treat the block like any other text after a call.
            end = each.start()
            continue
        end = each.end()
        found = list(read(each[0]))
        calls += found
        before = text[each.start() - 1 : each.start()]
        begins_line = before in {"", "\n"}
        if read is _tagged and begins_line and not found:
            is_broken = True
    return _LastCalls(calls, start, end, is_broken)


def _is_in_fence(
    place: int,
    fences: Sequence[tuple[int, int]],
) -> bool:
    count = bisect(fences, place, key=itemgetter(0))
    if count == 0:
        return False
    _, end = fences[count - 1]
    return place < end


def _has_text(between: str) -> bool:
    """True if there is more than markup and white space."""
    return _MARKUP.sub("", between) != ""


def _is_mention(line_before: str, opening: str) -> bool:
    """True if markup that follows this beginning of a line is only a mention of a call.

    `opening`: the pattern of the markup's beginning.
    """
    if not line_before:
        return False
    must_begin_line = opening.startswith("^")
    is_in_code = line_before.count("`") % 2 == 1
    return must_begin_line or is_in_code or _ASIDE.match(line_before) is not None


def _between(
    opening: str, text: str, closing: str
) -> Iterator[tuple[re.Match[str], str]]:
    """Yield each opening that is closed, with the text up to its closing.

    Stops at an opening that nothing closes: otherwise the time would grow with the square of the
    text.
    """
    openings = re.compile(opening)
    closings = re.compile(closing)
    start = openings.search(text)
    while start is not None:
        end = closings.search(text, start.end())
        if end is None:
            return
        yield start, text[start.end() : end.start()]
        start = openings.search(text, end.end())


def _tagged(text: str) -> Iterator[Found]:
    """Read `<tool_call>{"name": …, "arguments": …}</tool_call>`.

    GLM has the name, `<arg_key>` and `<arg_value>` in it.
    """
    for body in re.findall(r"<tool_call>(.*?)(?:</tool_call>|\Z)", text, re.DOTALL):
        if "<function=" in body:
            yield from _functions(body)
        elif "<arg_key>" in body:
            name = body.partition("<")[0].strip()
            found = _between(
                r"<arg_key>([^<]*)</arg_key>\s*<arg_value>", body, "</arg_value>"
            )
            pairs = [(start[1], value) for start, value in found]
            yield name, _as_json(pairs)
        else:
            yield from _named_object(body)


def _functions(text: str) -> Iterator[Found]:
    """Read `<function=NAME><parameter=KEY>VALUE</parameter></function>`, or JSON in the tag."""
    for name, body in re.findall(
        r"<function=([^<>\s]+)>(.*?)(?:</function>|\Z)", text, re.DOTALL
    ):
        found = _between(r"<parameter=([^<>\s]+)>", body, "</parameter>")
        pairs = [(start[1], value) for start, value in found]
        if pairs:
            yield name, _as_json(pairs)
        else:
            yield name, body.strip() or "{}"


def _harmony(text: str) -> Iterator[Found]:
    """Read `<|channel|>commentary to=functions.NAME <|constrain|>json<|message|>{…}<|call|>`."""
    place = 0
    for start, body in _between(r"<\|message\|>", text, r"<\|call\|>|<\|end\|>|\Z"):
        called = re.search(r"to=(?:functions\.)?([\w.-]+)", text[place : start.start()])
        if called is not None:
            yield called[1], body.strip()
        place = start.end() + len(body)


def _deepseek(text: str) -> Iterator[Found]:
    """Read `<｜tool▁call▁begin｜>function<｜tool▁sep｜>NAME` and a JSON fence.

    Newer models leave out the kind and the fence.
    """
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
    """Read `<｜DSML｜invoke name="NAME">` with its parameters.

    A parameter is `<｜DSML｜parameter name="KEY" string="true">VALUE</｜DSML｜parameter>`.
    """
    for name, body in re.findall(
        r'<(?:｜DSML｜)?invoke name="([^"]+)">(.*?)(?:</(?:｜DSML｜)?invoke>|\Z)',
        text,
        re.DOTALL,
    ):
        found = _between(
            r'<(?:｜DSML｜)?parameter name="([^"]+)"([^<>]*)>',
            body,
            "</(?:｜DSML｜)?parameter>",
        )
        values: dict[str, Any] = {}
        for start, value in found:
            key, attributes = start.groups()
            is_json = 'string="false"' in attributes
            values[key] = _json_or_text(value) if is_json else value
        yield name, json.dumps(values, ensure_ascii=False)


def _kimi(text: str) -> Iterator[Found]:
    """Read `<|tool_call_begin|>functions.NAME:0<|tool_call_argument_begin|>{…}`."""
    for name, body in re.findall(
        r"<\|tool_call_begin\|>\s*(?:functions\.)?([\w.-]+?)(?::\d+)?\s*"
        r"<\|tool_call_argument_begin\|>(.*?)(?:<\|tool_call_end\|>|\Z)",
        text,
        re.DOTALL,
    ):
        yield name, body.strip()


def _mistral(text: str) -> Iterator[Found]:
    """Read `[TOOL_CALLS][{"name": …, "arguments": …}]`, or `[TOOL_CALLS]NAME[ARGS]{…}`."""
    body = text.partition("[TOOL_CALLS]")[2].strip()
    if not body.startswith("["):
        for call in body.split("[TOOL_CALLS]"):
            name, mark, arguments = call.partition("[ARGS]")
            if mark:
                yield name.partition("[CALL_ID]")[0].strip(), arguments.strip()
        return
    yield from _named_object(body)


def _named_object(text: str) -> Iterator[Found]:
    """Read `{"name": …, "arguments": …}`, or a list of such objects."""
    value = json_or(text.strip(), None)
    if isinstance(value, list):
        values = cast("list[Any]", value)
    else:
        values = [value]
    for each in values:
        call = as_object(each)
        name = call.get("name")
        if not isinstance(name, str):
            continue
        arguments = call.get("arguments", call.get("parameters", {}))
        if isinstance(arguments, str):
            yield name, arguments
        else:
            yield name, json.dumps(arguments)


def _as_json(pairs: Sequence[tuple[str, str]]) -> str:
    values = {key.strip(): _json_or_text(value) for key, value in pairs}
    return json.dumps(values, ensure_ascii=False)


def _json_or_text(value: str) -> Any:
    """The value of a text that is JSON, such as a number or a list; otherwise the text."""
    text = value.strip("\n")
    return json_or(text, text)


_FAMILIES: Sequence[tuple[str, str, Callable[[str], Iterator[Found]]]] = (
    (r"^<tool_call>", r"<tool_call>.*?(?:</tool_call>|\Z)", _tagged),
    (r"^<function=", r"<function=.*?(?:</function>|\Z)", _functions),
    (
        r"<\|channel\|>commentary[^<]*to=|^<\|start\|>assistant[^<]*to=",
        r"(?:<\|start\|>assistant[^<]*)?<\|channel\|>.*?(?:<\|call\|>|<\|end\|>|\Z)",
        _harmony,
    ),
    (
        r"<｜tool▁calls?▁begin｜>",
        r"<｜tool▁call▁begin｜>.*?(?:<｜tool▁call▁end｜>|\Z)",
        _deepseek,
    ),
    (
        r"^<(?:｜DSML｜)?(?:function_calls|tool_calls|invoke)\b",
        r"<(?:｜DSML｜)?invoke\b.*?(?:</(?:｜DSML｜)?invoke>|\Z)",
        _dsml,
    ),
    (
        r"<\|tool_calls_section_begin\|>|<\|tool_call_begin\|>",
        r"<\|tool_call_begin\|>.*?(?:<\|tool_call_end\|>|\Z)",
        _kimi,
    ),
    (r"^\[TOOL_CALLS\]", r"\[TOOL_CALLS\].*?(?=\[TOOL_CALLS\]|</s>|\Z)", _mistral),
)
"""For each family: the beginning of its markup (with `^` only at the start of a line), the pattern
of a call, and the function that reads the call."""

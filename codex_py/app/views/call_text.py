"""The arguments and the result of a tool call as text: on one line, as paragraphs, as answers."""

import json
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, Final, cast

from codex_py.protocol.event_items import McpToolCall
from codex_py.protocol.json_fields import (
    as_object,
    json_or,
    object_field,
    objects,
    text_field,
)
from codex_py.streams.plain_text import cut

_USER_NOTE: Final = "user_note: "
"""The mark of a free answer to a question."""
_MAX_VALUE_CHARS: Final = 300
"""The limit of a single JSON value."""
_MAX_PARTS: Final = 20
"""The largest number of parts of a JSON list or object that are shown."""


def one_line_json(value: Any) -> str:
    """Return a value of any size as JSON on one line. Long strings, lists and objects are cut."""
    if isinstance(value, str):
        return json.dumps(cut(value, _MAX_VALUE_CHARS, ""), ensure_ascii=False)
    if isinstance(value, dict):
        fields = islice(cast("dict[str, Any]", value).items(), _MAX_PARTS)
        shown = [
            f"{one_line_json(str(key))}: {one_line_json(part)}" for key, part in fields
        ]
        return f"{{{', '.join(shown)}}}"
    if isinstance(value, list):
        parts = cast("list[Any]", value)[:_MAX_PARTS]
        return f"[{', '.join(map(one_line_json, parts))}]"
    return cut(json.dumps(value, default=str), _MAX_VALUE_CHARS, "")


def result_text(result: Mapping[str, Any] | None) -> str:
    """Return the texts of an MCP result. Images and other content become their type in brackets."""
    if result is None:
        return ""
    content = result.get("content")
    parts: list[Any] = []
    if isinstance(content, list):
        parts = cast("list[Any]", content)[:_MAX_PARTS]
    texts: list[str] = []
    for part in parts:
        match part:
            case {"type": "text", "text": str(text)}:
                texts.append(text)
            case {"type": str(kind)}:
                texts.append(f"[{kind}]")
            case _:
                pass
    structured = result.get("structured_content")
    if not texts and structured is not None:
        texts.append(one_line_json(structured))
    return "\n".join(texts)


def questions_of(item: McpToolCall) -> Sequence[Mapping[str, Any]]:
    """Return the questions in the arguments of `request_user_input`."""
    return objects(item.arguments.get("questions"))[:_MAX_PARTS]


def was_asked(item: McpToolCall) -> bool:
    """Return False if the result of `request_user_input` is no answer, but says why nobody was asked."""
    return not result_text(item.result) or "answers" in _question_result(item)


def question_answers(item: McpToolCall) -> list[tuple[str, str]]:
    """Return the questions of a call of `request_user_input`, each with its answer.

    The answer is empty if there is none.
    """
    answers = object_field(_question_result(item), "answers")
    found: list[tuple[str, str]] = []
    for question in questions_of(item):
        answer = object_field(answers, text_field(question, "id"))
        found.append((text_field(question, "question"), _answer_text(answer)))
    return found


def _question_result(item: McpToolCall) -> Mapping[str, Any]:
    return as_object(json_or(result_text(item.result), None))


def _answer_text(answer: Mapping[str, Any]) -> str:
    """The texts of an answer: the labels that were chosen, and what the user wrote."""
    given = answer.get("answers")
    if not isinstance(given, list):
        return ""
    texts = cast("list[Any]", given)
    return ", ".join(str(text).removeprefix(_USER_NOTE) for text in texts)

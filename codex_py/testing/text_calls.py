"""Calls in the text of an answer, as a model writes them that cannot call tools, and what holds of such messages.

The format is described in `instructions/tools/text_format.md`. It has no ids: those of the script are lost. The tag of the calls is
the one that the request announces.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from codex_py.testing.events import ev_message, is_responses_event
from codex_py.testing.rendering.steps import called_name, content
from codex_py.testing.reply import Part
from codex_py.testing.rules.shape import require

_PIECES = 3
"""How many deltas a call comes in, so that what reads it sees half of one."""


def with_calls_as_text(parts: Sequence[Part], tag: str) -> list[Part]:
    """The parts of a reply with a message in the place of each call; what is no event stays."""
    written: list[Part] = []
    has_text = False
    for part in parts:
        if not is_responses_event(part):
            written.append(part)
            continue
        kind: str = part["type"]
        item: Mapping[str, Any] = part.get("item", {})
        is_call = "call_id" in item or "_call_" in kind
        if not is_call:
            has_text = has_text or kind.startswith("response.output_text")
            written.append(part)
        elif kind == "response.output_item.done":
            text = call_text(called_name(item), content(item), tag)
            index: int = part.get("output_index", 0)
            written += ev_message("\n" * has_text + text, index=index, pieces=_PIECES)
            has_text = True
    return written


def call_text(name: str, body: str, tag: str) -> str:
    """A call as the model writes it. `body`: the raw input of a freeform tool, the JSON arguments of a function."""
    return f'<{tag} name="{name}">\n{body}\n</{tag}>'


_RESULT = re.compile(r'^<tool_result name="([^"\n]*)"', re.MULTILINE)


def check_text(messages: Sequence[Mapping[str, Any]], tag: str) -> None:
    """
    Args:
        tag: of the calls.
        messages: those of Chat Completions or of Anthropic, or the items of the Responses API.

    Raises:
        ValueError: a result has no call before it; the text says where.
    """
    call = re.compile(rf'^<{tag} name="([^"\n]*)"', re.MULTILINE)
    open_calls: list[str] = []
    for place, message in enumerate(messages):
        text = _text(message.get("content"))
        if message.get("role") == "assistant":
            open_calls += call.findall(text)
        elif message.get("role") == "user":
            for name in _RESULT.findall(text):
                require(
                    name in open_calls,
                    f"message {place}: a result of {name!r} without a call before it",
                )
                open_calls.remove(name)


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    parts = cast("list[Mapping[str, Any]]", content) if isinstance(content, list) else []
    return "\n".join(part["text"] for part in parts if isinstance(part.get("text"), str))

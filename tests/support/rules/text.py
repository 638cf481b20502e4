"""What holds of messages with calls and results in their text."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from tests.support.rules.shape import require

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
    parts = (
        cast("list[Mapping[str, Any]]", content) if isinstance(content, list) else []
    )
    return "\n".join(
        part["text"] for part in parts if isinstance(part.get("text"), str)
    )

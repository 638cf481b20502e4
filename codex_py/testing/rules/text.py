"""What holds of the messages for a model that writes its calls into its text.

The format is described in `instructions/tools/text_format.md`.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from codex_py.testing.rules.shape import require

_CALL = re.compile(r'^<tool name="([^"\n]*)"', re.MULTILINE)
_RESULT = re.compile(r'^<tool_result name="([^"\n]*)"', re.MULTILINE)


def check_text(messages: Sequence[Mapping[str, Any]]) -> None:
    """
    Args:
        messages: those of Chat Completions or of Anthropic, or the items of the Responses API.

    Raises:
        ValueError: a result has no call before it; the text says where.
    """
    open_calls: list[str] = []
    for place, message in enumerate(messages):
        text = _text(message.get("content"))
        if message.get("role") == "assistant":
            open_calls += _CALL.findall(text)
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

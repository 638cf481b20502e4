"""The results of MCP tools, for the model and for thread items.

Source: the outputs and the `mcp_tool_call` items of Codex 0.169.
"""

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from codex_py.images.prepare import UnusableImage, image_part
from codex_py.protocol.image_rule import ImageRule
from codex_py.protocol.messages import (
    MAX_IMAGE_BYTES,
    encode_json,
    input_text,
    replace_surrogates,
)
from codex_py.protocol.tools import ToolOutput
from codex_py.tools.truncate import token_count, truncate_middle, truncate_output

MAX_ITEM_BYTES: Final = 1024 * 1024
"""Limit on a result in a thread item; Codex has the same limit for the output of a command."""
_MAX_PARTS = 100
_DATA_URL: Final = re.compile(r"\s*data:[^,]{0,200};base64,", re.IGNORECASE)
"""A prefix that some servers write before the Base64 of an image."""
_LEFT_OUT: Final = "[an image was left out: unable to process image"
_NO_CONTENT: Final = {"content", "isError", "structuredContent", "_meta"}
"""The keys of a result. Some servers write their content under other keys."""


def is_error(result: Mapping[str, Any]) -> bool:
    return result.get("isError") is True


def call_output(
    result: Mapping[str, Any],
    wall_time_s: float,
    *,
    limit_tokens: int,
    image_rule: ImageRule,
) -> ToolOutput:
    """The result for the model, with its text within the limit."""
    failed = is_error(result)
    code = "ToolFailed" if failed else None
    header = f"Wall time: {wall_time_s:.4f} seconds\nOutput:"
    structured = result.get("structuredContent")
    if structured is not None:
        text = truncate_output(encode_json(structured).decode(), limit_tokens)
        return ToolOutput(f"{header}\n{text}", success=not failed, error_code=code)
    parts = content_parts(content_list(result), limit_tokens, image_rule)
    content = (input_text(header), *parts)
    return ToolOutput("", content=content, success=not failed, error_code=code)


def item_result(result: Mapping[str, Any]) -> dict[str, Any]:
    """The result for a thread item, cut to about 1 MB."""
    shown: dict[str, Any] = {
        "content": content_list(result),
        "structured_content": result.get("structuredContent"),
    }
    if "_meta" in result:
        shown["_meta"] = result["_meta"]
    encoded = encode_json(shown)
    if len(encoded) <= MAX_ITEM_BYTES:
        return replace_surrogates(shown)
    text = truncate_middle(encoded.decode(), MAX_ITEM_BYTES, "bytes")
    return {"content": [{"type": "text", "text": text}], "structured_content": None}


def content_list(result: Mapping[str, Any]) -> list[Any]:
    """The content of a result as a list, as the specification requires. Some servers send a single entry, a
    bare value, or no content."""
    content = result.get("content")
    match content:
        case list():
            return cast("list[Any]", content)
        case dict():
            return [content]
        case str():
            return [{"type": "text", "text": content}]
        case None:
            others = {
                name: each for name, each in result.items() if name not in _NO_CONTENT
            }
            return [others] if others else []
        case _:
            return [{"type": "text", "text": encode_json(content).decode()}]


def content_parts(
    content: Sequence[Any], limit_tokens: int, image_rule: ImageRule
) -> list[dict[str, Any]]:
    """Convert the content of a result to content parts for the model.

    Text, images and the number of parts are limited; a note says how many parts are left out.
    """
    parts: list[dict[str, Any]] = []
    tokens_left = limit_tokens
    image_bytes_left = MAX_IMAGE_BYTES
    for number, entry in enumerate(content):
        if number == _MAX_PARTS or tokens_left <= 0:
            missing = len(content) - number
            parts.append(input_text(f"[{missing} more parts left out]"))
            break
        part = _image(entry, image_bytes_left, image_rule)
        if part is not None and part["type"] == "input_image":
            image_bytes_left -= len(part["image_url"])
            parts.append(part)
            continue
        text = _text(entry) if part is None else part["text"]
        parts.append(input_text(truncate_output(text, tokens_left)))
        tokens_left -= token_count(len(text.encode(errors="replace")))
    return parts


def _text(entry: Any) -> str:
    match entry:
        case {"type": "text", "text": str(text)}:
            return replace_surrogates(text)
        case _:
            return encode_json(entry).decode()


def _image(
    entry: Any,
    max_bytes: int,
    rule: ImageRule,
) -> dict[str, Any] | None:
    """Convert an image to a content part that providers accept, or to a note; else return None.

    An image that a provider cannot read makes it refuse the whole request, and every later one.

    Args:
        max_bytes: the limit on the Base64.
    """
    match entry:
        case {"type": "image", "data": str(data)}:
            prefix = _DATA_URL.match(data)
            if prefix is not None:
                data = data[prefix.end() :]
        case {"type": "image"}:
            return input_text(f"{_LEFT_OUT}: it has no data]")
        case _:
            return None
    if len(data) > max_bytes:
        return input_text(f"{_LEFT_OUT}: it is too large]")
    try:
        return image_part(base64.b64decode(data), rule)
    except (binascii.Error, ValueError):
        return input_text(f"{_LEFT_OUT}: its Base64 cannot be read]")
    except UnusableImage as error:
        return input_text(f"{_LEFT_OUT}: {error}]")

"""Encoded messages that the program writes itself. `protocol.items` parses them like any other item."""

import json
import math
import re
from collections.abc import Iterable, Sequence
from typing import Any, NewType

EncodedItem = NewType("EncodedItem", bytes)
"""One item of the Responses API as compact JSON in UTF-8.

History, request bodies and session files share these bytes: an item is encoded once.
"""

MAX_IMAGE_BYTES = 20 * 1024 * 1024
"""Limit on the size of an image file. Providers refuse larger ones, and requests must stay
bounded."""

_COMPACT: dict[str, Any] = {
    "ensure_ascii": False,
    "allow_nan": False,
    "separators": (",", ":"),
}
"""How `json.dumps` encodes. It raises a `ValueError` for a number that is not finite."""

_BYTES_PER_TOKEN = 4
_IMAGE_TOKENS = 1_500
"""The approximate count of providers for an image, however large its file is."""


def encode_json(value: object) -> bytes:
    """Encode a value as compact JSON in UTF-8. A lone surrogate becomes U+FFFD.

    Infinity and NaN become `null`: JSON has no such numbers, and providers refuse requests with
    them.
    """
    try:
        text = json.dumps(value, **_COMPACT)
    except ValueError:
        text = json.dumps(_with_finite_numbers(value), **_COMPACT)
    try:
        return text.encode()
    except UnicodeEncodeError:
        return encode_json(replace_surrogates(value))


def _with_finite_numbers(value: Any) -> Any:
    """The same JSON value with None in place of infinity and NaN, which JSON does not have."""
    match value:
        case float():
            if math.isfinite(value):
                return value
            return None
        case list() | tuple():
            return [_with_finite_numbers(part) for part in value]  # pyright: ignore[reportUnknownVariableType]
        case dict():
            return {
                _as_text(key): _with_finite_numbers(part)
                for key, part in value.items()  # pyright: ignore[reportUnknownVariableType]
            }
        case _:
            return value


def _as_text(key: Any) -> Any:
    if isinstance(key, float):
        return str(key)
    return key


def encode_json_with_bytes(value: object) -> bytes:
    """Encode as `encode_json` does, but keep a lone surrogate as a JSON escape.

    Python's `surrogateescape` decodes bytes that are not UTF-8 to lone surrogates.
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode(errors="backslashreplace")


def decode_json(text: bytes | str) -> Any:
    """The value of a JSON text. A lone surrogate, which JSON can spell and UTF-8 cannot, becomes U+FFFD.

    Raises:
        ValueError: the text is not JSON, or not UTF-8.
    """
    value = json.loads(text)
    if isinstance(text, bytes):
        escapes = (b"\\ud", b"\\uD")
    else:
        escapes = ("\\ud", "\\uD")
    if any(escape in text for escape in escapes):  # pyright: ignore[reportOperatorIssue]
        return replace_surrogates(value)
    return value


def message(role: str, parts: Sequence[dict[str, Any]]) -> EncodedItem:
    """Encode a message of content parts (`input_text(…)`, or an `input_image` object)."""
    return EncodedItem(
        encode_json({"type": "message", "role": role, "content": list(parts)})
    )


def input_text(text: str) -> dict[str, Any]:
    return {"type": "input_text", "text": text}


def input_image(url: str, detail: str) -> dict[str, Any]:
    """An image part. `detail` is the resolution for the model: `original`, `high`, `low` or
    `auto`."""
    return {"type": "input_image", "image_url": url, "detail": detail}


def estimated_tokens(items: Iterable[EncodedItem]) -> int:
    size = 0
    images = 0
    for item in items:
        found = _images(item)
        size += len(item) - sum(map(len, found))
        images += len(found)
    return size // _BYTES_PER_TOKEN + images * _IMAGE_TOKENS


def text_tokens(items: Iterable[EncodedItem]) -> int:
    """Estimate the tokens of the text alone: a provider may count little for images, and nothing
    for old reasoning."""
    return (
        sum(
            len(item) - sum(map(len, _images(item)))
            for item in items
            if b'"encrypted_content"' not in item and b'"type":"reasoning"' not in item
        )
        // _BYTES_PER_TOKEN
    )


def _images(item: EncodedItem) -> list[bytes]:
    if b"data:image/" in item:
        return re.findall(rb'data:image/[^"]+', item)
    return []


def replace_surrogates(value: Any) -> Any:
    """The same JSON value with every lone surrogate, which UTF-8 cannot carry, as U+FFFD."""
    match value:
        case str():
            # A pair that JSON spelled as two escapes is one character, and stays.
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case list():
            return [replace_surrogates(part) for part in value]  # pyright: ignore[reportUnknownVariableType]
        case dict():
            return {
                replace_surrogates(key): replace_surrogates(part)
                for key, part in value.items()  # pyright: ignore[reportUnknownVariableType]
            }
        case _:
            return value

"""Encoded messages that the program writes itself, and the JSON of all items.

`protocol.items` parses such messages like any other item.
"""

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
"""The options of `json.dumps`. It raises a `ValueError` for a number that is not finite."""

_BYTES_PER_TOKEN = 4
_IMAGE_TOKENS = 1_500
"""The tokens that providers count for an image, approximately and whatever its size."""


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
    """Copy a JSON value, with None in place of infinity and NaN, which JSON does not have."""
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
    """Return the value of a JSON text. A lone surrogate becomes U+FFFD.

    JSON can spell lone surrogates, and UTF-8 cannot.

    Raises:
        ValueError: the text is not JSON, or not UTF-8.
    """
    value = json.loads(text)
    if isinstance(text, bytes):
        may_have_surrogates = b"\\ud" in text or b"\\uD" in text
    else:
        may_have_surrogates = "\\ud" in text or "\\uD" in text
    if may_have_surrogates:
        return replace_surrogates(value)
    return value


def message(role: str, parts: Sequence[dict[str, Any]]) -> EncodedItem:
    """Encode a message of content parts (`input_text(…)`, or an `input_image` object)."""
    item = {"type": "message", "role": role, "content": list(parts)}
    return EncodedItem(encode_json(item))


def input_text(text: str) -> dict[str, Any]:
    return {"type": "input_text", "text": text}


def input_image(url: str, detail: str) -> dict[str, Any]:
    """Make an image part.

    Args:
        url: a `data:` URL, or an address that the provider reads.
        detail: the resolution for the model: `original`, `high`, `low` or `auto`.
    """
    return {"type": "input_image", "image_url": url, "detail": detail}


def estimated_tokens(items: Iterable[EncodedItem]) -> int:
    """Estimate the tokens of text and images together."""
    text_bytes = 0
    image_count = 0
    for item in items:
        images = _images(item)
        text_bytes += len(item) - sum(map(len, images))
        image_count += len(images)
    return text_bytes // _BYTES_PER_TOKEN + image_count * _IMAGE_TOKENS


def text_tokens(items: Iterable[EncodedItem]) -> int:
    """Estimate the tokens of the text alone.

    A provider may count little for images, and nothing for old reasoning.
    """
    text_bytes = 0
    for item in items:
        if b'"encrypted_content"' in item or b'"type":"reasoning"' in item:
            continue
        text_bytes += len(item) - sum(map(len, _images(item)))
    return text_bytes // _BYTES_PER_TOKEN


def _images(item: EncodedItem) -> list[bytes]:
    """The `data:` URLs of the images in an item."""
    if b"data:image/" in item:
        return re.findall(rb'data:image/[^"]+', item)
    return []


def replace_surrogates(value: Any) -> Any:
    """Copy a JSON value, with U+FFFD in place of each lone surrogate, which UTF-8 cannot carry."""
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

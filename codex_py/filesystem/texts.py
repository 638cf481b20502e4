"""Decodes the text files that a user wrote, such as instructions and prompts. LIGHT.

Editors and shells of other systems write UTF-8 with a byte order mark, UTF-16, or an old encoding
such as Latin-1. The mark decides between the encodings of Unicode, and a text without a mark is
UTF-8. No other encoding is guessed.
"""

import codecs
from typing import Final

_MARKS: Final = (
    # UTF-32 first: its little-endian mark begins with that of UTF-16.
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


class NotText(ValueError):
    """Raised for bytes that are not text. The message says why and where, to be read after a
    colon."""


def decode_text(data: bytes) -> str:
    """Decode a whole text. Drops its byte order mark, and keeps its line ends.

    Raises:
        NotText: a part of it is not text.
    """
    text, fault = decode_readable(data)
    if fault is not None:
        raise fault
    return text


def decode_readable(data: bytes, *, is_cut: bool = False) -> tuple[str, NotText | None]:
    """Decode a text as `decode_text` does, with U+FFFD in the place of bytes that are not valid.

    Args:
        is_cut: more bytes follow, so a part of a character at the end is dropped.

    Returns:
        The text, and the first fault or None.

    Raises:
        NotText: the bytes contain NUL characters. Too little of such a text could be read.
    """
    mark, encoding = _mark_and_encoding(data)
    body = data[len(mark) :]
    fault = None
    try:
        text = _decoded(body, encoding, "strict", is_cut)
    except UnicodeDecodeError as error:
        text = _decoded(body, encoding, "replace", is_cut)
        before = _decoded(body[: error.start], encoding, "replace", is_cut=True)
        offset = len(mark) + error.start
        fault = NotText(
            f"it is not valid {encoding.upper()}"
            f" (invalid byte at offset {offset}, in line {_last_line(before)})"
        )
    before, nul, _ = text.partition("\0")
    if nul:
        raise NotText(
            f"it holds NUL characters, the first in line {_last_line(before)}:"
            " it is binary, or UTF-16 without a byte order mark"
        )
    return text, fault


def _mark_and_encoding(data: bytes) -> tuple[bytes, str]:
    """The byte order mark of a text, which may be empty, and the encoding that it stands for."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return mark, encoding
    return b"", "utf-8"


def _decoded(
    body: bytes,
    encoding: str,
    errors: str,
    is_cut: bool,
) -> str:
    return codecs.getincrementaldecoder(encoding)(errors).decode(body, final=not is_cut)


def _last_line(text: str) -> int:
    return text.count("\n") + 1

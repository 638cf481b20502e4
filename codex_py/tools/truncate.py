"""Shortens the output of a tool for the model, as Codex 0.169 does."""

from typing import Literal, TypeAlias

BYTES_PER_TOKEN = 4

Unit: TypeAlias = Literal["tokens", "bytes"]


def token_count(byte_count: int) -> int:
    """Estimate the tokens of a text: four bytes to a token, rounded up."""
    return -(-byte_count // BYTES_PER_TOKEN)


def line_count(text: str) -> int:
    """The number of lines of a text, including a last line without a newline."""
    newlines = text.count("\n")
    if text and not text.endswith("\n"):
        return newlines + 1
    return newlines


def truncate_middle(
    text: str,
    limit: int,
    unit: Unit = "tokens",
) -> str:
    """Keep the beginning and the end of a text, half of the limit each, with a note between them.

    Characters stay whole. A text within the limit is returned as it is, the same object.
    """
    if unit == "tokens":
        max_bytes = limit * BYTES_PER_TOKEN
    else:
        max_bytes = limit
    # A character is at most four bytes, so most texts need not be encoded.
    if len(text) * 4 <= max_bytes:
        return text
    encoded = text.encode(errors="replace")
    if len(encoded) <= max_bytes:
        return text
    head_bytes = max_bytes // 2
    tail_start = len(encoded) - (max_bytes - head_bytes)
    # "ignore" leaves out a character that the limit cuts in two.
    head = encoded[:head_bytes].decode(errors="ignore")
    tail = encoded[tail_start:].decode(errors="ignore")
    if unit == "tokens":
        missing = f"{token_count(len(encoded)) - limit} tokens"
    else:
        missing = f"{len(text) - len(head) - len(tail)} chars"
    return f"{head}…{missing} truncated…{tail}"


def truncate_output(
    text: str,
    limit: int,
    *,
    total_bytes: int | None = None,
    total_lines: int | None = None,
) -> str:
    """Truncate with `truncate_middle`, and begin a truncated text with a warning about its size.

    Args:
        limit: in tokens.
        total_bytes: the size of the whole output, if the text is only a part of it.
        total_lines: the same for its lines.
    """
    cut = truncate_middle(text, limit)
    if cut is text:
        return text
    if total_bytes is None:
        total_bytes = len(text.encode(errors="replace"))
    if total_lines is None:
        total_lines = line_count(text)
    return (
        f"Warning: truncated output (original token count: {token_count(total_bytes)})\n"
        f"Total output lines: {total_lines}\n\n{cut}"
    )

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

    Characters stay whole. A text within the limit is returned unchanged.
    """
    if unit == "tokens":
        max_bytes = limit * BYTES_PER_TOKEN
    else:
        max_bytes = limit
    # A character is at most four bytes, so that most texts need not be encoded.
    if len(text) * 4 <= max_bytes:
        return text
    encoded = text.encode(errors="replace")
    if len(encoded) <= max_bytes:
        return text
    head_bytes = max_bytes // 2
    tail_start = len(encoded) - (max_bytes - head_bytes)
    # A partial character is left out.
    head = encoded[:head_bytes].decode(errors="ignore")
    tail = encoded[tail_start:].decode(errors="ignore")
    missing = f"{len(text) - len(head) - len(tail)} chars"
    if unit == "tokens":
        missing = f"{token_count(len(encoded)) - limit} tokens"
    return f"{head}…{missing} truncated…{tail}"


def truncate_output(
    text: str,
    limit: int,
    *,
    total_bytes: int | None = None,
    total_lines: int | None = None,
) -> str:
    """Truncate as `truncate_middle` does, and begin a truncated text with a warning that states its
    size.

    Pass the totals if the text is already incomplete.
    """
    cut = truncate_middle(text, limit)
    if cut is text:
        return text
    tokens = token_count(
        len(text.encode(errors="replace")) if total_bytes is None else total_bytes
    )
    if total_lines is None:
        lines = line_count(text)
    else:
        lines = total_lines
    return (
        f"Warning: truncated output (original token count: {tokens})\n"
        f"Total output lines: {lines}\n\n{cut}"
    )

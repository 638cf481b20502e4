"""Shorten the output of a tool for the model, as Codex 0.169 does."""

from typing import Literal, TypeAlias

BYTES_PER_TOKEN = 4

Unit: TypeAlias = Literal["tokens", "bytes"]


def token_count(byte_count: int) -> int:
    """An estimate: four bytes to a token, rounded up."""
    return -(-byte_count // BYTES_PER_TOKEN)


def line_count(text: str) -> int:
    """Lines of a text; a last one without its newline counts."""
    newlines = text.count("\n")
    if text and not text.endswith("\n"):
        return newlines + 1
    return newlines


def truncate_middle(text: str, limit: int, unit: Unit = "tokens") -> str:
    """Keep the first and the last half of the limit, whole characters, with a note between them.

    A text within the limit comes back as it is.
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
    # A character that is cut is left out.
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
    """As `truncate_middle`, but a text that is cut begins with a warning that gives its size.

    Give the totals if the text is already incomplete.
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

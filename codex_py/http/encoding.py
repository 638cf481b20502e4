"""Refuses answers that are packed: nobody asks for that, and a few KB of them unpack to gigabytes.

Every HTTP client of this program, of whichever library, sends `IDENTITY`, and asks `packed` before it reads a body.
"""

from typing import Final

IDENTITY: Final = {"accept-encoding": "identity"}
_SHOWN_CHARS = 80


def packed(encoding: str | None) -> str | None:
    """The reason not to read a body with this `content-encoding`, for the user; None if it can be read as it comes."""
    encoding = encoding or ""
    if {part.strip().lower() for part in encoding.split(",")} <= {"", "identity"}:
        return None
    return (
        f"the server packed its answer ({encoding[:_SHOWN_CHARS]!r}), which nobody asked it to do"
    )

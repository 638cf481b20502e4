"""Finished lines that wait for the terminal to take them."""

from collections import deque
from typing import Final

_MOST_EACH: Final = 2 * 1024 * 1024
"""Characters that are kept of the start of what waits, and as many of its end."""


class Finished:
    """In the order in which they were added; of far too many, the first and the last.

    Args:
        most_each: characters that are kept at either end.
    """

    def __init__(self, most_each: int = _MOST_EACH) -> None:
        self._most_each = most_each
        self._first: list[str] = []
        self._room = most_each
        self._last: deque[str] = deque()
        self._last_size = 0
        self._left_out = 0
        """Lines."""

    def __bool__(self) -> bool:
        return bool(self._first or self._last)

    def add(self, text: str) -> None:
        """Add lines, with their newlines. They are kept or left out together."""
        if not self._last and len(text) <= self._room:
            self._first.append(text)
            self._room -= len(text)
            return
        self._last.append(text)
        self._last_size += len(text)
        while self._last_size > self._most_each and len(self._last) > 1:
            oldest = self._last.popleft()
            self._last_size -= len(oldest)
            self._left_out += oldest.count("\n")

    def take(self) -> str:
        """All that waits, with a line for what was left out; there is nothing more then."""
        more = (
            f"\n[{self._left_out:,} lines are not shown: the terminal took none for too long;"
            " the session has them]\n"
            if self._left_out
            else ""
        )
        text = "".join((*self._first, more, *self._last))
        self._first.clear()
        self._last.clear()
        self._room, self._last_size, self._left_out = self._most_each, 0, 0
        return text

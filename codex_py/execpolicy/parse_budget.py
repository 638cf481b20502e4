"""Bounds the work of parsing a command line."""

from collections.abc import Callable

_CHUNK = 512
"""Bytes that the parser reads at a time. Small, so that reading the same text again and again is counted."""


class ParseBudget:
    """How much parsing one command line may take, in steps of the parser.

    tree-sitter is linear on what people write: 500 KB of heredocs, or 50 KB of loops, are within it. On others it
    is quadratic, and would take minutes for 100 KB. The worst that was found takes two seconds. Time itself
    must not decide: on a busy machine, the decision would be another.
    """

    def __init__(self) -> None:
        self._reports = 800
        """The parser makes one for every 100 of its operations."""
        self._chunks = 40_000

    def reader(self, source: bytes) -> Callable[[int, object], bytes]:
        def read(offset: int, _: object) -> bytes:
            self._chunks -= 1
            if self._chunks >= 0:
                return source[offset : offset + _CHUNK]
            return b""

        return read

    def report(self, _offset: int, _has_error: bool) -> bool:
        """Called by the parser; True ends the parse."""
        self._reports -= 1
        return self.is_spent

    @property
    def is_spent(self) -> bool:
        return self._reports < 0 or self._chunks < 0

"""Bounds the work of parsing a command line."""

from collections.abc import Callable

_CHUNK = 512
"""The bytes that the parser reads at a time. Few, so that reading the same text repeatedly
counts."""


class ParseBudget:
    """The work that parsing one command line may take, in steps of the parser.

    tree-sitter is linear on scripts that people write: 500 KB of heredocs, or 50 KB of loops, fit
    in. On other texts it is quadratic, and would take minutes for 100 KB. The worst known text
    takes two seconds. The budget is not a time: on a busy machine, the decision would be different.
    """

    def __init__(self) -> None:
        self._reports = 800
        """The number of reports left. The parser makes one every 100 operations."""
        self._chunks = 40_000

    def reader(self, source: bytes) -> Callable[[int, object], bytes]:
        def read(offset: int, _: object) -> bytes:
            self._chunks -= 1
            if self._chunks >= 0:
                return source[offset : offset + _CHUNK]
            return b""

        return read

    def report(self, _offset: int, _has_error: bool) -> bool:
        """Count a report; called by the parser. True ends the parse."""
        self._reports -= 1
        return self.is_spent

    @property
    def is_spent(self) -> bool:
        return self._reports < 0 or self._chunks < 0

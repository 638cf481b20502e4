"""Bounds the work of parsing a command line."""

from collections.abc import Callable

_CHUNK = 512
"""The bytes that the parser reads at a time. They are few, so that a parser that reads the same
text again and again uses up its chunks."""


class ParseBudget:
    """The work that parsing one command line may take, in steps of the parser.

    On scripts that people write, tree-sitter is linear: 500 KB of heredocs, or 50 KB of loops, are
    within the budget. On other texts it is quadratic, and 100 KB would take minutes. The budget
    ends the worst known text after two seconds. It counts steps and not seconds, so that the
    decision about a command is the same on a busy machine.
    """

    def __init__(self) -> None:
        self._reports = 800
        """The number of reports left. The parser makes one every 100 operations."""
        self._chunks = 40_000
        """The number of chunks left that the parser may read."""

    def reader(self, source: bytes) -> Callable[[int, object], bytes]:
        """Return the function through which the parser reads the source.

        Once the budget is spent, it returns nothing, as at the end of the source.
        """

        def read(offset: int, _: object) -> bytes:
            self._chunks -= 1
            if self._chunks >= 0:
                return source[offset : offset + _CHUNK]
            return b""

        return read

    def report(self, _offset: int, _has_error: bool) -> bool:
        """Count a report of the parser's progress. Returns True to end the parse."""
        self._reports -= 1
        return self.is_spent

    @property
    def is_spent(self) -> bool:
        """True if the parse was cut off, so that its result is not to be used."""
        return self._reports < 0 or self._chunks < 0

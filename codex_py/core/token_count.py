"""The tokens that a thread has used."""

from collections.abc import Callable

from codex_py.protocol.stream import Usage


class TokenCount:
    """`report` is called after each change."""

    def __init__(self, total: Usage, last: Usage, report: Callable[[], None]) -> None:
        self.total = total
        """Of the whole thread."""
        self.last = last
        """Of the last response; an estimate where the history was replaced."""
        self._report = report

    def add(self, usage: Usage) -> None:
        """Count a response of this thread."""
        self.last = usage
        self.count(usage)

    def count(self, usage: Usage) -> None:
        """Count what others used for this thread."""
        self.total += usage
        self._report()

    def estimate(self, tokens: int) -> None:
        """Say how many tokens the history has, now that it was replaced."""
        self.last = Usage(input_tokens=tokens)
        self._report()

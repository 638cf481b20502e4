"""The parts of a session that its turns and its compactions share. Each owns one thing."""

from collections.abc import Callable

from codex_py.core.thread_log import ThreadLog
from codex_py.protocol.extension import Extension, Thread
from codex_py.protocol.frozen import frozen
from codex_py.protocol.prompts import Note, UserPrompt
from codex_py.protocol.stream import Usage


class TokenCount:
    """The tokens that a thread has used. `report` is called after each change."""

    def __init__(self, total: Usage, last: Usage, report: Callable[[], None]) -> None:
        self.total = total
        """Of the whole thread."""
        self.last = last
        """Of the last response; an estimate after a compaction."""
        self._report = report

    def add(self, usage: Usage) -> None:
        """Count a response of this thread."""
        self.last = usage
        self.count(usage)

    def count(self, usage: Usage) -> None:
        """Add the tokens that others used for this thread."""
        self.total += usage
        self._report()

    def estimate(self, tokens: int) -> None:
        """Set the size of a history that was replaced."""
        self.last = Usage(input_tokens=tokens)
        self._report()


class Outbox:
    """Messages that go out with the next request."""

    def __init__(self) -> None:
        self.steered: list[UserPrompt] = []
        """Prompts that the user steered into the running turn."""
        self.notes: list[Note] = []

    def take_notes(self) -> list[Note]:
        notes, self.notes = self.notes, []
        return notes


@frozen
class SessionParts:
    thread: Thread
    extension: Extension
    log: ThreadLog
    tokens: TokenCount
    outbox: Outbox
    next_live_id: Callable[[], str]
    """A fresh `live_N` for a live-only item, so that the ids in `--json` have no gaps."""

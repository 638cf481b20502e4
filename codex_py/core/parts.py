"""The parts of a session that its turns and its compactions share."""

from collections.abc import Callable
from itertools import count
from typing import Any

from codex_py.core.thread_log import ThreadLog
from codex_py.protocol.extension import Extension, Thread
from codex_py.protocol.prompts import Note, UserPrompt
from codex_py.protocol.stream import Prompt, Usage


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


class SessionParts:
    def __init__(
        self, thread: Thread, extension: Extension, log: ThreadLog, tokens: TokenCount
    ) -> None:
        self.thread = thread
        self.extension = extension
        self.log = log
        self.tokens = tokens
        self.steered: list[UserPrompt] = []
        """Prompts that the user steered into the running turn; they go out with the next request, as `notes` do."""
        self.notes: list[Note] = []
        self._live_ids = count()

    def next_live_id(self) -> str:
        """A fresh `live_N` for a live-only item, so that the ids in `--json` have no gaps."""
        return f"live_{next(self._live_ids)}"

    def send_notes(self) -> None:
        notes, self.notes = self.notes, []
        self.log.tell(notes)

    def prompt(self, output_schema: Any = None) -> Prompt:
        """The request that sends the whole history."""
        return self.log.request(self.thread.settings, output_schema)

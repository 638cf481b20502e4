"""The parts of a session that its turns and its compactions share."""

from itertools import count, takewhile

from codex_py.core.thread_log import ThreadLog
from codex_py.protocol.extension import Extension, Thread
from codex_py.protocol.messages import estimated_tokens
from codex_py.protocol.prompts import Note, UserPrompt, is_models
from codex_py.protocol.stream import Usage


class SessionParts:
    def __init__(self, thread: Thread, extension: Extension, log: ThreadLog) -> None:
        self.thread = thread
        self.extension = extension
        self.log = log
        self.usage = log.thread.usage
        """The tokens of the whole thread."""
        self.last_usage = log.thread.last_usage
        """Those of the last response; an estimate after a compaction."""
        self.steered: list[UserPrompt] = []
        """Prompts that the user steered into the running turn; they go out with the next request, as `notes` do."""
        self.notes: list[Note] = []
        self._live_ids = count()
        self._counted = 0
        """The number of items when `last_usage` was counted."""

    @property
    def used_tokens(self) -> int:
        """The tokens of the history: as the last response counted them, and an estimate of what came since."""
        if not self.last_usage.total_tokens:
            return self.log.request(self.thread.settings).estimated_tokens
        since = takewhile(
            lambda item: not is_models(item), reversed(self.log.items[self._counted :])
        )
        return self.last_usage.total_tokens + estimated_tokens(since)

    def next_live_id(self) -> str:
        """A fresh `live_N` for a live-only item, so that the ids in `--json` have no gaps."""
        return f"live_{next(self._live_ids)}"

    def send_notes(self) -> None:
        notes, self.notes = self.notes, []
        self.log.tell(notes)

    def add_usage(self, usage: Usage) -> None:
        """Count a response of this thread."""
        self.count(usage, usage)

    def count(self, usage: Usage, last: Usage | None = None) -> None:
        """Add tokens that others used for this thread. `last`: those of the last response, if that has changed."""
        self.usage += usage
        if last is not None:
            self.last_usage, self._counted = last, len(self.log.items)
        self.thread.emit(self.thread.token_usage)

    def estimate(self, tokens: int) -> None:
        """Set the size of a history that was replaced."""
        self.count(Usage(), Usage(input_tokens=tokens))

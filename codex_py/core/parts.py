"""The parts of a session that its turns and its compactions share."""

from itertools import count

from codex_py.core.thread_log import ThreadLog
from codex_py.protocol.extension import Extension, Thread
from codex_py.protocol.prompts import Note, UserPrompt
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
        self.last_usage = last or self.last_usage
        self.thread.emit(self.thread.token_usage)

    def estimate(self, tokens: int) -> None:
        """Set the size of a history that was replaced."""
        self.count(Usage(), Usage(input_tokens=tokens))

"""A session, as its turns and compactions see it."""

from typing import Protocol

from codex_py.core.thread_log import ThreadLog
from codex_py.core.turn import ItemHandlers
from codex_py.protocol.extension import Extension, Thread
from codex_py.protocol.prompts import UserPrompt
from codex_py.protocol.stream import ModelStream, Usage


class Host(Thread, Protocol):
    log: ThreadLog
    extension: Extension
    """Of all features together."""
    model: ModelStream
    """Wrapped by the extensions."""
    handlers: ItemHandlers
    steered: list[UserPrompt]
    """Prompts that the user steered into the running turn; they go out with its next request."""

    def count(self, usage: Usage, last: Usage | None = None) -> None:
        """Add tokens that were used for this thread. `last`: those of the last response, if that has changed."""
        ...

    def next_live_id(self) -> str:
        """A fresh `live_N` for a live-only item, so that the ids in `--json` have no gaps."""
        ...

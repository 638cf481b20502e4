"""The parts of a session that its turns and its compactions share. Each owns one thing."""

from collections.abc import Callable

from codex_py.core.outbox import Outbox
from codex_py.core.thread_log import ThreadLog
from codex_py.core.token_count import TokenCount
from codex_py.protocol.extension import Extension, Thread
from codex_py.protocol.frozen import frozen


@frozen
class SessionParts:
    thread: Thread
    extension: Extension
    log: ThreadLog
    tokens: TokenCount
    outbox: Outbox
    next_live_id: Callable[[], str]
    """A fresh `live_N` for an item that is only shown live. `--json` shows no gaps for what it does not show."""

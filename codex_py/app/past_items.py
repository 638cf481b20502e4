"""The thread items of a continued session, for a frontend to show. Part of the composition root. LIGHT."""

from collections.abc import Sequence

from codex_py.core.transcript import past_items
from codex_py.protocol.events import ThreadItem
from codex_py.protocol.messages import EncodedItem


def thread_items(items: Sequence[EncodedItem]) -> list[ThreadItem]:
    """See `core.transcript.past_items`; finds the built-in tools."""
    if not items:
        return []
    # 80 ms, which a new session does not need before its first request.
    from codex_py.tools.past import past_tool_finder  # noqa: PLC0415

    return past_items(items, past_tool_finder())

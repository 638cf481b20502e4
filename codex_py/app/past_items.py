"""What a frontend shows of the session that it continues. LIGHT.

Part of the composition root: it hands the tools to what reads the history.
"""

from collections.abc import Sequence

from codex_py.core.transcript import past_items
from codex_py.protocol.events import ThreadItem
from codex_py.protocol.messages import EncodedItem


def thread_items(items: Sequence[EncodedItem]) -> list[ThreadItem]:
    """As `core.transcript.past_items`, with our own tools."""
    if not items:
        return []
    # 80 ms, which a new session need not spend before its first request.
    from codex_py.tools.past import past_tool_finder  # noqa: PLC0415

    return past_items(items, past_tool_finder())

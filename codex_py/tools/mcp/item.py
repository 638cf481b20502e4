"""The thread item of a call to an MCP server, with the progress that the server reports."""

import asyncio
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from codex_py.errors import ToolError
from codex_py.protocol import event_items, events
from codex_py.protocol.bugs import bug_line
from codex_py.protocol.calls import PastCall, PastItems
from codex_py.protocol.dispatch import ToolContext
from codex_py.tools.base import ChangesNothing
from codex_py.tools.mcp.output import is_error, item_result

OWN_SERVER = "codex"
"""The server of an item whose call names no server."""
_INTERRUPTED = "the call was interrupted"
_INTERVAL_S = 0.1
_MESSAGE_CHARS = 200


@contextmanager
def mcp_item(
    server: str, tool: str, arguments: Mapping[str, Any], context: ToolContext
) -> Generator["RunningItem"]:
    """Start an item. Leaving the context completes it, on every path.

    Without a result from `RunningItem.end`, the item fails.
    """
    item = event_items.McpToolCall(
        id=context.next_item_id(), server=server, tool=tool, arguments=arguments
    )
    context.emit(events.ItemStarted(item))
    running = RunningItem(item, context.emit)
    error = _INTERRUPTED
    try:
        yield running
    except ToolError as failure:
        error = str(failure)
        raise
    except Exception as bug:
        error = bug_line(bug)
        raise
    finally:
        running.stop()
        failed = replace(item, error={"message": error}, status="failed")
        context.emit(events.ItemCompleted(running.ended or failed))


class RunningItem:
    """An item that has started, with its progress and its result."""

    def __init__(self, item: event_items.McpToolCall, emit: events.EventSink) -> None:
        self.ended: event_items.McpToolCall | None = None
        """The item with its result; None before `end`."""
        self.id = item.id
        self._item = item
        self._emit = emit
        self._latest = ""
        self._timer: asyncio.TimerHandle | None = None

    def end(self, result: Mapping[str, Any]) -> None:
        """Set the result of the call, an MCP result. It is emitted when the context is left."""
        status = "failed" if is_error(result) else "completed"
        self.ended = replace(self._item, result=item_result(result), status=status)

    def progress(
        self,
        done: float,
        total: float | None,
        message: str | None,
    ) -> None:
        """Emit the progress at intervals; if an interval has several reports, only the latest."""
        if total is None:
            share = f"{done:g}"
        else:
            share = f"{done:g}/{total:g}"
        words = f"{share} {message or ''}".split()
        self._latest = " ".join(words)[:_MESSAGE_CHARS]
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(_INTERVAL_S, self._show)

    def stop(self) -> None:
        """Emit no more progress."""
        if self._timer is not None:
            self._timer.cancel()

    def _show(self) -> None:
        self._timer = None
        self._emit(events.McpToolCallProgress(self._item.id, self._latest))


class ShownAsServerCall(ChangesNothing):
    """A base class for built-in tools whose calls are shown as calls to an MCP server.

    That is the server in the argument `server`, else `codex`.
    """

    def replay(self, call: PastCall, past: PastItems) -> event_items.ThreadItem:
        server = str(call.arguments.get("server") or OWN_SERVER)
        return replay_server_call(server, call.tool_name, call, past)


def replay_server_call(
    server: str, tool: str, call: PastCall, past: PastItems
) -> event_items.McpToolCall:
    """The item of a past call; its result is the text that the model got."""
    item = event_items.McpToolCall(
        id=past.next_id(), server=server, tool=tool, arguments=call.arguments
    )
    if call.error_code is not None:
        return replace(item, error={"message": call.output}, status="failed")
    result = {"content": [{"type": "text", "text": call.output}]}
    return replace(item, result=result, status="completed")

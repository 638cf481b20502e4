from dataclasses import replace

import pytest

from codex_py.frontends.mcp_server.notices import (
    codex_event,
    progress_text,
    warning_text,
)
from codex_py.protocol.event_items import (
    AgentMessage,
    Change,
    CommandExecution,
    ContextCompaction,
    FileChange,
    McpToolCall,
    ThreadItem,
    TodoEntry,
    TodoList,
    WebSearch,
)
from codex_py.protocol.events import Error, ItemCompleted, ItemStarted
from tests.support.model import reconnecting


def test_a_retry_is_told_as_one_and_the_failure_at_the_end_as_an_error() -> None:
    retry = reconnecting("cut")
    assert codex_event(retry) == {"type": "stream_error", "message": retry.message}
    assert (warning_text(retry), progress_text(retry)) == (retry.message, retry.message)
    failure = Error("cut", "stream", retryable=True)
    assert codex_event(failure) == {"type": "error", "message": "cut"}
    assert (warning_text(failure), progress_text(failure)) == (None, None)


@pytest.mark.parametrize(
    ("item", "at_start", "at_end"),
    [
        (
            CommandExecution(id="0", command="make  all\n", status="completed"),
            *("running make all", None),
        ),
        (
            McpToolCall(id="0", server="docs", tool="search", arguments={}),
            *("calling docs.search", None),
        ),
        (
            McpToolCall(
                id="0", server="codex", tool="view_image", arguments={"path": "/r/a.png"}
            ),
            *("looking at /r/a.png", None),
        ),
        (
            FileChange(
                id="0",
                changes=[Change(path="/r/a", kind="add"), Change(path="/r/b", kind="update")],
                status="completed",
            ),
            *(None, "edited /r/a, /r/b"),
        ),
        (
            WebSearch(id="0", query="", action={"type": "open_page", "url": "https://t.io"}),
            *(None, "opened https://t.io"),
        ),
        (
            ContextCompaction(id="0", status="completed"),
            *("compacting the conversation", None),
        ),
        (
            TodoList(id="0", items=[TodoEntry(text="a", completed=True)]),
            *("1 of 1 steps of the plan done", None),
        ),
        (AgentMessage(id="0", text="Done."), *(None, "Done.")),
        (AgentMessage(id="0", text="x" * 300), *(None, f"{'x' * 199}…")),
    ],
)  # fmt: skip
def test_each_item_has_one_line_about_the_work(
    item: ThreadItem, at_start: str | None, at_end: str | None
) -> None:
    assert progress_text(ItemStarted(item)) == at_start
    assert progress_text(ItemCompleted(item)) == at_end


def test_a_patch_that_failed_is_a_warning_and_no_progress() -> None:
    error = {"code": "PatchFailed", "message": "no such line"}
    item = FileChange(id="0", changes=[Change(path="/r/a", kind="update")])
    failed = ItemCompleted(replace(item, status="failed", error=error))
    assert (warning_text(failed), progress_text(failed)) == ("no such line", None)

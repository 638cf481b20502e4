"""How single events are shown. Each update is checked with the schema, if it is here.

Also tests `frontends/acp/calls.py`.
"""

from pathlib import Path
from typing import Any

import pytest

from codex_py.frontends.acp.updates import Update, Updates
from codex_py.protocol import event_items, events
from codex_py.protocol.approval import ApprovalRequest
from codex_py.protocol.patched_file import PatchedFile
from codex_py.protocol.stream import Usage
from tests.support.editor import check

CWD = Path("/home/me")


class Shown:
    """Updates of events, checked."""

    def __init__(self, *, has_notices: bool = False) -> None:
        self.updates = Updates("p", CWD, has_notices=has_notices)

    def of(self, *told: events.Event) -> list[Update]:
        return checked([update for event in told for update in self.updates.of(event)])


def checked(updates: list[Update]) -> list[Update]:
    for update in updates:
        check("SessionNotification", {"sessionId": "s", "update": update})
    return updates


def done(item: event_items.ThreadItem) -> events.ItemCompleted:
    return events.ItemCompleted(item)


def text(update: Update) -> str:
    return update["content"]["text"]


def test_text_that_was_streamed_is_not_sent_again() -> None:
    shown = Shown()
    first = shown.of(events.MessageDelta("a"), events.MessageDelta("b"))
    assert shown.of(done(event_items.AgentMessage(id="i", text="ab"))) == []
    (second,) = shown.of(done(event_items.AgentMessage(id="j", text="c")))
    assert [text(each) for each in first] == ["a", "b"]
    assert first[0]["messageId"] == first[1]["messageId"] != second["messageId"]


def test_the_second_attempt_of_an_answer_is_a_new_message() -> None:
    failed = events.Reconnecting(
        *("Reconnecting... 1/5 (cause)", "stream", None),
        cause="cause",
        attempt=1,
        max_attempts=5,
        wait_s=1,
    )
    shown = Shown()
    first, second = shown.of(
        events.MessageDelta("a"), failed, events.MessageDelta("ab")
    )
    assert first["messageId"] != second["messageId"]
    notices = Shown(has_notices=True).of(failed)
    assert [(each["severity"], each["title"]) for each in notices] == [
        ("warning", failed.message)
    ]


def test_parts_of_a_thought_are_paragraphs() -> None:
    parts = [
        events.ReasoningSummaryDelta(*each) for each in (("a", 0), ("b", 0), ("c", 1))
    ]
    shown = Shown()
    assert [text(each) for each in shown.of(*parts)] == ["a", "b", "\n\nc"]
    shown.of(done(event_items.ReasoningSummary(id="i", text="ab\nc")))
    assert [text(each) for each in shown.of(events.ReasoningSummaryDelta("d", 0))] == [
        "d"
    ]


def test_a_warning_is_a_notice_or_a_message() -> None:
    warning = done(event_items.ErrorItem(id="i", message="Careful."))
    assert Shown(has_notices=True).of(warning)[0]["title"] == "Careful."
    assert text(Shown().of(warning)[0]) == "*Careful.*\n\n"


def test_usage_is_what_is_in_the_window_now() -> None:
    report = events.UsageReported(
        Usage(input_tokens=10, output_tokens=2), Usage(input_tokens=99), 1000
    )
    assert Shown().of(report) == [
        {"sessionUpdate": "usage_update", "used": 12, "size": 1000}
    ]


@pytest.mark.parametrize(
    ("item", "title", "kind", "status"),
    [
        (
            event_items.WebSearch(id="i", query="x", action={"type": "open_page", "url": "u"}),
            *("Opened u", "fetch", "completed"),
        ),
        (
            event_items.CollabToolCall(
                id="i",
                tool="spawn_agent",
                sender_thread_id="a",
                receiver_thread_ids=["b"],
                prompt="Look",
                names={"b": "Ada"},
                status="completed",
            ),
            *("Started agent Ada", "think", "completed"),
        ),
        (
            event_items.McpToolCall(
                id="i", server="codex", tool="view_image", arguments={"path": "a.png"}, status="failed",
                error={"message": "no"},
            ),
            *("codex.view_image", "read", "failed"),
        ),
        (
            event_items.CommandExecution(id="i", command="ls -l\nid", status="declined"),
            *("ls -l id", "execute", "failed"),
        ),
        (
            event_items.FileChange(
                id="i", changes=[event_items.Change(path="/home/me/a", kind="delete")], status="completed"
            ),
            *("Delete a", "delete", "completed"),
        ),
        (
            event_items.ContextCompaction(id="i", status="failed"),
            *("Sum up the conversation, to make room", "think", "failed"),
        ),
    ],
)  # fmt: skip
def test_each_call_has_a_title_a_kind_and_an_end(
    item: event_items.ThreadItem, title: str, kind: str, status: str
) -> None:
    (call,) = Shown().of(done(item))
    assert call["sessionUpdate"] == "tool_call"
    assert (call["title"], call["kind"], call["status"]) == (title, kind, status)


def test_a_large_or_binary_file_is_shown_by_its_hunks() -> None:
    diff = "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+y\n@@ -9 +9 @@\n-p\n+q\n"
    big = PatchedFile.of(Path("/home/me/a"), b"x\n" * 600_000, b"y\n")
    change = event_items.Change(path="/home/me/a", kind="update")
    item = event_items.FileChange(id="i", changes=[change], diff=diff, files=[big])
    (start,) = Shown().of(events.ItemStarted(item))
    assert [(each["oldText"], each["newText"]) for each in start["content"]] == [
        *(("x\n", "y\n"), ("p\n", "q\n"))
    ]
    assert {each["path"] for each in start["content"]} == {"/home/me/a"}


def test_a_file_outside_of_the_folder_keeps_its_path() -> None:
    diff = "diff --git a/etc/a b/etc/a\n--- a/etc/a\n+++ b/etc/a\n@@ -1 +1 @@\n-x\n+y\n"
    change = event_items.Change(path="/etc/a", kind="update")
    item = event_items.FileChange(
        id="i", changes=[change], diff=diff, status="completed"
    )
    (call,) = Shown().of(done(item))
    assert (call["title"], call["content"][0]["path"]) == ("Edit /etc/a", "/etc/a")


def test_the_question_of_a_subagent_has_a_call_of_its_own_which_is_closed() -> None:
    shown = Shown()
    request = ApprovalRequest(
        "command", "ls", CWD, "why\nnot", item_id="item_0", agent="Ada"
    )
    shown.of(
        events.ItemStarted(event_items.CommandExecution(id="item_0", command="id"))
    )
    (before,), call = shown.updates.question(request)
    checked([before])
    assert before["title"] == call["title"] == "Ada: ls"
    assert before["toolCallId"] == call["toolCallId"] != "p-item_0"
    assert text(call["content"][1]) == "Reason: why not"
    end = shown.updates.answered(call["toolCallId"], is_allowed=False)
    assert (end["toolCallId"], end["status"]) == (call["toolCallId"], "failed")
    left: list[Any] = checked(list(shown.updates.end()))
    assert [(each["toolCallId"], each["status"]) for each in left] == [
        ("p-item_0", "failed")
    ]
    assert list(shown.updates.end()) == []


def test_the_progress_of_a_call_is_live_output() -> None:
    shown = Shown()
    call = event_items.McpToolCall(id="i", server="s", tool="t", arguments={})
    shown.of(events.ItemStarted(call), events.McpToolCallProgress("i", "1/3"))
    assert shown.updates.has_output
    (update,) = checked(list(shown.updates.output()))
    assert text(update["content"][0]) == "```\n1/3\n```"
    shown.of(events.McpToolCallProgress("i", "2/3"), done(call))
    assert list(shown.updates.output()) == []
    assert shown.of(events.McpToolCallProgress("i", "3/3")) == []
    assert not shown.updates.has_output


def test_text_cannot_break_out_of_its_block_or_steer_a_terminal() -> None:
    item = event_items.CommandExecution(
        id="i", command="x\x1b[2J", aggregated_output="a\x1b[31mb\n```\n\x07c", exit_code=0, status="completed"
    )  # fmt: skip
    (call,) = Shown().of(done(item))
    assert text(call["content"][0]) == "````\nab\n```\n␇c\n````"
    assert "\x1b" not in call["title"]


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_the_tags_of_a_plan_are_left_out_however_the_text_comes(size: int) -> None:
    said = "My plan:\n<proposed_plan>\n# Do\n\n1 < 2 </b>\n</proposed_plan>\nGo?\n<pro"
    pieces = [said[at : at + size] for at in range(0, len(said), size)]
    shown = Shown()
    updates = shown.of(*map(events.MessageDelta, pieces))
    updates += shown.of(done(event_items.AgentMessage(id="i", text=said)))
    assert "".join(map(text, updates)) == "My plan:\n# Do\n\n1 < 2 </b>\nGo?\n<pro"
    assert len({update["messageId"] for update in updates}) == 1
    (whole,) = Shown().of(done(event_items.AgentMessage(id="i", text=said)))
    assert text(whole) == "My plan:\n# Do\n\n1 < 2 </b>\nGo?\n<pro"

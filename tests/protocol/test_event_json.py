"""Every event has a JSON form, those that only live frontends get too.

Tests `protocol/event_data.py`, `protocol/event_items.py` and `protocol/events.py`.
"""

import json
from pathlib import Path
from typing import Any, get_args

import pytest

from codex_py.protocol import event_items, events
from codex_py.protocol.event_data import event_data, event_json
from codex_py.protocol.patched_file import PatchedFile
from codex_py.protocol.stream import Usage

ITEMS = [
    event_items.AgentMessage(id="item_0", text="Hello."),
    event_items.FileChange(
        id="item_1", changes=[event_items.Change(path="/a", kind="add")]
    ),
    event_items.UserMessage(id="live_0", text="go", images=["/a.png"]),
    event_items.ContextCompaction(id="live_1"),
]
FILE = PatchedFile.of(Path("/a"), None, b"\xff")
EVENTS: list[events.Event] = [
    events.ThreadStarted("t"),
    events.TurnStarted(),
    *map(events.ItemStarted, ITEMS),
    *map(events.ItemUpdated, ITEMS),
    *map(events.ItemCompleted, ITEMS),
    events.TurnCompleted(Usage(), diff="d", facts={"verified": True}),
    events.TurnFailed(events.ErrorInfo("m", "c")),
    events.Error("m", "c"),
    events.Reconnecting(
        "m", "c", None, cause="x", attempt=1, max_attempts=5, wait_s=0.5
    ),
    events.MessageDelta("Hel"),
    events.ReasoningSummaryDelta("Look", 0),
    events.CommandOutputDelta("item_1", "a"),
    events.CommandInBackground("item_1"),
    events.ReviewStarted("changes since main"),
    events.CommandInTerminal("item_1", "terminal-1"),
    events.CommandInTerminal("item_1", "term_1"),
    events.McpToolCallProgress("item_1", "3/10"),
    events.CallDenied("exec_command", "no", "c", "a", "SandboxDenied"),
    events.HookProgress("PreToolUse", "running"),
    events.BugFound("KeyError('x')", "Traceback …"),
    events.SteeringRefused("go"),
    events.FilesPatched([FILE], 3),
    events.GoalChanged({"objective": "o", "status": "active"}),
    events.AgentEvent("child", events.MessageDelta("Hel")),
    events.UsageReported(Usage(1), Usage(2), 1000),
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_every_event_has_a_json_form_with_its_type(event: events.Event) -> None:
    data = event_json(event)
    assert json.loads(json.dumps(data)) == data
    assert isinstance(data["type"], str)
    if (printed := event_data(event)) is not None:
        assert data == printed


def test_a_compaction_is_printed_from_its_start_to_its_end() -> None:
    item = event_items.ContextCompaction(id="live_1")
    assert event_data(events.ItemStarted(item)) == {
        "type": "item.started",
        "item": {"id": "live_1", "type": "context_compaction", "status": "in_progress"},
    }
    for status in ("completed", "failed"):
        ended = event_items.ContextCompaction(id="live_1", status=status)
        printed = event_data(events.ItemCompleted(ended))
        assert printed is not None
        assert printed["type"] == "item.completed"
        assert printed["item"] == {
            "id": "live_1",
            "type": "context_compaction",
            "status": status,
        }


def test_the_list_has_them_all() -> None:
    assert {type(event) for event in EVENTS} == set(get_args(events.Event))


@pytest.mark.parametrize(
    ("event", "data"),
    [
        (events.CommandOutputDelta("item_1", "a"), {"item_id": "item_1", "delta": "a"}),
        (
            events.FilesPatched([FILE], 3),
            {"files": [{"path": "/a", "kind": "add"}], "entry": 3},
        ),
        (
            events.AgentEvent("child", events.MessageDelta("Hel")),
            {"type": "message_delta", "delta": "Hel", "thread_id": "child"},
        ),
        (
            events.ItemCompleted(event_items.UserMessage(id="live_0", text="go")),
            {
                "item": {
                    "id": "live_0",
                    "type": "user_message",
                    "text": "go",
                    "images": [],
                }
            },
        ),
    ],
)
def test_live_events_have_all_their_fields(
    event: events.Event, data: dict[str, Any]
) -> None:
    names = {
        "CommandOutputDelta": "command_output_delta",
        "FilesPatched": "files_patched",
    }
    names |= {"AgentEvent": "message_delta", "ItemCompleted": "item.completed"}
    assert event_json(event) == {"type": names[type(event).__name__], **data}


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (42, "int"),
        (None, "NoneType"),
        ("turn.started", "str"),
        ({"type": "turn.started"}, "dict"),
        ([events.TurnStarted()], "list"),
        (events.TurnStarted, "type"),
        (ITEMS[0], "AgentMessage"),
        (events.AgentEvent("t", 42), "int"),  # pyright: ignore[reportArgumentType]
    ],
)
def test_what_is_no_event_is_refused_in_a_sentence(value: Any, kind: str) -> None:
    sentence = f"`event_json` takes an event, not a value of the type {kind}"
    with pytest.raises(TypeError) as raised:
        event_json(value)
    assert str(raised.value) == sentence

"""Also tests `app/views/call_text.py` and `app/views/passages.py`."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, get_args

import pytest

from codex_py.app.views.call_text import one_line_json, question_answers
from codex_py.app.views.item_words import ItemWords, Passage, item_words
from codex_py.app.views.passages import MAX_CHARS, safe_passages
from codex_py.protocol import event_items
from codex_py.protocol.event_items import (
    AgentMessage,
    AgentState,
    Change,
    CollabToolCall,
    CommandExecution,
    ContextCompaction,
    ErrorItem,
    FileChange,
    McpToolCall,
    ReasoningSummary,
    ThreadItem,
    TodoEntry,
    TodoList,
    TurnTime,
    UserMessage,
    WebSearch,
)

COMMAND = CommandExecution(id="0", command="/bin/bash -lc 'make all'")
PATCH = FileChange(
    id="0",
    changes=[Change(path="/r/a", kind="add"), Change(path="/r/b", kind="update")],
    diff="diff",
)
CALL = McpToolCall(id="0", server="docs", tool="search", arguments={"q": "x"})
LOOK = replace(CALL, server="codex", tool="view_image", arguments={"path": "/r/a.png"})
GOAL = replace(CALL, server="python", tool="create_goal", arguments={"objective": "Go", "tokens": 9})  # fmt: skip
AGENTS = CollabToolCall(
    id="0",
    tool="wait",
    sender_thread_id="x",
    receiver_thread_ids=["1", "2"],
    names={"1": "Ada"},
)
ASKING = replace(
    CALL,
    server="codex",
    tool="request_user_input",
    arguments={
        "questions": [
            {"id": "db", "question": "Which database?"},
            {"id": "os", "question": "Which system?"},
        ]
    },
)
COMPACTION = ContextCompaction(id="0")
PLAN = TodoList(
    id="0",
    items=[
        TodoEntry(text="Read", completed=True),
        TodoEntry(text="Change", completed=False, in_progress=True),
        TodoEntry(text="Test", completed=False),
    ],
)


def text_result(*texts: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text} for text in texts]}


ANSWERS = json.dumps({"answers": {"db": {"answers": ["SQLite", "user_note: on disk"]}}})
RUNNING: list[tuple[ThreadItem, ItemWords]] = [
    (COMMAND, ItemWords("command", "Running", COMMAND.command)),
    (PATCH, ItemWords("change", "Patching", "/r/a, /r/b", body=(Passage("diff", "diff"),))),
    (CALL, ItemWords("call", "Calling", "docs.search", {"q": "x"})),
    (LOOK, ItemWords("image", "Looking at", "/r/a.png")),
    (GOAL, ItemWords("call", "Calling", "python.create_goal", GOAL.arguments)),
    (
        ASKING,
        ItemWords("question", "Asking you:", "Which database? Which system?", ASKING.arguments),
    ),
    (AGENTS, ItemWords("agents", "Waiting for", "Ada, 2")),
    (COMPACTION, ItemWords("compaction", "Compacting the conversation")),
]  # fmt: skip
COMPLETED: list[tuple[ThreadItem, ItemWords]] = [
    (
        UserMessage(id="0", text="Look:", images=["/a.png"]),
        ItemWords("user", body=(Passage("Look:\n[image: /a.png]", "plain"),)),
    ),
    (
        AgentMessage(id="0", text="<proposed_plan>\n# Do\n</proposed_plan>\nGo?"),
        ItemWords("agent", body=(Passage("# Do\nGo?", "markdown"),)),
    ),
    (
        ReasoningSummary(id="0", text="**Hm**"),
        ItemWords("thought", title="Reasoning", body=(Passage("**Hm**", "markdown"),)),
    ),
    (
        replace(COMMAND, status="completed", exit_code=0, aggregated_output="a\n"),
        ItemWords("command", "Ran", COMMAND.command, body=(Passage("a\n", "output"),)),
    ),
    (
        replace(COMMAND, status="completed", is_users=True),
        ItemWords("command", "You ran", COMMAND.command, body=(Passage("", "output"),)),
    ),
    (
        replace(PATCH, status="completed"),
        ItemWords("change", "Edited", "/r/a, /r/b", body=(Passage("diff", "diff"),)),
    ),
    (
        replace(CALL, status="completed", result=text_result("one", "two")),
        ItemWords(
            "call", "Called", "docs.search", {"q": "x"}, body=(Passage("one\ntwo", "result"),)
        ),
    ),
    (replace(LOOK, status="completed"), ItemWords("image", "Looked at", "/r/a.png")),
    (replace(GOAL, status="completed"), ItemWords("goal", "Set goal:", "Go 9")),
    (
        replace(ASKING, status="completed", result=text_result(ANSWERS)),
        ItemWords(
            "question", "Asked you", arguments=ASKING.arguments, body=(Passage(ANSWERS, "result"),)
        ),
    ),
    (
        replace(AGENTS, status="completed", agents_states={"1": AgentState("completed", "Yes.")}),
        ItemWords(
            "agents", "Waited for", "Ada, 2", body=(Passage("Yes.", "markdown", "Ada (completed)"),)
        ),
    ),
    (
        replace(AGENTS, tool="spawn_agent", receiver_thread_ids=["1"], prompt="Look."),
        ItemWords("agents", "Started agent", "Ada", body=(Passage("Look.", "markdown"),)),
    ),
    (WebSearch(id="0", query="toml"), ItemWords("search", "Searched the web for", "toml")),
    (
        WebSearch(id="0", query="", action={"type": "open_page", "url": "https://t.io"}),
        ItemWords("search", "Opened", "https://t.io"),
    ),
    (
        WebSearch(id="0", query="", action={"type": "find_in_page", "pattern": "p", "url": "u"}),
        ItemWords("search", "Looked for", "p in u"),
    ),
    (
        replace(PLAN, explanation="Why."),
        ItemWords(
            "plan",
            "Updated plan",
            body=(Passage("Why.\n\n- ✔ Read\n- ▸ Change\n- □ Test", "markdown"),),
        ),
    ),
    (
        ErrorItem(id="0", message=event_items.INTERRUPTED, code="aborted"),
        ItemWords("note", title=event_items.INTERRUPTED),
    ),
    (
        replace(COMPACTION, status="completed"),
        ItemWords("compaction", "Compacted the conversation"),
    ),
    (TurnTime(id="0", duration_ms=3000), ItemWords("time", "Worked for 3s")),
]  # fmt: skip
REFUSED = {"code": "ApprovalDenied", "message": "rejected by user"}
BROKEN = {"code": "PatchFailed", "message": "no such line"}
FAILED: list[tuple[ThreadItem, ItemWords]] = [
    (
        replace(COMMAND, status="failed", exit_code=2, aggregated_output="bad"),
        ItemWords("command", "Ran", COMMAND.command, None, "exit 2", (Passage("bad", "output"),)),
    ),
    (
        replace(COMMAND, status="failed", exit_code=-9, was_stopped=True),
        ItemWords("command", "Ran", COMMAND.command, None, "stopped", (Passage("", "output"),)),
    ),
    (
        replace(COMMAND, status="failed"),
        ItemWords("command", "Ran", COMMAND.command, None, "failed", (Passage("", "output"),)),
    ),
    (
        replace(COMMAND, status="declined", aggregated_output="no"),
        ItemWords("command", "Declined", COMMAND.command, None, "declined", (Passage("no", "output"),)),
    ),
    (
        replace(PATCH, status="failed", error=BROKEN),
        ItemWords(
            "change",
            "Failed to patch",
            "/r/a, /r/b",
            failed="failed",
            body=(Passage("no such line", "error"),),
        ),
    ),
    (
        replace(PATCH, status="failed", error=REFUSED),
        ItemWords(
            "change",
            "Declined the patch of",
            "/r/a, /r/b",
            failed="declined",
            body=(Passage("rejected by user", "error"),),
        ),
    ),
    (
        replace(CALL, status="failed", error={"message": "gone"}),
        ItemWords("call", "Called", "docs.search", {"q": "x"}, "failed", (Passage("gone", "error"),)),
    ),
    (replace(LOOK, status="failed"), ItemWords("image", "Looked at", "/r/a.png", failed="failed")),
    (
        replace(GOAL, status="failed"),
        ItemWords("call", "Called", "python.create_goal", GOAL.arguments, "failed"),
    ),
    (
        replace(ASKING, status="completed", result=text_result("not in this mode")),
        ItemWords(
            "question",
            "Not asked:",
            "Which database? Which system?",
            ASKING.arguments,
            "failed",
            (Passage("not in this mode", "result"),),
        ),
    ),
    (
        replace(AGENTS, status="failed", agents_states={"1": AgentState("not_found")}),
        ItemWords(
            "agents",
            "Waited for",
            "Ada, 2",
            failed="failed",
            body=(Passage("", "markdown", "Ada (not_found)"),),
        ),
    ),
    (
        ErrorItem(id="0", message="it broke"),
        ItemWords("error", "Error", failed="failed", body=(Passage("it broke", "error"),)),
    ),
    (
        replace(COMPACTION, status="failed"),
        ItemWords("compaction", "The conversation could not be compacted", failed="failed"),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("item", "words"), RUNNING)
def test_an_item_that_runs_says_what_is_being_done(
    item: ThreadItem, words: ItemWords
) -> None:
    assert item_words(item, is_done=False) == words


@pytest.mark.parametrize(("item", "words"), COMPLETED)
def test_an_item_that_is_done_says_what_was_done(
    item: ThreadItem, words: ItemWords
) -> None:
    assert item_words(item) == words


@pytest.mark.parametrize(("item", "words"), FAILED)
def test_an_item_that_failed_says_why(item: ThreadItem, words: ItemWords) -> None:
    assert item_words(item) == words


def test_each_class_of_items_has_its_words_tested() -> None:
    tested = {type(item) for item, _ in COMPLETED + FAILED}
    assert tested == set(get_args(ThreadItem))


def test_the_status_does_not_say_whether_an_item_is_done() -> None:
    assert item_words(CALL).line == "Called docs.search"
    assert item_words(COMMAND).failed is None
    assert item_words(replace(COMMAND, exit_code=1)).failed == "exit 1"


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ({"content": [{"type": "image", "data": "…"}, "odd"]}, "[image]"),
        ({"content": [], "structured_content": {"a": [1]}}, '{"a": [1]}'),
        ({"content": "odd"}, None),
    ],
)
def test_the_result_of_a_call_is_its_texts(
    result: dict[str, Any], text: str | None
) -> None:
    body = item_words(replace(CALL, status="completed", result=result)).body
    expected: tuple[Passage, ...] = ()
    if text is not None:
        expected = (Passage(text, "result"),)
    assert body == expected


def test_json_on_one_line_is_bounded() -> None:
    assert one_line_json({"a": None, "b": ["ä", 1.5]}) == '{"a": null, "b": ["ä", 1.5]}'
    assert len(one_line_json("x" * 1000)) < 310
    assert one_line_json(list(range(100))).endswith("19]")


@pytest.mark.parametrize(
    ("result", "answers"),
    [
        (text_result(ANSWERS), ["SQLite, on disk", ""]),
        (text_result('{"answers": {"db": {"answers": "odd"}}}'), ["", ""]),
        (None, ["", ""]),
    ],
)
def test_each_question_has_its_answer(
    result: dict[str, Any] | None, answers: list[str]
) -> None:
    asked = ["Which database?", "Which system?"]
    item = replace(ASKING, status="completed", result=result)
    assert question_answers(item) == list(zip(asked, answers, strict=True))


def shown(item: ThreadItem) -> Mapping[str, str]:
    return {each.form: each.text for each in safe_passages(item_words(item))}


def test_the_passages_of_a_call_are_its_arguments_its_result_and_its_error() -> None:
    item = replace(
        CALL, result=text_result("one\x1b[2J"), error={"message": "\x07gone"}
    )
    assert shown(item) == {
        "json": '{\n  "q": "x"\n}',
        "result": "one␛[2J",
        "error": "␇gone",
    }


def test_passages_that_are_blank_are_left_out_and_labels_are_above_their_text() -> None:
    states = {"1": AgentState("completed", "Yes."), "2": AgentState("running")}
    item = replace(AGENTS, prompt=" ", agents_states=states)
    assert shown(item) == {"markdown": "Ada (completed):\n\nYes."}


def test_output_is_shown_as_a_terminal_shows_it_in_the_end() -> None:
    item = replace(
        COMMAND, aggregated_output="\n10%\r100%\n\x1b[31mred\x1b[0m\n", exit_code=0
    )
    assert shown(item) == {"output": "100%\nred"}


def test_output_is_cut_in_its_middle_and_an_answer_is_not_cut() -> None:
    long = f"first{'x' * MAX_CHARS}last"
    cut = shown(replace(COMMAND, aggregated_output=long))["output"]
    assert cut.startswith("first")
    assert "\n[… 9 characters are left out …]\n" in cut
    assert cut.endswith("last")
    assert shown(AgentMessage(id="0", text=long)) == {"markdown": long}

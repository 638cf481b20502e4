"""Also tests `core/summary.py`."""

import asyncio
import re
from dataclasses import replace
from typing import Any

import pytest

from codex_py.core.session import Session
from codex_py.errors import ModelError, StreamError
from codex_py.instructions import instruction_text
from codex_py.protocol.event_data import event_data
from codex_py.protocol.event_items import ContextCompaction, ErrorItem
from codex_py.protocol.events import (
    Event,
    ItemCompleted,
    ItemStarted,
    TurnCompleted,
    TurnFailed,
    TurnStarted,
    UsageReported,
)
from codex_py.protocol.messages import message
from codex_py.protocol.prompts import SUMMARY_OPENING
from codex_py.protocol.stream import Usage
from codex_py.protocol.tools import FunctionSpec
from tests.core.sessions import (
    BASE,
    SETTINGS,
    FakeRecorder,
    context,
    echo,
    make_session,
    user,
)
from tests.support.model import ScriptedModel, calls, completed, says

LIMITED = replace(SETTINGS, auto_compact_token_limit=90_000)
FULL = completed(90_000, 0)
ASKED = user(instruction_text("compact/prompt.md"))
TOO_LONG = ModelError("no room", code="context_length_exceeded")
ONE_TURN = [says("an answer"), completed()]
TOOL = FunctionSpec("echo", "", {})


def text(item: dict[str, Any]) -> str:
    return item["content"][0]["text"]


def texts(items: list[dict[str, Any]]) -> list[str]:
    """What the messages say, without the context; summaries as `note: …`."""
    said = [text(item) for item in items if item["type"] == "message"]
    assert said[0] == "You are an agent."
    assert [part.partition("\n")[0] for part in said[1:3]] == [
        "<permissions instructions>",
        "<environment_context>",
    ]
    return [
        f"note: {part.rpartition(chr(10))[2]}"
        if part.startswith(SUMMARY_OPENING)
        else part
        for part in said[3:]
    ]


def compactions(events: list[Event]) -> list[str]:
    return [
        event.item.status
        for event in events
        if isinstance(event, ItemStarted | ItemCompleted)
        and isinstance(event.item, ContextCompaction)
    ]


def warnings(events: list[Event]) -> list[str]:
    return [
        event.item.message
        for event in events
        if isinstance(event, ItemCompleted) and isinstance(event.item, ErrorItem)
    ]


def test_a_summary_takes_the_place_of_the_history_on_demand() -> None:
    model = ScriptedModel(
        [calls("c1"), completed()],
        ONE_TURN,
        [says("note one"), completed(3, 2)],
        ONE_TURN,
        check_prefix=False,
    )
    events: list[Event] = []
    recorder = FakeRecorder()
    settings = replace(SETTINGS, tools=[TOOL])
    session = make_session(
        model, settings=settings, recorder=recorder, sink=events.append
    )
    asyncio.run(session.run_turn("first"))
    events.clear()
    result = asyncio.run(session.compact())
    assert (result.error, result.usage) == (
        None,
        Usage(input_tokens=23, output_tokens=12),
    )
    # The request begins as the one before it, so that the cache of the provider serves it.
    before, asked = model.inputs[1], model.inputs[2]
    assert asked[: len(before)] == before
    assert asked[-1] == ASKED
    assert model.prompts[2].tools == [TOOL]
    assert compactions(events) == ["in_progress", "completed"]
    assert [event_data(event) for event in events if event_data(event) is not None] == [
        event_data(TurnStarted()),
        event_data(ItemStarted(ContextCompaction(id="live_0"))),
        event_data(ItemCompleted(ContextCompaction(id="live_0", status="completed"))),
        event_data(TurnCompleted(result.usage)),
    ]
    last = [event for event in events if isinstance(event, UsageReported)][-1]
    assert last.last.total_tokens == sum(map(len, session.items)) // 4

    asyncio.run(session.run_turn("second"))
    assert texts(model.inputs[3]) == ["first", "note: note one", "second"]
    ((summary, replacement),) = recorder.of_type("compacted")
    assert summary == text(replacement[-1])
    assert replacement == model.inputs[3][1:-1]


def test_a_history_that_fills_the_window_is_compacted_before_the_next_turn() -> None:
    model = ScriptedModel(
        [says("an answer"), FULL],
        [says("the note"), completed()],
        ONE_TURN,
        check_prefix=False,
    )
    events: list[Event] = []
    session = make_session(model, settings=LIMITED, sink=events.append)
    asyncio.run(session.run_turn("first"))
    assert compactions(events) == []
    assert asyncio.run(session.run_turn("second")).last_message == "an answer"
    assert texts(model.inputs[2]) == ["first", "note: the note", "second"]
    assert len([event for event in events if isinstance(event, TurnStarted)]) == 2


def test_a_history_that_fills_the_window_is_compacted_within_a_turn() -> None:
    model = ScriptedModel(
        [calls("c1"), FULL],
        [says("the note"), completed()],
        [calls("c2"), completed()],
        [says("done"), FULL],
        check_prefix=False,
    )
    session = make_session(model, settings=LIMITED)
    assert asyncio.run(session.run_turn("go")).last_message == "done"
    assert [item["type"] for item in model.inputs[1][-3:]] == [
        "function_call",
        "function_call_output",
        "message",
    ]
    assert texts(model.inputs[2]) == ["go", "note: the note"]
    assert [item["type"] for item in model.inputs[3][-2:]] == [
        "function_call",
        "function_call_output",
    ]


@pytest.mark.parametrize(
    "reports",
    [
        [400_000] * 4,
        [90_000] * 4,
        [100_000, 200_000, 300_000, 400_000],
        [95_000, 10, 400_000, 400_000],
        [10, 95_000, 10**12, 91_000],
        [95_000, 10, 10, 95_000],
    ],
    ids=["always", "at the limit", "a running total", "late", "later", "at times"],
)
def test_a_compacted_history_is_not_compacted_for_a_report_it_cannot_deserve(
    reports: list[int],
) -> None:
    first = next(n for n, tokens in enumerate(reports) if tokens >= 90_000)
    turns = [[calls(f"c{n}"), completed(tokens, 0)] for n, tokens in enumerate(reports)]
    note = [says("the note"), completed(reports[first], 0)]
    turns.insert(first + 1, note)
    model = ScriptedModel(*turns, ONE_TURN, ONE_TURN, check_prefix=False)
    events: list[Event] = []
    settings = replace(LIMITED, tools=[TOOL])
    session = make_session(model, settings=settings, sink=events.append)
    assert asyncio.run(session.run_turn("first")).last_message == "an answer"
    assert asyncio.run(session.run_turn("second")).last_message == "an answer"
    assert compactions(events) == ["in_progress", "completed"]
    kept = [item["type"] for item in model.inputs[-2]].count("function_call_output")
    assert kept == len(reports) - first - 1
    doubts = [text for text in warnings(events) if "not compacted again" in text]
    assert len(doubts) == 1


def test_a_resumed_thread_is_not_compacted_again_for_a_report_it_cannot_deserve() -> (
    None
):
    model = ScriptedModel(
        [says("an answer"), FULL],
        [says("the note"), completed()],
        [says("an answer"), FULL],
        check_prefix=False,
    )
    session = make_session(model, settings=LIMITED)
    asyncio.run(session.run_turn("first"))
    asyncio.run(session.run_turn("second"))

    model = ScriptedModel(ONE_TURN, check_prefix=False)
    events: list[Event] = []
    again = make_session(
        model,
        settings=LIMITED,
        sink=events.append,
        items=session.items[1:],
        last_usage=Usage(input_tokens=90_000),
        told_model="m",
    )
    assert asyncio.run(again.run_turn("third")).last_message == "an answer"
    assert compactions(events) == []


def test_a_compacted_history_that_has_grown_is_compacted_again() -> None:
    model = ScriptedModel(
        [says("an answer"), FULL],
        [says("note one"), completed()],
        [says("long" * 30_000), FULL],
        [says("note two"), completed()],
        ONE_TURN,
        check_prefix=False,
    )
    events: list[Event] = []
    session = make_session(model, settings=LIMITED, sink=events.append)
    for prompt in ("first", "second", "third"):
        asyncio.run(session.run_turn(prompt))
    assert compactions(events) == ["in_progress", "completed"] * 2


def test_a_resumed_thread_that_is_full_is_compacted_first() -> None:
    model = ScriptedModel([says("the note"), completed()], ONE_TURN, check_prefix=False)
    items = [
        *context(SETTINGS),
        message("assistant", [{"type": "output_text", "text": "old"}]),
    ]
    session = make_session(
        model,
        settings=LIMITED,
        items=items,
        last_usage=Usage(input_tokens=90_000),
        told_model="m",
    )
    assert asyncio.run(session.run_turn("go")).error is None
    assert texts(model.inputs[1]) == ["note: the note", "go"]


def test_prompts_during_a_compaction_come_after_the_summary() -> None:
    async def steer() -> None:
        assert session.steer("wait")

    model = ScriptedModel(
        [calls("c1"), FULL],
        [steer, says("the note"), completed()],
        ONE_TURN,
        check_prefix=False,
    )
    session = make_session(model, settings=LIMITED)
    asyncio.run(session.run_turn("go"))
    assert texts(model.inputs[2]) == ["go", "note: the note", "wait"]


def test_a_request_that_is_too_long_is_sent_again_compacted_once() -> None:
    async def tool(_call: Any) -> str:
        return "much " * 1000

    script = ([calls("c1"), completed()], [TOO_LONG], [says("the note"), completed()])
    model = ScriptedModel(*script, ONE_TURN, check_prefix=False)
    result = asyncio.run(make_session(model, tool=tool).run_turn("go"))
    assert (result.error, result.last_message) == (None, "an answer")
    assert texts(model.inputs[3]) == ["go", "note: the note"]

    model = ScriptedModel(*script, [TOO_LONG], check_prefix=False)
    assert asyncio.run(make_session(model, tool=tool).run_turn("go")).error is TOO_LONG
    assert len(model.inputs) == 4


def perhaps_too_long() -> ModelError:
    failure = ModelError("400: beyond the allowance of 9000 units", status=400)
    failure.may_be_too_long = True
    return failure


async def long_output(_call: Any) -> str:
    return "much more " * 1000


MUCH = [[calls(f"c{n}"), completed()] for n in range(5)]
"""Calls whose outputs are a large history, with `long_output`."""


def test_a_large_request_that_may_be_too_long_is_sent_shorter_once() -> None:
    failure = perhaps_too_long()
    script = (*MUCH, [failure], [says("the note"), completed()])
    model = ScriptedModel(*script, ONE_TURN, check_prefix=False)
    events: list[Event] = []
    session = make_session(model, tool=long_output, sink=events.append)
    assert asyncio.run(session.run_turn("go")).error is None
    assert texts(model.inputs[7]) == ["go", "note: the note"]
    assert compactions(events)

    model = ScriptedModel(*script, [failure], check_prefix=False)
    session = make_session(model, tool=long_output)
    assert asyncio.run(session.run_turn("go")).error is failure
    assert len(model.inputs) == 8


def test_a_small_request_that_may_be_too_long_fails_the_turn() -> None:
    failure = perhaps_too_long()
    model = ScriptedModel([calls("c1"), completed()], [failure])
    assert asyncio.run(make_session(model).run_turn("go")).error is failure


def test_a_server_that_refuses_the_request_for_a_summary_too_gets_a_shorter_history() -> (
    None
):
    failure = perhaps_too_long()
    model = ScriptedModel(
        *(*MUCH, [failure], [failure], [failure]),
        ONE_TURN,
        check_prefix=False,
    )
    session = make_session(model, tool=long_output)
    assert asyncio.run(session.run_turn("go")).last_message == "an answer"


def test_a_short_history_that_is_called_too_long_fails_the_turn() -> None:
    model = ScriptedModel([calls("c1"), completed()], [TOO_LONG])
    assert asyncio.run(make_session(model).run_turn("go")).error is TOO_LONG


def test_a_prompt_that_is_too_long_by_itself_fails_at_once() -> None:
    model = ScriptedModel([TOO_LONG])
    assert asyncio.run(make_session(model).run_turn("go")).error is TOO_LONG


def test_a_history_too_long_to_be_summarised_loses_its_oldest_part() -> None:
    model = ScriptedModel(
        *[[calls(f"c{n}"), completed()] for n in range(8)],
        ONE_TURN,
        [TOO_LONG],
        [TOO_LONG],
        [says("the note"), completed()],
        check_prefix=False,
    )
    session = make_session(model)
    asyncio.run(session.run_turn("go"))
    assert asyncio.run(session.compact()).error is None
    lengths = [len(sent) for sent in model.inputs[9:]]
    assert lengths == sorted(lengths, reverse=True)
    assert len(set(lengths)) == 3
    for sent in model.inputs[9:]:
        assert texts(sent)[-1] == text(ASKED)
        called = [item["call_id"] for item in sent if item["type"] == "function_call"]
        assert called == [
            item["call_id"] for item in sent if item["type"].endswith("output")
        ]


def test_a_model_that_would_call_tools_instead_is_asked_without_them() -> None:
    model = ScriptedModel(
        ONE_TURN,
        [calls("c9"), completed()],
        [says("the note"), completed()],
        ONE_TURN,
        check_prefix=False,
    )
    ran: list[str] = []

    async def tool(call: Any) -> str:
        ran.append(call.call_id)
        return await echo(call)

    session = make_session(model, settings=replace(SETTINGS, tools=[TOOL]), tool=tool)
    asyncio.run(session.run_turn("go"))
    assert asyncio.run(session.compact()).error is None
    assert (ran, [len(p.tools) for p in model.prompts]) == ([], [1, 1, 0])


def test_a_compaction_that_fails_leaves_the_history_as_it_was() -> None:
    failure = ModelError("no", code="model")
    model = ScriptedModel(
        ONE_TURN, [failure], [says(" "), completed()], ONE_TURN, check_prefix=False
    )
    events: list[Event] = []
    session = make_session(model, sink=events.append)
    asyncio.run(session.run_turn("first"))
    before = list(session.items)
    assert asyncio.run(session.compact()).error is failure
    assert str(asyncio.run(session.compact()).error) == (
        "the model gave no summary of the conversation"
    )
    assert compactions(events) == ["in_progress", "failed"] * 2
    assert session.items == before
    assert len([event for event in events if isinstance(event, TurnFailed)]) == 2
    asyncio.run(session.run_turn("second"))
    assert texts(model.inputs[3]) == ["first", "an answer", "second"]


def test_a_turn_goes_on_where_the_model_gives_no_summary() -> None:
    model = ScriptedModel(
        [calls("c1"), FULL], [completed()], ONE_TURN, check_prefix=False
    )
    events: list[Event] = []
    session = make_session(model, settings=LIMITED, sink=events.append)
    assert asyncio.run(session.run_turn("go")).last_message == "an answer"
    warnings = [
        e.item.message
        for e in events
        if isinstance(e, ItemCompleted) and isinstance(e.item, ErrorItem)
    ]
    assert len(warnings) == 1


def test_a_turn_goes_on_where_its_compaction_is_refused() -> None:
    """Otherwise every later turn of the thread would ask for the same summary, and fail the same way."""
    refused = ModelError("bad", status=400)
    model = ScriptedModel([calls("c1"), FULL], [refused], ONE_TURN, check_prefix=False)
    events: list[Event] = []
    session = make_session(model, settings=LIMITED, sink=events.append)
    result = asyncio.run(session.run_turn("go"))
    assert (result.error, result.last_message) == (None, "an answer")
    assert compactions(events) == ["in_progress", "failed"]


def test_a_turn_goes_on_in_full_length_where_its_compaction_finds_no_service() -> None:
    """Of the next turn, a summary is asked again."""
    refused = [StreamError("refused")]
    turns = [[calls("c1"), FULL], [*refused], [calls("c2"), FULL], [says("done"), FULL]]
    model = ScriptedModel(*turns, refused, ONE_TURN, check_prefix=False)
    session = make_session(model, settings=LIMITED)
    assert asyncio.run(session.run_turn("go")).last_message == "done"
    assert [sent[-1] == ASKED for sent in model.inputs] == [False, True, False, False]
    assert asyncio.run(session.run_turn("and now?")).last_message == "an answer"
    assert [sent[-1] == ASKED for sent in model.inputs[4:]] == [True, False]
    assert texts(model.inputs[5]) == ["go", "done", "and now?"]


def test_an_interrupted_compaction_changes_nothing() -> None:
    async def run() -> None:
        asked = asyncio.Event()

        async def wait() -> None:
            asked.set()
            await asyncio.Event().wait()

        model = ScriptedModel(
            ONE_TURN, [says("the no"), wait], ONE_TURN, check_prefix=False
        )
        recorder = FakeRecorder()
        session = make_session(model, recorder=recorder)
        await session.run_turn("first")
        before, lines = list(session.items), len(recorder.lines)
        work = asyncio.create_task(session.compact())
        await asyncio.wait_for(asked.wait(), 5)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(work, 2)
        assert (list(session.items), len(recorder.lines)) == (before, lines)
        assert (await session.run_turn("second")).error is None

    asyncio.run(run())


def test_a_thread_in_which_nothing_was_said_has_nothing_to_compact() -> None:
    result = asyncio.run(make_session(ScriptedModel()).compact())
    assert result.error is not None
    assert (result.error.code, str(result.error)) == (
        "nothing_to_compact",
        "there is nothing to compact yet",
    )


def test_the_latest_prompts_outlive_a_compaction_as_far_as_there_is_room() -> None:
    model = ScriptedModel(
        *[ONE_TURN] * 3,
        [says("note one"), completed()],
        ONE_TURN,
        [says("note two"), completed()],
        ONE_TURN,
        check_prefix=False,
    )
    session: Session = make_session(
        model, settings=replace(SETTINGS, context_window=4000)
    )
    long = "x" * 3000
    # A quarter of the window is 4,000 bytes.
    for prompt in ("first", long + "1", long + "2"):
        asyncio.run(session.run_turn(prompt))
    asyncio.run(session.compact())
    asyncio.run(session.run_turn("fourth"))
    first, cut, *rest = texts(model.inputs[4])
    assert (first, *rest) == ("first", long + "2", "note: note one", "fourth")
    assert re.fullmatch(r"x+\n…\d{4} characters cut…\nx+1", cut)
    asyncio.run(session.compact())
    asyncio.run(session.run_turn("fifth"))
    # A summary is summed up, and not kept as if the user had said it.
    kept = texts(model.inputs[6])
    assert kept[-4:] == [long + "2", "fourth", "note: note two", "fifth"]
    assert [p.prompt.text for p in session.past_prompts()] == ["fifth"]


def test_the_words_that_ask_for_the_summary_can_be_the_users() -> None:
    model = ScriptedModel(ONE_TURN, [says("the note"), completed()], check_prefix=False)
    session = make_session(model, compact_prompt="Sum it up.")
    asyncio.run(session.run_turn("go"))
    asyncio.run(session.compact())
    assert model.inputs[1][-1] == user("Sum it up.")
    assert BASE in session.items

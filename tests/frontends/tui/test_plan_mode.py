"""Plan mode and the questions of the model, as they look and as they are used."""

import json
from pathlib import Path
from typing import Any

import pytest

from codex_py.frontends.tui.blocks import Blocks
from codex_py.protocol.event_items import AgentMessage, McpToolCall
from codex_py.testing import (
    Pause,
    ev_completed,
    ev_created,
    ev_custom_tool_call,
    ev_function_call,
    ev_message,
)
from tests.frontends.tui.shown import Shown
from tests.frontends.tui.terminals import Start, leave
from tests.support.program import Workplace
from tests.support.pty_program import PtyProgram
from tests.support.server import ScriptedServer
from tests.support.snapshots import check_snapshot

SNAPSHOTS = Path(__file__).parent / "snapshots"
SIZES = [(120, 30), (80, 24), (40, 12)]
ON = "Plan mode \u00b7 gpt-5.5"
OFFER = "Implement this plan?"
PLAN = (
    "Before it.\n\n<proposed_plan>\n# The plan\n\nIt has **two** steps.\n\n- one\n- two\n\n"
    "```python\nx = 1\n```\n</proposed_plan>\n\nAfter it."
)
QUESTIONS = {
    "questions": [
        {
            "id": "db",
            "header": "Database",
            "question": "Which database shall the server use?",
            "options": [
                {
                    "label": "Postgres (Recommended)",
                    "description": "Runs in production already.",
                },
                {"label": "SQLite", "description": "One file, no server."},
            ],
        },
        {
            "id": "port",
            "header": "Port",
            "question": "Which port?",
            "options": [
                {"label": "8000", "description": "As in development."},
                {"label": "8443", "description": "As in production."},
            ],
        },
    ]
}
ASKS = [*ev_function_call("q1", "request_user_input", QUESTIONS), ev_completed()]


def says(text: str) -> list[Any]:
    return [*ev_message(text), ev_completed()]


def planning(program: PtyProgram, prompt: str = "Plan it.") -> None:
    program.wait_for("gpt-5.5")
    program.press("shift-tab")
    program.wait_for(ON)
    program.type(prompt)
    program.press("enter")


def answers(server: ScriptedServer) -> Any:
    outputs = [item for item in server.requests[-1].body["input"] if "output" in item]
    return json.loads(outputs[-1]["output"])["answers"]


def told(server: ScriptedServer, number: int) -> list[str]:
    return [
        part["text"].split("\n")[0].removeprefix("<collaboration_mode># ")
        for item in server.requests[number].body["input"]
        if item.get("role") == "developer"
        for part in item["content"]
        if part["text"].startswith("<collaboration_mode>")
    ]


@pytest.mark.parametrize("word", ["first", "you"])
def test_a_word_that_is_typed_slowly_begins_no_plan(start: Start, word: str) -> None:
    with ScriptedServer([says(PLAN)]) as server:
        program = start(server)
        planning(program)
        program.wait_for(OFFER)
        program.wait_for("Yes, implement this plan")
        program.type(word[0])
        program.settle(0.37)
        program.type(word[1:])
        program.wait_for(f"\u203a {word}\n")
        program.wait_for("(Tab to answer)")
        assert len(server.requests) == 1
        assert ON in program.text


@pytest.mark.parametrize(("columns", "rows"), SIZES)
def test_a_question_and_the_offer_fit_each_screen(
    start: Start, columns: int, rows: int
) -> None:
    with ScriptedServer([ASKS, says(PLAN)]) as server:
        program = start(server, columns=columns, rows=rows)
        planning(program)
        program.wait_for("Another answer")
        program.settle()
        looks = [shown(program)]
        program.press("enter")
        program.wait_for("Which port?")
        program.settle(0.5)
        program.press("enter")
        program.wait_for("Implement this plan?")
        program.wait_for("Yes, implement this plan")
        program.settle()
        looks.append(OFFER + shown(program).rpartition(OFFER)[2])
    path = SNAPSHOTS / f"planning_{columns}x{rows}.txt"
    check_snapshot(path, ("\n" + "=" * columns + "\n").join(looks) + "\n")


def shown(program: PtyProgram) -> str:
    """The screen without what differs from run to run."""
    lines = [line.rstrip() for line in program.text.split("\n")]
    kept = [line for line in lines if not line.startswith("  Worked for")]
    # Without the greeting, which names a folder.
    first = next((n for n, line in enumerate(kept) if line.startswith("\u203a")), 0)
    kept = kept[first:]
    text = "\n".join(
        line.partition(" (")[0] if "Waiting for your answer" in line else line
        for line in kept
    )
    at = text.find(ON[:9] + " \u00b7")
    return text[: at + 9] if at >= 0 else text


@pytest.mark.parametrize("columns", [columns for columns, _ in SIZES])
def test_a_plan_and_answers_are_shown_at_each_width(columns: int) -> None:
    shown = Shown(columns)
    content: Any = {
        "answers": {
            "db": {"answers": ["MariaDB", "user_note: 11"]},
            "port": {"answers": []},
        }
    }
    shown.transcript.replay(
        [
            McpToolCall(
                id="1",
                server="codex",
                tool="request_user_input",
                arguments=QUESTIONS,
                result={"content": [{"type": "text", "text": json.dumps(content)}]},
                status="completed",
            ),
            AgentMessage(id="2", text=PLAN),
        ]
    )
    check_snapshot(SNAPSHOTS / f"plan_{columns}.txt", "".join(shown.parts))


def test_questions_are_answered_one_after_the_other_and_again(start: Start) -> None:
    with ScriptedServer([ASKS, says("Done.")]) as server:
        program = start(server)
        planning(program)
        program.wait_for("Database - 1 of 2")
        program.press("down")
        program.press("enter")
        program.wait_for("Port - 2 of 2")
        program.press("left")
        program.wait_for("Your answer: SQLite")
        program.type("o")
        program.wait_for("Esc goes back")
        program.type("MariaDB 11")
        program.press("enter")
        program.wait_for("Port - 2 of 2")
        program.type("2")
        program.wait_for("Done.")
        program.wait_for("MariaDB 11")
    assert answers(server) == {
        "db": {"answers": ["MariaDB 11"]},
        "port": {"answers": ["8443"]},
    }


def test_text_typed_before_a_question_is_no_answer(start: Start) -> None:
    pause = Pause()
    with ScriptedServer([[ev_created(), pause, *ASKS], says("Done.")]) as server:
        program = start(server)
        planning(program)
        program.wait_for("Working")
        program.type("12")
        program.wait_for("\u203a 12")
        pause.until.set()
        program.wait_for("(Tab to answer)")
        assert "Another answer" not in program.text
        program.press("tab")
        program.wait_for("Another answer")
        program.type("2")
        program.wait_for("Port - 2 of 2")
        program.settle(0.5)
        program.press("enter")
        program.wait_for("Done.")
        program.wait_for("\u203a 12\n")
    assert answers(server) == {
        "db": {"answers": ["SQLite"]},
        "port": {"answers": ["8000"]},
    }


def test_enter_that_was_meant_for_one_question_does_not_answer_the_next(
    start: Start,
) -> None:
    with ScriptedServer([ASKS, says("Done.")]) as server:
        program = start(server)
        planning(program)
        program.wait_for("Another answer")
        program.press("enter", "enter", "enter")
        program.wait_for("Port - 2 of 2")
        program.settle(0.5)
        assert len(server.requests) == 1


def test_a_key_that_is_no_text_answers_nothing(start: Start) -> None:
    with ScriptedServer([ASKS, says("Done.")]) as server:
        program = start(server)
        planning(program)
        program.wait_for("Database - 1 of 2")
        for key in ("shift-tab", "f5"):
            program.press(key)
            program.settle(0.6)
            assert "> 1. Postgres" in program.text
        program.type("2")
        program.wait_for("Port - 2 of 2")
        program.type("1")
        program.wait_for("Done.")
    assert answers(server) == {
        "db": {"answers": ["SQLite"]},
        "port": {"answers": ["8000"]},
    }


def test_an_own_answer_is_still_there_after_esc(start: Start) -> None:
    with ScriptedServer([ASKS, says("Done.")]) as server:
        program = start(server)
        planning(program)
        program.wait_for("Database - 1 of 2")
        program.type("o")
        program.wait_for("Esc goes back")
        program.type("MariaDB 11")
        program.wait_for("> MariaDB 11")
        program.press("esc")
        program.wait_for("Another answer")
        program.type("o")
        program.wait_for("> MariaDB 11")
        program.type(".4")
        program.press("enter")
        program.wait_for("Port - 2 of 2")
        program.type("1")
        program.wait_for("Done.")
    assert answers(server)["db"] == {"answers": ["MariaDB 11.4"]}


def test_esc_at_a_question_interrupts_the_turn(start: Start) -> None:
    with ScriptedServer([ASKS]) as server:
        program = start(server)
        planning(program)
        program.wait_for("Another answer")
        program.press("esc")
        program.wait_for("Conversation interrupted")
        program.wait_for(ON)


def test_a_plan_is_implemented_here(start: Start, place: Workplace) -> None:
    patch = "*** Begin Patch\n*** Add File: made.txt\n+made\n*** End Patch\n"
    change = [*ev_custom_tool_call("c1", "apply_patch", patch), ev_completed()]
    with ScriptedServer([change, says(PLAN), change, says("Made.")]) as server:
        program = start(server)
        planning(program)
        program.wait_for("Yes, implement this plan")
        # The plan may have scrolled it off.
        shown = "\n".join(program.scrollback)
        assert "Declined the patch of" in shown
        assert "apply_patch failed" not in shown
        assert not (place.cwd / "made.txt").exists()
        assert "proposed_plan" not in program.text
        program.type("y")
        program.wait_for("Made.")
        program.wait_until(lambda: "Plan mode" not in program.lines[-1])
    assert (place.cwd / "made.txt").exists()
    assert told(server, 3) == ["Plan mode", "Default mode"]
    said = [
        item for item in server.requests[2].body["input"] if item.get("role") == "user"
    ]
    assert said[-1]["content"][-1]["text"] == "Implement the plan."


def test_a_plan_is_implemented_in_a_new_conversation(start: Start) -> None:
    with ScriptedServer([says(PLAN), says("Made.")], check_prefix=False) as server:
        program = start(server)
        planning(program)
        program.wait_for("Yes, implement this plan")
        program.type("f")
        program.wait_for("Made.")
    sent = json.dumps(server.requests[1].body["input"])
    assert "It has **two** steps." in sent
    assert ("Plan it." in sent, told(server, 1)) == (False, [])


def test_typing_on_keeps_the_plan_mode(start: Start) -> None:
    with ScriptedServer([says(PLAN), says("Well.")]) as server:
        program = start(server)
        planning(program)
        program.wait_for("Yes, implement this plan")
        program.type("Shorter, please.")
        program.wait_for("\u203a Shorter, please.")
        program.press("enter")
        program.wait_for("Well.")
        program.settle(1.0)
        assert "Yes, implement this plan" not in program.text
        assert program.lines[-1].startswith(f"  {ON}")
    assert told(server, 1) == ["Plan mode"]


def test_a_prompt_right_behind_the_switch_is_planned(start: Start) -> None:
    with ScriptedServer([says("One."), says("Two."), says("Three.")]) as server:
        program = start(server)
        program.wait_for("gpt-5.5")
        # Perhaps before there is a session.
        program.press("shift-tab")
        program.type("Go.")
        program.press("enter")
        program.wait_for("One.")
        program.wait_for(ON)
        program.press("shift-tab")
        program.type("Go on.")
        program.press("enter")
        program.wait_for("Two.")
        program.type("/plan Plan that.")
        program.press("enter")
        program.wait_for("Three.")
    assert [told(server, n)[-1] for n in range(3)] == [
        "Plan mode",
        "Default mode",
        "Plan mode",
    ]


def test_a_mode_that_is_switched_while_the_agent_works_holds_from_its_next_step(
    start: Start,
) -> None:
    pause = Pause()
    call = ev_function_call(
        "call_1", "write_stdin", {"session_id": 1, "chars": "rm x\n"}
    )
    replies = [[ev_created(), pause, *call, ev_completed()], says("Done.")]
    with ScriptedServer(replies) as server:
        program = start(server)
        program.wait_for("gpt-5.5")
        program.type("Go.")
        program.press("enter")
        program.wait_for("Working")
        program.press("shift-tab")
        program.wait_for("Plan mode, from the next step on")
        pause.until.set()
        program.wait_for("Done.")
        program.wait_for(ON)
    assert "is refused: nothing is changed in Plan mode" in str(
        server.requests[1].body["input"]
    )
    assert told(server, 1) == ["Plan mode"]


def test_a_resumed_conversation_is_in_its_mode_again(start: Start) -> None:
    with ScriptedServer([says("One."), says("Two.")]) as server:
        program = start(server)
        planning(program)
        program.wait_for("One.")
        program.press("c-d")
        program.wait()
        again = start(server, "resume", "--last")
        again.wait_for("This conversation is in Plan mode")
        again.wait_for(ON)
        again.type("Go on.\r")
        again.wait_for("Two.")
    assert told(server, 1) == ["Plan mode"]


def test_a_conversation_that_was_left_in_default_mode_is_resumed_in_it(
    start: Start,
) -> None:
    with ScriptedServer([says("One."), says("Two.")]) as server:
        program = start(server)
        planning(program)
        program.wait_for("One.")
        program.press("shift-tab")
        program.wait_until(lambda: ON not in program.text)
        program.press("c-d")
        program.wait()
        again = start(server, "resume", "--last")
        again.wait_for("One.")
        again.type("Go on.\r")
        again.wait_for("Two.")
        assert "Plan mode" not in again.text
    assert told(server, 1) == ["Plan mode", "Default mode"]


def test_permissions_that_are_chosen_hold_behind_plan_mode(start: Start) -> None:
    with ScriptedServer([]) as server:
        program = start(server)
        program.wait_for("gpt-5.5")
        program.press("shift-tab")
        program.wait_for(ON)
        program.type("/permissions\r")
        program.wait_for("Never ask")
        program.type("Never ask")
        program.wait_until(lambda: "Full access" not in program.text)
        program.press("enter")
        program.wait_for("Permissions: Never ask")
        program.wait_for("read-only, never")
        program.press("shift-tab")
        program.wait_for("workspace-write, never")


def test_a_plan_is_shown_without_its_tags_while_it_streams() -> None:
    blocks = Blocks()
    seen: list[str] = []
    for character in PLAN:
        blocks.feed(character)
        rest = blocks.rest
        seen += [getattr(rest, "markdown", "") or getattr(rest, "text", "")]
        seen += [getattr(block, "markdown", "") for block in blocks.take()]
    blocks.finish()
    assert not any("<" in text for text in seen)


def test_a_tag_in_a_program_is_no_plan() -> None:
    blocks = Blocks()
    blocks.feed(
        "```\n<proposed_plan>\n```\nIt is `<proposed_plan>`.\n<proposed_plan> too\n"
    )
    assert not any(block.is_plan for block in blocks.finish())


def test_an_unfinished_plan_is_a_plan() -> None:
    blocks = Blocks()
    blocks.feed("<proposed_plan>\n```\nx\n</proposed_plan>\nOut of it.")
    assert [block.is_plan for block in blocks.finish()] == [False, True, False]


@pytest.mark.parametrize(
    ("arguments", "result"),
    [
        (QUESTIONS, {"answers": {"db": {"answers": ["A", "user_note: B"]}, "port": 3}}),
        ({"questions": "?"}, {"answers": []}),
        ({"questions": [{"id": 1, "question": "\x1b[31mred"}]}, "no JSON"),
    ],
)
def test_any_past_question_can_be_shown(arguments: Any, result: Any) -> None:
    shown = Shown()
    text = result if isinstance(result, str) else json.dumps(result)
    content = {"content": [{"type": "text", "text": text}]}
    item = McpToolCall(
        id="1",
        server="codex",
        tool="request_user_input",
        arguments=arguments,
        result=content,
        status="completed",
    )
    shown.transcript.replay([item])
    assert ("Not asked: " if result == "no JSON" else "Asked you") in "".join(
        shown.parts
    )
    assert "\x1b[31m" not in "".join(shown.parts)
    if arguments is QUESTIONS:
        assert "A, B" in "".join(shown.parts)


def test_a_question_that_is_refused_says_what_was_asked_then_and_when_resumed(
    start: Start,
) -> None:
    with ScriptedServer([ASKS, [*ev_message("Then not."), ev_completed()]]) as server:
        program = start(server, "Go.", columns=140)
        program.wait_for("Then not.")
        leave(program)
        again = start(server, "resume", "--last", columns=140)
        again.wait_for("Then not.")
        leave(again)
    for each in (program, again):
        row = next(line for line in each.scrollback if line.startswith("✗ Not asked: "))
        assert "Which database" in row
        assert row.endswith("· request_user_input is unavailable in Default mode")


def test_the_command_line_begins_in_plan_mode(start: Start) -> None:
    with ScriptedServer([says("One.")]) as server:
        program = start(server, "--plan", "Go.")
        program.wait_for("One.")
        program.wait_for(ON)
    assert told(server, 0) == ["Plan mode"]


def test_a_prompt_that_waits_for_the_session_keeps_its_mode(start: Start) -> None:
    with ScriptedServer([says("One.")]) as server:
        program = start(server, "--plan", "Go.", trusted=False)
        program.wait_for("trust")
        # The question is put aside.
        program.type("zz")
        program.wait_for("\u203a zz")
        program.press("shift-tab")
        program.wait_for("/plan has to wait")
        program.press("c-c", "tab")
        program.wait_for("1. Yes")
        program.type("1")
        program.wait_for("One.")
        program.wait_for(ON)
    assert told(server, 0) == ["Plan mode"]

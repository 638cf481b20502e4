"""The overlay: the whole conversation, and other long texts, over what is on the screen."""

import asyncio
import io
import os
import re
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from prompt_toolkit.application import Application
from prompt_toolkit.application.current import set_app
from prompt_toolkit.data_structures import Size
from prompt_toolkit.formatted_text import fragment_list_to_text
from prompt_toolkit.input import DummyInput
from prompt_toolkit.key_binding.key_processor import KeyPress, KeyProcessor
from prompt_toolkit.keys import Keys
from prompt_toolkit.output.vt100 import Vt100_Output
from rich.text import Text

from codex_py.frontends.tui.cells.item import user_cell
from codex_py.frontends.tui.overlay import Overlay, Pages, table
from codex_py.frontends.tui.reading import conversation_pages
from codex_py.frontends.tui.render import Renderer
from codex_py.frontends.tui.status import Status
from codex_py.protocol.event_items import (
    AgentMessage,
    CommandExecution,
    ThreadItem,
    UserMessage,
)
from codex_py.protocol.events import ItemCompleted, MessageDelta
from codex_py.testing import (
    Pause,
    ev_completed,
    ev_custom_tool_call,
    ev_function_call,
    ev_message,
    ev_reasoning,
)
from codex_py.testing.events import Event
from tests.frontends.tui.drawing import KEYMAP, panel_text
from tests.frontends.tui.shown import PLAIN
from tests.frontends.tui.terminals import IDLE, Start, leave
from tests.frontends.tui.test_approval import QUESTION, asks, says
from tests.frontends.tui.test_lifecycle import assert_is_restored
from tests.support.git import git
from tests.support.program import Workplace
from tests.support.pty_program import PtyProgram
from tests.support.server import ScriptedServer
from tests.support.snapshots import check_snapshot

SNAPSHOTS = Path(__file__).parent / "snapshots"
ENTERED = b"\x1b[?1049h"
FREE = ("-s", "danger-full-access")
PATCH = "\n".join(
    [
        "*** Begin Patch",
        *("*** Add File: a.py", *(f"+print({n})" for n in range(40))),
        *("*** Add File: b.py", *(f"+other({n})" for n in range(40))),
        "*** End Patch",
    ]
)
WORK: list[list[Event]] = [
    [
        *ev_reasoning("**Looking around**\n\nFirst I want to see what there is."),
        *ev_function_call("call_1", "exec_command", {"cmd": "seq 100 130"}),
        ev_completed(),
    ],
    [*ev_custom_tool_call("call_2", "apply_patch", PATCH), ev_completed()],
    says("It is **done**."),
]


def opened(program: PtyProgram) -> None:
    program.wait_until(lambda: program.is_covered)
    program.wait_for("Esc leaves")


def closed(program: PtyProgram) -> None:
    program.wait_until(lambda: not program.is_covered)
    program.wait_for(IDLE)


def after(pages: Pages, *keys: str) -> list[list[str]]:
    """The rows of its overlay, 80 columns by 12, after each of these keys."""

    async def pressed() -> list[list[str]]:
        overlay = Overlay(pages, Renderer(PLAIN).whole(), lambda _: [])
        overlay.changed, overlay.named = lambda: None, KEYMAP.named
        processor, shown = KeyProcessor(overlay.keys), list[list[str]]()
        for key in keys:
            overlay.text()
            processor.feed_multiple(
                [KeyPress(Keys.Enter if each == "\r" else each) for each in key]
            )
            processor.process_keys()
            rows = fragment_list_to_text(overlay.text()).split("\n")
            shown.append([row.rstrip() for row in rows])
        return shown

    output = Vt100_Output(io.StringIO(), lambda: Size(rows=12, columns=80))
    with set_app(Application[None](input=DummyInput(), output=output)):
        return asyncio.run(pressed())


@pytest.mark.parametrize("columns", [60, 80, 140])
def test_all_of_a_conversation_can_be_read(start: Start, columns: int) -> None:
    with ScriptedServer(WORK) as server:
        program = start(server, *FREE, "Do it.", columns=columns, rows=30)
        program.wait_for("It is done.")
        program.wait_for("Worked for")
        # In the scrollback, long ones are folded, and say what shows them.
        shown = "\n".join(program.scrollback)
        assert "120" not in shown
        assert "print(39)" not in shown
        assert "lines (Ctrl-T)" in shown
        program.press("c-t")
        opened(program)
        program.wait_for("It is done.")
        program.press("home")
        program.wait_for("First I want to see what there is.")
        program.settle()
        shown = re.sub(r"(<|\b)[\d.]+s\b", "0s", program.text) + "\n"
        check_snapshot(SNAPSHOTS / f"overlay_{columns}.txt", shown)
        program.type("/")
        program.type("other(38)")
        program.press("enter")
        program.wait_for("+other(38)")
        program.press("esc")
        closed(program)
        program.wait_for("It is done.")


def test_search_goes_on_and_around_and_unfolds(start: Start) -> None:
    with ScriptedServer(WORK) as server:
        program = start(server, *FREE, "Do it.")
        program.wait_for("Worked for")
        program.press("c-t")
        opened(program)
        program.press("home")
        program.type("f")
        program.wait_for("lines (Enter)")
        assert "110" not in program.text
        program.type("/11")
        program.press("enter")
        program.wait_until(lambda: "    110" in program.lines, what="the first one")
        program.type("n")
        program.wait_until(lambda: "    111" in program.lines, what="the next one")
        program.type("NN")
        program.wait_until(
            lambda: "print(11)" in program.text or "other(11)" in program.text
        )
        program.type("/nowhere")
        program.press("backspace", "enter")
        program.settle()
        program.type("q")
        closed(program)


def test_a_search_says_which_of_how_many_it_has_found_or_that_there_is_nothing() -> (
    None
):
    pages = Pages("x")
    for n in range(20):
        pages.add(Text(f"a{n}\nb{n % 10}\nb{n} again"))
    rows = after(pages, *"f/b7", "\r", *"nnNNNn", "/b99", "\r", "/", "\r")
    assert [each[-1].split(" \u00b7 ")[0] for each in rows[4:]] == [
        *(
            "1/3",
            "2/3",
            "3/3",
            "2/3",
            "1/3",
            "3/3",
            "1/3",
            "/b99",
            "nothing found",
            "/",
            "Esc leaves",
        ),
    ]
    assert rows[4][1:4] == ["b7", "b7 again", ""]
    assert rows[5][1] == "b7 again"


@pytest.mark.parametrize("is_replayed", [True, False])
def test_an_answer_is_one_fold(is_replayed: bool) -> None:
    text = "\n\n".join(f"Paragraph {n}" for n in range(3))
    answer, shell = (
        AgentMessage(id="1", text=text),
        CommandExecution(id="2", command="make"),
    )
    items: list[ThreadItem] = [UserMessage(id="0", text="Go."), *[answer] * is_replayed]
    pages, reader = conversation_pages("x", items, None, Renderer(PLAIN).whole())
    if not is_replayed:
        for piece in text.splitlines(keepends=True):
            reader(MessageDelta(piece))
        reader(ItemCompleted(answer))
    reader(
        ItemCompleted(replace(shell, aggregated_output="1\n" * 20, status="completed"))
    )
    start, _, _, middle, at_once, all_folded, *_, found = after(
        pages, "g", "jj", "j", "j", "\r", "f", *"/h 2", "\r"
    )
    answer_rows = ["\u2022 Paragraph 0", "", "  Paragraph 1", "", "  Paragraph 2", ""]
    folded = [answer_rows[0], "  … +4 lines (Enter)", ""]
    assert start[1:10] == ["\u203a Go.", "", *answer_rows, "\u2022 Ran make"]
    assert middle[1] == "  Paragraph 1"
    assert at_once[1:6] == ["", *folded, "\u2022 Ran make"]
    assert all_folded[1:8] == [
        "\u203a Go.",
        "",
        *folded,
        "\u2022 Ran make",
        "  … +20 lines (Enter)",
    ]
    assert found[1:11] == [*start[1:10], "  … +20 lines (Enter)"]


def test_only_keys_that_do_something_are_named() -> None:
    listed = table("Keys", [["enter", "send"], ["tab", "complete"]])
    changes, prompts = Pages("Changes"), Pages("The conversation")
    for name in ("a.py", "b.py"):
        changes.add(Text(f"{name}\n+ 1"))
        prompts.add(user_cell(name))
    pasted = Pages("Pasted")
    pasted.add(Text("1\n2"))
    rows = [
        after(pages, "g", "\r", "f") for pages in (listed, pasted, changes, prompts)
    ]
    assert [
        each[0][-1].removeprefix("Esc leaves \u00b7 / search") for each in rows
    ] == [
        "",
        "",
        " \u00b7 Enter folds, f all",
        " \u00b7 [ ] prompts \u00b7 Enter folds, f all",
    ]
    # Keys that are not named fold nothing.
    assert all(before == each for before, *others in rows[:2] for each in others)


def test_prompts_are_jumped_between_and_answers_folded(start: Start) -> None:
    long = "\n\n".join(f"Line {n}." for n in range(60))
    with ScriptedServer([says(long), says(f"{long}\n\nEnd."), says("x")]) as server:
        program = start(server, "First prompt", rows=20)
        program.wait_for("Worked for")
        program.type("Second prompt\r")
        program.wait_for("End.")
        program.press("c-t")
        opened(program)
        program.type("[")
        program.wait_until(lambda: "Second prompt" in program.lines[2])
        program.type("[")
        program.wait_until(lambda: "First prompt" in program.lines[1])
        program.type("]")
        program.wait_until(lambda: "Second prompt" in program.lines[2])
        program.type("]")
        program.wait_for("End.")
        # Half a page up, and down again.
        program.press("c-u")
        program.wait_until(lambda: "End." not in program.text)
        program.press("c-d")
        program.wait_for("End.")
        # What is typed is no prompt.
        program.type("hello")
        program.press("esc")
        closed(program)
        assert len(server.requests) == 2


def test_it_grows_while_it_is_read_and_tells_of_a_question(start: Start) -> None:
    rest = threading.Event()
    answer = ev_message("The beginning. And the end.", pieces=2)
    replies = [[*answer[:3], Pause(rest), *answer[3:], *asks("touch x")], says("Well.")]
    with ScriptedServer(replies) as server:
        program = start(server, "Do it.")
        program.wait_for("The beginning.")
        program.press("c-t")
        program.wait_until(lambda: program.is_covered)
        program.wait_for("The conversation")
        # Esc does not interrupt here.
        program.wait_for("Working \u00b7 Esc leaves")
        assert "interrupt" not in program.text
        rest.set()
        program.wait_for("And the end.")
        program.wait_for("1 question waits \u00b7 Esc leaves")
        assert program.is_covered
        program.press("esc")
        program.wait_for(QUESTION)
        assert "And the end." in "\n".join(program.scrollback)
        program.type("n")
        program.wait_for("Conversation interrupted")


def test_an_overlay_fits_a_new_size_and_a_low_screen(start: Start) -> None:
    with ScriptedServer(WORK) as server:
        program = start(server, *FREE, "Do it.")
        program.wait_for("Worked for")
        program.press("c-t")
        opened(program)
        for columns, rows in ((30, 5), (20, 4), (120, 40), (80, 24)):
            program.resize(columns, rows)
            program.settle(0.3)
            program.press("home")
            program.wait_for("Do it.")
            assert all(len(line) <= columns for line in program.lines)
        program.press("esc")
        closed(program)
        leave(program)


@pytest.mark.parametrize("columns", [20, 30, 60, 80])
def test_the_key_that_leaves_is_named_whatever_is_under_way(columns: int) -> None:
    question = Status(working_since=time.monotonic(), questions=2)
    rows = panel_text(
        columns, PLAIN, lambda: Overlay(Pages("x"), Renderer(PLAIN), question.working)
    )
    last = next(row for row in rows.split("\n") if "Esc" in row)
    assert "· Esc leaves" in last
    assert len(re.sub(r"\x1b\[[0-9;]*m", "", last).rstrip()) <= columns


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_brings_back_the_screen(start: Start, number: signal.Signals) -> None:
    with ScriptedServer(WORK) as server:
        program = start(server, *FREE, "Do it.")
        program.wait_for("Worked for")
        program.press("c-t")
        opened(program)
        program.process.send_signal(number)
        program.wait()
        assert not program.is_covered
        assert_is_restored(program)


def test_a_terminal_without_an_overlay_gets_the_text(start: Start) -> None:
    with ScriptedServer(WORK) as server:
        program = start(server, *FREE, "Do it.", TERM="dumb")
        program.wait_for("It is done.")
        program.wait_until(lambda: "Worked for" in program.text)
        program.type("/transcript\r")
        program.wait_until(lambda: "other(39)" in "\n".join(program.scrollback))
        assert ENTERED not in program.raw


def test_the_changes_of_the_folder_are_shown_by_files(
    start: Start, place: Workplace
) -> None:
    git(place.cwd, "init", "-q", "-b", "main")
    git(place.cwd, "commit", "-q", "--allow-empty", "-m", "The first one")
    for name in ("a", "b"):
        (place.cwd / f"{name}.txt").write_text(f"new {name}\n" * 30, encoding="utf-8")
    with ScriptedServer([]) as server:
        program = start(server)
        program.wait_for(IDLE)
        program.type("/diff\r")
        opened(program)
        program.type("f")
        program.wait_for("b.txt")
        program.press("esc")
        closed(program)


def test_the_output_of_a_running_command_is_followed(
    start: Start, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    os.mkfifo(go)
    command = f"seq 100; echo rea''dy; cat {go}; echo the end"
    call = ev_function_call(
        "call_1", "exec_command", {"cmd": command, "yield_time_ms": 30_000}
    )
    with ScriptedServer([[*call, ev_completed()], says("Well.")]) as server:
        program = start(server, *FREE, "Do it.")
        program.wait_for("ready")
        program.type("/ps\r")
        program.wait_for("Enter picks")
        program.press("enter")
        program.wait_until(lambda: program.is_covered)
        program.wait_for("ready")
        program.press("home")
        program.wait_until(lambda: program.lines[1].strip() == "1")
        program.press("end")
        go.write_text("more\n", encoding="utf-8")
        program.wait_for("more")
        program.press("esc")
        program.wait_for("Well.")

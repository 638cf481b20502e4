"""Also tests `frontends/tui/running.py`."""

import re
from dataclasses import replace

import pytest

from codex_py.frontends.tui.theme import Theme
from codex_py.protocol.event_items import (
    AgentMessage,
    Change,
    CommandExecution,
    FileChange,
    McpToolCall,
    ReasoningSummary,
    ThreadItem,
    TodoEntry,
    TodoList,
    UserMessage,
)
from codex_py.protocol.events import (
    CommandInBackground,
    CommandOutputDelta,
    ErrorInfo,
    ItemCompleted,
    ItemStarted,
    ItemUpdated,
    McpToolCallProgress,
    MessageDelta,
    ReasoningSummaryDelta,
    TurnCompleted,
    TurnFailed,
    TurnStarted,
)
from codex_py.protocol.stream import Usage
from tests.frontends.tui.shown import PLAIN, Shown
from tests.support.model import reconnecting

ABORTED = TurnFailed(ErrorInfo("the turn was interrupted", "aborted"))


def running(item_id: str, command: str) -> CommandExecution:
    return CommandExecution(id=item_id, command=f"/bin/bash -lc '{command}'")


def test_a_block_is_printed_when_it_is_finished_and_live_before() -> None:
    shown = Shown()
    shown.tell(MessageDelta("One para"))
    assert (shown.text, shown.live()) == ("", ["", "• One para"])
    shown.tell(MessageDelta("graph.\n\nAnother"))
    assert shown.text == "\n• One paragraph.\n"
    assert shown.live() == ["", "  Another"]
    shown.complete(AgentMessage(id="1", text="One paragraph.\n\nAnother one."))
    assert shown.text == "\n• One paragraph.\n\n  Another one.\n"
    assert shown.live() == []


def test_a_live_item_looks_as_it_will_when_it_is_printed() -> None:
    answer = "- one **bold** item that is long enough to be wrapped\n- two\n\n```py\nx = [1]\n"
    shown = Shown(30)
    shown.tell(MessageDelta(answer))
    live = shown.live()
    shown.complete(AgentMessage(id="1", text=answer))
    assert shown.lines[-len(live) + 1 :] == live[1:]


def test_a_patch_that_failed_says_why() -> None:
    shown = Shown()
    changes = [Change(path="/repo/f", kind="update")]
    error = {
        "code": "PatchFailed",
        "message": "Failed to find expected lines in /repo/f:\nold",
    }
    shown.complete(FileChange(id="1", changes=changes, status="failed", error=error))
    assert shown.lines == [
        "✗ Failed to patch /repo/f",
        "  └ Failed to find expected lines in /repo/f:",
        "    old",
    ]


def test_an_answer_that_was_not_streamed_is_printed_whole() -> None:
    shown = Shown()
    shown.complete(
        AgentMessage(id="1", text="All at once."), AgentMessage(id="2", text="More.")
    )
    assert shown.lines == ["• All at once.", "", "• More."]


def test_an_answer_that_comes_again_after_a_reconnect_is_shown_once() -> None:
    shown = Shown()
    shown.tell(MessageDelta("Half an ans"), reconnecting("cut"))
    assert shown.live() == []
    shown.answer("Half an answer, whole.")
    assert shown.lines == ["• Half an answer, whole."]
    assert shown.live() == []


def test_the_place_where_a_partly_printed_answer_broke_off_is_shown() -> None:
    shown = Shown()
    shown.tell(MessageDelta("One.\n\nTw"), reconnecting("cut"))
    shown.answer("One.\n\nTwo.")
    cut_off = [
        "• One.",
        "",
        "  Tw",
        "",
        "⚠ The answer broke off here and comes again",
        "",
    ]
    assert shown.lines == [*cut_off, "• One.", "", "  Two."]
    assert shown.live() == []


def test_a_running_command_shows_the_end_of_its_output_and_its_age() -> None:
    shown = Shown(40)
    shown.tell(ItemStarted(running("1", "make")))
    assert shown.live() == ["", "• Running make"]
    output = "".join(f"line {n}\n" for n in range(9)) + f"10%\r20% {'x' * 50}"
    shown.tell(CommandOutputDelta("1", output))
    shown.time_s += 72.5
    assert shown.live() == [
        "",
        "• Running make · 1m 12s",
        "  └ line 5",
        "    line 6",
        "    line 7",
        "    line 8",
        "    20% xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…",
    ]


def test_several_running_commands_share_the_room() -> None:
    shown = Shown()
    for n in range(9):
        shown.tell(ItemStarted(running(str(n), f"make part{n}")))
        shown.tell(CommandOutputDelta(str(n), "output\n" * 10))
    assert shown.live(10) == ["", *(f"• Running make part{n}" for n in range(9))]
    assert shown.live(5) == [
        "",
        *(f"• Running make part{n}" for n in range(3)),
        "  … +6 running",
    ]
    for rows in range(1, 12):
        assert len(shown.live(rows)) <= rows


def test_the_end_of_a_long_answer_is_live() -> None:
    shown = Shown(20)
    shown.tell(ItemStarted(running("1", "make")), MessageDelta("word " * 100))
    assert shown.live(5) == [
        "  word word word",
        "  word word word",
        "  word",
        "",
        "• Running make",
    ]


def test_unfinished_items_of_a_turn_are_printed_at_its_end() -> None:
    shown = Shown()
    call = McpToolCall(id="3", server="docs", tool="find", arguments={})
    shown.tell(
        TurnStarted(),
        MessageDelta("A beginn"),
        ReasoningSummaryDelta("Because", 0),
        ItemStarted(FileChange(id="2", changes=[])),
        ItemStarted(call),
        McpToolCallProgress("3", "1/2"),
        ABORTED,
    )
    assert shown.lines == [
        "• A beginn",
        "",
        "  Thought",
        "",
        "✗ Failed to patch",
        "",
        "• Called docs.find()",
        "",
        "■ Conversation interrupted - say what to do instead",
    ]
    assert shown.live() == []


def test_a_command_that_goes_on_after_the_turn_is_shown_when_it_ends() -> None:
    shown = Shown()
    command = running("1", "serve")
    shown.tell(TurnStarted(), ItemStarted(command), TurnCompleted(Usage()))
    assert (shown.lines, shown.live()) == (["  Worked for <1s · 23:28"], [])
    shown.parts.clear()
    shown.tell(CommandOutputDelta("1", "listening"))
    assert shown.live() == []
    output = {"aggregated_output": "listening\n", "exit_code": 0, "status": "completed"}
    shown.complete(replace(command, **output))
    assert shown.lines == ["• Ran serve", "  └ listening"]


def test_commands_that_only_look_around_share_a_cell_with_each_name_once() -> None:
    shown = Shown(theme=replace(PLAIN, cwd="/repo"))
    shown.tell(TurnStarted())
    scripts = ["cat a.py", "cat /repo/b.py && cat a.py", "ls", "ls src", "ls"]
    for script in [*scripts, "rg x src", "grep y z", "rg x src", "sed -n 1,9p a.py"]:
        item = CommandExecution(id="1", command=f"/bin/bash -lc '{script}'")
        shown.tell(ItemStarted(item))
        shown.complete(replace(item, status="completed", exit_code=0))
    rows = ["• Explored", "  └ Read a.py, b.py", "    List ., src"]
    rows += ["    Search x in src", "    Search y in z", "    Read a.py"]
    assert (shown.text, shown.live()) == ("", ["", *rows])
    shown.answer("Done.")
    shown.tell(TurnCompleted(Usage()))
    assert shown.live() == []
    assert shown.lines == [*rows, "", "• Done.", "", "  Worked for <1s · 23:28"]


def plan(completed: bool) -> TodoList:
    return TodoList(id="1", items=[TodoEntry(text="Do it", completed=completed)])


def test_a_plan_is_pinned_until_it_is_done_and_printed_once_above_the_answer() -> None:
    shown = Shown()
    shown.tell(TurnStarted(), ItemStarted(plan(False)))
    assert shown.live() == ["", "• Plan · 0 of 1 done", "  └ □ Do it"]
    shown.tell(ItemUpdated(plan(True)), ItemUpdated(plan(True)))
    assert shown.live() == []
    assert shown.lines == ["• Updated Plan", "  └ ✔ Do it"]
    shown.answer("Done.")
    shown.tell(ItemCompleted(plan(True)), TurnCompleted(Usage()))
    assert shown.live() == []
    assert shown.lines[2:] == ["", "• Done.", "", "  Worked for <1s · 23:28"]


def test_of_a_plan_that_is_not_done_the_end_of_the_turn_says_what_is_left() -> None:
    shown = Shown()
    shown.tell(TurnStarted(), ItemStarted(plan(False)))
    shown.answer("More tomorrow.")
    shown.tell(ItemCompleted(plan(False)), TurnCompleted(Usage()))
    assert shown.live() == []
    last = "  Worked for <1s · 1 step left · 23:28"
    assert shown.lines == ["• More tomorrow.", "", last]
    shown.tell(TurnStarted(), ItemStarted(plan(False)))
    shown.tell(TurnFailed(ErrorInfo("aborted", code="aborted")))
    assert shown.lines[4:6] == ["• Updated Plan", "  └ □ Do it"]


@pytest.mark.parametrize(
    ("rows", "steps"),
    [
        (30, "step 4, step 5, step 6, step 7, step 8"),
        (12, "step 5, step 6"),
        (3, "step 6"),
    ],
)
def test_on_a_low_screen_the_pinned_plan_is_folded_around_the_step_in_progress(
    rows: int, steps: str
) -> None:
    shown = Shown()
    entries = [
        TodoEntry(text=f"step {n}", completed=n < 6, in_progress=n == 6)
        for n in range(20)
    ]
    shown.tell(ItemStarted(TodoList(id="1", items=entries)))
    live = shown.live(rows)
    assert len(live) <= max(3, rows // 3 + 1)
    assert live[1].startswith("• Plan · 6 of 20 done · +")
    assert steps in ", ".join(line.strip(" └✔▸□") for line in live)


def test_a_background_command_has_a_row_until_it_ends() -> None:
    shown = Shown()
    item = CommandExecution(id="1", command="/bin/bash -lc 'npm run dev'")
    shown.tell(
        TurnStarted(), ItemStarted(item), CommandOutputDelta("1", "one\nready\n")
    )
    assert shown.transcript.running.is_calling
    shown.tell(CommandInBackground("1"))
    assert not shown.transcript.running.is_calling
    row = "• In the background npm run dev · since 23:28 · ready"
    assert shown.live() == ["", row]
    shown.tell(TurnCompleted(Usage()))
    assert shown.live() == ["", row]
    assert shown.transcript.running.output_of("1") == "one\nready\n"
    stopped = replace(
        item, status="failed", exit_code=137, was_stopped=True, duration_ms=2000
    )
    shown.complete(stopped)
    assert shown.live() == []
    assert shown.lines[-1] == "• Ran npm run dev · stopped · 2s"


def test_a_prompt_that_was_sent_into_the_turn_says_so() -> None:
    shown = Shown()
    message = UserMessage(id="1", text="And the tests?")
    shown.complete(message)
    shown.tell(TurnStarted())
    shown.complete(message)
    assert shown.lines == [
        *("\u203a And the tests?", ""),
        *("  Sent into the turn, after a step:", "\u203a And the tests?"),
    ]


def test_a_turn_says_how_long_it_took_and_what_it_changed() -> None:
    shown = Shown()
    shown.tell(TurnStarted())
    shown.time_s += 1
    shown.tell(TurnCompleted(Usage()))
    shown.tell(TurnStarted())
    shown.time_s += 65
    diff = "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1,2 @@\n-1\n+2\n+3\n"
    shown.tell(TurnCompleted(Usage(), diff=diff))
    assert shown.lines == [
        *("  Worked for 1s · 23:28", ""),
        "  Worked for 1m 05s · 1 file +2 \u22121 · 23:28",
    ]


def test_thoughts_are_shown_unless_they_are_not_wanted() -> None:
    for wanted, printed in ((True, "\n  Thought for 4s · Asking\n"), (False, "")):
        shown = Shown(show_reasoning=wanted)
        shown.tell(ReasoningSummaryDelta("**Ask", 0))
        assert shown.live() == (["", "• Ask"] if wanted else [])
        shown.time_s += 4
        shown.tell(
            ReasoningSummaryDelta("ing**\n\nWh", 0), ReasoningSummaryDelta("**Look", 1)
        )
        assert shown.live() == (["", "", "  Wh", "", "  Look"] if wanted else [])
        shown.complete(ReasoningSummary(id="1", text="**Asking**\n\nWhy"))
        assert shown.text == printed


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("The **half", ["• The half"]),
        ("The `half", ["• The half"]),
        ("The **whole** and *", ["• The whole and"]),
        ("See [the man", ["• See [the man"]),
        ("See [the manual](https://exam", ["• See the manual"]),
        ("Above.\n\n##", []),
        ("| a | b", ["• a   b"]),
        ("| a | b |\n|--", ["• a   b"]),
        ("2 * 3", ["• 2 * 3"]),
    ],
)
def test_incomplete_markdown_shows_no_marks(text: str, rows: list[str]) -> None:
    shown = Shown()
    shown.tell(MessageDelta(text))
    assert [row for row in shown.live() if row and "\u2500" not in row] == rows


def test_output_keeps_its_colours_and_nothing_else() -> None:
    shown = Shown(theme=Theme())
    hostile = "\x1b[31mred\x1b[8mhidden\x1b[0m\x1b[5m \x1b[2J\x1b]0;t\x07\x1b]8;;http://x\x07x\x1b[40;30my"
    shown.complete(
        CommandExecution(
            id="1", command="x", status="completed", aggregated_output=hostile
        )
    )
    sequences = set(re.findall(r"\x1b[^a-zA-Z]*[a-zA-Z]", shown.text))
    assert sequences <= {f"\x1b[{n}m" for n in (0, 1, 2, 31, 32, 94, "30;40")}
    assert "redhidden xy" in re.sub(r"\x1b\[[0-9;]*m", "", shown.text)


def test_long_code_is_one_line_for_who_copies_it() -> None:
    shown = Shown(width=40, theme=Theme(color_system="truecolor", background="dark"))
    code = f"x = '{'y' * 90}'"
    shown.answer(f"```python\n{code}\n```\n")
    assert code in re.sub(r"\x1b\[[0-9;]*[mK]", "", shown.text)


def test_a_link_is_one_where_the_terminal_has_them_and_the_address_is_harmless() -> (
    None
):
    answer = "See [here](https://a.example/b) and [there](javascript:x) and [x](https://a\x07b)."
    for links, count in ((True, 2), (False, 0)):
        shown = Shown(theme=Theme(links=links))
        shown.answer(answer)
        assert shown.text.count("\x1b]8;;https://a.example/b\x1b\\") == count
        targets = re.findall(r"\x1b\]8;;(.*?)\x1b\\", shown.text)
        assert all(re.fullmatch("(https://[!-~]+)?", target) for target in targets)


def test_lines_of_wide_characters_are_filled() -> None:
    shown = Shown(width=22)
    shown.answer(f"CJK: {'漢' * 12} and")
    assert shown.lines == [f"• CJK: {'漢' * 7}", f"  {'漢' * 5} and"]


def test_joined_emoji_cut_no_word_though_a_terminal_may_not_join_them() -> None:
    shown = Shown(width=22)
    shown.answer(
        "one \U0001f469\u200d\U0001f4bb two \U0001f469\u200d\U0001f4bb three and four"
    )
    apart = "\U0001f469\u200d\U0001f4bb"
    assert shown.lines == [f"\u2022 one {apart} two {apart}", "  three and four"]


def test_tasks_have_boxes() -> None:
    shown = Shown()
    shown.answer("- [x] done\n- [ ] open\n\n1. [X] first\n")
    lines = [line for line in shown.lines if line]
    assert lines == ["• \u2611 done", "  \u2610 open", "  1. \u2611 first"]


def test_an_earlier_conversation_is_shown_again() -> None:
    shown = Shown()
    items: list[ThreadItem] = [
        UserMessage(id="1", text="Plan it."),
        TodoList(id="2", items=[TodoEntry(text="Do it", completed=False)]),
        AgentMessage(id="3", text="It is **planned**."),
        CommandExecution(
            id="4",
            command="rm x",
            aggregated_output="rejected: keep it",
            status="declined",
        ),
    ]
    shown.transcript.replay(items)
    assert shown.lines == [
        "\u203a Plan it.",
        "",
        "• Updated Plan",
        "  └ □ Do it",
        "",
        "• It is planned.",
        "",
        "✗ Declined rm x",
        "  └ rejected: keep it",
    ]


def test_of_a_very_long_conversation_the_end_is_shown() -> None:
    shown = Shown()
    shown.transcript.replay(
        [UserMessage(id=str(n), text=f"prompt {n}") for n in range(1000)]
    )
    assert shown.lines[0] == "• 800 earlier items are not shown"
    assert shown.lines[-1] == "\u203a prompt 999"


def test_frames_are_made_once() -> None:
    shown = Shown(theme=Theme())
    shown.tell(MessageDelta("text"))
    assert shown.transcript.live(80, 20) is shown.transcript.live(80, 20)


def test_another_theme_holds_for_what_comes_next() -> None:
    shown = Shown(theme=Theme())
    shown.tell(MessageDelta("text"))
    drawn = shown.transcript.live(80, 20)
    shown.transcript.notice("Careful", "warning")
    shown.renderer.theme = Theme(background="light")
    shown.transcript.notice("Careful", "warning")
    dark, light = (part for part in shown.parts if "Careful" in part)
    assert "\x1b[33m" in dark
    assert "\x1b[35m" in light
    assert shown.transcript.live(80, 20) is not drawn


@pytest.mark.parametrize("rows", [2, 3, 4, 5, 12])
def test_on_a_low_screen_what_runs_comes_before_the_steps_of_the_plan(
    rows: int,
) -> None:
    shown = Shown(40)
    steps = [TodoEntry(text=f"step {n}", completed=n < 1) for n in range(7)]
    script = "for i in 1 2 3 4 5 6 7 8; do\n  echo $i\ndone"
    shown.tell(TurnStarted(), ItemStarted(TodoList(id="1", items=steps)))
    shown.tell(
        ItemStarted(CommandExecution(id="2", command=f"/bin/bash -lc '{script}'"))
    )
    live = shown.live(rows)
    assert len(live) <= rows
    assert live[1].startswith("• Running for i in 1 2 3 4 5 6 7 8; do")
    assert live[1].endswith("do" if rows > 5 else "do…")
    hidden = 7 - sum("step " in line for line in live)
    plan = [line for line in live if line.startswith("• Plan · 1 of 7 done")]
    assert plan == ([f"• Plan · 1 of 7 done · +{hidden} steps"] if rows > 2 else [])

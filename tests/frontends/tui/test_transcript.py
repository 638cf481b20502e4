from dataclasses import replace

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
from tests.frontends.tui.shown import Shown
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


def test_what_is_live_looks_as_it_will_when_it_is_printed() -> None:
    answer = "- one **bold** item that is long enough to be wrapped\n- two\n\n```py\nx = [1]\n"
    shown = Shown(30)
    shown.tell(MessageDelta(answer))
    live = shown.live()
    shown.complete(AgentMessage(id="1", text=answer))
    assert shown.lines[-len(live) + 1 :] == live[1:]


def test_a_patch_that_failed_says_why() -> None:
    shown = Shown()
    changes = [Change(path="/repo/f", kind="update")]
    error = {"code": "PatchFailed", "message": "Failed to find expected lines in /repo/f:\nold"}
    shown.complete(FileChange(id="1", changes=changes, status="failed", error=error))
    assert shown.lines == [
        "✗ Failed to patch /repo/f",
        "  └ Failed to find expected lines in /repo/f:",
        "    old",
    ]


def test_an_answer_that_was_not_streamed_is_printed_whole() -> None:
    shown = Shown()
    shown.complete(AgentMessage(id="1", text="All at once."), AgentMessage(id="2", text="More."))
    assert shown.lines == ["• All at once.", "", "• More."]


def test_an_answer_that_comes_again_after_a_reconnect_is_shown_once() -> None:
    shown = Shown()
    shown.tell(MessageDelta("Half an ans"), reconnecting("cut"))
    assert shown.live() == []
    shown.answer("Half an answer, whole.")
    assert shown.lines == ["• Half an answer, whole."]
    assert shown.live() == []


def test_where_an_answer_that_is_printed_in_part_broke_off_is_told() -> None:
    shown = Shown()
    shown.tell(MessageDelta("One.\n\nTw"), reconnecting("cut"))
    shown.answer("One.\n\nTwo.")
    cut_off = ["• One.", "", "  Tw", "", "⚠ The answer broke off here and comes again", ""]
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
    assert shown.live(5) == ["", *(f"• Running make part{n}" for n in range(3)), "  … +6 running"]
    for rows in range(1, 12):
        assert len(shown.live(rows)) <= rows


def test_the_end_of_a_long_answer_is_live() -> None:
    shown = Shown(20)
    shown.tell(ItemStarted(running("1", "make")), MessageDelta("word " * 100))
    assert shown.live(5) == ["  word word word", "  word word word", "  word", "", "• Running make"]


def test_what_a_turn_leaves_unfinished_is_printed_at_its_end() -> None:
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
        "• Because",
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
    assert (shown.text, shown.live()) == ("", [])
    shown.tell(CommandOutputDelta("1", "listening"))
    assert shown.live() == []
    output = {"aggregated_output": "listening\n", "exit_code": 0, "status": "completed"}
    shown.complete(replace(command, **output))
    assert shown.lines == ["• Ran serve", "  └ listening"]


def test_a_plan_is_printed_at_every_change_and_not_at_its_end() -> None:
    def plan(completed: bool) -> TodoList:
        return TodoList(id="1", items=[TodoEntry(text="Do it", completed=completed)])

    shown = Shown()
    shown.tell(ItemStarted(plan(False)), ItemUpdated(plan(True)), ItemCompleted(plan(True)))
    assert shown.lines == [
        *("• Updated Plan", "  └ □ Do it", ""),
        *("• Updated Plan", "  └ ✔ Do it"),
    ]


def test_a_long_turn_says_how_long_it_took() -> None:
    shown = Shown()
    shown.tell(TurnStarted())
    shown.time_s += 1
    shown.tell(TurnCompleted(Usage()))
    assert shown.text == ""
    shown.tell(TurnStarted())
    shown.time_s += 65
    shown.tell(TurnCompleted(Usage()))
    assert shown.text == "\n  Worked for 1m 05s\n"


def test_thoughts_are_shown_unless_they_are_not_wanted() -> None:
    for wanted, printed in ((True, "\n• Why\n"), (False, "")):
        shown = Shown(show_reasoning=wanted)
        shown.tell(ReasoningSummaryDelta("Wh", 0))
        assert shown.live() == (["", "• Wh"] if wanted else [])
        shown.complete(ReasoningSummary(id="1", text="Why"))
        assert shown.text == printed


def test_an_earlier_conversation_is_shown_again() -> None:
    shown = Shown()
    items: list[ThreadItem] = [
        UserMessage(id="1", text="Plan it."),
        TodoList(id="2", items=[TodoEntry(text="Do it", completed=False)]),
        AgentMessage(id="3", text="It is **planned**."),
        CommandExecution(
            id="4", command="rm x", aggregated_output="rejected: keep it", status="declined"
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
    shown.transcript.replay([UserMessage(id=str(n), text=f"prompt {n}") for n in range(1000)])
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

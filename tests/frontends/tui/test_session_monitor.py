"""What is kept of the conversation for the overlay and for files, as it goes on."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from codex_py.frontends.tui.reading import conversation_pages
from codex_py.frontends.tui.session_monitor import SessionMonitor
from codex_py.frontends.tui.status import Status
from codex_py.protocol.event_items import INTERRUPTED, CommandExecution, UserMessage
from codex_py.protocol.events import (
    CommandOutputDelta,
    ErrorInfo,
    ItemStarted,
    MessageDelta,
    TurnCompleted,
    TurnFailed,
    TurnStarted,
)
from codex_py.protocol.stream import Usage
from tests.frontends.tui.shown import Shown


def followed(shown: Shown, *, is_unfinished: bool = False) -> SessionMonitor:
    ui = cast("Any", SimpleNamespace(status=Status()))
    session, config = (
        cast("Any", SimpleNamespace(is_unfinished=is_unfinished)),
        cast("Any", None),
    )
    return SessionMonitor(ui, shown.transcript, lambda: session, lambda: config)


def test_an_answer_that_was_cut_off_and_what_ended_the_turn_can_be_read() -> None:
    monitor = followed(Shown())
    monitor.said.append(UserMessage(id="", text="Tell me."))
    for event in (
        TurnStarted(),
        MessageDelta("One paragraph.\n\nHalf of"),
        TurnFailed(ErrorInfo("the turn was interrupted", code="aborted")),
        TurnStarted(),
        TurnFailed(ErrorInfo("503: at lunch", code="http_503")),
    ):
        monitor(event)
    again = Shown()
    again.transcript.replay(monitor.said)
    assert again.lines == [
        "\u203a Tell me.",
        "",
        "• One paragraph.",
        "",
        "  Half of",
        "",
        f"■ {INTERRUPTED}",
        "",
        "■ 503: at lunch",
    ]


def test_a_reader_that_begins_during_a_turn_gets_its_whole_time() -> None:
    shown = Shown()
    command = CommandExecution(id="1", command="make")
    shown.tell(TurnStarted(), MessageDelta("Half"), ItemStarted(command))
    shown.tell(CommandOutputDelta("1", "built\n"))
    shown.time_s += 5
    pages, reader = conversation_pages("", [], shown.transcript, shown.renderer)
    rows = ["".join(part[1] for part in row).rstrip() for row in reader.live(80, 20)]
    assert rows == shown.live()
    assert "• Running make · 5s" in rows
    for transcript in (shown.transcript, reader):
        transcript(CommandOutputDelta("1", "more\n"))
    assert (
        reader.running.output_of("1")
        == shown.transcript.running.output_of("1")
        == "built\nmore\n"
    )
    shown.time_s += 9
    reader(TurnCompleted(Usage()))
    assert "Worked for 14s" in shown.renderer.text(pages.sections[-1].cell, 80)


@pytest.mark.parametrize(
    ("code", "is_offered"),
    [("http_503", True), ("aborted", False), ("nothing_to_compact", False)],
)
def test_a_retry_is_offered_for_what_can_be_tried_again(
    code: str, is_offered: bool
) -> None:
    shown = Shown()
    monitor = followed(shown, is_unfinished=True)
    for event in (TurnStarted(), TurnFailed(ErrorInfo("It did not work.", code=code))):
        monitor(event)
    assert (
        "Enter on an empty prompt, or /retry, tries again." in shown.text
    ) is is_offered
    assert monitor.offers_retry is is_offered

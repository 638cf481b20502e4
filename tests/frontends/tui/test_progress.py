"""What is kept of the conversation for the overlay and for files, as it goes on."""

from types import SimpleNamespace
from typing import Any, cast

from codex_py.frontends.tui.progress import Progress
from codex_py.frontends.tui.status import Status
from codex_py.protocol.event_items import INTERRUPTED, UserMessage
from codex_py.protocol.events import ErrorInfo, MessageDelta, TurnFailed, TurnStarted
from tests.frontends.tui.shown import Shown


def followed(shown: Shown) -> Progress:
    surface = cast("Any", SimpleNamespace(status=Status()))
    config = cast("Any", None)
    return Progress(surface, shown.transcript, lambda: None, lambda: config)


def test_an_answer_that_was_cut_off_and_what_ended_the_turn_can_be_read() -> None:
    progress = followed(Shown())
    progress.said.append(UserMessage(id="", text="Tell me."))
    for event in (
        TurnStarted(),
        MessageDelta("One paragraph.\n\nHalf of"),
        TurnFailed(ErrorInfo("the turn was interrupted", code="aborted")),
        TurnStarted(),
        TurnFailed(ErrorInfo("503: at lunch", code="http_503")),
    ):
        progress(event)
    again = Shown()
    again.transcript.replay(progress.said)
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

"""The line above the composer while the model is silent."""

import asyncio
import time
from typing import Any

import pytest

from codex_py.frontends.tui.questions import ask_user
from codex_py.frontends.tui.status import Status
from codex_py.protocol.mcp import Elicitation, UserQuestion


def working(silent_s: float, *, is_calling: bool = False, columns: int = 80) -> str:
    now = time.monotonic()
    status = Status(
        working_since=now - 90, heard_at=now - silent_s, is_calling=is_calling
    )
    status.known["turn-usage"] = "12.3k tokens, $0.012"
    return "".join(part[1] for part in status.working(columns))


@pytest.mark.parametrize(
    ("silent_s", "is_calling", "is_told"),
    [
        (18.5, False, False),
        (20.5, False, True),
        # A call that runs keeps the model waiting.
        (75, True, False),
    ],
)
def test_a_silence_of_twenty_seconds_is_told(
    silent_s: float, is_calling: bool, is_told: bool
) -> None:
    line = working(silent_s, is_calling=is_calling)
    assert ("nothing received for 20s" in line) == is_told
    assert "esc to interrupt" in line


def test_a_silence_is_told_rather_than_what_the_turn_has_cost() -> None:
    assert working(75, columns=80).endswith(
        "(1m 30s • nothing received for 1m 15s • esc to interrupt)"
    )
    assert working(75, columns=60).endswith("(1m 30s • nothing received for 1m 15s)")
    assert "12.3k tokens, $0.012" in working(75, columns=140)


def test_status_items_without_room_are_left_out() -> None:
    assert working(20.5, columns=40).endswith("(1m 30s • esc to interrupt)")


@pytest.mark.parametrize(
    ("columns", "shown"),
    [
        (40, "• How should users log … (Tab to answer)"),
        (60, "• How should users log in? (Tab to answer)"),
    ],
)
def test_a_question_that_waits_is_cut_at_its_end(columns: int, shown: str) -> None:
    asked: list[str] = []

    class Panels:
        async def ask(self, _: object, *, about: str) -> str:
            asked.append(about)
            return "dismissed"

    panels: Any = Panels()
    question = UserQuestion(
        "a", "Login", "How should users log in?", (("By mail", ""),)
    )
    form = Elicitation("codex-py", question.question, questions=(question,))
    asyncio.run(ask_user(panels, form))
    status = Status(announced=asked[0], questions=1)
    assert "".join(part[1] for part in status.working(columns)) == shown

"""What a user sees of a model that answers in their place."""

import pytest

from codex_py.testing import Pause, ev_completed, ev_message
from tests.extensions.approval_review.test_approve_for_me import verdict
from tests.frontends.tui.terminals import Start, leave
from tests.frontends.tui.test_approval import QUESTION, asks
from tests.support.program import Workplace
from tests.support.server import ScriptedServer

REASON = "It is what was asked for."
DONE = [*ev_message("That was it."), ev_completed()]


@pytest.mark.parametrize("columns", [40, 80, 140])
@pytest.mark.parametrize(
    ("decision", "did"), [("allow", "allowed"), ("deny", "refused")]
)
def test_the_verdict_and_its_reason_are_shown_and_nothing_is_asked(
    start: Start, place: Workplace, decision: str, did: str, columns: int
) -> None:
    script = [asks("touch made"), verdict(decision, "medium", REASON), DONE]
    with ScriptedServer(script, check_prefix=False) as server:
        program = start(server, "--approve-for-me", "Make it.", columns=columns)
        program.wait_for("That was it.")
        shown = " ".join(" ".join(program.scrollback).split())
        verdict_shown = (
            f"The reviewer {did} `/bin/bash -lc 'touch made'` (risk: medium): {REASON}"
        )
        assert verdict_shown in shown
        assert QUESTION not in shown
        assert (place.cwd / "made").exists() is (decision == "allow")
        leave(program)


def test_a_reviewer_that_hangs_can_be_interrupted(
    start: Start, place: Workplace
) -> None:
    with ScriptedServer([asks("touch made"), [Pause()]], check_prefix=False) as server:
        program = start(server, "--approve-for-me", "Make it.")
        program.wait_until(lambda: len(server.requests) == 2, what="the review")
        program.press("esc")
        program.wait_for("Conversation interrupted")
        assert not (place.cwd / "made").exists()
        leave(program)


def test_a_reason_cannot_write_on_the_terminal(start: Start) -> None:
    reason = "\x1b[2J\x1b]0;owned\x07\u202eIt\nis\r harmless."
    script = [asks("true; echo '\x1b[31m'"), verdict("deny", "low", reason), DONE]
    with ScriptedServer(script, check_prefix=False) as server:
        program = start(server, "--approve-for-me", "Make it.", columns=200)
        program.wait_for("That was it.")
        shown = "\n".join(program.scrollback)
        assert (
            "(risk: low): \u241b[2J\u241b]0;owned\u2407\\u202eIt is harmless." in shown
        )
        assert "owned" not in program.title
        leave(program)

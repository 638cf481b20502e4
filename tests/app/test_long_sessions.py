"""Sessions that no longer fit the window of their model, by every API and in the session file."""

import json
from collections.abc import Mapping

import pytest

from codex_py.core.session import Session
from codex_py.instructions import instruction_text
from codex_py.testing import Reply, ev_function_call, ev_message
from codex_py.testing.events import ev_created, ev_failed, ev_incomplete
from codex_py.testing.server import Script
from tests.support.program import Workplace
from tests.support.wires import AnyWire, ends, runs

SAYS = ends(*ev_message("an answer"))
MARK = instruction_text("compact/shortened.md")[:40]


def refused(status: int, **error: str) -> Reply:
    return Reply(status=status, body=json.dumps({"error": error}).encode())


TOO_LONG = refused(
    400,
    code="context_length_exceeded",
    message="Your input exceeds the context window of this model.",
)
NO_SUMMARY = refused(400, message="Something is wrong with it.")
REFUSALS: Mapping[str, Script] = {
    "status": TOO_LONG,
    "words": refused(
        400,
        type="invalid_request_error",
        message="prompt is too long: 9 tokens > 8 maximum",
    ),
    "gateway": Reply(status=413, body=b"<html>413 Request Entity Too Large</html>"),
    "stream": [ev_created(), ev_failed("context_length_exceeded", "Too long.")],
}


def much(*more: object) -> Script:
    return ends(*runs("c1", "seq 1 5000"), *more)


@pytest.mark.parametrize("how", REFUSALS)
@pytest.mark.parametrize("wire", ["responses", "chat", "anthropic", "text"])
def test_a_request_that_a_server_calls_too_long_is_sent_again_shorter(
    place: Workplace, wire: str, how: str
) -> None:
    async def work(session: Session) -> None:
        (await session.run_turn("mend my roof")).raise_for_error()
        (await session.run_turn("last words")).raise_for_error()

    with AnyWire(place, check_prefix=False) as wires:
        wires.session(wire, work, much(), SAYS, REFUSALS[how], NO_SUMMARY, SAYS)
    last = wires.requests[-1].raw.decode()
    assert wires.last["type"] == "turn.completed"
    assert "characters cut" in last or "2500" not in last
    assert all(words in last for words in ("mend my roof", "last words", MARK))
    (warning,) = wires.warnings
    assert warning.startswith(
        "The conversation was shortened without a summary (unexpected status 400"
    )
    assert "Something is wrong with it." in warning


def test_a_response_that_is_cut_short_by_the_window_is_no_end_either(
    place: Workplace,
) -> None:
    cut = [ev_created(), ev_incomplete("context_length_exceeded")]
    with AnyWire(place, check_prefix=False) as wires:
        wires.prompt("responses", "go", much(), cut, NO_SUMMARY, SAYS)
    assert wires.last["type"] == "turn.completed"


def test_plan_and_instructions_outlive_a_session_without_summaries(
    place: Workplace,
) -> None:
    for folder, text in (("", "Top rules."), ("sub", "Nested rules.")):
        (place.cwd / folder).mkdir(exist_ok=True)
        (place.cwd / folder / "AGENTS.md").write_text(text, encoding="utf-8")
    plan = {"plan": [{"step": "a new roof", "status": "in_progress"}]}

    async def work(session: Session) -> None:
        (await session.run_turn("mend my roof")).raise_for_error()
        for _ in range(3):
            (await session.run_turn("more words")).raise_for_error()

    turn = [much(), TOO_LONG, NO_SUMMARY, SAYS]
    with AnyWire(place, check_prefix=False) as wires:
        wires.session(
            "responses",
            work,
            ends(*ev_function_call("p", "update_plan", plan), *runs("s", "ls sub", 2)),
            *turn,
            *[much(), SAYS],
            *turn,
            *turn,
        )
    last = wires.requests[-1].raw.decode()
    for text in (
        "Top rules.",
        "Nested rules.",
        "- [in_progress] a new roof",
        "mend my roof",
    ):
        assert last.count(text) == 1
    assert len(wires.warnings) == 4

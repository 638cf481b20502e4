"""Sessions of Codex that go on here, and homes that cannot be written.

Tests `app/thread.py`.
"""

import json
from pathlib import Path

from codex_py.testing import ev_completed, ev_message
from tests.support.program import Outcome, Workplace
from tests.support.server import ScriptedServer

ANSWERS = [
    [*ev_message(text), ev_completed()] for text in ("one", "two", "three", "four")
]


def thread(outcome: Outcome) -> str:
    return outcome.events[0]["thread_id"]


def as_codex_writes(path: Path) -> None:
    """Number the lines, as Codex 0.169 does."""
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    numbered = [json.dumps({**line, "ordinal": n}) for n, line in enumerate(lines)]
    path.write_text("\n".join(numbered) + "\n", encoding="utf-8")


def test_a_session_of_codex_goes_on_in_one_file_and_says_which(
    place: Workplace,
) -> None:
    with ScriptedServer(ANSWERS) as server:
        native = thread(place.run(server, "first"))
        (path,) = (place.home / "sessions").rglob("*.jsonl")
        as_codex_writes(path)
        second = place.rerun("resume", native, "second")
        fork = thread(second)
        assert fork != native
        told = f"Session {native} was written by Codex; it goes on as {fork}."
        assert [i["message"] for i in second.items if i["type"] == "error"] == [told]
        third = place.rerun("resume", native, "third")
        assert thread(third) == fork
        told = f"Session {native} goes on as {fork}."
        assert [i["message"] for i in third.items if i["type"] == "error"] == [told]
        assert "second" in json.dumps(server.requests[2].input)
        fourth = place.rerun("resume", fork, "fourth")
        assert thread(fourth) == fork
        assert [item for item in fourth.items if item["type"] == "error"] == []


def test_the_last_session_is_the_one_in_which_codex_s_went_on(place: Workplace) -> None:
    with ScriptedServer(ANSWERS) as server:
        native = thread(place.run(server, "first"))
        (path,) = (place.home / "sessions").rglob("*.jsonl")
        as_codex_writes(path)
        fork = thread(place.rerun("resume", "--last", "second"))
        assert fork != native
        assert thread(place.rerun("resume", "--last", "third")) == fork


def test_a_home_that_cannot_be_written_costs_the_session_file_alone(
    place: Workplace,
) -> None:
    (place.home / "sessions").touch()
    with ScriptedServer(ANSWERS) as server:
        outcome = place.run(server, "go")
        assert (outcome.code, outcome.messages) == (0, ["one"])
        (warning,) = [i["message"] for i in outcome.items if i["type"] == "error"]
        assert "cannot be written: Not a directory" in warning
        assert warning.endswith("this session is not kept, as with --ephemeral")
        done = place.rerun("resume", "--last", "x")
        assert (done.code, "no session to resume" in done.err) == (2, True)
        assert place.rerun("--ephemeral", "go").items[0]["type"] == "agent_message"

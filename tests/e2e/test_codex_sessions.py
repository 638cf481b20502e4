"""Sessions that go on in turn here and in Codex, which `CODEX_BINARY` names: neither loses or adds anything."""

import subprocess
from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest

from codex_py.testing import Pause, Reply, ev_completed, ev_function_call
from tests.support.agents import AgentServer, Step, calls, says, waits
from tests.support.codex import CODEX, ask_app_server, needs_codex
from tests.support.program import Workplace, environment, jsonl
from tests.support.server import ScriptedServer

pytestmark = needs_codex

OURS, THEIRS = "ours", "theirs"
CALL = [*ev_function_call("c1", "exec_command", {"cmd": "echo hi"})]
SMALL = ("-c", "model_auto_compact_token_limit=900")
SUBAGENT = [
    calls("spawn_agent", "c1", message="count"),
    waits("c2"),
    says("counted"),
]


def full(call: Sequence[Any]) -> list[Any]:
    """A response that fills the window of `SMALL`."""
    return [*call, ev_completed(input_tokens=1000)]


class Run(NamedTuple):
    program: str
    prompt: str
    verb: str = "resume"
    options: tuple[str, ...] = ()


class Case(NamedTuple):
    script: list[Step]
    runs: list[Run]
    expected: list[str]
    """What user and model said, as the last request has it."""


CASES = {
    "a fork by Codex": Case(
        [[*CALL, ev_completed()], says("1"), says("2"), says("3"), says("4")],
        [
            Run(OURS, "one", ""),
            Run(THEIRS, "two", "fork"),
            Run(OURS, "three"),
            Run(THEIRS, "four"),
        ],
        ["one", "1", "two", "2", "three", "3", "four"],
    ),
    "a fork of ours": Case(
        [[*CALL, ev_completed()], says("1"), says("2"), says("3"), says("4")],
        [
            Run(THEIRS, "one", ""),
            Run(OURS, "two", "fork"),
            Run(THEIRS, "three"),
            Run(OURS, "four"),
        ],
        ["one", "1", "two", "2", "three", "3", "four"],
    ),
    "a compaction by Codex": Case(
        [full(CALL), says("the note"), says("1"), says("2"), says("3")],
        [Run(THEIRS, "one", "", SMALL), Run(OURS, "two"), Run(THEIRS, "three")],
        ["one", "the note", "1", "two", "2", "three"],
    ),
    "a compaction of ours": Case(
        [full(CALL), says("the note"), says("1"), says("2"), says("3")],
        [Run(OURS, "one", "", SMALL), Run(THEIRS, "two"), Run(OURS, "three")],
        ["one", "the note", "1", "two", "2", "three"],
    ),
    "subagents of Codex": Case(
        [*SUBAGENT, says("2"), says("3")],
        [Run(THEIRS, "one", ""), Run(OURS, "two"), Run(THEIRS, "three")],
        ["one", "counted", "two", "2", "three"],
    ),
    "subagents of ours": Case(
        [*SUBAGENT, says("2"), says("3")],
        [Run(OURS, "one", ""), Run(THEIRS, "two"), Run(OURS, "three")],
        ["one", "counted", "two", "2", "three"],
    ),
    "a turn that failed": Case(
        [Reply(status=400, body=b"{}"), says("2"), says("3")],
        [Run(OURS, "one", ""), Run(THEIRS, "two"), Run(OURS, "three")],
        ["one", "two", "2", "three"],
    ),
}


def play(place: Workplace, run: Run, thread_id: str) -> str:
    """Returns the id of the thread in which it went on."""
    words = [*run.options, *([run.verb, thread_id] if run.verb else []), run.prompt]
    if run.program == OURS:
        return place.rerun(*words).events[0]["thread_id"]
    done = codex(place, *words)
    out, err = done.communicate(timeout=120)
    assert done.returncode == 0, err.decode()
    return jsonl(out)[0]["thread_id"]


def codex(place: Workplace, *words: str) -> subprocess.Popen[bytes]:
    assert CODEX is not None
    return subprocess.Popen(
        [CODEX, "exec", "--json", "--skip-git-repo-check", *words],
        cwd=place.cwd,
        env=environment(place.home),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def configure(place: Workplace, server: ScriptedServer) -> None:
    # No model of the catalogue: for those, Codex sends the tools of subagents behind a search.
    settings = server.config_toml(
        model="mystery", request_max_retries=0, stream_max_retries=0
    )
    settings = f"{settings}\n[analytics]\nenabled = false\n"
    (place.home / "config.toml").write_text(settings, encoding="utf-8")


def said(items: Sequence[dict[str, Any]]) -> list[str]:
    """The last line of each text of user and model, without the context."""
    context = ("<environment_context>", "# AGENTS.md", "<subagent_notification>")
    return [
        text.splitlines()[-1]
        for item in items
        if item.get("role") in {"user", "assistant"}
        and not (text := item["content"][-1]["text"]).startswith(context)
    ]


@pytest.mark.parametrize("name", CASES)
def test_a_session_goes_on_in_turn(place: Workplace, name: str) -> None:
    case, thread_id = CASES[name], ""
    # What each adds as context differs; that calls and outputs belong together is checked.
    with AgentServer(case.script, [says("three")], check_prefix=False) as server:
        configure(place, server)
        for run in case.runs:
            thread_id = play(place, run, thread_id)
        items = server.of_parent()[-1].input
    assert said(items) == case.expected


def test_turns_that_codex_takes_back_stay_away(place: Workplace) -> None:
    home = environment(place.home)
    with ScriptedServer(
        [says("1"), says("2"), says("3"), says("4")], check_prefix=False
    ) as server:
        configure(place, server)
        thread_id = play(place, Run(THEIRS, "one", ""), "")
        play(place, Run(THEIRS, "two"), thread_id)
        thread = {"threadId": thread_id}
        _, turns = ask_app_server(
            home, place.cwd, ("thread/resume", thread), ("thread/turns/list", thread)
        )
        revert = {**thread, "beforeTurnId": turns["data"][0]["id"]}
        ask_app_server(
            home, place.cwd, ("thread/resume", thread), ("thread/revert", revert)
        )
        thread_id = play(place, Run(OURS, "three"), thread_id)
        play(place, Run(THEIRS, "four"), thread_id)
    assert said(server.requests[2].input) == ["one", "1", "three"]
    assert said(server.requests[3].input) == ["one", "1", "three", "3", "four"]


def test_only_one_program_writes_a_session(place: Workplace) -> None:
    silence, more = Pause(), Pause()
    script = [
        says("1"),
        [silence, *says("2")],
        says("a copy"),
        says("3"),
        [more, *says("4")],
    ]
    with ScriptedServer(script, check_prefix=False) as server:
        configure(place, server)
        theirs = play(place, Run(THEIRS, "one", ""), "")
        running = codex(place, "resume", theirs, "two")
        assert silence.reached.wait(120)
        refused = place.rerun("resume", theirs, "and I")
        assert (
            refused.err == f"Error: session {theirs} is in use by another process;"
            " wait until that one has ended, or fork the session\n"
        )
        assert (refused.code, refused.events) == (1, [])
        assert place.rerun("fork", theirs, "and I").messages == ["a copy"]
        silence.until.set()
        assert running.wait(120) == 0
        running.communicate()

        ours = place.rerun("resume", theirs, "and I").events[0]["thread_id"]
        program = place.start("resume", ours, "four")
        assert more.reached.wait(120)
        other = codex(place, "resume", ours, "and I")
        _, err = other.communicate(timeout=120)
        more.until.set()
        assert program.wait(120) == 0
        program.communicate()
    assert other.returncode == 1
    assert "already has an active writer" in err.decode()

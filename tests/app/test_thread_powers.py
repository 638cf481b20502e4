"""What an extension of a caller can do through its `Thread`, with public names alone.

Tests `app/user_commands.py`.
"""

import json
import os
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from codex_py import (
    CodexError,
    CommandResult,
    Extension,
    Feature,
    NewChild,
    Note,
    SandboxPolicy,
    Session,
    Thread,
    TurnStop,
)
from codex_py.protocol.events import AgentEvent
from tests.app.test_extensions import calls, run, says
from tests.support.lifeline import Lifeline
from tests.support.program import Workplace

SANDBOXED: dict[str, Any] = {
    "sandbox_mode": "workspace-write",
    "sandbox_workspace_write": {
        "exclude_slash_tmp": True,
        "exclude_tmpdir_env_var": True,
    },
}


def verify(command: str, retries: int = 3) -> Feature:
    """Run a command of the user before a turn ends, in the sandbox; the model gets to mend what it finds."""

    def feature(thread: Thread) -> Extension:
        failed: str | None = None

        async def before_stop(stop: TurnStop) -> Note | None:
            nonlocal failed
            ran = await thread.run_command(command, sandboxed=True, timeout_s=60)
            failed = None if ran.exit_code == 0 else f"{ran.stdout}{ran.stderr}"
            if failed is None or not stop.rounds_left:
                return None
            return Note(f"<verify>\n`{command}` failed:\n{failed}</verify>", "user")

        def turn_facts() -> dict[str, Any]:
            fact = {"command": command, "passed": failed is None}
            return {"gates": [fact], "exit_code": 0 if failed is None else 3}

        return Extension(
            before_stop=before_stop, max_rounds=retries, turn_facts=turn_facts
        )

    return feature


def ran(
    place: Workplace, command: Any, flags: dict[str, Any] | None = None, **how: Any
) -> Any:
    """The result of a command that a caller's extension runs, or the `CodexError`."""
    results: list[CommandResult | CodexError] = []
    how = {"timeout_s": 20, **how}

    async def work(session: Session) -> None:
        (thread,) = threads
        try:
            results.append(await thread.run_command(command, **how))
        except CodexError as error:
            results.append(error)

    threads: list[Thread] = []

    def feature(thread: Thread) -> Extension:
        threads.append(thread)
        return Extension()

    run(place, [], feature, work=work, flags=flags)
    return results[0]


def test_a_gate_runs_in_the_sandbox_without_keys(place: Workplace) -> None:
    outside = place.home.parent / "outside"
    command = f"env >> seen; touch {outside}; [ -e ok ]"
    replies = [says("done"), calls("exec_command", cmd="touch ok"), says("now")]
    talk = run(place, replies, verify(command), flags=SANDBOXED)
    assert talk.result.last_message == "now"
    assert talk.result.exit_code == 0
    assert talk.ends[-1].facts["gates"] == [{"command": command, "passed": True}]
    role, text = talk.texts(1)[-1]
    assert (role, f"`{command}` failed:" in text) == ("user", True)
    assert not outside.exists()
    seen = (place.cwd / "seen").read_text(encoding="utf-8")
    assert "CODEX_THREAD_ID=" in seen
    assert "MOCK_KEY" not in seen


def test_a_gate_that_never_passes_fails_the_run(place: Workplace) -> None:
    talk = run(place, [says("one"), says("two")], verify("false", 1), flags=SANDBOXED)
    assert talk.result.exit_code == 3
    assert talk.ends[-1].facts["gates"][0]["passed"] is False


@pytest.mark.parametrize("sandboxed", [True, False])
def test_a_command_gets_input_and_variables_and_its_streams_are_apart(
    place: Workplace, sandboxed: bool
) -> None:
    result = ran(
        place,
        "cat; echo $OWN; echo problem >&2; exit 7",
        SANDBOXED,
        sandboxed=sandboxed,
        stdin=b"given ",
        environment={"OWN": "mine"},
    )
    assert (result.exit_code, result.stdout) == (7, "given mine\n")
    assert result.stderr == "problem\n"


@pytest.mark.parametrize("sandboxed", [True, False])
def test_a_command_is_bounded_and_nothing_of_it_is_left(
    place: Workplace, tmp_path: Path, sandboxed: bool
) -> None:
    with Lifeline(place.cwd) as lifeline:
        script = f"head -c 300000 /dev/zero; echo end; {lifeline.hold} setsid sleep 300 & wait"
        how: dict[str, Any] = {
            "sandboxed": sandboxed,
            "timeout_s": 2,
            "max_output_bytes": 1000,
        }
        result = ran(place, script, SANDBOXED, **how)
        lifeline.wait_until_dead()
    assert result.exit_code is None
    assert result.stdout.endswith("\0end\n")
    assert len(result.stdout) < 1100


def test_a_program_outside_of_the_sandbox_is_not_the_projects(
    place: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted = place.cwd / "bin/checker"
    planted.parent.mkdir()
    planted.write_text("#!/bin/sh\necho planted\n", encoding="utf-8")
    planted.chmod(0o755)
    monkeypatch.setenv("PATH", f"{planted.parent}:{os.environ['PATH']}")
    refused = ran(place, ["checker"], sandboxed=False)
    assert isinstance(refused, CodexError)
    assert "found only inside the project" in str(refused)
    assert ran(place, "checker", sandboxed=False).exit_code == 127
    # The sandbox holds it, so the project's own tools are found.
    assert ran(place, ["checker"], SANDBOXED, sandboxed=True).stdout == "planted\n"


def test_a_program_that_is_missing_is_one_sentence(place: Workplace) -> None:
    for sandboxed in (True, False):
        error = ran(place, ["no-such-program"], sandboxed=sandboxed)
        assert isinstance(error, CodexError)
        assert "no-such-program" in str(error)


def test_an_extension_is_told_once_when_the_tools_are_loaded(place: Workplace) -> None:
    told: list[bool] = []

    def feature(_: Thread) -> Extension:
        return Extension(
            loaded=lambda: told.append("codex_py.app.tool_parts" in sys.modules)
        )

    run(
        place,
        [
            calls("update_plan", plan=[]),
            calls("update_plan", "c2", plan=[]),
            says("done"),
        ],
        feature,
    )
    assert told == [True]


def review(thread: Thread) -> Extension:
    """Have a child that can only read look at the work before a turn ends."""

    async def before_stop(stop: TurnStop) -> Note | None:
        choices = replace(
            thread.settings.choices, sandbox_policy=SandboxPolicy(is_final=True)
        )
        if thread.parent is not None or not stop.rounds_left:
            return None
        async with thread.open_child(
            NewChild("Reviewer", role="review", choices=choices)
        ) as child:
            for request in ("Review the work.", "Answer in JSON."):
                result = await child.run_turn(request)
                if result.error is not None:
                    raise result.error
                with suppress(ValueError):
                    findings = json.loads(result.last_message or "")
                    return (
                        Note(f"<review>\n{findings}\n</review>", "user")
                        if findings
                        else None
                    )
        return None

    return Extension(before_stop=before_stop, max_rounds=1)


def test_all_that_a_child_uses_and_is_refused_is_told_of_its_parent(
    place: Workplace,
) -> None:
    place.cwd.joinpath("made").write_text("x", encoding="utf-8")
    replies = [
        says("done"),
        calls("exec_command", cmd="touch hacked"),
        says("no JSON"),
        says('["too long"]'),
        says("mended"),
    ]
    flags = {**SANDBOXED, "features": {"multi_agent": False}}
    talk = run(place, replies, review, flags=flags, check_prefix=False)
    assert not (place.cwd / "hacked").exists()
    assert "<review>\n['too long']\n</review>" in talk.texts(4)[-1][1]
    assert talk.result.last_message == "mended"
    of_one = run(place, [says("done")]).result.usage
    assert talk.result.usage.input_tokens == 5 * of_one.input_tokens > 0
    assert talk.result.usage.output_tokens == 5 * of_one.output_tokens
    shown = {event.event.type for event in talk.events if isinstance(event, AgentEvent)}
    assert {"thread.started", "turn.completed"} <= shown

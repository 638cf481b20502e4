"""Hooks of the real program."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from codex_py.testing import RecordedRequest, ev_completed, ev_custom_tool_call
from tests.support.agents import AgentServer, calls, is_child, says, texts, waits
from tests.support.hooks import DONE, command, configure, group, note
from tests.support.lifeline import Lifeline
from tests.support.program import Workplace, jsonl, run_codex_py
from tests.support.server import ScriptedServer

BYPASS = "--dangerously-bypass-hook-trust"


def test_hooks_are_lines_for_people(place: Workplace) -> None:
    configure(
        place, {"PreToolUse": ["printf 'no\\033[31m' >&2; exit 2"], "Stop": ["exit 3"]}
    )
    with ScriptedServer([command("true"), DONE] * 2) as server:
        outcome = place.run(server, BYPASS, "go")
        shown = run_codex_py(
            ["exec", "--skip-git-repo-check", BYPASS, "go"], place.home, place.cwd
        )
    assert outcome.code == shown.returncode == 0
    types = [item["type"] for item in outcome.items]
    assert types == ["error", "error", "agent_message", "error"]
    lines = shown.stderr.decode().splitlines()
    assert [line for line in lines if line.startswith("hook:")] == [
        "hook: PreToolUse",
        "hook: PreToolUse Blocked",
        "hook: Stop",
        "hook: Stop Failed",
    ]
    assert "\033" not in shown.stderr.decode()
    blocked = "Command blocked by PreToolUse hook: no␛[31m. Command: true"
    assert [line for line in lines if "blocked by" in line] == [
        f"denied: exec_command: {blocked}"
    ]


def test_a_call_that_a_hook_refuses_is_shown_and_counted_as_refused(
    place: Workplace,
) -> None:
    configure(place, {"PreToolUse": ["echo no >&2; exit 2"]})
    with ScriptedServer([command("touch made"), DONE]) as server:
        outcome = place.run(server, BYPASS, "--fail-on", "denied", "go")
    assert outcome.code == 5
    item = next(item for item in outcome.items if item.get("tool") == "exec_command")
    blocked = "Command blocked by PreToolUse hook: no. Command: touch made"
    assert (item["type"], item["code"]) == ("error", "ApprovalDenied")
    assert item["message"].endswith(blocked)
    assert outcome.events[-1]["denied"] == {"calls": 1, "allow": []}


def test_a_patch_that_a_hook_refuses_is_a_failed_change_of_files(
    place: Workplace,
) -> None:
    configure(place, {"PreToolUse": ["echo no >&2; exit 2"]})
    patch = "*** Begin Patch\n*** Add File: made\n+text\n*** End Patch"
    with ScriptedServer(
        [[*ev_custom_tool_call("c", "apply_patch", patch), ev_completed()], DONE] * 2
    ) as server:
        outcome = place.run(server, BYPASS, "go")
        text = run_codex_py(
            ["exec", "--skip-git-repo-check", BYPASS, "go"], place.home, place.cwd
        )
    (item,) = [item for item in outcome.items if item["type"] == "file_change"]
    reason = f"Command blocked by PreToolUse hook: no. Command: {patch}"
    made = str(place.cwd / "made")
    assert item == {
        "id": item["id"],
        "type": "file_change",
        "changes": [{"path": made, "kind": "add"}],
        "status": "failed",
        "error": {"code": "ApprovalDenied", "message": reason},
    }
    assert outcome.events[-1]["denied"] == {"calls": 1, "allow": []}
    lines = text.stderr.decode().split("apply patch\n")[1].splitlines()
    first = reason.splitlines()[0]
    assert lines[:3] == ["patch: declined", made, f"denied: apply_patch: {first}"]


@pytest.mark.parametrize(
    ("event", "hook", "what"),
    [
        ("UserPromptSubmit", "echo no >&2; exit 2", "the prompt"),
        (
            "SessionStart",
            'echo \'{"continue": false, "stopReason": "no"}\'',
            "the turn",
        ),
    ],
)
def test_a_script_can_tell_that_a_hook_refused_the_prompt(
    place: Workplace, event: str, hook: str, what: str
) -> None:
    configure(place, {event: [hook]})
    schema = place.cwd / "schema.json"
    schema.write_text("{}", encoding="utf-8")
    told = f"A {event} hook stopped {what}: no"
    with ScriptedServer([]) as server:
        outcome = place.run(server, BYPASS, "--output-schema", str(schema), "go")
        text = run_codex_py(
            ["exec", "--skip-git-repo-check", BYPASS, "go"], place.home, place.cwd
        )
        assert server.requests == []
    assert (outcome.code, text.returncode, text.stdout) == (3, 3, b"")
    assert (outcome.types[-1], outcome.events[-1]["prompt_refused"]) == (
        "turn.completed",
        told,
    )
    assert [
        item["message"] for item in outcome.items if "stopped" in item["message"]
    ] == [told]
    assert f"warning: {told}" in text.stderr.decode()


def test_without_a_review_hooks_are_told_and_not_run(place: Workplace) -> None:
    configure(place, {"PreToolUse": ["touch ran"]})
    with ScriptedServer([command("true"), DONE]) as server:
        outcome = place.run(server)
    assert not (place.cwd / "ran").exists()
    (warning,) = [item["message"] for item in outcome.items if item["type"] == "error"]
    assert f"(1, in {place.home}/hooks.json) do not run" in warning


def test_hooks_can_be_switched_off(place: Workplace) -> None:
    configure(place, {"PreToolUse": ["touch ran"]})
    with ScriptedServer([command("true"), DONE]) as server:
        outcome = place.run(server, BYPASS, "-c", "features.hooks=false", "go")
    assert not (place.cwd / "ran").exists()
    assert "error" not in [item["type"] for item in outcome.items]


def test_the_hooks_of_an_untrusted_project_never_run(place: Workplace) -> None:
    (place.cwd / ".git").mkdir()
    project = place.cwd / ".codex"
    project.mkdir()
    hook = {"hooks": [{"type": "command", "command": "touch ran"}]}
    text = json.dumps({"hooks": {"PreToolUse": [hook]}})
    (project / "hooks.json").write_text(text, encoding="utf-8")
    with ScriptedServer([command("true"), DONE]) as server:
        assert place.run(server, BYPASS, "go").code == 0
    assert not (place.cwd / "ran").exists()


def test_subagents_have_the_hooks_of_their_parent(place: Workplace) -> None:
    events = (
        "SubagentStart",
        "SubagentStop",
        "UserPromptSubmit",
        "SessionStart",
        "Stop",
    )
    hooks: dict[str, list[Any]] = {event: [note(event)] for event in events}
    hooks["PreToolUse"] = [
        group(note("spawn"), "Agent"),
        group(note("wait"), "multi_agent_v1wait_agent"),
        group("echo no >&2; exit 2", "Bash"),
    ]
    hooks["SubagentStart"].append("echo for children")
    configure(place, hooks)
    parent = [calls("spawn_agent", message="count"), waits(), says("done")]
    server = AgentServer(
        parent, [calls("exec_command", cmd="touch made"), says("three")]
    )
    with server:
        assert place.run(server, BYPASS, "go").code == 0
    assert not (place.cwd / "made").exists()
    (child,) = server.ids

    def given(name: str) -> list[dict[str, Any]]:
        path = place.home / f"{name}.log"
        return [
            json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()
        ]

    (start,), (stop,) = given("SubagentStart"), given("SubagentStop")
    root = given("SessionStart")[0]["session_id"]
    assert (start["session_id"], start["agent_id"], start["agent_type"]) == (
        root,
        child,
        "default",
    )
    assert child in stop["agent_transcript_path"]
    assert root in stop["transcript_path"]
    assert [each.get("agent_id") for each in given("UserPromptSubmit")] == [None, child]
    assert (len(given("SessionStart")), len(given("Stop"))) == (1, 1)
    (spawn,), (wait,) = given("spawn"), given("wait")
    assert (spawn["tool_name"], spawn["tool_input"]) == (
        "spawn_agent",
        {"message": "count"},
    )
    assert wait["tool_input"]["targets"] == [child]
    of_child = [request for request in server.requests if is_child(request)]
    assert ("developer", "for children") in texts(of_child[0])
    assert (
        of_child[1]
        .input[-1]["output"]
        .startswith("[ERROR:ApprovalDenied] Command blocked by PreToolUse hook: no.")
    )


def test_agents_that_an_agent_starts_have_the_hooks_of_the_session(
    place: Workplace,
) -> None:
    configure(place, {"PreToolUse": [group("echo no >&2; exit 2", "Bash")]})

    def begin(request: RecordedRequest, _: Any) -> Any:
        if texts(request)[-1][1] == "inner":
            return calls("exec_command", "g1", cmd="touch made")
        (place.home / "hooks.json").unlink()
        return calls("spawn_agent", "g1", message="inner")

    def wait(request: RecordedRequest, _: Any) -> Any:
        output = request.output("g1")
        if "blocked" in output:
            return says("refused")
        return calls("wait_agent", "g2", targets=[json.loads(output)["agent_id"]])

    parent = [calls("spawn_agent", message="outer"), waits(), says("done")]
    with AgentServer(parent, [begin, wait, says("led")]) as server:
        outcome = place.run(server, BYPASS, "-c", "agents.max_depth=2", "go")
    assert outcome.code == 0
    assert not (place.cwd / "made").exists()
    outputs = [
        item
        for request in server.of_children()
        for item in request.input
        if "output" in item
    ]
    assert "Command blocked by PreToolUse hook: no." in str(outputs)


def test_a_stop_hook_that_is_overridden_fails_the_run(place: Workplace) -> None:
    configure(place, {"Stop": ["echo 'tests fail' >&2; exit 2"]})
    bound = ("-c", "hooks.stop_rounds=1")
    with ScriptedServer([DONE] * 4) as server:
        outcome = place.run(server, BYPASS, *bound, "go")
        shown = run_codex_py(
            ["exec", "--skip-git-repo-check", BYPASS, *bound, "go"],
            place.home,
            place.cwd,
        )
    assert (outcome.code, shown.returncode) == (3, 3)
    assert outcome.events[-1]["type"] == "turn.completed"
    assert outcome.events[-1]["stop"] == {"rounds": 1, "reason": "tests fail"}
    warning = "The agent was kept going as often as allowed (1), and the turn ends: tests fail"
    assert [item["message"] for item in outcome.items if item["type"] == "error"][
        1:
    ] == [warning]
    assert f"warning: {warning}" in shown.stderr.decode()
    # The answer is there all the same.
    assert shown.stdout == b"done\n"


_AT_END = [
    {"type": "command", "command": "touch ended; exit 3", "timeout": 3},
    "sleep 60",
]
_LATE = [
    "The SessionEnd hook 'sleep 60' did not end within 1 s, and was stopped.",
    "The SessionEnd hook 'touch ended; exit 3' exited with code 3.",
]


def test_a_failure_after_the_turn_is_reported_without_a_further_event(
    place: Workplace,
) -> None:
    wait = "until [ -e ended ]; do sleep 0.05; done; exit 4"
    late: dict[str, Any] = {"type": "command", "command": wait, "async": True}
    configure(place, {"Stop": [late], "SessionEnd": _AT_END})
    with ScriptedServer([DONE, DONE]) as server:
        outcome = place.run(server, BYPASS, "go")
        (place.cwd / "ended").unlink()
        shown = run_codex_py(
            ["exec", "--skip-git-repo-check", BYPASS, "go"], place.home, place.cwd
        )
    assert (outcome.code, outcome.types[-1]) == (0, "turn.completed")
    told = [
        f"warning: {text}"
        for text in (*_LATE, f"The Stop hook {wait!r} exited with code 4.")
    ]
    assert sorted(outcome.err.splitlines()) == told
    assert set(told) <= set(shown.stderr.decode().splitlines())


def test_a_failure_after_an_interrupted_turn_is_reported_without_a_further_event(
    place: Workplace, tmp_path: Path
) -> None:
    configure(place, {"SessionEnd": _AT_END})
    with Lifeline(tmp_path) as lifeline:
        with ScriptedServer([command(f"{lifeline.hold} sleep 300")]) as server:
            place.configure(server)
            with place.start(BYPASS, "go") as program:
                lifeline.wait_until_up()
                program.send_signal(signal.SIGINT)
                out, err = program.communicate(timeout=20)
        lifeline.wait_until_dead()
    assert program.returncode == 130
    assert jsonl(out)[-1]["type"] == "turn.failed"
    assert sorted(err.decode().splitlines()) == [f"warning: {text}" for text in _LATE]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_hook_dies_with_the_program(
    place: Workplace, tmp_path: Path, number: signal.Signals
) -> None:
    with (
        Lifeline(tmp_path) as lifeline,
        ScriptedServer([command("touch made")]) as server,
    ):
        hooks = {
            "PreToolUse": [f"{lifeline.hold} sleep 300 & sleep 300"],
            "SessionEnd": [note("end")],
        }
        configure(place, hooks)
        place.configure(server)
        with place.start(BYPASS, "go") as program:
            lifeline.wait_until_up()
            program.send_signal(number)
        lifeline.wait_until_dead()
    assert not (place.cwd / "made").exists()
    assert (place.home / "end.log").exists() == (number != signal.SIGKILL)


def test_a_model_learns_that_a_call_was_done_when_its_hook_was_interrupted(
    place: Workplace, tmp_path: Path
) -> None:
    script = [command("touch made"), DONE]
    with Lifeline(tmp_path) as lifeline, ScriptedServer(script) as server:
        configure(place, {"PostToolUse": [f"{lifeline.hold} sleep 300"]})
        place.configure(server)
        with place.start(BYPASS, "go") as program:
            lifeline.wait_until_up()
            program.send_signal(signal.SIGINT)
        lifeline.wait_until_dead()
        assert place.rerun("resume", "--last", "go on").code == 0
        (output,) = [i["output"] for i in server.requests[1].input if "output" in i]
    assert (place.cwd / "made").exists()
    assert output.endswith(
        "aborted by user; the call itself was done, only its output is lost"
    )

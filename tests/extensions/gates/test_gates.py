"""Gates of the real program: `--verify` and its like, and the evidence of what was run.

Tests `extensions/gates/checks.py`, `extensions/gates/evidence.py`, `extensions/gates/feature.py`,
`extensions/gates/options.py`, `extensions/gates/settings.py`,
`extensions/gates/table.py` and `app/features/judged_turn.py`.
"""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from codex_py.core.session import Session
from codex_py.testing import (
    ev_completed,
    ev_custom_tool_call,
    ev_function_call,
)
from tests.support.hooks import DONE, Hooked, command
from tests.support.hooks import run as run_session
from tests.support.lifeline import Lifeline
from tests.support.program import Outcome, Workplace, run_codex_py
from tests.support.server import ScriptedServer

READS = [*ev_function_call("r", "exec_command", {"cmd": "cat given"}), ev_completed()]


def patch(path: str, text: str, call_id: str = "p") -> list[dict[str, Any]]:
    envelope = f"*** Begin Patch\n*** Add File: {path}\n+{text}\n*** End Patch"
    return [*ev_custom_tool_call(call_id, "apply_patch", envelope), ev_completed()]


def run(
    place: Workplace, script: list[Any], *options: str
) -> tuple[Outcome, ScriptedServer]:
    with ScriptedServer(script) as server:
        outcome = place.run(server, *options, "go")
    return outcome, server


def gates(outcome: Outcome) -> list[tuple[Any, ...]]:
    assert outcome.events[-1]["type"] == "turn.completed"
    return [
        (each["name"], each["status"], each.get("exit_code"))
        for each in outcome.events[-1]["gates"]
    ]


def note_of(server: ScriptedServer, number: int) -> str:
    """The last input of a request."""
    item = server.requests[number].input[-1]
    return item["content"][0]["text"]


def test_a_verified_turn_ends_well(place: Workplace) -> None:
    outcome, server = run(
        place, [command("touch made"), DONE], "--verify", "test -e made"
    )
    assert (outcome.code, len(server.requests)) == (0, 2)
    assert gates(outcome) == [("verify: test -e made", "passed", 0)]


def test_the_output_of_a_failed_gate_goes_back_to_the_model(place: Workplace) -> None:
    script = [DONE, command("touch made"), DONE]
    outcome, server = run(place, script, "--verify", "echo looked; test -e made")
    assert outcome.code == 0
    assert gates(outcome) == [("verify: echo looked; test -e made", "passed", 0)]
    note = note_of(server, 1)
    assert "verify: echo looked; test -e made: exit code 1\nlooked" in note


def test_a_gate_that_fails_for_good_is_a_completed_turn_with_exit_3(
    place: Workplace,
) -> None:
    outcome, server = run(place, [DONE] * 3, "--verify", "exit 9", "--verify", "true")
    assert (outcome.code, len(server.requests)) == (3, 3)
    assert gates(outcome) == [
        ("verify: exit 9", "failed", 9),
        ("verify: true", "passed", 0),
    ]


def test_people_see_what_a_script_that_failed_printed(place: Workplace) -> None:
    options = ("--verify", "echo 'test_sum failed'; exit 1", "--verify-tries", "0")
    outcome, _ = run(place, [DONE], *options)
    (gate,) = outcome.events[-1]["gates"]
    assert (gate["reason"], gate["output"]) == ("exit code 1", "test_sum failed")
    with ScriptedServer([DONE]) as server:
        place.configure(server)
        arguments = ["exec", "--skip-git-repo-check", *options, "go"]
        shown = run_codex_py(arguments, place.home, place.cwd).stderr.decode()
    assert "failed: exit code 1\ntest_sum failed\n" in shown


def test_the_tries_are_the_callers(place: Workplace) -> None:
    outcome, server = run(place, [DONE], "--verify", "false", "--verify-tries", "0")
    assert (outcome.code, len(server.requests)) == (3, 1)


def test_a_gate_that_does_not_exist_is_not_for_the_model_to_mend(
    place: Workplace,
) -> None:
    outcome, server = run(place, [DONE], "--verify", "no-such-gate")
    assert (outcome.code, len(server.requests)) == (3, 1)
    (warning,) = [item["message"] for item in outcome.items if item["type"] == "error"]
    assert warning == "--verify: 'no-such-gate' was not found."


def test_a_gate_that_hangs_is_stopped_with_all_that_it_started(
    place: Workplace, tmp_path: Path
) -> None:
    with Lifeline(tmp_path) as lifeline:
        hangs = f"{lifeline.hold}sleep 100 & sleep 100"
        options = ("--verify", hangs, "--verify-timeout", "1s", "--verify-tries", "0")
        outcome, _ = run(place, [DONE], *options)
        assert lifeline.was_held()
        lifeline.wait_until_dead()
    assert outcome.code == 3
    assert outcome.events[-1]["gates"][0]["reason"] == "did not end within 1 s"
    with ScriptedServer([DONE]) as server:
        place.configure(server)
        arguments = ["exec", "--skip-git-repo-check", *options, "go"]
        shown = run_codex_py(arguments, place.home, place.cwd).stderr.decode()
    assert "hook: Verify Failed" in shown


def test_a_hook_that_is_overridden_does_not_spare_the_gates(place: Workplace) -> None:
    """The turn ends although a hook refuses its end: what the model left is judged all the same."""
    hook = {"type": "command", "command": "echo not yet >&2; exit 2"}
    hooks = json.dumps({"hooks": {"Stop": [{"hooks": [hook]}]}})
    (place.home / "hooks.json").write_text(hooks, encoding="utf-8")
    options = (
        "--dangerously-bypass-hook-trust",
        "-c",
        "hooks.stop_rounds=1",
        "--verify-tries=1",
    )
    script = [DONE, DONE, command("touch made"), DONE]
    mended, server = run(place, script, *options, "--verify", "test -e made")
    assert gates(mended) == [("verify: test -e made", "passed", 0)]
    assert "verify: test -e made: exit code 1" in note_of(server, 2)
    assert (mended.code, mended.events[-1]["stop"]["reason"]) == (3, "not yet")
    lying, _ = run(place, [DONE] * 3, *options, "--verify", "false")
    assert (lying.code, gates(lying)) == (3, [("verify: false", "failed", 1)])


def test_a_gate_has_the_sandbox_and_not_the_key(
    place: Workplace, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    checks = f"env | grep -q MOCK_KEY && exit 1; ! touch {outside}/x 2>&1"
    with ScriptedServer([DONE]) as server:
        place.configure(server)
        options = ["-s", "workspace-write", "--verify-tries", "0", "--verify", checks]
        toml = "sandbox_workspace_write={exclude_slash_tmp=true, exclude_tmpdir_env_var=true}"
        ended = run_codex_py(
            ["exec", "--skip-git-repo-check", "-c", toml, *options, "go"],
            place.home,
            place.cwd,
        )
    assert ended.returncode == 0, ended.stderr
    assert b"gate: verify: " in ended.stderr
    assert not (outside / "x").exists()


def test_changes_by_a_gate_are_in_the_diff_and_are_undone(place: Workplace) -> None:
    (place.cwd / "code").write_text("a\n", encoding="utf-8")
    outcome, _ = run(
        place, [command("echo b >> code"), DONE], "--verify", "echo formatted >> code"
    )
    assert "+b\n+formatted" in outcome.events[-1]["diff"]
    undone = run_codex_py(["undo"], place.home, place.cwd)
    assert undone.returncode == 0, undone.stderr
    assert (place.cwd / "code").read_text(encoding="utf-8") == "a\n"


def test_an_empty_diff_is_no_success(place: Workplace) -> None:
    options = ("--require-change", "--verify-tries", "0")
    nothing, _ = run(place, [DONE], *options)
    taken_back, _ = run(place, [command("echo x > x; rm x"), DONE], *options)
    by_patch, _ = run(place, [patch("new", "x"), DONE], *options)
    by_command, _ = run(
        place, [command("echo x > y"), DONE], *options, "--disable", "undo"
    )
    codes = [each.code for each in (nothing, taken_back, by_patch, by_command)]
    assert codes == [3, 3, 0, 0]


def test_a_model_that_touches_a_forbidden_path_is_told_and_may_take_it_back(
    place: Workplace,
) -> None:
    (place.cwd / "tests").mkdir()
    options = ("--forbid-path", "tests/", "--forbid-path", "*.lock")
    script = [
        command("echo x > tests/a; echo y > made"),
        DONE,
        command("rm tests/a", "d"),
        DONE,
    ]
    outcome, server = run(place, script, *options)
    assert outcome.code == 0
    assert "forbid-path: tests/: tests/a must stay as it was" in note_of(server, 2)
    kept, _ = run(
        place, [command("mkdir -p sub; echo x > sub/a.lock"), *[DONE] * 3], *options
    )
    assert kept.code == 3
    assert gates(kept)[1] == ("forbid-path: *.lock", "failed", None)


def test_the_diff_has_at_most_so_many_lines(place: Workplace) -> None:
    options = ("--verify-tries", "0", "--max-diff-lines")
    script = [command("seq 10 > numbers"), DONE]
    assert run(place, script, *options, "10")[0].code == 0
    (place.cwd / "numbers").unlink()
    assert run(place, script, *options, "9")[0].code == 3


def test_evidence_is_a_command_that_succeeded_after_the_last_change(
    place: Workplace,
) -> None:
    (place.cwd / "check").write_text("#!/bin/sh\ntest -e made\n", encoding="utf-8")
    (place.cwd / "check").chmod(0o755)
    options = ("--require-evidence", "./check*", "--verify-tries", "1")
    edit, check = command("echo x >> made", "e"), command("./check", "c")
    outcome, _ = run(place, [edit, check, DONE], *options)
    assert outcome.code == 0
    assert [
        (each["exit_code"], each["after_last_change"])
        for each in outcome.events[-1]["evidence"]
    ] == [(0, False), (0, True)]
    early, server = run(place, [check, edit, DONE, DONE], *options)
    assert early.code == 3
    assert "files were changed after it, or beside it; run it again" in note_of(
        server, 3
    )
    again, _ = run(place, [check, edit, DONE, check, DONE], *options)
    assert again.code == 0


@pytest.mark.parametrize(
    "trick",
    [
        "./check || true",
        "./check; true",
        "exit 0 && ./check",
        "echo '&&' ./check",
        "./check | cat",
        "./check & true",
        "cd sub && ./check",
    ],
)
def test_a_command_whose_success_says_nothing_is_no_evidence(
    place: Workplace, trick: str
) -> None:
    (place.cwd / "sub").mkdir()
    for folder, code in ((place.cwd, 1), (place.cwd / "sub", 0)):
        (folder / "check").write_text(f"#!/bin/sh\nexit {code}\n", encoding="utf-8")
        (folder / "check").chmod(0o755)
    options = ("--require-evidence", "./check*", "--verify-tries", "0")
    outcome, _ = run(place, [command(trick), DONE], *options)
    assert outcome.code == 3


def test_a_change_by_a_command_outside_of_the_copies_ends_the_evidence(
    place: Workplace,
) -> None:
    script = [command("true"), patch("new", "x"), DONE]
    outcome, _ = run(place, script, "--require-evidence", "true", "--verify-tries", "0")
    assert outcome.code == 3


def test_a_command_that_ran_beside_a_change_is_no_evidence(place: Workplace) -> None:
    (place.cwd / "check").write_text("#!/bin/sh\nsleep 1\n", encoding="utf-8")
    (place.cwd / "check").chmod(0o755)
    change = ev_function_call("b", "exec_command", {"cmd": "sleep 0.3; echo x > made"})
    both = [
        *ev_function_call("a", "exec_command", {"cmd": "./check"}),
        *change,
        ev_completed(),
    ]
    outcome, _ = run(
        place, [both, DONE], "--require-evidence", "./check", "--verify-tries", "0"
    )
    assert outcome.code == 3


def test_a_program_with_the_name_of_the_whole_command_is_no_evidence(
    place: Workplace,
) -> None:
    (place.cwd / "check all").write_text("#!/bin/sh\n", encoding="utf-8")
    (place.cwd / "check all").chmod(0o755)
    options = ("--require-evidence", "./check all", "--verify-tries", "0")
    assert run(place, [command("'./check all'"), DONE], *options)[0].code == 3


def git_commit(place: Workplace) -> None:
    settings = ("-c", "user.name=n", "-c", "user.email=e@x")
    for words in (
        ["init", "-q"],
        ["add", "-A"],
        ["commit", "-qm", "x", "--allow-empty"],
    ):
        subprocess.run(["git", *settings, *words], cwd=place.cwd, check=True)


@pytest.mark.parametrize(
    "script",
    [
        "truncate -s 11M tests/large",
        "mkfifo tests/pipe",
        "mkdir tests/sub; echo '*' > tests/sub/.gitignore; echo x > tests/sub/test_x.py",
        "echo tests/sub/ >> .gitignore; mkdir tests/sub; echo x > tests/sub/test_x.py",
        "ln -s tests other; echo x > other/a",
        "ln tests/a b; echo x > b",
        "git init -q tests/sub; echo x > tests/sub/test_x.py",
    ],
)
def test_a_forbidden_path_cannot_be_changed_unseen(
    place: Workplace, script: str
) -> None:
    (place.cwd / "tests").mkdir()
    (place.cwd / "tests/a").write_text("a\n", encoding="utf-8")
    git_commit(place)
    options = ("--forbid-path", "tests/", "--verify-tries", "0")
    assert run(place, [command(script), DONE], *options)[0].code == 3


@pytest.mark.parametrize(
    "pattern", ["./tests", "**/tests/**", "tests/./a", "CWD/tests"]
)
def test_a_path_is_forbidden_however_it_is_written(
    place: Workplace, pattern: str
) -> None:
    (place.cwd / "tests").mkdir()
    pattern = pattern.replace("CWD", str(place.cwd))
    script = [command("echo x > tests/a"), DONE]
    assert (
        run(place, script, "--forbid-path", pattern, "--verify-tries", "0")[0].code == 3
    )


def test_a_change_to_an_ignored_file_is_no_change(place: Workplace) -> None:
    (place.cwd / ".gitignore").write_text("*.log\n__pycache__/\n", encoding="utf-8")
    (place.cwd / "tests").mkdir()
    (place.cwd / "tests/a").write_text("a\n", encoding="utf-8")
    git_commit(place)
    made = [
        command("mkdir -p tests/__pycache__; echo > tests/__pycache__/x; echo > a.log")
    ]
    options = ("--verify-tries", "0", "--max-diff-lines", "0", "--forbid-path", "tests")
    assert run(place, [*made, DONE], *options)[0].code == 0
    assert run(place, [*made, DONE], *options, "--require-change")[0].code == 3


def test_changes_that_nobody_can_see_fail_the_gates(place: Workplace) -> None:
    script = [command("echo x > made"), DONE]
    options = ("--max-diff-lines", "9", "--forbid-path", "x", "--verify-tries", "0")
    with ScriptedServer(script) as server:
        place.configure(server)
        arguments = [
            "exec",
            "--skip-git-repo-check",
            "-s",
            "danger-full-access",
            "--json",
        ]
        # A home is no project, and is not copied.
        env = {"HOME": str(place.cwd)}
        ended = run_codex_py([*arguments, *options, "go"], place.home, place.cwd, env)
    assert ended.returncode == 3
    gates = json.loads(ended.stdout.splitlines()[-1])["gates"]
    assert [each["reason"].partition(":")[0] for each in gates] == [
        "nobody can tell what was changed"
    ] * 2
    (place.cwd / "made").unlink()
    large = [command("truncate -s 11M large"), DONE]
    assert run(place, large, *options)[0].code == 3


def test_a_turn_whose_copy_failed_fails_no_later_one(place: Workplace) -> None:
    """In one session of the library: the folder of the copies cannot be made at first."""
    blocked = place.home / "codex-py" / "undo"
    blocked.parent.mkdir()

    async def work(session: Session, hooked: Hooked) -> None:
        blocked.write_text("", encoding="utf-8")
        hooked.results.append(await session.run_turn("one"))
        blocked.unlink()
        hooked.results.append(await session.run_turn("two"))

    config = '[gates]\nforbid_path = ["secret"]\nverify_tries = 0\n'
    hooked = run_session(
        place, {}, [command("touch b"), DONE], work=work, config=config
    )
    assert [result.exit_code for result in hooked.results] == [78, 0]


def test_commands_that_the_model_left_running_stop_before_the_gates_run(
    place: Workplace,
) -> None:
    left = "(setsid sh -c 'sleep 2; echo x > late' </dev/null >/dev/null 2>&1 &); true"
    kept = command("sleep 2; echo x > later; sleep 9", "k", yield_time_ms=250)
    outcome, _ = run(
        place, [command(left), kept, DONE], "--verify", "sleep 2.5; ! ls late*"
    )
    assert outcome.code == 0


def test_failures_have_their_exit_codes_and_the_most_serious_wins(
    place: Workplace,
) -> None:
    bad_patch = "*** Begin Patch\n*** Update File: absent\n@@\n-a\n+b\n*** End Patch"
    fails = [*ev_custom_tool_call("b", "apply_patch", bad_patch), ev_completed()]
    refused = patch("made", "x", "o")
    everything = ("--fail-on", "tool", "--fail-on", "denied", "--fail-on", "sandbox")
    read_only = ("-c", "sandbox_mode=read-only")

    def code(script: list[Any], *options: str) -> int:
        with ScriptedServer([*script, DONE]) as server:
            place.configure(server)
            arguments = [
                "exec",
                "--skip-git-repo-check",
                "-s",
                "read-only",
                *options,
                "go",
            ]
            return run_codex_py(arguments, place.home, place.cwd).returncode

    assert code([fails]) == 0
    assert code([fails], *everything) == 3
    assert code([refused], "--fail-on", "denied") == 5
    assert code([fails, refused], *everything, *read_only) == 6
    assert code([fails], "--fail-on", "denied", "--fail-on", "sandbox") == 0


def test_a_trusted_project_adds_gates_and_takes_none_away(place: Workplace) -> None:
    subprocess.run(["git", "init", "-q"], cwd=place.cwd, check=True)
    (place.cwd / ".codex").mkdir()
    (place.cwd / ".codex/config.toml").write_text(
        '[gates]\nverify = ["test -e made"]\nverify_tries = 0\nfail_on = []\n',
        encoding="utf-8",
    )
    untrusted, _ = run(place, [DONE], "--fail-on", "denied")
    assert untrusted.code == 0
    trusted, _ = run(place, [DONE], "--trust", "--verify", "true")
    assert trusted.code == 3
    assert gates(trusted) == [
        ("verify: test -e made", "failed", 1),
        ("verify: true", "passed", 0),
    ]


def test_the_output_of_a_gate_is_in_the_order_in_which_it_was_written(
    place: Workplace,
) -> None:
    script = "echo one; echo two >&2; echo three; (echo four >&2); printf five; exit 1"
    outcome, _ = run(place, [DONE], "--verify", script, "--verify-tries", "0")
    assert outcome.code == 3
    (gate,) = outcome.events[-1]["gates"]
    assert gate["output"] == "one\ntwo\nthree\nfour\nfive"


def test_mistakes_are_one_sentence(place: Workplace) -> None:
    def refused(*options: str) -> tuple[int, str]:
        words = ["exec", "--skip-git-repo-check", *options, "go"]
        ended = run_codex_py(words, place.home, place.cwd)
        return ended.returncode, ended.stderr.decode().strip().splitlines()[0]

    assert refused("--max-diff-lines", "many")[0] == 2
    assert refused("--fail-on", "luck")[0] == 2
    # Of a variable that was not set: it would always succeed.
    assert refused("--verify", " ") == (
        2,
        "Error: command line: `gates.verify` has an empty script",
    )
    code, text = refused("--verify", "true", "--verify-timeout", "soon")
    assert code == 2
    assert "gates.verify_timeout" in text


def test_a_gate_fails_in_a_folder_that_was_moved_away(place: Workplace) -> None:
    moved = f"mv {place.cwd} {place.cwd}-moved"
    options = ("--verify", "true", "--verify-tries", "0")
    outcome, _ = run(place, [command(moved), DONE], *options)
    assert outcome.code == 3
    (gate,) = outcome.events[-1]["gates"]
    assert (
        gate["reason"]
        == f"working directory {str(place.cwd)!r}: No such file or directory"
    )

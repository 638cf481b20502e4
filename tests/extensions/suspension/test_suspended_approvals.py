"""Approvals that outlive the run: `exec --on-approval suspend`, then `exec resume --approve` or `--deny`.

Tests `extensions/suspension/suspended_approvals.py`, `extensions/suspension/options.py`,
`extensions/suspension/request_files.py`, `command_line/continuing.py` and `app/user_programs.py`.
"""

import asyncio
import json
import os
import shlex
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from codex_py.protocol.approval import AbsentApprover, ApprovalRequest, ReviewDecision
from codex_py.testing import (
    ev_completed,
    ev_custom_tool_call,
    ev_reasoning,
)
from tests.support.hooks import DONE, asks, command, specific
from tests.support.hooks import configure as configure_hooks
from tests.support.program import Outcome, Workplace, environment, jsonl, run_codex_py
from tests.support.server import ScriptedServer

SIGNED = {"CODEX_PY_APPROVAL_KEY": "0123456789abcdef"}
OPTIONS = ("exec", "--json", "--skip-git-repo-check", "-s", "workspace-write")


def run(place: Workplace, *args: str, env: dict[str, str] = SIGNED) -> Outcome:
    done = run_codex_py([*OPTIONS, *args], place.home, place.cwd, env)
    return Outcome(done.returncode, jsonl(done.stdout), done.stderr.decode())


def calls(*parts: list[Any]) -> list[Any]:
    """One response with the calls of several."""
    return [event for part in parts for event in part[:-1]] + [ev_completed()]


def suspended(place: Workplace, *args: str) -> tuple[Path, str]:
    """The request that a run leaves, and its session."""
    outcome = run(place, "--on-approval", "suspend", *args, "go")
    assert (outcome.code, outcome.error["code"]) == (8, "suspended"), outcome
    approval = outcome.events[-1]["approval"]
    file = Path(approval["file"])
    assert file.name == f"approval-{approval['id']}.json"
    return file, outcome.events[0]["thread_id"]


def outputs(server: ScriptedServer, number: int = -1) -> dict[str, str]:
    """The outputs in a request, by their calls."""
    return {
        item["call_id"]: item["output"]
        for item in server.requests[number].input
        if item["type"].endswith("_output")
    }


def one_suspended(
    place: Workplace, server: ScriptedServer, *args: str
) -> tuple[Path, str]:
    place.configure(server)
    return suspended(place, *args)


def test_a_call_waits_and_runs_once_it_is_approved(place: Workplace) -> None:
    folder = place.cwd / "waiting"
    folder.mkdir()
    both = calls(
        [*ev_reasoning("r"), None],
        command("sleep 0.3; echo beside", "c0"),
        asks("id; echo ran"),
    )
    with ScriptedServer([both, DONE]) as server:
        file, thread = one_suspended(place, server, "--approval-dir", "waiting")
        assert file.parent == folder
        assert file.stat().st_mode & 0o777 == 0o600
        request = json.loads(file.read_text(encoding="utf-8"))
        assert request["question"]["summary"].endswith("-lc 'id; echo ran'")
        assert request["question"]["reason"] == "outside of the sandbox: May I?"
        stored = place.rollouts()[0].read_text(encoding="utf-8")
        assert stored.count('_output"') == 1
        assert "beside" in stored

        outcome = run(place, "resume", thread, "--approve", str(file))
        assert (outcome.code, outcome.messages) == (0, ["done"])
        assert len(server.requests) == 2
        assert "Output:\nbeside" in outputs(server)["c0"]
        assert "ran\n" in outputs(server)["c1"]
        (item,) = [
            item for item in outcome.items if item["type"] == "command_execution"
        ]
        assert (item["status"], item["exit_code"]) == ("completed", 0)

        again = run(place, "resume", thread, "--approve", str(file))
        assert (again.code, again.events) == (2, [])
        assert f"no call of session {thread} waits for an approval" in again.err


@pytest.mark.parametrize("wire", ["chat", "anthropic"])
def test_a_prompt_may_follow_and_the_history_fits_every_wire(
    place: Workplace, wire: str
) -> None:
    three = calls(
        command("echo beside", "c0"), asks("echo ran"), command("echo after", "c2")
    )
    with ScriptedServer([three, DONE]) as server:
        place.configure(server, wire_api=wire)
        file, thread = suspended(place)
        assert (
            run(place, "resume", thread, "--approve", str(file), "and this").code == 0
        )
        sent = json.dumps(server.requests[-1].fields["messages"])
    places = [
        sent.index(text) for text in ("\\nbeside", "\\nran", "\\nafter", "and this")
    ]
    assert places == sorted(places)


@pytest.mark.parametrize(
    "line", ["To run it: ", "To refuse it: "], ids=["run", "refuse"]
)
@pytest.mark.parametrize(
    "options",
    [
        ("-s", "workspace-write"),
        ("--sandbox=read-only", "-m", "gpt-5.5"),
        ("-s", "workspace-write", "--add-dir", "more room"),
        ("-c", 'sandbox_mode="workspace-write"', "-c", "model_verbosity=low"),
        (
            "-s",
            "workspace-write",
            "-c",
            "sandbox_workspace_write.exclude_slash_tmp=true",
        ),
        ("-s", "workspace-write", "--deny", "it's.txt", "--approval-dir", "more room"),
        ("-C", "more room", "--skip-git-repo-check", "-s", "workspace-write"),
        ("--full-auto", "--max-turns", "9", "--verify", "true"),
    ],
    ids=str,
)
def test_the_command_that_is_printed_works_as_it_stands(
    place: Workplace, options: tuple[str, ...], line: str
) -> None:
    (place.cwd / "more room").mkdir()
    with ScriptedServer([asks("echo ran"), DONE]) as server:
        place.configure(server)
        first = run_codex_py(
            [
                "exec",
                "--skip-git-repo-check",
                "--on-approval",
                "suspend",
                *options,
                "go",
            ],
            place.home,
            place.cwd,
            SIGNED,
        )
        assert first.returncode == 8, first.stderr.decode()
        (printed,) = [
            row.removeprefix(line)
            for row in first.stderr.decode().splitlines()
            if row.startswith(line)
        ]
        program, *words = shlex.split(printed)
        assert program == "codex-py"
        second = run_codex_py(words, place.home, place.cwd, SIGNED)
        assert second.returncode == 0, second.stderr.decode()
        expected = "ran\n" if line == "To run it: " else "ApprovalDenied"
        assert expected in outputs(server)["c1"]


def test_the_command_that_is_printed_has_no_secrets(place: Workplace) -> None:
    secrets = (
        "model_providers.other.experimental_bearer_token=hunter-2",
        'model_providers.other={name="o", http_headers={x-key="hunter-2"}}',
        "model_providers.other.base_url=http://me:hunter-2@127.0.0.1/v1",
    )
    with ScriptedServer([asks("echo ran")] * len(secrets)) as server:
        place.configure(server)
        for secret in secrets:
            outcome = run(
                place, "--on-approval", "suspend", "-c", secret, "-c", "a.b=1", "go"
            )
            message = outcome.error["message"]
            assert outcome.code == 8
            assert "hunter" not in message
            assert "-c a.b=1" in message


@pytest.mark.parametrize(
    ("other", "hint"),
    [
        (("-s", "read-only"), "this run has read-only: add -s workspace-write"),
        (("-C", "below"), "the approval is for the folder"),
        (("--add-dir", "below"), "`writable_roots`"),
        (
            ("-c", "sandbox_workspace_write.network_access=true"),
            "`network_access` = false",
        ),
    ],
)
def test_a_refused_answer_says_which_option_is_missing(
    place: Workplace, other: tuple[str, ...], hint: str
) -> None:
    (place.cwd.parent / "below").mkdir()
    with ScriptedServer([asks("echo ran")]) as server:
        file, thread = one_suspended(place, server)
        wrong = tuple(
            str(place.cwd.parent / "below") if word == "below" else word
            for word in other
        )
        outcome = run(place, *wrong, "resume", thread, "--approve", str(file))
    assert (outcome.code, outcome.events) == (2, [])
    assert hint in outcome.err
    assert "{" not in outcome.err


def test_a_refusal_is_an_answer(place: Workplace) -> None:
    with ScriptedServer([asks("touch never"), DONE]) as server:
        file, thread = one_suspended(place, server)
        outcome = run(
            place, "resume", thread, "--deny", str(file), "--because", "not on Fridays"
        )
        assert outcome.code == 0
        assert (
            "[ERROR:ApprovalDenied] a person refused it: not on Fridays"
            in outputs(server)["c1"]
        )
        assert outcome.events[-1]["denied"]["calls"] == 1
    assert not (place.cwd / "never").exists()


def test_a_patch_and_what_comes_after_it_wait_too(
    place: Workplace, tmp_path: Path
) -> None:
    envelope = (
        f"*** Begin Patch\n*** Add File: {tmp_path}/out/new\n+text\n*** End Patch"
    )
    patch = [*ev_custom_tool_call("p", "apply_patch", envelope), ev_completed()]
    no_tmp = (
        "-c",
        "sandbox_workspace_write={exclude_slash_tmp=true, exclude_tmpdir_env_var=true}",
    )
    with ScriptedServer(
        [calls(patch, command("echo late", "c2")), asks("id", "c3"), DONE]
    ) as server:
        file, thread = one_suspended(place, server, *no_tmp)
        resumed = run(place, *no_tmp, "resume", thread, "--approve", str(file))
        assert (tmp_path / "out/new").read_text(encoding="utf-8") == "text\n"
        assert "not run: another call waits for an approval" in outputs(server)["c2"]
        # The next question suspends the run again.
        assert (resumed.code, resumed.error["code"]) == (8, "suspended")
        second = resumed.events[-1]["approval"]["file"]
        assert run(place, *no_tmp, "resume", thread, "--approve", second).code == 0
        assert list(outputs(server)) == ["p", "c2", "c3"]


def test_the_second_of_two_questions_is_not_asked(place: Workplace) -> None:
    with ScriptedServer([calls(asks("id"), asks("id -u", "c2")), DONE]) as server:
        file, thread = one_suspended(place, server)
        assert run(place, "resume", thread, "--approve", str(file)).code == 0
        found = outputs(server)
        assert sorted(
            "another call waits for an approval" in text for text in found.values()
        ) == [
            False,
            True,
        ]


def test_a_plain_resume_aborts_the_call_and_ends_the_request(place: Workplace) -> None:
    with ScriptedServer([asks("touch never"), DONE]) as server:
        file, thread = one_suspended(place, server)
        assert run(place, "resume", thread, "never mind").code == 0
        assert outputs(server)["c1"] == "aborted"
        late = run(place, "resume", thread, "--approve", str(file))
        assert late.code == 2
        assert len(server.requests) == 2
    assert not (place.cwd / "never").exists()


def test_hooks_decide_first_and_nothing_started_sees_the_key(place: Workplace) -> None:
    looks = "env | grep -q APPROVAL_KEY && touch $CODEX_HOME/seen; "
    allow = specific("PermissionRequest", decision={"behavior": "allow"})
    configure_hooks(place, {"PermissionRequest": [looks + allow]})
    with ScriptedServer(
        [asks("env | grep APPROVAL_KEY || echo hidden"), DONE]
    ) as server:
        place.configure(server)
        args = ("--dangerously-bypass-hook-trust", "--on-approval", "suspend", "go")
        assert run(place, *args).code == 0
        assert "hidden" in outputs(server)["c1"]
    assert not (place.home / "seen").exists()


def edited(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("touch never", "touch other"), encoding="utf-8")


def longer_lived(file: Path) -> None:
    data = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(
        json.dumps({**data, "expires": "2999-01-01T00:00:00+00:00"}), encoding="utf-8"
    )


def emptied(file: Path) -> None:
    file.write_text("[]", encoding="utf-8")


@pytest.mark.parametrize("change", [edited, longer_lived, Path.unlink, emptied])
def test_a_request_that_was_changed_approves_nothing(
    place: Workplace, change: Any
) -> None:
    with ScriptedServer([asks("touch never")]) as server:
        file, thread = one_suspended(place, server)
        change(file)
        session = place.rollouts()[0].read_bytes()
        outcome = run(place, "resume", thread, "--approve", str(file))
        assert (outcome.code, outcome.events) == (2, [])
        assert outcome.err.count("\n") == 1, outcome.err
        assert place.rollouts()[0].read_bytes() == session
        assert len(server.requests) == 1
    assert not (place.home / "codex-py" / "approvals").exists()


@pytest.mark.parametrize(
    ("old", "new"),
    [(b"touch never", b"touch other"), (b'"go"', b'"no"'), (b"May I?", b"You may")],
)
def test_a_session_that_was_changed_is_not_approved(
    place: Workplace, old: bytes, new: bytes
) -> None:
    with ScriptedServer([asks("touch never")]) as server:
        file, thread = one_suspended(place, server)
        (session,) = place.rollouts()
        session.write_bytes(session.read_bytes().replace(old, new))
        outcome = run(place, "resume", thread, "--approve", str(file))
        assert (outcome.code, outcome.events) == (2, [])
        assert "is not as it was when the approval was asked for" in outcome.err


def test_a_session_cut_back_after_the_answer_does_not_make_it_good_again(
    place: Workplace,
) -> None:
    with ScriptedServer([asks("echo x >> runs"), DONE]) as server:
        file, thread = one_suspended(place, server)
        (session,) = place.rollouts()
        before = session.read_bytes()
        assert run(place, "resume", thread, "--approve", str(file)).code == 0
        session.write_bytes(before)
        outcome = run(place, "resume", thread, "--approve", str(file))
        assert (outcome.code, outcome.events) == (2, [])
        assert "was used already" in outcome.err
    assert (place.cwd / "runs").read_text(encoding="utf-8") == "x\n"


def test_other_sessions_folders_keys_and_times_do_not_fit(place: Workplace) -> None:
    with ScriptedServer([asks("touch never"), asks("touch never")]) as server:
        file, thread = one_suspended(place, server)
        other, _ = suspended(place, "--approval-expires", "1s")
        wrong_key = {"CODEX_PY_APPROVAL_KEY": "another key of 16 bytes"}
        expires = json.loads(other.read_text(encoding="utf-8"))["expires"]
        time.sleep(1.1)
        (place.cwd / "sub").mkdir()
        cases = [
            (
                ["resume", thread, "--approve", str(other)],
                SIGNED,
                f"expired at {expires}",
            ),
            (
                ["resume", "--last", "--approve", str(file)],
                SIGNED,
                f"is for session {thread}, not",
            ),
            (
                ["-C", "sub", "resume", thread, "--approve", str(file)],
                SIGNED,
                "for the folder",
            ),
            (
                ["resume", thread, "--approve", str(file)],
                wrong_key,
                "signed with another key",
            ),
        ]
        for args, env, message in cases:
            outcome = run(place, *args, env=env)
            assert (outcome.code, outcome.events) == (2, []), outcome
            assert message in outcome.err
    assert not (place.cwd / "never").exists()


@pytest.mark.parametrize("key", ["", "fifteen bytes.."])
def test_without_a_key_nothing_starts(place: Workplace, key: str) -> None:
    with ScriptedServer([]) as server:
        place.configure(server)
        outcome = run(
            place, "--on-approval", "suspend", "go", env={"CODEX_PY_APPROVAL_KEY": key}
        )
    assert (outcome.code, outcome.events) == (78, [])
    assert "CODEX_PY_APPROVAL_KEY" in outcome.err
    assert not place.rollouts()


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--approve", "x", "go"], "need `exec resume SESSION`"),
        (["--deny", "a/approval-1f.json", "go"], "need `exec resume SESSION`"),
        (
            ["resume", "--last", "--approve", "x", "--deny", "approval-1.json"],
            "exclude each other",
        ),
        (["resume", "--last", "--approve="], "need the file of a request"),
        (
            ["resume", "--last", "--deny", "x", "--because", "y"],
            "--because belongs to --deny",
        ),
        (["resume", "--last", "--because", "y"], "--because belongs to --deny"),
        (["--on-approval", "suspend", "--ephemeral", "go"], "--ephemeral"),
        (["--on-approval", "suspend", "--yolo", "go"], "--yolo"),
        (["--on-approval", "suspend", "--approval-dir", "absent", "go"], "absent"),
        (
            ["--on-approval", "suspend", "--approval-expires", "soon", "go"],
            "--approval-expires",
        ),
        (["--on-approval", "ask", "go"], "--on-approval"),
        (["review", "--uncommitted", "--on-approval", "suspend"], "--on-approval"),
    ],
)
def test_options_that_do_not_go_together(
    place: Workplace, args: list[str], message: str
) -> None:
    outcome = run(place, *args)
    assert (outcome.code, outcome.events) == (2, [])
    assert message in outcome.err


def test_two_resumes_at_once_run_the_call_once(place: Workplace) -> None:
    with ScriptedServer([asks("sleep 0.5; echo x >> runs"), DONE]) as server:
        file, thread = one_suspended(place, server)
        args = ("-s", "workspace-write", "resume", thread, "--approve", str(file))
        both = [place.start(*args, env=SIGNED) for _ in range(2)]
        ends = [(each.communicate(timeout=60), each.returncode) for each in both]
    codes = sorted(code for _, code in ends)
    assert codes[0] == 0, ends
    assert codes[1] in {1, 2}
    assert (place.cwd / "runs").read_text(encoding="utf-8") == "x\n"


def test_a_kill_while_the_approved_call_runs_does_not_let_it_run_again(
    place: Workplace,
) -> None:
    with ScriptedServer([asks("echo x >> runs; sleep 60"), DONE]) as server:
        file, thread = one_suspended(place, server)
        runs = place.cwd / "runs"
        program = place.start(
            "-s",
            "workspace-write",
            "resume",
            thread,
            "--approve",
            str(file),
            env=SIGNED,
            real=True,
        )
        deadline = time.monotonic() + 60
        while not runs.exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        os.kill(program.pid, signal.SIGKILL)
        program.communicate()
        outcome = run(place, "resume", thread, "--approve", str(file))
        assert outcome.code == 2
        assert "was used already" in outcome.err
        assert run(place, "resume", thread, "and now?").code == 0
        assert outputs(server)["c1"] == "aborted"
    assert runs.read_text(encoding="utf-8") == "x\n"


def test_a_kill_before_the_request_is_left_leaves_a_call_that_is_aborted(
    place: Workplace,
) -> None:
    both = calls(asks("touch never"), command("touch begun; sleep 60", "c2"))
    with ScriptedServer([both, DONE]) as server:
        place.configure(server)
        program = place.start(
            "-s",
            "workspace-write",
            "--on-approval",
            "suspend",
            "go",
            env=SIGNED,
            real=True,
        )
        deadline = time.monotonic() + 60
        while not (place.cwd / "begun").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        os.kill(program.pid, signal.SIGKILL)
        program.communicate()
        assert not list(place.cwd.glob("approval-*"))
        assert run(place, "resume", "--last", "and now?").code == 0
        assert outputs(server) == {"c1": "aborted", "c2": "aborted"}
    assert not (place.cwd / "never").exists()


def test_people_are_told_how_to_go_on(place: Workplace) -> None:
    with ScriptedServer([asks("id")]) as server:
        place.configure(server)
        args = ["exec", "--skip-git-repo-check", "--on-approval", "suspend", "go"]
        done = run_codex_py(args, place.home, place.cwd, SIGNED)
    (file,) = place.cwd.glob("approval-*.json")
    assert done.returncode == 8
    assert f"--approve {file}" in done.stderr.decode()
    assert environment(place.home)  # the bare one has no key


def test_the_call_of_a_subagent_cannot_wait() -> None:
    request = ApprovalRequest("command", "id", Path("/"), agent="Ada")
    answer = asyncio.run(AbsentApprover().review(request))
    assert answer.decision is ReviewDecision.DENIED


@pytest.mark.parametrize("name", ["approvals", "approvals/{}"])
def test_an_approval_that_another_process_uses_meanwhile_runs_nothing(
    place: Workplace, name: str
) -> None:
    with ScriptedServer([asks("touch never")]) as server:
        file, thread = one_suspended(place, server)
        mark = name.format(file.stem.removeprefix("approval-"))
        # This hook runs when the session is open.
        hook = f"cd $CODEX_HOME/codex-py && rm -df approvals && mkdir -p $(dirname {mark}) && touch {mark}"
        configure_hooks(place, {"SessionStart": [hook]})
        args = (
            "--dangerously-bypass-hook-trust",
            "resume",
            thread,
            "--approve",
            str(file),
        )
        outcome = run(place, *args)
        assert outcome.code == 2, outcome
        assert len(server.requests) == 1
    assert not (place.cwd / "never").exists()

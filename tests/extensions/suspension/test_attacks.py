"""Approvals that wait, and somebody who wants more than was approved."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from codex_py.testing import ev_completed, ev_custom_tool_call, ev_function_call
from tests.e2e.test_mcp import add_servers
from tests.extensions.suspension.test_suspended_approvals import (
    OPTIONS,
    SIGNED,
    one_suspended,
    outputs,
    run,
    suspended,
)
from tests.support.hooks import DONE, asks, command, specific
from tests.support.hooks import configure as configure_hooks
from tests.support.program import Workplace, jsonl, run_codex_py
from tests.support.server import ScriptedServer

KEY = SIGNED["CODEX_PY_APPROVAL_KEY"]


def test_an_item_that_some_readers_take_for_an_event_is_part_of_the_history(
    place: Workplace,
) -> None:
    text = {"type": "input_text", "text": "smuggled"}
    item = json.dumps({"type": "message", "role": "user", "content": [text]})
    line = f'{{"timestamp":"2026-01-01T00:00:00.000Z","type":"response_item","payload":{item}'
    with ScriptedServer([asks("touch never")]) as server:
        file, thread = one_suspended(place, server)
        with place.rollouts()[0].open("a", encoding="utf-8") as session:
            session.write(f'{line},"type":"event_msg","payload":{{"type":"any"}}}}\n')
        outcome = run(place, "resume", thread, "--approve", str(file))
        assert (outcome.code, outcome.events) == (2, [])
        assert "is not as it was when the approval was asked for" in outcome.err


def test_a_hook_that_refuses_by_now_decides_before_the_person(place: Workplace) -> None:
    deny = specific(
        "PermissionRequest", decision={"behavior": "deny", "message": "frozen"}
    )
    with ScriptedServer([asks("touch $CODEX_HOME/never"), DONE]) as server:
        file, thread = one_suspended(place, server)
        configure_hooks(place, {"PermissionRequest": [deny]})
        args = (
            "--dangerously-bypass-hook-trust",
            "resume",
            thread,
            "--approve",
            str(file),
        )
        assert run(place, *args).code == 0
        assert "frozen" in outputs(server)["c1"]
    assert not (place.home / "never").exists()


def test_a_rule_that_forbids_it_by_now_decides_before_the_person(
    place: Workplace,
) -> None:
    with ScriptedServer([asks("touch $CODEX_HOME/never"), DONE]) as server:
        file, thread = one_suspended(place, server)
        (place.home / "rules").mkdir()
        rule = 'prefix_rule(pattern=["touch"], decision="forbidden")\n'
        (place.home / "rules" / "no.rules").write_text(rule, encoding="utf-8")
        assert run(place, "resume", thread, "--approve", str(file)).code == 0
        assert "policy forbids" in outputs(server)["c1"]
    assert not (place.home / "never").exists()


@pytest.mark.parametrize(
    "wider",
    [
        ("-s", "danger-full-access"),
        ("-c", "sandbox_workspace_write.network_access=true"),
        ("--add-dir", ".."),
    ],
)
def test_a_call_is_not_approved_for_another_sandbox(
    place: Workplace, wider: tuple[str, str]
) -> None:
    (place.home / "kept").mkdir()
    with ScriptedServer([command("rm -rf $CODEX_HOME/kept")]) as server:
        file, thread = one_suspended(place, server)
        assert json.loads(file.read_bytes())["sandbox"]["type"] == "workspace-write"
        outcome = run(place, *wider, "resume", thread, "--approve", str(file))
        assert (outcome.code, outcome.events) == (2, [])
        assert "the approval was asked for with" in outcome.err
    assert (place.home / "kept").exists()


@pytest.mark.parametrize("time", ["87601h", "99999999999h", "9" * 400])
def test_no_approval_lives_for_ever(place: Workplace, time: str) -> None:
    with ScriptedServer([]) as server:
        place.configure(server)
        outcome = run(
            place, "--on-approval", "suspend", "--approval-expires", time, "go"
        )
    assert (outcome.code, outcome.events) == (2, [])
    assert outcome.err == "Error: --approval-expires: at most 87600h\n"


@pytest.mark.parametrize("answer", ["--approve", "--deny"])
def test_the_call_of_a_server_waits_too(place: Workplace, answer: str) -> None:
    call = [*ev_function_call("c1", "mcp__banner__echo", {"a": 1}), ev_completed()]
    with ScriptedServer([call, DONE]) as server:
        place.configure(server)
        keys = 'startup_timeout_sec = 120\ndefault_tools_approval_mode = "prompt"'
        add_servers(place, "banner", keys=keys)
        file, thread = suspended(place)
        question = json.loads(file.read_bytes())["question"]
        assert (question["kind"], question["tool"]) == (
            "mcp",
            ["mcp__banner__echo", {"a": 1}],
        )
        assert run(place, "resume", thread, answer, str(file)).code == 0
        output = json.dumps(outputs(server)["c1"])
    sent = (place.home / "messages").read_text(encoding="utf-8").count("tools/call")
    if answer == "--approve":
        assert ('\\"a\\": 1' in output, sent) == (True, 1), output
    else:
        assert ("a person refused it" in output, sent) == (True, 0), output


def test_nobody_finds_the_key_among_the_processes(place: Workplace) -> None:
    looks = f"cat /proc/$PPID/environ | tr '\\0' '\\n' | grep -c -e ^HOME= -e {KEY[:8]}''{KEY[8:]}"
    with ScriptedServer([asks(looks), DONE]) as server:
        place.configure(server)
        configure_hooks(place, {"SessionStart": [f"({looks}) > $CODEX_HOME/hook 2>&1"]})
        options = (*OPTIONS, "--dangerously-bypass-hook-trust")

        def start(*args: str) -> list[dict[str, Any]]:
            done = run_codex_py(
                [*options, *args], place.home, place.cwd, SIGNED, real=True
            )
            return jsonl(done.stdout)

        events = start("--on-approval", "suspend", "go")
        file = events[-1]["approval"]["file"]
        assert start("resume", events[0]["thread_id"], "--approve", file)
        assert outputs(server)["c1"].endswith("Output:\n1\n")
    assert (place.home / "hook").read_text(encoding="utf-8") == "1\n"


NO_TMP = (
    "-c",
    "sandbox_workspace_write={exclude_slash_tmp=true, exclude_tmpdir_env_var=true}",
)


def test_a_patch_is_not_approved_for_where_a_link_leads_later(
    place: Workplace, tmp_path: Path
) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    link = place.cwd / "out"
    link.symlink_to(tmp_path / "first")
    envelope = "*** Begin Patch\n*** Add File: out/new\n+text\n*** End Patch"
    patch = [*ev_custom_tool_call("p", "apply_patch", envelope), ev_completed()]
    with ScriptedServer([patch]) as server:
        file, thread = one_suspended(place, server, *NO_TMP)
        link.unlink()
        link.symlink_to(tmp_path / "second")
        outcome = run(place, *NO_TMP, "resume", thread, "--approve", str(file))
        # It is another question.
        assert (outcome.code, outcome.error["code"]) == (8, "suspended")
    assert not any((tmp_path / name / "new").exists() for name in ("first", "second"))


def test_a_folder_behind_a_link_is_not_the_one_that_was_there(
    place: Workplace, tmp_path: Path
) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "first")
    with ScriptedServer([asks("touch never")]) as server:
        file, thread = one_suspended(place, server, "-C", str(link))
        link.unlink()
        link.symlink_to(tmp_path / "second")
        outcome = run(place, "-C", str(link), "resume", thread, "--approve", str(file))
        assert (outcome.code, outcome.events) == (2, [])
        assert f"for the folder {tmp_path}/first, not {tmp_path}/second" in outcome.err


def test_an_entry_that_is_no_file_is_no_request(
    place: Workplace, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "pipe")
    with ScriptedServer([asks("touch never")]) as server:
        _, thread = one_suspended(place, server)
        for name in ("pipe", ".", "/dev/zero", "/proc/self/environ"):
            outcome = run(place, "resume", thread, "--approve", str(tmp_path / name))
            assert (outcome.code, outcome.events) == (2, [])
            assert outcome.err.count("\n") == 1
            assert "cannot be read: " in outcome.err


def test_an_approval_outlives_a_fork_but_not_the_session(place: Workplace) -> None:
    with ScriptedServer([asks("echo x >> runs"), DONE, DONE]) as server:
        file, thread = one_suspended(place, server)
        approve = ("resume", thread, "--approve", str(file))
        assert run(place, "fork", thread, "and here?").code == 0
        assert outputs(server) == {"c1": "aborted"}
        assert run_codex_py(["archive", thread], place.home, place.cwd).returncode == 0
        assert (archived := run(place, *approve)).code == 1
        assert "is archived" in archived.err
        assert (
            run_codex_py(["unarchive", thread], place.home, place.cwd).returncode == 0
        )
        assert run(place, *approve).code == 0
        assert (
            run_codex_py(
                ["delete", "--force", thread], place.home, place.cwd
            ).returncode
            == 0
        )
        assert run(place, *approve).code == 2
    assert (place.cwd / "runs").read_text(encoding="utf-8") == "x\n"

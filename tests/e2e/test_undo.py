"""`undo` and `redo` of turns, the real program.

Tests `patch/undo/running_turns.py`.
"""

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from codex_py.patch.undo.recorder import TurnRecorder
from codex_py.testing import (
    ev_completed,
    ev_custom_tool_call,
    ev_function_call,
    ev_message,
)
from tests.support.git import git
from tests.support.patching import tree
from tests.support.program import Workplace, environment, run_codex_py
from tests.support.server import ScriptedServer

DONE = [*ev_message("done"), ev_completed()]
INTO_LINKED = (
    "*** Begin Patch\n*** Update File: linked/b\n@@\n-b\n+patched\n*** End Patch"
)


def work(place: Workplace, line: str, *args: str) -> None:
    """A turn with one command."""
    call = [*ev_function_call("c", "exec_command", {"cmd": line}), ev_completed()]
    with ScriptedServer([call, DONE]) as server:
        outcome = place.run(server, *(args or ("go",)))
    assert (outcome.code, outcome.messages) == (0, ["done"])


def run(place: Workplace, *args: str) -> tuple[int, str, str]:
    done = run_codex_py(args, place.home, place.cwd)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def as_json(place: Workplace, *args: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in run(place, *args, "--json")[1].splitlines()]


@pytest.fixture(autouse=True)
def repository(place: Workplace) -> None:
    os.umask(0o022)
    for name, text in {"a": "a\n", "src/b": "b\n", "src/deep/c": "c\n"}.items():
        path = place.cwd / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    git(place.cwd, "init", "-q")
    git(place.cwd, "add", "-A")
    git(place.cwd, "commit", "-qm", "first")
    (place.cwd / "a").write_text("edited by the user\n", encoding="utf-8")
    (place.cwd / "script").write_text("#!/bin/sh\n", encoding="utf-8")
    (place.cwd / "script").chmod(0o755)
    (place.cwd / "link").symlink_to("a")
    (place.cwd / "empty").touch()


@pytest.mark.parametrize(
    "line",
    [
        "sed -i s/edited/changed/ a",
        "rm -r src",
        "git checkout .",
        "git clean -fdq; git stash",
        "mv src lib; rm link; ln -s b link; chmod -x script",
        "rm -r src; echo file >src; rm empty a; mkdir -p a/b; echo x >a/b/c",
        "printf '\\000\\377' >a; : >script; rm empty",
        "find . -mindepth 1 -maxdepth 1 ! -name .git -exec rm -r {} +",
        "echo x >'new\nname'; cp -r src copy; git commit -qam x",
        "mv src ../elsewhere; ln -s ../elsewhere src",
        "rm -r src/deep; mkdir ../outside; ln -s $(pwd)/../outside src/deep",
    ],
)
def test_whatever_a_command_did_is_undone_and_done_again(place: Workplace, line: str):
    before = tree(place.cwd)
    git(place.cwd, "config", "user.email", "a@example.com")
    git(place.cwd, "config", "user.name", "a")
    work(place, line)
    after = tree(place.cwd)
    assert run(place, "undo")[0] == 0
    # What became of git's own files is not undone.
    restored = tree(place.cwd)
    assert files(restored) == files(before)
    assert (
        restored.items() - files(restored).items()
        == after.items() - files(after).items()
    )
    assert run(place, "redo")[0] == 0
    assert files(tree(place.cwd)) == files(after)


def files(found: dict[str, tuple[int, bytes]]) -> dict[str, tuple[int, bytes]]:
    return {
        name: value for name, value in found.items() if name.split("/")[0] != ".git"
    }


def test_an_edit_since_stops_the_undo_of_a_turn_with_a_diff(place: Workplace):
    work(place, "echo turn >a; echo turn >b")
    (place.cwd / "a").write_text("mine\n", encoding="utf-8")
    before = tree(place.cwd)
    code, out, err = run(place, "undo")
    assert (code, tree(place.cwd)) == (7, before)
    assert "-turn\n+mine\n" in out
    assert f"edited since: {place.cwd}/a" in err
    assert "--force" in err
    assert run(place, "undo", "--force")[0] == 0
    assert (place.cwd / "a").read_text(encoding="utf-8") == "edited by the user\n"


def test_files_of_the_program_itself_are_no_changes_of_the_turn(place: Workplace):
    call = [
        *ev_function_call("c", "exec_command", {"cmd": "echo new > new"}),
        ev_completed(),
    ]
    events = place.cwd / "events.jsonl"
    with ScriptedServer([call, DONE]) as server, events.open("wb") as output:
        place.configure(server)
        with place.start(stdout=output.fileno()) as program:
            assert program.wait(timeout=120) == 0
    last = json.loads(events.read_text(encoding="utf-8").splitlines()[-1])
    assert [line for line in last["diff"].splitlines() if line.startswith("diff")] == [
        "diff --git a/new b/new"
    ]
    code, out, err = run(place, "undo")
    assert (code, err, out.splitlines()[1:-1]) == (0, "", ["D new"])


def test_turns_are_undone_together_or_not_at_all(place: Workplace):
    before = tree(place.cwd)
    work(place, "echo 1 >a; touch new")
    first = tree(place.cwd)
    work(place, "echo 2 >a; rm new src/b", "resume", "--last", "go on")
    work(
        place,
        "chmod 600 script; echo 3 >a; mkdir src/b; echo d >src/b/d",
        "resume",
        "--last",
        "on",
    )
    last = tree(place.cwd)
    assert [row.get("turn") for row in as_json(place, "undo", "--list")] == [3, 2, 1]
    shown = run(place, "undo", "--to-turn", "2", "--show")
    assert (shown[0], "-3\n+1\n" in shown[1]) == (0, True)
    assert files(tree(place.cwd)) == files(last)
    (place.cwd / "new").write_text("mine", encoding="utf-8")
    assert run(place, "undo", "--to-turn", "2")[0] == 7
    (place.cwd / "new").unlink()
    assert files(tree(place.cwd)) == files(last)
    code, out, _ = run(place, "undo", "--to-turn", "2")
    assert (code, out.count("turn")) == (0, 2)
    assert files(tree(place.cwd)) == files(first)
    # What is left, then all of it again.
    assert run(place, "undo", "--to-turn", "1")[0] == 0
    assert files(tree(place.cwd)) == files(before)
    assert run(place, "undo", "--to-turn", "1")[0] == 1
    assert (run(place, "redo")[0], run(place, "redo")[0]) == (0, 0)
    assert files(tree(place.cwd)) == files(last)
    assert run(place, "redo")[0] == 1


def test_a_patch_through_a_link_is_undone_where_it_wrote(
    place: Workplace, tmp_path: Path
):
    before = files(tree(place.cwd))
    patch = "*** Begin Patch\n*** Update File: link\n@@\n-edited by the user\n+patched\n*** End Patch"
    calls = [
        ev_function_call("c1", "exec_command", {"cmd": "ln -s src linked"}),
        ev_function_call("c2", "apply_patch", {"input": patch}),
        ev_function_call("c3", "apply_patch", {"input": INTO_LINKED}),
        ev_function_call("c4", "exec_command", {"cmd": f"ln -sfn {tmp_path} linked"}),
    ]
    with ScriptedServer([*([*call, ev_completed()] for call in calls), DONE]) as server:
        diff = place.run(server).events[-1]["diff"]
    assert [line for line in diff.splitlines() if line.startswith("diff ")] == [
        "diff --git a/a b/a",
        "diff --git a/linked b/linked",
        "diff --git a/src/b b/src/b",
    ]
    assert run(place, "undo")[0] == 0
    assert files(tree(place.cwd)) == before
    assert not (tmp_path / "b").exists()


def test_an_edit_between_two_turns_is_not_overwritten(place: Workplace):
    work(place, "echo 1 >a")
    (place.cwd / "a").write_text("mine\n", encoding="utf-8")
    work(place, "echo 2 >a", "resume", "--last", "go on")
    code, out, _ = run(place, "undo", "--to-turn", "1")
    assert (code, "-1\n+mine\n" in out) == (7, True)
    assert run(place, "undo")[0] == 0
    assert (place.cwd / "a").read_text(encoding="utf-8") == "mine\n"


def test_a_turn_whose_process_was_killed_is_undone_on_demand(place: Workplace):
    before = tree(place.cwd)
    call = ev_function_call(
        "c", "exec_command", {"cmd": "rm -r src; echo x >a; touch ready; sleep 600"}
    )
    with ScriptedServer([[*call, ev_completed()]]) as server:
        place.configure(server)
        with place.start(
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as program:
            wait_for(place.cwd / "ready")
            assert run(place, "undo")[0] == 1
            os.kill(program.pid, signal.SIGKILL)
    code, out, err = run(place, "undo")
    assert (code, "+edited by the user\n" in out) == (7, True)
    assert "the program died in it" in err
    assert run(place, "undo", "--force")[0] == 0
    assert files(tree(place.cwd)) == files(before)


def test_a_patch_before_the_first_command_of_a_killed_turn_is_undone_after_it(
    place: Workplace,
):
    before = tree(place.cwd)
    patches = [
        f"*** Begin Patch\n*** Add File: {name}\n+x\n*** End Patch" for name in "de"
    ]
    script = [
        [*ev_custom_tool_call("c1", "apply_patch", patches[0]), ev_completed()],
        [*ev_function_call("c2", "exec_command", {"cmd": "rm -r src"}), ev_completed()],
        [*ev_custom_tool_call("c3", "apply_patch", patches[1]), ev_completed()],
        [
            *ev_function_call("c4", "exec_command", {"cmd": "touch ready; sleep 600"}),
            ev_completed(),
        ],
    ]
    with ScriptedServer(script) as server:
        place.configure(server)
        with place.start(
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as program:
            wait_for(place.cwd / "ready")
            os.kill(program.pid, signal.SIGKILL)
    assert run(place, "undo", "--force")[0] == 0
    assert (place.cwd / "d").exists()
    assert run(place, "undo")[0] == 0
    assert files(tree(place.cwd)) == files(before)
    assert run(place, "undo")[0] == 1


@pytest.mark.parametrize("by_patch", [False, True])
def test_a_killed_turn_does_not_become_part_of_the_next(
    place: Workplace, by_patch: bool
):
    call = ev_function_call(
        "c", "exec_command", {"cmd": "echo x >a; touch ready; sleep 600"}
    )
    with ScriptedServer([[*call, ev_completed()]]) as server:
        place.configure(server)
        with place.start(
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as program:
            wait_for(place.cwd / "ready")
            os.kill(program.pid, signal.SIGKILL)
    if by_patch:
        patch = "*** Begin Patch\n*** Add File: b\n+y\n*** End Patch"
        with ScriptedServer(
            [[*ev_custom_tool_call("c", "apply_patch", patch), ev_completed()], DONE]
        ) as server:
            place.run(server)
    else:
        work(place, "echo y >b")
    assert run(place, "undo")[1].splitlines()[1:-1] == ["D b"]
    assert run(place, "undo", "--force")[1].splitlines()[1:-1] == ["M a", "D ready"]


def test_the_turn_and_undo_say_why_nothing_can_be_copied(place: Workplace):
    calls = [
        [
            *ev_function_call(call_id, "exec_command", {"cmd": f"touch {call_id}"}),
            ev_completed(),
        ]
        for call_id in ("b", "c")
    ]
    with ScriptedServer([*calls, DONE]) as server:
        outcome = place.run(server, env={"PATH": str(bare_path(place))})
    assert "diff" not in outcome.events[-1]
    assert [item["message"] for item in outcome.items if item["type"] == "error"] == [
        "What commands change here is not recorded, so `undo` and the diff of a turn "
        "leave it out: git is not installed."
    ]
    code, _, err = run(place, "undo")
    assert code == 1
    assert "What commands change here is not kept: git is not installed." in err


@pytest.mark.parametrize(
    ("line", "options"),
    [
        ("ls", ("-s", "read-only")),
        ("touch b", ("-c", "features.undo=false")),
    ],
)
def test_a_turn_without_anything_to_record_has_no_warning_about_it(
    place: Workplace, line: str, options: tuple[str, ...]
):
    call = [*ev_function_call("c", "exec_command", {"cmd": line}), ev_completed()]
    with ScriptedServer([call, DONE]) as server:
        outcome = place.run(server, *options, "go", env={"PATH": str(bare_path(place))})
    assert [item["type"] for item in outcome.items] == [
        "command_execution",
        "agent_message",
    ]


def test_a_turn_that_cannot_be_copied_does_not_cost_the_undo_of_later_ones(
    place: Workplace,
):
    before = files(tree(place.cwd))
    # git waits for the other end of the pipe.
    work(place, "mkfifo .gitignore")
    assert "What commands change here is not kept" in run(place, "undo")[2]
    (place.cwd / ".gitignore").unlink()
    work(place, "rm -r src")
    assert run(place, "undo")[0] == 0
    assert files(tree(place.cwd)) == before


def bare_path(place: Workplace) -> Path:
    """A folder with no more than a command needs."""
    folder = place.home.parent / "bin"
    folder.mkdir()
    for name in ("sh", "bash", "touch"):
        (folder / name).symlink_to(f"/bin/{name}")
    return folder


def wait_for(path: Path) -> None:
    subprocess.run(
        [
            "timeout",
            "30",
            "sh",
            "-c",
            'until [ -e "$1" ]; do sleep 0.02; done',
            "sh",
            path,
        ],
        check=True,
    )


def test_a_store_that_is_lost_in_the_turn_costs_only_the_undo_of_its_commands(
    place: Workplace,
):
    work(place, f"rm -r {place.home}/codex-py/undo; echo 1 >a")
    code, _, err = run(place, "undo")
    assert (code, "What commands change here is not kept" in err) == (1, True)
    # The next session begins anew.
    work(place, "echo 2 >a")
    assert run(place, "undo")[::2] == (0, "")
    assert (place.cwd / "a").read_text(encoding="utf-8") == "1\n"


def doubtful(place: Workplace, monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn with a long command, while which the user may have saved a file."""
    monkeypatch.setattr("codex_py.patch.undo.copies.run_times._LONG_NS", -1)
    turn = TurnRecorder(place.home, place.cwd, os.environ, "session")
    turn.copy()
    turn.begin_life()
    (place.cwd / "new").touch()
    turn.end_life()
    turn.end_turn(1, is_new=True)


def test_changes_that_may_be_the_users_are_named_before_the_undo(
    place: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    doubtful(place, monkeypatch)
    code, out, err = run(place, "undo")
    assert (code, out.splitlines()[1]) == (0, "D new")
    named = f"A command of the session, or somebody else while it ran, changed {place.cwd}/new.\n"
    assert err == named


@pytest.mark.parametrize("answer", ["y", "n"])
def test_on_a_terminal_an_undo_asks_about_what_may_be_the_users(
    place: Workplace, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    doubtful(place, monkeypatch)
    own, its = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "codex_py", "undo"],
        cwd=place.cwd,
        env=environment(place.home),
        stdin=its,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as program:
        os.write(own, f"{answer}\n".encode())
        _, err = program.communicate(timeout=120)
    os.close(own)
    os.close(its)
    assert b"Undo all of it? [y/N]" in err
    assert (program.returncode, (place.cwd / "new").exists()) == (
        int(answer == "n"),
        answer == "n",
    )


def test_the_modes_of_files_and_what_is_in_submodules_are_brought_back(
    place: Workplace,
) -> None:
    inner = place.cwd / "inner"
    inner.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=inner, check=True)
    (inner / "x").write_text("x\n", encoding="utf-8")
    before = files(tree(place.cwd))
    work(place, "chmod 600 a; echo y >> inner/x; touch inner/new")
    assert run(place, "undo")[::2] == (0, "")
    assert files(tree(place.cwd)) == before


def test_changed_files_that_are_not_kept_are_named_even_alone(
    place: Workplace,
) -> None:
    (place.cwd / ".gitignore").write_text("build/\n", encoding="utf-8")
    (place.cwd / "build").mkdir()
    (place.cwd / "build" / "x").touch()
    work(place, "truncate -s 12M large; rm build/x")
    code, out, err = run(place, "undo")
    assert (code, out) == (1, "")
    assert f"{place.cwd}/build, {place.cwd}/large changed, and was not kept" in err

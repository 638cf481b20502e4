"""`exec --worktree`, and `worktree list` and `remove`.

Tests `app/worktrees/worktree.py`, `commands/worktree.py` and `command_line/worktrees.py`.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from codex_py.app.worktrees.worktree import run_worktree
from codex_py.patch.git import Git, for_tree
from codex_py.testing import ev_completed, ev_function_call, ev_message
from tests.support.git import git
from tests.support.program import Workplace, environment, run_codex_py
from tests.support.server import ScriptedServer

SAYS = [[*ev_message(text), ev_completed()] for text in ("one", "two", "three")]


def shell(command: str) -> list[list[dict[str, Any]]]:
    arguments = json.dumps({"cmd": command})
    return [
        [*ev_function_call("c1", "exec_command", arguments), ev_completed()],
        [*ev_message("done"), ev_completed()],
    ]


@pytest.fixture
def place(place: Workplace) -> Workplace:
    (place.cwd / "sub").mkdir()
    (place.cwd / "sub" / "a.txt").write_text("one\n", encoding="utf-8")
    git(place.cwd, "init", "-q")
    git(place.cwd, "add", "-A")
    git(place.cwd, "commit", "-qm", "one")
    return place


def worktree(place: Workplace, *args: str) -> tuple[int, str, str]:
    done = run_codex_py(["worktree", *args], place.home, place.cwd)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def listed(place: Workplace) -> list[dict[str, Any]]:
    return json.loads(worktree(place, "list", "--json")[1])


def test_a_worktree_in_which_nothing_changed_is_removed(place: Workplace) -> None:
    with ScriptedServer(SAYS) as server:
        first = place.run(server, "--worktree", "-C", "sub", "prompt")
        thread, path = first.events[0]["thread_id"], Path(first.events[0]["worktree"])
        assert (first.code, first.err) == (0, "")
        assert path.parent.parent == place.home / "worktrees"
        assert f"<cwd>{path / 'sub'}</cwd>" in json.dumps(server.requests[0].input)
        assert not path.exists()
        assert worktree(place, "list")[1].startswith("There are no worktrees.")
        second = place.rerun("resume", thread, "again")
        refusal = (
            f"session {thread} worked in a git worktree, {path / 'sub'}, which is gone;"
        )
        assert second.err.startswith(f"Error: {refusal}")
        assert (second.code, second.events, len(server.requests)) == (2, [], 1)


@pytest.mark.parametrize(
    "words",
    [
        ("resume", "THREAD", "again"),
        ("fork", "THREAD", "again"),
        ("fork", "THREAD"),
        ("resume", "--last", "--all", "again"),
        ("fork", "--last", "--all", "again"),
    ],
)
@pytest.mark.parametrize("is_gone", [True, False], ids=["gone", "kept"])
def test_the_session_of_a_worktree_goes_on_elsewhere_only_where_the_user_says_so(
    place: Workplace, words: tuple[str, ...], is_gone: bool
) -> None:
    command = "true" if is_gone else "touch new"
    with ScriptedServer([*shell(command), *SAYS]) as server:
        first = place.run(server, "--worktree", "prompt")
        thread, path = first.events[0]["thread_id"], Path(first.events[0]["worktree"])
        assert path.exists() is not is_gone
        named = [thread if word == "THREAD" else word for word in words]
        if is_gone:
            again = place.rerun(*named)
            assert (again.code, again.events, len(server.requests)) == (2, [], 2)
            assert f"worked in a git worktree, {path}, which is gone" in again.err
        elif "--last" in words:
            again = place.rerun(*named)
            assert (again.code, again.events, len(server.requests)) == (2, [], 2)
            assert f"`codex-py resume {thread}` goes on there" in again.err
        else:
            assert place.rerun(*named).events[0]["worktree"] == str(path)
        assert place.rerun("-C", ".", *named).code == 0
        elsewhere = place.rerun("--worktree", *named)
    assert elsewhere.code == 0
    assert elsewhere.events[0]["worktree"] != str(path)


def test_a_session_goes_on_in_its_worktree(place: Workplace) -> None:
    script = [*shell("echo new > new.txt"), *shell("pwd; cat new.txt")]
    with ScriptedServer(script) as server:
        first = place.run(server, "--worktree=fix", "prompt")
        thread, path = first.events[0]["thread_id"], Path(first.events[0]["worktree"])
        assert path == place.home / "worktrees" / "fix" / "work"
        kept = f"warning: The git worktree {path} has changes and is kept.\n"
        assert first.err == kept
        assert not (place.cwd / "new.txt").exists()
        second = place.rerun("resume", thread, "again")
        assert second.events[0] == first.events[0]
        (ran, _) = second.items
        assert ran["aggregated_output"] == f"{path}\nnew\n"
        taken = place.rerun("--worktree=fix", "prompt")
    assert (taken.code, taken.events) == (1, [])
    assert taken.err.startswith("Error: there is a worktree 'fix' already: ")
    (entry,) = listed(place)
    assert entry.pop("commit") == first_commit(place)
    assert entry == {
        "name": "fix",
        "path": str(path),
        "repository": str(place.cwd),
        "state": "changed",
        "unsaved": "changes",
        "sessions": [thread],
    }
    code, _, err = worktree(place, "remove", "fix")
    assert (code, err) == (
        1,
        f"Error: the worktree {path} has changes; --force removes it\n",
    )
    assert worktree(place, "remove", "--force", thread)[0] == 0
    assert listed(place) == []
    assert not path.exists()


def first_commit(place: Workplace) -> str:
    (head,) = (place.cwd / ".git" / "refs" / "heads").iterdir()
    return head.read_text(encoding="utf-8").strip()


def test_the_last_session_of_the_repository_goes_on_in_a_new_worktree(
    place: Workplace,
) -> None:
    with ScriptedServer(SAYS) as server:
        thread = place.run(server, "-C", "sub", "prompt").events[0]["thread_id"]
        again = place.rerun("-C", "sub", "--worktree", "resume", "--last", "again")
        assert (again.code, again.events[0]["thread_id"]) == (0, thread)
        assert "/worktrees/" in again.events[0]["worktree"]
        none = place.rerun("--worktree", "resume", "--last", "again")
        assert (none.code, f"none was recorded in {place.cwd}" in none.err) == (2, True)


def test_commits_that_no_branch_has_are_changes(place: Workplace) -> None:
    commit = "git -c user.name=a -c user.email=a@b commit -q --allow-empty -m two"
    with ScriptedServer(shell(commit)) as server:
        outcome = place.run(server, "--worktree=fix", "prompt")
    assert outcome.code == 0
    assert [each["state"] for each in listed(place)] == ["changed"]
    assert worktree(place, "remove", "fix")[0] == 1


def test_a_worktree_is_not_trusted_more_than_its_repository(place: Workplace) -> None:
    """What a session writes there is not a setting of the next one, though the project is trusted."""
    write = "mkdir .codex; echo 'model = \"gpt-evil\"' > .codex/config.toml"
    with ScriptedServer([*shell(write), *SAYS]) as server:
        place.configure(server)
        trust = f'[projects."{place.cwd}"]\ntrust_level = "trusted"\n'
        with (place.home / "config.toml").open("a", encoding="utf-8") as config:
            config.write(trust)
        first = place.rerun("--worktree", "prompt")
        assert (first.code, Path(first.events[0]["worktree"], ".codex").is_dir()) == (
            0,
            True,
        )
        second = place.rerun("resume", first.events[0]["thread_id"], "again")
        assert second.messages == ["one"]
    assert {request.body["model"] for request in server.requests} == {"gpt-5.5"}
    assert ".codex/config.toml" in json.dumps(second.items)


def test_text_mode_shows_where_it_works(place: Workplace) -> None:
    with ScriptedServer(SAYS) as server:
        place.configure(server)
        args = ["exec", "--worktree=fix", "--with-changes", "prompt"]
        done = run_codex_py(args, place.home, place.cwd)
    workdir = place.home / "worktrees" / "fix" / "work"
    assert f"workdir: {workdir}\n" in done.stderr.decode()
    assert not workdir.exists()


def test_a_killed_session_leaves_a_worktree_that_can_be_removed(
    place: Workplace,
) -> None:
    script = [
        [*ev_function_call("c1", "exec_command", '{"cmd":"sleep 600"}'), ev_completed()]
    ]
    with ScriptedServer(script) as server:
        place.configure(server)
        with subprocess.Popen(
            [
                sys.executable,
                "-m",
                "codex_py",
                "exec",
                "--json",
                "--worktree=fix",
                "prompt",
            ],
            cwd=place.cwd,
            env=environment(place.home),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
        ) as program:
            assert program.stdout is not None
            for line in program.stdout:
                if b"item.started" in line:
                    break
            code, _, err = worktree(place, "remove", "--force", "fix")
            assert (code, "is in use by another process" in err) == (1, True)
            program.kill()
            program.stdout.read()
    (entry,) = listed(place)
    assert (entry["name"], entry["state"]) == ("fix", "clean")
    assert worktree(place, "remove", entry["path"])[0] == 0
    assert listed(place) == []


def test_a_worktree_is_not_removed_while_a_session_from_elsewhere_works_in_it(
    place: Workplace,
) -> None:
    script = [
        SAYS[0],
        [
            *ev_function_call("c1", "exec_command", '{"cmd":"sleep 600"}'),
            ev_completed(),
        ],
    ]
    with ScriptedServer(script) as server:
        thread = place.run(server, "prompt").events[0]["thread_id"]
        with subprocess.Popen(
            [
                sys.executable,
                "-m",
                "codex_py",
                "exec",
                "--json",
                "--worktree=fix",
                "resume",
                thread,
                "go",
            ],
            cwd=place.cwd,
            env=environment(place.home),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
        ) as program:
            assert program.stdout is not None
            for line in program.stdout:
                if b"item.started" in line:
                    break
            path = listed(place)[0]["path"]
            assert worktree(place, "remove", "--force", "fix") == (
                1,
                "",
                f"Error: a session is at work in the worktree {path}\n",
            )
            program.kill()
            program.stdout.read()
    assert worktree(place, "remove", "fix")[0] == 0


def test_a_folder_that_is_no_worktree_is_removed_by_force_alone(
    place: Workplace,
) -> None:
    (place.home / "worktrees" / "dead" / "work").mkdir(parents=True)
    (place.home / "worktrees" / "empty").mkdir()
    assert [each["state"] for each in listed(place)] == ["broken", "broken"]
    assert worktree(place, "remove", "dead")[0] == 1
    for name in ("dead", "empty"):
        assert worktree(place, "remove", "--force", name)[0] == 0
    assert listed(place) == []
    code, _, err = worktree(place, "remove", "dead")
    assert (code, err) == (
        1,
        "Error: there is no worktree 'dead'; see `codex-py worktree list`\n",
    )


_SLOW_GIT = """#!/bin/sh
case " $* " in *" worktree add "*) read -r line <{held} ;; esac
exec {git} "$@"
"""


def test_an_interrupted_start_leaves_nothing_behind(place: Workplace) -> None:
    """git is held up by a pipe when it makes the worktree."""
    held = place.home.parent / "held"
    os.mkfifo(held)
    own = place.home.parent / "bin" / "git"
    own.parent.mkdir()
    own.write_text(
        _SLOW_GIT.format(held=held, git=shutil.which("git")), encoding="utf-8"
    )
    own.chmod(0o755)
    variables = environment(place.home)
    variables["PATH"] = f"{own.parent}:{variables['PATH']}"
    with ScriptedServer(SAYS) as server:
        place.configure(server)
    with subprocess.Popen(
        [
            sys.executable,
            "-m",
            "codex_py",
            "exec",
            "--json",
            "--worktree=fix",
            "prompt",
        ],
        cwd=place.cwd,
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    ) as program:
        pipe = os.open(held, os.O_WRONLY)
        os.killpg(program.pid, signal.SIGINT)
        os.close(pipe)
        out, err = program.communicate(timeout=120)
    assert (program.returncode, out) == (130, b""), err
    assert b"Traceback" not in err
    worktrees = place.home / "worktrees"
    assert not worktrees.exists() or [*worktrees.iterdir()] == []


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (("--worktree=../up",), 2, "--worktree: '../up' cannot name a folder here"),
        (
            ("--worktree=a\x1b[2J",),
            2,
            "--worktree: 'a\\x1b[2J' cannot name a folder here",
        ),
        (("-C", "../bare", "--worktree"), 1, "a worktree needs a git repository, and "),
        (("-C", "../new", "--worktree"), 1, "a worktree needs a commit, and "),
    ],
)
def test_mistakes_cost_one_sentence(
    place: Workplace, args: tuple[str, ...], code: int, message: str
) -> None:
    (place.cwd.parent / "bare").mkdir()
    (place.cwd.parent / "new" / ".git").mkdir(parents=True)
    git(place.cwd, "init", "-q", "../new")
    with ScriptedServer() as server:
        outcome = place.run(server, *args, "prompt")
    assert (outcome.code, outcome.events) == (code, [])
    assert outcome.err.startswith(f"Error: {message}")
    assert outcome.err.count("\n") == 1


def test_commands_in_a_worktree_are_not_led_to_the_repository_of_a_hook(
    place: Workplace,
) -> None:
    """git sets these variables for its hooks, and one of them may have started us."""
    other = place.home.parent / "other"
    subprocess.run(["git", "clone", "-q", place.cwd, other], check=True)
    listed = subprocess.run(
        ["git", "rev-parse", "--local-env-vars"], capture_output=True, check=True
    )
    local = [*listed.stdout.decode().split(), "GIT_NAMESPACE", "GIT_QUARANTINE_PATH"]
    local.remove("GIT_CONFIG_COUNT")
    hook = {name: str(other / ".git") for name in local} | {
        "GIT_INDEX_FILE": ".git/index"
    }
    hook |= {"GIT_AUTHOR_NAME": "hook", "PYTHONPATH": "/usr/share"}
    command = (
        "env | grep -E '^(GIT_|PYTHONPATH)' | grep -v -E 'PAGER|PROMPT'; date >>new.txt;"
        " git add new.txt; git -c user.name=a -c user.email=a@b commit -qm two; git log -1 --format=%s"
    )
    with ScriptedServer([*shell(command), *shell(command)]) as server:
        first = place.run(server, "--worktree=fix", "prompt", env=hook)
        second = place.rerun("resume", first.events[0]["thread_id"], "again", env=hook)
    for outcome in (first, second):
        (ran,) = (item for item in outcome.items if item["type"] == "command_execution")
        seen = sorted(ran["aggregated_output"].splitlines())
        assert seen == ["GIT_AUTHOR_NAME=hook", "PYTHONPATH=/usr/share", "two"]
    subjects = ["git", "-C", str(other), "log", "--format=%s"]
    assert subprocess.run(subjects, capture_output=True, check=True).stdout == b"one\n"


def test_worktrees_of_a_repository_are_made_and_removed_one_at_a_time(
    place: Workplace, tmp_path: Path
) -> None:
    program = tmp_path / "git"
    program.write_text(
        f'#!/bin/sh\ncase "$*" in *rev-parse*) exec git "$@" ;; esac\n'
        f"mkdir {tmp_path}/busy || exit 9\nsleep 0.05\nrmdir {tmp_path}/busy\n",
        encoding="utf-8",
    )
    program.chmod(0o755)
    fake = for_tree(
        Git(str(program), place.home, {"PATH": os.environ["PATH"]}), place.cwd
    )
    with ThreadPoolExecutor(6) as pool:
        run = partial(run_worktree, fake, place.cwd)
        assert list(pool.map(run, ["add", "remove", "list"] * 2)) == [""] * 6

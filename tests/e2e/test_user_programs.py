"""Programs that the user has configured are not taken from the repository, nor what they load.

Tests `app/features/notify.py`.
"""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from codex_py.testing import ev_completed, ev_function_call, ev_message
from tests.frontends.tui.terminals import IDLE, starting
from tests.support.git import git
from tests.support.hooks import configure as configure_hooks
from tests.support.program import Outcome, Workplace, run_codex_py
from tests.support.server import ScriptedServer

SERVER = Path(__file__).parents[1] / "mcp" / "servers"


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.fixture
def repository(place: Workplace) -> Path:
    """With programs and modules of the names that the user's configuration means."""
    marks = f"echo $0 >>{place.cwd}/ran-from-repository"
    for name in ("mine", "node", "notifier", "keyer"):
        program(place.cwd / ".venv/bin" / name, f"#!/bin/sh\n{marks}\nexit 1\n")
    text = f"open({str(place.cwd / 'ran-from-repository')!r}, 'a').write('json')"
    (place.cwd / "json.py").write_text(text, encoding="utf-8")
    return place.cwd


def configure(place: Workplace, server: ScriptedServer, text: str) -> dict[str, str]:
    """Add to the configuration; the environment of a shell in which the repository's venv is active."""
    place.configure(server)
    config = place.home / "config.toml"
    config.write_text(text + config.read_text(encoding="utf-8"), encoding="utf-8")
    return {
        "PATH": f"{place.cwd}/.venv/bin:{place.home.parent}/bin:{os.environ['PATH']}"
    }


def answered() -> ScriptedServer:
    return ScriptedServer([[*ev_message("done"), ev_completed()]])


def test_nothing_is_started_from_the_repository_or_loads_from_it(
    place: Workplace, repository: Path
) -> None:
    out = place.home.parent / "out"
    program(place.home.parent / "bin/node", f"#!/bin/sh\necho node $PWD >>{out}\n")
    program(place.home.parent / "bin/mine", "#!/usr/bin/env node\n")
    program(
        place.home.parent / "bin/notifier", f"#!/bin/sh\necho notifier $PWD >>{out}\n"
    )
    with answered() as server:
        env = configure(place, server, "notify = ['notifier']\n")
        with (place.home / "config.toml").open("a", encoding="utf-8") as config:
            config.write(
                "[mcp_servers.mine]\ncommand = 'mine'\n"
                f"[mcp_servers.python]\ncommand = {sys.executable!r}\nargs = ['-m', 'json.tool']\n"
            )
        outcome = place.rerun(env=env)
    assert outcome.code == 0
    assert not (repository / "ran-from-repository").exists()
    started = place.home / "codex-py/programs"
    assert f"node {started}" in out.read_text(encoding="utf-8").splitlines()
    assert list(started.iterdir()) == []
    assert stat.S_IMODE(started.stat().st_mode) == 0o700


@pytest.mark.parametrize("name", ["notifier", "{bin}/notifier", "{bin}/missing"])
def test_only_a_missing_notify_is_warned_of(place: Workplace, name: str) -> None:
    folder = place.home.parent / "bin"
    program(folder / "notifier", "#!/bin/sh\n")
    with answered() as server:
        env = configure(place, server, f"notify = [{name.format(bin=folder)!r}]\n")
        outcome = place.rerun(env=env)
    assert ("of `notify` cannot be found" in str(outcome.events)) == name.endswith(
        "missing"
    )


def test_notify_gets_the_beginning_of_what_is_too_long_for_an_argument(
    place: Workplace,
) -> None:
    out = place.home.parent / "out"
    os.mkfifo(out)
    path = program(
        place.home.parent / "notifier", f'#!/bin/sh\nprintf %s "$1" >{out}\n'
    )
    answer = "\N{BLACK STAR}" * 1_000_000
    with ScriptedServer([[*ev_message(answer), ev_completed()]]) as server:
        configure(place, server, f"notify = [{str(path)!r}]\n")
        running = place.start(
            "go", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        message = json.loads(out.read_text(encoding="utf-8"))
        assert running.wait(120) == 0
    assert (
        message["last-assistant-message"]
        == f"{answer[:4000]}… [996000 more characters]"
    )
    assert message["input-messages"] == ["go"]


def test_a_server_that_is_in_the_repository_alone_is_told(
    place: Workplace, repository: Path
) -> None:
    with answered() as server:
        env = configure(place, server, "")
        with (place.home / "config.toml").open("a", encoding="utf-8") as config:
            config.write("[mcp_servers.mine]\ncommand = 'mine'\n")
        done = run_codex_py(["mcp", "test", "mine"], place.home, place.cwd, env)
    assert done.returncode == 1
    error = done.stderr.decode().splitlines()[0]
    assert error == (
        "Error: MCP server `mine` could not be started: 'mine': it was found only inside the project or a writable"
        f" folder; to allow it, configure its path, {repository}/.venv/bin/mine"
    )
    assert not (repository / "ran-from-repository").exists()


def warnings(outcome: Outcome) -> list[str]:
    return [item["message"] for item in outcome.items if item["type"] == "error"]


@pytest.mark.parametrize("name", ["python", "node", "uvx", "notifier"])
def test_a_program_of_an_active_environment_that_is_passed_over_is_told(
    place: Workplace, name: str
) -> None:
    barred = program(place.cwd / ".venv/bin" / name, "#!/bin/sh\n: >ran-from-venv\n")
    program(place.home.parent / "bin" / name, "#!/bin/sh\n")
    with answered() as server:
        env = configure(place, server, f"notify = [{name!r}]\n")
        with (place.home / "config.toml").open("a", encoding="utf-8") as config:
            config.write(f"[mcp_servers.mine]\ncommand = {name!r}\n")
        outcome = place.rerun(env={**env, "VIRTUAL_ENV": f"{place.cwd}/.venv"})
    assert outcome.code == 0
    told = [text for text in warnings(outcome) if str(barred) in text]
    settings = ["`notify`", "the MCP server `mine`"]
    assert sorted(
        text.removeprefix(f"The program {name!r} of ").split(" is not ")[0]
        for text in told
    ) == sorted(settings)
    assert all("write this path into your configuration" in text for text in told)
    assert not (place.cwd / "ran-from-venv").exists()


def test_a_program_that_a_shell_would_start_too_is_not_told(place: Workplace) -> None:
    own = program(place.home.parent / "bin/node", "#!/bin/sh\n")
    program(place.cwd / ".venv/bin/python", "#!/bin/sh\n")
    with answered() as server:
        env = configure(place, server, "notify = ['node']\n")
        with (place.home / "config.toml").open("a", encoding="utf-8") as config:
            config.write(
                f"[mcp_servers.a]\ncommand = 'node'\n[mcp_servers.b]\ncommand = {str(own)!r}\n"
            )
        outcome = place.rerun(env=env)
    assert not [text for text in warnings(outcome) if "is not /" in text]


@pytest.mark.parametrize("trusted", [True, False])
def test_a_server_starts_in_the_working_directory_of_a_trusted_project(
    place: Workplace, tmp_path: Path, trusted: bool
) -> None:
    out = tmp_path / "out"
    path = program(tmp_path / "server", f"#!/bin/sh\npwd >{out}\n")
    with answered() as server:
        configure(place, server, "")
        with (place.home / "config.toml").open("a", encoding="utf-8") as config:
            config.write(f"[mcp_servers.x]\ncommand = {str(path)!r}\n")
            if trusted:
                config.write(
                    f"[projects.{json.dumps(str(place.cwd))}]\ntrust_level = 'trusted'\n"
                )
        place.rerun()
    expected = place.cwd if trusted else place.home / "codex-py/programs"
    assert out.read_text(encoding="utf-8") == f"{expected}\n"


def test_the_program_for_a_key_is_not_the_repositorys(
    place: Workplace, repository: Path
) -> None:
    out = place.home.parent / "out"
    script = f"#!/bin/sh\npwd >{out}; echo key-of-the-user\n"
    program(place.home.parent / "bin/keyer", script)
    with answered() as server:
        text = (
            "model_provider = 'mine'\nmodel = 'test'\n[model_providers.mine]\nname = 'mine'\n"
            f"base_url = '{server.base_url}'\nauth = {{ command = 'keyer' }}\n"
        )
        env = configure(place, server, "")
        (place.home / "config.toml").write_text(text, encoding="utf-8")
        outcome = place.rerun(env=env)
    assert outcome.code == 0
    assert server.requests[0].headers["authorization"] == "Bearer key-of-the-user"
    assert out.read_text(encoding="utf-8") == f"{place.home}/codex-py/programs\n"
    assert not (repository / "ran-from-repository").exists()


def test_a_model_server_of_the_user_is_asked_with_a_key_of_the_users_program(
    place: Workplace, repository: Path
) -> None:
    out = place.home.parent / "out"
    program(
        place.home.parent / "bin/keyer", f"#!/bin/sh\necho asked >>{out}; echo key\n"
    )
    with answered() as server:
        text = f"base_url = '{server.base_url}'\nauth = {{ command = 'keyer' }}\n"
        env = configure(place, server, "")
        (place.home / "config.toml").write_text(
            f"[model_providers.vllm]\n{text}", "utf-8"
        )
        run_codex_py(["providers", "list"], place.home, place.cwd, env)
    assert not (repository / "ran-from-repository").exists()
    assert out.read_text(encoding="utf-8") == "asked\n"


def test_the_terminal_starts_no_git_of_a_folder_that_commands_may_write_to(
    place: Workplace,
) -> None:
    """Nor one of the project above the working directory."""
    added, ran = place.home.parent / "added", place.home.parent / "ran"
    for folder in (added / "bin", place.cwd / "bin"):
        program(folder / "git", f"#!/bin/sh\necho $0 >>{ran}\nexit 1\n")
    subprocess.run(["git", "init", "-q", place.cwd], check=True)
    path = f"{added}/bin:{place.cwd}/bin:{os.environ['PATH']}"
    below = place.cwd / "below"
    below.mkdir()
    with answered() as server, starting(place) as start:
        terminal = start(server, "-C", str(below), "--add-dir", str(added), PATH=path)
        terminal.wait_for(IDLE)
        terminal.type("/diff")
        terminal.press("enter")
        terminal.wait_for("Added bin/git")
    assert not ran.exists()


def running(place: Workplace, command: str, *options: str, path: str) -> Outcome:
    """A run in which the model has one command run in the sandbox."""
    call = ev_function_call("c1", "exec_command", json.dumps({"cmd": command}))
    with ScriptedServer(
        [[*call, ev_completed()], [*ev_message("done"), ev_completed()]]
    ) as server:
        env = {"PATH": f"{path}:{os.environ['PATH']}"}
        return place.run(server, "-s", "workspace-write", *options, "go", env=env)


def planting(folder: Path, mark: Path) -> str:
    """A command that leaves a `git` behind."""
    text = f"#!/bin/sh\necho $0 >>{mark}\nexit 1\n"
    return f"mkdir -p {folder}; printf '{text}' >{folder}/git; chmod +x {folder}/git"


@pytest.mark.parametrize("kind", ["--worktree", "a worktree of the user"])
def test_undo_starts_no_git_of_the_tree_that_a_worktree_was_made_from(
    place: Workplace, kind: str
) -> None:
    git(place.cwd, "init")
    (place.cwd / ".gitignore").write_text(".venv\n", encoding="utf-8")
    git(place.cwd, "add", "-A")
    git(place.cwd, "commit", "-m", "one")
    mark, folder = place.home.parent / "ran", place.cwd / ".venv/bin"
    first = running(place, planting(folder, mark), path=str(folder))
    assert (first.code, (folder / "git").is_file()) == (0, True)
    options = [kind]
    if kind != "--worktree":
        git(place.cwd, "worktree", "add", str(place.home.parent / "linked"))
        options = ["-C", str(place.home.parent / "linked")]
    second = running(place, "echo >x", *options, path=str(folder))
    assert (second.code, "b/x" in second.events[-1]["diff"]) == (0, True)
    assert not mark.exists()


def test_undo_starts_no_git_that_an_earlier_session_has_left(place: Workplace) -> None:
    mark, left = place.home.parent / "ran", place.cwd / "bin"
    assert running(place, planting(left, mark), path="/").code == 0
    later = Workplace(place.home, place.home.parent / "later")
    later.cwd.mkdir()
    for options in ((), ("--ephemeral",)):
        outcome = running(later, "echo >>x", *options, path=str(left))
        assert (outcome.code, "x" in outcome.events[-1]["diff"]) == (0, True)
    assert not mark.exists()
    record = place.home / "codex-py/writable-roots"
    roots = record.read_text(encoding="utf-8").split()
    assert roots == [str(place.cwd), str(later.cwd)]


def test_undo_starts_no_git_of_a_folder_that_is_added(place: Workplace) -> None:
    mark, added = place.home.parent / "ran", place.home.parent / "added"
    program(added / "bin/git", f"#!/bin/sh\necho $0 >>{mark}\nexit 1\n")
    outcome = running(
        place, "echo >x", "--add-dir", str(added), path=str(added / "bin")
    )
    assert (outcome.code, "b/x" in outcome.events[-1]["diff"]) == (0, True)
    assert not mark.exists()


def test_nothing_is_recorded_of_runs_that_may_write_nowhere_or_anywhere(
    place: Workplace,
) -> None:
    for mode in ("read-only", "danger-full-access"):
        assert running(place, "true", "-s", mode, path="/").code == 0
    assert not (place.home / "codex-py/writable-roots").exists()
    run = run_codex_py(
        ["sandbox", "workspace-write", "--", "true"], place.home, place.cwd
    )
    assert run.returncode == 0
    record = (place.home / "codex-py/writable-roots").read_text(encoding="utf-8")
    assert record == f"\n{place.cwd}"


def test_a_git_that_is_none_costs_the_undo_alone(place: Workplace) -> None:
    program(place.home.parent / "bin/git", "#!/bin/sh\necho nonsense\n")
    outcome = running(place, "touch x", path=str(place.home.parent / "bin"))
    assert (outcome.code, outcome.err) == (0, "")
    env = {"PATH": f"{place.home.parent}/bin:{os.environ['PATH']}"}
    undo = run_codex_py(["undo"], place.home, place.cwd, env)
    assert "bin/git does not answer as git does." in undo.stderr.decode()


def test_a_git_in_the_project_alone_is_told(place: Workplace, repository: Path) -> None:
    program(repository / ".venv/bin/git", "#!/bin/sh\nexit 1\n")
    git(repository, "init")
    (place.home.parent / "none").mkdir()
    env = {"PATH": f"{repository}/.venv/bin:{place.home.parent}/none"}
    told = f"git cannot be used: it was found only inside the project or a writable folder, {repository}/.venv/bin/git"
    made = run_codex_py(["exec", "--worktree", "go"], place.home, place.cwd, env)
    assert made.stderr.decode().endswith(f"Error: {told}\n")
    doctor = run_codex_py(["doctor", "--json"], place.home, place.cwd, env)
    assert told in doctor.stdout.decode()


@pytest.mark.parametrize("trusted", [True, False])
def test_hooks_of_the_user_load_nothing_from_a_project_that_is_not_trusted(
    place: Workplace, repository: Path, trusted: bool
) -> None:
    out = place.home.parent / "out"
    program(place.home.parent / "bin/node", f"#!/bin/sh\necho mine >>{out}\n")
    python = f"{sys.executable} -c 'import json; json.dumps(1)'"
    with answered() as server:
        env = configure(place, server, "")
        configure_hooks(
            place, {"SessionStart": [f"node; {python}; echo $PYTHONPATH >>{out}"]}
        )
        if trusted:
            with (place.home / "config.toml").open("a", encoding="utf-8") as config:
                config.write(
                    f"[projects.{json.dumps(str(place.cwd))}]\ntrust_level = 'trusted'\n"
                )
        env["PYTHONPATH"] = f".:{place.cwd}:/usr/share"
        place.rerun("--dangerously-bypass-hook-trust", "go", env=env)
    assert (repository / "ran-from-repository").exists() is trusted
    if not trusted:
        assert out.read_text(encoding="utf-8").split() == ["mine", "/usr/share"]

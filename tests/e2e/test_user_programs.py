"""Programs that the user has configured are not taken from the repository, nor what they load."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from codex_py.testing import ScriptedServer, ev_completed, ev_message
from tests.frontends.tui.terminals import IDLE, starting
from tests.support.program import Workplace, run_codex_py

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
    return {"PATH": f"{place.cwd}/.venv/bin:{place.home.parent}/bin:{os.environ['PATH']}"}


def answered() -> ScriptedServer:
    return ScriptedServer([[*ev_message("done"), ev_completed()]])


def test_nothing_is_started_from_the_repository_or_loads_from_it(
    place: Workplace, repository: Path
) -> None:
    out = place.home.parent / "out"
    program(place.home.parent / "bin/node", f"#!/bin/sh\necho node $PWD >>{out}\n")
    program(place.home.parent / "bin/mine", "#!/usr/bin/env node\n")
    program(place.home.parent / "bin/notifier", f"#!/bin/sh\necho notifier $PWD >>{out}\n")
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
                config.write(f"[projects.{json.dumps(str(place.cwd))}]\ntrust_level = 'trusted'\n")
        place.rerun()
    expected = place.cwd if trusted else place.home / "codex-py/programs"
    assert out.read_text(encoding="utf-8") == f"{expected}\n"


def test_the_program_for_a_key_is_not_the_repositorys(place: Workplace, repository: Path) -> None:
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

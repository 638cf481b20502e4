"""A session that would lack a protection does not begin, whichever command asks for it."""

import asyncio
from pathlib import Path

import pytest

from codex_py.testing import ev_completed, ev_message
from tests.frontends.tui.terminals import IDLE, starting
from tests.support.mcp_agent import served, text_of
from tests.support.program import Workplace, run_codex_py
from tests.support.server import ScriptedServer

DONE = [*ev_message("done"), ev_completed()]
MASKED = "features.credential_masking = true"


@pytest.fixture
def server():
    with ScriptedServer([DONE, DONE]) as server:
        yield server


def configure(place: Workplace, server: ScriptedServer, text: str) -> Path:
    place.configure(server)
    path = place.home / "config.toml"
    path.write_text(f"{text}\n{path.read_text(encoding='utf-8')}", encoding="utf-8")
    return path


def test_exec_stops_before_any_request_and_goes_on_where_it_is_accepted(
    place: Workplace, server: ScriptedServer
) -> None:
    path = configure(place, server, MASKED)
    command = ["exec", "--skip-git-repo-check"]
    done = run_codex_py([*command, "go"], place.home, place.cwd)
    assert (done.returncode, done.stdout) == (78, b"")
    assert done.stderr.decode().splitlines()[-1] == (
        f"Error: {path}:1: credentials are not masked; to start all the same,"
        " pass `--allow-unenforced features.credential_masking`."
    )
    assert server.requests == []
    assert not (place.home / "sessions").exists()

    accepted = [*command, "--allow-unenforced", "features.credential_masking", "go"]
    assert run_codex_py(accepted, place.home, place.cwd).returncode == 0
    resumed = run_codex_py([*command, "resume", "--last", "on"], place.home, place.cwd)
    assert resumed.returncode == 78
    setting = ["-c", 'allow_unenforced=["features.credential_masking"]']
    resumed = run_codex_py(
        [*command, *setting, "resume", "--last", "on"], place.home, place.cwd
    )
    assert resumed.returncode == 0


@pytest.mark.parametrize("command", [["exec"], ["sandbox"], []])
def test_a_name_that_is_no_protection_is_a_usage_error(
    command: list[str], place: Workplace
) -> None:
    done = run_codex_py(
        [*command, "--allow-unenforced", "budgets", "true"], place.home, place.cwd
    )
    assert done.returncode == 2
    last = done.stderr.decode()
    assert (
        "--allow-unenforced: 'budgets' is not a possible value: permissions.filesystem,"
        in last
    )


def test_the_terminal_stops_before_it_draws_anything(
    place: Workplace, server: ScriptedServer
) -> None:
    with starting(place) as start:
        program = start(server, "-c", MASKED)
        program.wait_for("credentials are not masked")
        assert program.wait() == 78
        assert IDLE not in program.text
        program = start(
            server, "-c", MASKED, "--allow-unenforced", "features.credential_masking"
        )
        program.wait_for(IDLE)


def test_the_sandbox_does_not_run_a_command_with_less_than_was_asked_for(
    place: Workplace, server: ScriptedServer
) -> None:
    configure(place, server, MASKED)
    done = run_codex_py(["sandbox", "--", "echo", "ran"], place.home, place.cwd)
    assert (done.returncode, done.stdout) == (78, b"")


def test_the_mcp_server_stops_and_so_does_a_call_that_brings_such_settings(
    place: Workplace, server: ScriptedServer
) -> None:
    configure(place, server, MASKED)
    done = run_codex_py(["mcp-server"], place.home, place.cwd)
    assert (done.returncode, done.stdout) == (78, b"")
    configure(place, server, "")

    async def main() -> None:
        async with served(place, "--trust-client") as agent:
            result = await agent.call(config={"features.credential_masking": True})
            assert result.is_error
            assert "credentials are not masked" in text_of(result)

    asyncio.run(main())
    assert server.requests == []

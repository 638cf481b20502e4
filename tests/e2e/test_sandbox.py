"""Policies hold for what a model runs, in the real program.

Tests `commands/sandbox.py` and `app/standalone_command.py`.
"""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from codex_py.process.sessions import ProcessSessions
from codex_py.testing import ev_completed, ev_function_call, ev_message
from tests.sandbox.local_backends import BACKENDS
from tests.support.lifeline import Lifeline
from tests.support.program import Workplace, environment, run_codex_py
from tests.support.server import ScriptedServer

pytestmark = pytest.mark.skipif(not BACKENDS, reason="needs a way to hold commands")


def calls(script: str) -> ScriptedServer:
    return ScriptedServer(
        [
            [*ev_function_call("c1", "exec_command", {"cmd": script}), ev_completed()],
            [*ev_message("done"), ev_completed()],
        ]
    )


def run(place: Workplace, script: str, *args: str) -> tuple[int, str]:
    """The exit code of the program, and what the command printed."""
    with calls(script) as server:
        outcome = place.run(server, *args, "go")
    return outcome.code, outcome.items[0]["aggregated_output"]


def test_exec_is_read_only_unless_told_otherwise(
    place: Workplace, tmp_path: Path
) -> None:
    with calls("echo x >new; echo x >/tmp/new || echo held") as server:
        place.configure(server)
        done = run_codex_py(
            ["exec", "--json", "--skip-git-repo-check", "go"], place.home, place.cwd
        )
    assert done.returncode == 0
    assert b"held" in done.stdout
    assert list(place.cwd.iterdir()) == []


def test_a_workspace_can_be_written_and_nothing_beside_it(
    place: Workplace, tmp_path: Path
) -> None:
    settings = ["-s", "workspace-write", *_no_temporary_folders()]
    code, output = run(
        place, "echo x >new && echo x >../beside || echo held", *settings
    )
    assert (code, output.splitlines()[-1]) == (0, "held")
    assert [path.name for path in place.cwd.iterdir()] == ["new"]
    assert not (tmp_path / "beside").exists()


def test_a_folder_can_be_added(place: Workplace, tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    settings = ["-s", "workspace-write", *_no_temporary_folders()]
    code, _ = run(
        place, "echo x >../more/new", *settings, "--add-dir", str(tmp_path / "more")
    )
    assert code == 0
    assert (tmp_path / "more/new").exists()


def test_the_configuration_is_not_for_commands_to_change(
    place: Workplace, tmp_path: Path
) -> None:
    settings = [
        "-s",
        "workspace-write",
        *_no_temporary_folders(),
        "--add-dir",
        str(tmp_path),
    ]
    before = None
    with calls("echo x >>$CODEX_HOME/config.toml; ls $CODEX_HOME >/dev/null") as server:
        place.configure(server)
        before = (place.home / "config.toml").read_text(encoding="utf-8")
        place.rerun(*settings, "go")
    assert (place.home / "config.toml").read_text(encoding="utf-8") == before


def test_names_that_were_held_away_are_gone_after_a_run(place: Workplace) -> None:
    code, output = run(
        place, "ls -a", "-s", "workspace-write", *_no_temporary_folders()
    )
    assert code == 0
    assert list(place.cwd.iterdir()) == []
    assert ".codex" in output or BACKENDS[0].name not in {
        "namespaces",
        "views",
        "bwrap",
    }


@pytest.mark.parametrize(("killed", "next_in"), [("pkg/deep", "."), (".", "pkg/deep")])
def test_names_that_a_killed_run_held_are_gone_after_any_other(
    place: Workplace, killed: str, next_in: str
) -> None:
    (place.cwd / "pkg/deep").mkdir(parents=True)
    place.home.joinpath("config.toml").touch()
    before = sorted(place.cwd.rglob("*"))
    with Lifeline(place.home.parent) as line:
        words = [
            "workspace-write",
            "-C",
            killed,
            "--",
            "sh",
            "-c",
            f"{line.hold} exec sleep 600",
        ]
        program = subprocess.Popen(
            [sys.executable, "-m", "codex_py", "sandbox", *words],
            cwd=place.cwd,
            env=environment(place.home),
        )
        line.wait_until_up()
        program.kill()
        program.wait()
        line.wait_until_dead()
    held = BACKENDS[0].name in {"namespaces", "views", "bwrap"}
    assert (place.cwd / killed / ".codex").is_dir() == held
    words = ["sandbox", "read-only", "-C", next_in, "--", "true"]
    assert run_codex_py(words, place.home, place.cwd).returncode == 0
    assert sorted(place.cwd.rglob("*")) == before


@pytest.mark.parametrize(
    "args", [["read-only"], ["workspace-write", "--add-dir", "/nowhere"], []]
)
def test_a_command_is_run_by_hand(place: Workplace, args: list[str]) -> None:
    done = run_codex_py(
        ["sandbox", *args, "--", "sh", "-c", "echo out; echo x >/etc/no; exit 7"],
        place.home,
        place.cwd,
    )
    assert (done.returncode, done.stdout) == (7, b"out\n")
    assert not Path("/etc/no").exists()


@pytest.mark.skipif(
    sys.platform != "linux", reason="who has sent a signal is known on Linux alone"
)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_for_the_program_alone_ends_the_command_too(
    place: Workplace, number: signal.Signals
) -> None:
    with Lifeline(place.cwd) as line:
        words = [
            "sandbox",
            "workspace-write",
            "--",
            "sh",
            "-c",
            f"{line.hold} exec sleep 600",
        ]
        program = subprocess.Popen(
            [sys.executable, "-m", "codex_py", *words],
            cwd=place.cwd,
            env=environment(place.home),
            start_new_session=True,
        )
        line.wait_until_up()
        program.send_signal(number)
        assert program.wait(timeout=120) == 128 + number
        line.wait_until_dead()


def test_the_interrupt_key_of_a_terminal_is_for_the_command(place: Workplace) -> None:
    words = [
        "sandbox",
        "read-only",
        "--",
        "bash",
        "-c",
        # bash can miss a signal that comes just before it waits: it looks again when the time of `read` is up.
        "trap 'echo caught; exit 5' INT; echo up; while :; do read -t 0.2; done",
    ]
    argv = [sys.executable, "-m", "codex_py", *words]

    async def run() -> tuple[int | None, str]:
        sessions = ProcessSessions()
        ready = asyncio.Event()
        process = sessions.spawn(
            argv,
            cwd=place.cwd,
            environment=environment(place.home),
            tty=True,
            on_output=lambda _: ready.set(),
        )
        async with asyncio.timeout(120):
            await ready.wait()
            process.write(b"\x03")
            await process.finished.wait()
        output = process.all_output().text()
        await sessions.aclose()
        return process.exit_code, output

    code, output = asyncio.run(run())
    assert (code, "caught" in output) == (5, True)


def test_words_that_mean_nothing_are_an_error(place: Workplace) -> None:
    done = run_codex_py(["sandbox", "read-only"], place.home, place.cwd)
    assert (done.returncode, done.stdout) == (2, b"")


def test_the_protections_of_every_backend_are_printed(place: Workplace) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "codex_py", "sandbox", "--test"],
        cwd=place.cwd,
        env=environment(place.home),
        capture_output=True,
        timeout=120,
        check=False,
    )
    text = done.stdout.decode()
    assert done.returncode == 0, text
    for backend in BACKENDS:
        assert f"{backend.name}: works here" in text


def test_a_probe_that_cannot_be_tried_says_so(place: Workplace) -> None:
    # In a sandbox, where no socket can be made for a command to connect to.
    words = [
        "sandbox",
        "workspace-write",
        "--",
        sys.executable,
        "-m",
        "codex_py",
        "sandbox",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "codex_py", *words, "--test"],
        cwd=place.cwd,
        env=environment(place.home),
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode in {1, 6}, done.stderr) == (True, b"")


@pytest.mark.parametrize(
    "words",
    [
        ["read-only", "-C", "sub", "--", "true"],
        ["workspace-write", "--", "true"],
        ["--test"],
    ],
)
def test_a_bwrap_of_the_project_is_never_started(
    place: Workplace, words: list[str]
) -> None:
    for name in (".git/objects", "sub"):
        (place.cwd / name).mkdir(parents=True)
    planted = place.cwd / "bwrap"
    planted.write_text(f"#!/bin/sh\necho x >{place.cwd}/started\n", encoding="ascii")
    planted.chmod(0o755)
    # In a sandbox, which refuses namespaces, so that bwrap is the first backend that may work.
    inner = [sys.executable, "-m", "codex_py", "sandbox", *words]
    search_path = {"PATH": f"{place.cwd}:{os.environ['PATH']}"}
    done = run_codex_py(
        ["sandbox", "workspace-write", "--", *inner], place.home, place.cwd, search_path
    )
    assert done.returncode in {0, 1, 6}
    assert not (place.cwd / "started").exists()


def _no_temporary_folders() -> list[str]:
    return [
        *("-c", "sandbox_workspace_write.exclude_slash_tmp=true"),
        *("-c", "sandbox_workspace_write.exclude_tmpdir_env_var=true"),
    ]


@pytest.mark.parametrize(
    "words",
    [
        ["echo", "hi"],
        ["read-only", "echo", "hi"],
        ["read-only", "--", "echo", "hi"],
        ["-C", ".", "read-only", "-c", "model=m", "echo", "hi"],
        ["-P", ":read-only", "--", "echo", "hi"],
        ["--permission-profile", ":workspace", "echo", "hi"],
    ],
)
def test_a_command_is_found_with_and_without_dashes(
    place: Workplace, words: list[str]
) -> None:
    done = run_codex_py(["sandbox", *words], place.home, place.cwd)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"hi\n", b"")


def test_a_profile_of_the_command_line_holds(place: Workplace) -> None:
    script = "echo x >new"
    done = run_codex_py(
        ["sandbox", "-P", ":read-only", "sh", "-c", script], place.home, place.cwd
    )
    assert done.returncode != 0
    done = run_codex_py(
        ["sandbox", "-P", ":workspace", "sh", "-c", script], place.home, place.cwd
    )
    assert done.returncode == 0

"""Commands in the foreground of a terminal of their own."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from codex_py.process.foreground import ForegroundCommand
from codex_py.process.sessions import ProcessSessions


def run(
    script: str,
    cwd: Path,
    meanwhile: Callable[[ForegroundCommand], object] = lambda _: None,
) -> tuple[int | None, str]:
    """The exit code, and the output until then."""

    async def work() -> tuple[int | None, str]:
        sessions = ProcessSessions()
        shown: list[bytes] = []
        try:
            command = ForegroundCommand(
                sessions,
                ["/bin/sh", "-c", script],
                cwd=cwd,
                environment=dict(os.environ),
                size=(90, 30),
                on_output=shown.append,
            )
            meanwhile(command)
            async with asyncio.timeout(30):
                await command.ended.wait()
            output = command.output
            assert b"".join(shown).decode() == output
            return command.exit_code, output.replace("\r\n", "\n")
        finally:
            await sessions.aclose()

    return asyncio.run(work())


@pytest.mark.parametrize(
    ("script", "code", "output"),
    [
        ("echo one; exit 3", 3, "one\n"),
        ("stty size </dev/tty", 0, "30 90\n"),
        ("kill -TERM $$", 143, "Terminated\n"),
        ("printf %0100000d 7", 0, "0" * 99_999 + "7"),
        ("sleep 60 & echo on", 0, "on\n"),
        ("test -t 0 && test -t 1 && test -t 2 && echo all", 0, "all\n"),
    ],
)
def test_a_command_ends_with_its_code_and_all_of_its_output(
    tmp_path: Path, script: str, code: int, output: str
) -> None:
    assert run(script, tmp_path) == (code, output)


def test_a_command_reads_what_is_typed(tmp_path: Path) -> None:
    typed = run(
        "read x; echo got $x", tmp_path, lambda command: command.process.write(b"it\r")
    )
    assert typed == (0, "it\ngot it\n")


def test_a_command_that_is_killed_has_ended(tmp_path: Path) -> None:
    code, _ = run("sleep 60", tmp_path, lambda command: command.process.kill())
    assert code == 137


def test_background_processes_get_no_hangup(tmp_path: Path) -> None:
    async def work() -> None:
        sessions = ProcessSessions()
        script = "(sleep 0.3; echo late; echo on >there) & exit 0"
        command = ForegroundCommand(
            sessions,
            ["/bin/sh", "-c", script],
            cwd=tmp_path,
            environment=dict(os.environ),
            size=(80, 24),
            on_output=lambda _: None,
        )
        try:
            await command.ended.wait()
            assert not (tmp_path / "there").exists()
            async with asyncio.timeout(30):
                await command.process.finished.wait()
            # The leader has gone when nothing was left.
            assert (tmp_path / "there").exists()
            assert "late" not in command.output
        finally:
            await sessions.aclose()

    asyncio.run(work())

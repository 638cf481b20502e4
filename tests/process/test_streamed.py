import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from codex_py.process.streamed import (
    StreamedOutput,
    StreamedProcess,
    StreamedProcesses,
)
from tests.support.lifeline import Lifeline


@asynccontextmanager
async def running(
    script: str,
    cwd: Path,
    *,
    has_input: bool = False,
    size: tuple[int, int] | None = None,
) -> AsyncGenerator[StreamedProcess]:
    processes = StreamedProcesses()
    try:
        async with asyncio.timeout(60):
            yield processes.spawn(
                ["sh", "-c", script],
                cwd=cwd,
                environment={"PATH": os.environ["PATH"]},
                has_input=has_input,
                size=size,
            )
    finally:
        await processes.aclose()


async def whole(output: StreamedOutput | None) -> bytes:
    assert output is not None
    found = b""
    data = await output.read()
    while data:
        found += data
        data = await output.read()
    return found


def test_output_and_errors_are_two_streams(tmp_path: Path) -> None:
    async def run() -> None:
        script = "echo out; echo err >&2; cat; exit 3"
        async with running(script, tmp_path) as process:
            assert await whole(process.stdout) == b"out\n"
            assert await whole(process.stderr) == b"err\n"
            await process.exited.wait()
            assert (process.exit_code, process.stdin) == (3, None)

    asyncio.run(run())


def test_a_program_waits_while_nobody_reads(tmp_path: Path) -> None:
    async def run() -> None:
        script = "head -c 5000000 /dev/zero; touch done"
        async with running(script, tmp_path) as process:
            first = await process.stdout.read()
            # The input of a stopped reader fills the pipe, and nothing more.
            assert not (tmp_path / "done").exists()
            rest = await whole(process.stdout)
            await process.exited.wait()
            assert len(first) + len(rest) == 5_000_000
            assert (tmp_path / "done").exists()

    asyncio.run(run())


def test_input_is_sent_in_order_until_its_end(tmp_path: Path) -> None:
    async def run() -> None:
        async with running("cat; echo end", tmp_path, has_input=True) as process:
            assert process.stdin is not None
            large = b"x" * 3_000_000
            writing = asyncio.create_task(process.stdin.write(b"a" + large))
            last = asyncio.create_task(process.stdin.write(b"b", ends=True))
            assert await whole(process.stdout) == b"a" + large + b"bend\n"
            await writing
            await last
            assert not process.stdin.is_open

    asyncio.run(run())


def test_input_that_nobody_reads_is_bounded(tmp_path: Path) -> None:
    async def run() -> None:
        async with running("sleep 1000", tmp_path, has_input=True) as process:
            assert process.stdin is not None
            first = asyncio.create_task(process.stdin.write(bytes(60_000_000)))
            await asyncio.sleep(0)
            with pytest.raises(BufferError):
                await process.stdin.write(bytes(10_000_000))
            process.kill()
            await first
            await process.exited.wait()
            assert process.exit_code == 128 + signal.SIGKILL
            assert not process.stdin.is_open
            await process.stdin.write(b"late")

    asyncio.run(run())


def test_a_terminal_has_a_size_and_an_end_of_input(tmp_path: Path) -> None:
    async def run() -> None:
        script = "stty size; read x; stty size; cat; echo end; test -t 0 -a -t 2"
        async with running(script, tmp_path, size=(77, 11)) as process:
            assert process.stdin is not None
            assert (process.has_terminal, process.stderr) == (True, None)
            assert await process.stdout.read() == b"11 77\r\n"
            process.resize(33, 22)
            await process.stdin.write(b"go\n")
            # Half a line, and then the end.
            await process.stdin.write(b"half", ends=True)
            output = await whole(process.stdout)
            assert b"22 33\r\n" in output
            assert output.endswith(b"halfend\r\n")
            await process.exited.wait()
            assert process.exit_code == 0
            process.resize(10, 10)

    asyncio.run(run())


def test_output_of_what_is_left_behind_is_not_waited_for(tmp_path: Path) -> None:
    async def run() -> None:
        script = "echo now; sleep 1000 & exit 0"
        async with running(script, tmp_path) as process:
            assert await whole(process.stdout) == b"now\n"
            assert process.is_output_held

    asyncio.run(run())


def test_what_is_left_behind_and_prints_for_ever_ends_no_reading_too_late(
    tmp_path: Path,
) -> None:
    async def run() -> None:
        script = "(while :; do echo more; sleep 0.1; done) & echo now"
        async with running(script, tmp_path) as process:
            assert (await whole(process.stdout)).startswith(b"now\n")
            await process.exited.wait()

    asyncio.run(run())


def test_everything_ends_with_the_owner(tmp_path: Path) -> None:
    async def run() -> None:
        with Lifeline(tmp_path) as lifeline:
            script = "trap '' TERM HUP; setsid sleep 1000 & while :; do sleep 1; done"
            async with running(lifeline.hold + script, tmp_path):
                lifeline.wait_until_up()
            lifeline.wait_until_dead()

    asyncio.run(run())


def test_everything_ends_if_the_owner_is_killed(tmp_path: Path) -> None:
    with Lifeline(tmp_path) as lifeline:
        script = f"{lifeline.hold} setsid sleep 1000 & exec sleep 1000"
        owner = subprocess.Popen(
            [sys.executable, "-c", _OWNER, script], stdin=subprocess.DEVNULL
        )
        lifeline.wait_until_up()
        owner.kill()
        owner.wait()
        lifeline.wait_until_dead()


_OWNER = """
import asyncio, os, sys
from pathlib import Path
from codex_py.process.streamed import StreamedProcesses

async def run():
    processes = StreamedProcesses()
    command = ["sh", "-c", sys.argv[1]]
    process = processes.spawn(command, cwd=Path("/"), environment=dict(os.environ), size=(80, 24))
    await process.exited.wait()

asyncio.run(run())
"""


@pytest.mark.parametrize("size", [None, (80, 24)])
def test_what_cannot_be_started_leaves_nothing_open(
    tmp_path: Path, size: tuple[int, int] | None
) -> None:
    def start(argv: Sequence[str], cwd: Path) -> None:
        async def run() -> None:
            processes = StreamedProcesses()
            try:
                processes.spawn(argv, cwd=cwd, environment={}, size=size)
            finally:
                await processes.aclose()

        asyncio.run(run())

    before = set(Path("/dev/fd").iterdir())
    with pytest.raises(FileNotFoundError):
        start(["/bin/sh"], tmp_path / "none")
    with pytest.raises(ValueError, match="null"):
        start(["a\0b"], tmp_path)
    assert set(Path("/dev/fd").iterdir()) == before

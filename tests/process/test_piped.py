import asyncio
import os
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from codex_py.process.guardian import Guardian
from codex_py.process.piped import PipedProcess
from tests.support.lifeline import Lifeline


@asynccontextmanager
async def running(script: str, cwd: Path) -> AsyncGenerator[PipedProcess]:
    guardian = Guardian()
    environment = {"PATH": os.environ["PATH"]}
    process = PipedProcess(guardian, ["sh", "-c", script], cwd=cwd, environment=environment)
    try:
        yield process
    finally:
        await process.stop()
        guardian.close()


def test_lines_go_both_ways_until_the_input_is_closed(tmp_path: Path) -> None:
    async def run() -> None:
        async with running("cat; echo bye; exit 7", tmp_path) as process:
            reader, writer = await process.streams(max_line_bytes=1000)
            writer.write(b"hello\n")
            assert await reader.readline() == b"hello\n"
            await process.stop()
            assert await reader.read() == b"bye\n"
            assert process.exit_code == 7

    asyncio.run(run())


def test_the_end_of_stderr_is_kept(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(
            "head -c 1000000 /dev/zero | tr '\\0' x >&2; echo end >&2", tmp_path
        ) as it:
            await it.exited.wait()
            assert it.stderr_tail() == "x" * (16 * 1024 - 4) + "end\n"

    asyncio.run(run())


def test_what_does_not_end_is_killed_with_what_it_started(tmp_path: Path) -> None:
    async def run() -> None:
        with Lifeline(tmp_path) as lifeline:
            script = f"{lifeline.hold} trap '' TERM; setsid sleep 1000 & while :; do sleep 1; done"
            async with running(script, tmp_path) as process:
                lifeline.wait_until_up()
                began = time.monotonic()
                await process.stop()
                assert time.monotonic() - began < 10
                assert process.exit_code == -9
            lifeline.wait_until_dead()

    asyncio.run(run())


def test_what_a_program_leaves_behind_ends_with_it(tmp_path: Path) -> None:
    async def run() -> None:
        with Lifeline(tmp_path) as lifeline:
            async with running(f"{lifeline.hold} sleep 1000 & read", tmp_path) as process:
                reader, writer = await process.streams(max_line_bytes=1000)
                lifeline.wait_until_up()
                writer.write(b"\n")
                assert await reader.read() == b""
                lifeline.wait_until_dead()

    asyncio.run(run())


def test_a_program_that_is_missing_is_an_error(tmp_path: Path) -> None:
    async def run() -> None:
        guardian = Guardian()
        try:
            with pytest.raises(FileNotFoundError):
                PipedProcess(guardian, ["no-such-program"], cwd=tmp_path, environment={})
        finally:
            guardian.close()

    asyncio.run(run())

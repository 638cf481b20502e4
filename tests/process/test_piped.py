import asyncio
import os
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from codex_py.process.guardian import Guardian
from codex_py.process.piped import PipedProcess, ProgramRunner
from tests.support.lifeline import Lifeline


@asynccontextmanager
async def running(script: str, cwd: Path) -> AsyncGenerator[PipedProcess]:
    guardian = Guardian()
    environment = {"PATH": os.environ["PATH"]}
    process = PipedProcess(
        guardian, ["sh", "-c", script], cwd=cwd, environment=environment
    )
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


def test_a_program_that_does_not_end_is_killed_with_its_children(
    tmp_path: Path,
) -> None:
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


def test_processes_that_a_program_leaves_behind_end_with_it(tmp_path: Path) -> None:
    async def run() -> None:
        with Lifeline(tmp_path) as lifeline:
            async with running(
                f"{lifeline.hold} sleep 1000 & read", tmp_path
            ) as process:
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
                PipedProcess(
                    guardian, ["no-such-program"], cwd=tmp_path, environment={}
                )
        finally:
            guardian.close()

    asyncio.run(run())


async def _run_program(
    script: str, cwd: Path, timeout_s: float = 60
) -> tuple[int | None, str, str]:
    runner = ProgramRunner()
    try:
        return await runner.run(
            ["bash", "-c", script],
            cwd=cwd,
            environment={"PATH": os.environ["PATH"]},
            stdin=b"",
            timeout_s=timeout_s,
            max_output_bytes=1 << 20,
        )
    finally:
        runner.close()


@pytest.mark.parametrize(
    ("script", "code", "stdout", "stderr"),
    [
        ("exec > >(tee kept) 2>&1; echo text; exit 3", 3, "text\n", ""),
        ("exec > >(sleep 0.1; cat) 2> >(sleep 0.1; tee kept >&2); echo out; echo text >&2", 0, "out\n", "text\n"),
        ("exec 2> >(sleep 0.1; tee kept >&2); echo text >&2; kill -9 $$", -9, "", "text\n"),
        ("(sleep 0.1; echo text | tee kept) & exit 4", 4, "text\n", ""),
        ("setsid bash -c 'for n in 1 2 3 4 5; do sleep 0.2; done; echo text | tee kept' 2>/dev/null &", 0, "", ""),
        ("(for n in 1 2 3; do sleep 0.2; echo . >&2; done; echo text | tee kept) &", 0, "text\n", ".\n.\n.\n"),
    ],
)  # fmt: skip
def test_output_is_read_that_comes_just_after_the_end(
    tmp_path: Path, script: str, code: int, stdout: str, stderr: str
) -> None:
    assert asyncio.run(_run_program(script, tmp_path)) == (code, stdout, stderr)
    # Silence for longer than the grace ends it.
    assert (tmp_path / "kept").exists() == bool(stdout or stderr)


@pytest.mark.parametrize(
    "leftover", ["sleep 600", "yes", "yes >&2", "yes >/dev/null 2>&1"]
)
def test_processes_that_go_on_for_long_are_ended_soon(
    tmp_path: Path, leftover: str
) -> None:
    with Lifeline(tmp_path) as line:
        began = time.monotonic()
        code, _, _ = asyncio.run(
            _run_program(f"{line.hold} {leftover} & exit 9", tmp_path)
        )
        assert code == 9
        assert time.monotonic() - began < 15
        line.wait_until_dead()

"""Also tests `process/child.py`."""

import asyncio
import errno
import gc
import os
import signal
import sys
import time
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from codex_py.process.process import LocalProcess, Process
from codex_py.process.sessions import ProcessSessions
from tests.support.lifeline import Lifeline

_WAIT_S = 20.0


def _start(
    sessions: ProcessSessions, script: str, cwd: Path = Path("/"), *, tty: bool = False
) -> Process:
    return sessions.spawn(
        ["sh", "-c", script], cwd=cwd, environment=dict(os.environ), tty=tty
    )


def _run(
    script: str, cwd: Path = Path("/"), *, tty: bool = False
) -> tuple[int | None, str]:
    """Exit code and output of a script that ends by itself."""

    async def main() -> tuple[int | None, str]:
        async with aclosing(ProcessSessions()) as sessions:
            process = _start(sessions, script, cwd, tty=tty)
            assert await process.wait(_WAIT_S)
            return process.exit_code, process.take_output().text()

    return asyncio.run(main())


@pytest.fixture(params=["pidfd", "thread"])
def _both_waits(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:  # pyright: ignore[reportUnusedFunction]
    if request.param == "thread":
        monkeypatch.delattr(os, "pidfd_open", raising=False)
    elif not hasattr(os, "pidfd_open"):
        pytest.skip("not on this system")


@pytest.mark.usefixtures("_both_waits")
@pytest.mark.parametrize("tty", [False, True])
@pytest.mark.parametrize(
    ("script", "exit_code"),
    [("true", 0), ("exit 3", 3), ("kill -9 $$", 137), ("kill $$", 143)],
)
def test_exit_codes_are_a_shells(script: str, exit_code: int, tty: bool) -> None:
    assert _run(script, tty=tty) == (exit_code, "")


def test_stdout_and_stderr_keep_their_order() -> None:
    assert _run("echo 1; echo 2 >&2; echo 3; echo 4 >&2") == (0, "1\n2\n3\n4\n")


def test_output_that_is_not_text_is_replaced() -> None:
    assert _run(r"printf '\377\376ok\0'") == (0, "\ufffd\ufffdok\0")


def test_stdin_is_at_its_end() -> None:
    assert _run("cat; read x; echo $?") == (0, "1\n")


def test_a_command_has_a_session_of_its_own_and_none_of_our_descriptors(
    tmp_path: Path,
) -> None:
    # The fourth is the directory that `ls` reads.
    listing = "ls /proc/self/fd | wc -l" if sys.platform == "linux" else "echo 4"
    code, text = _run(
        f"ps -o pgid= -p $$ | tr -d ' '; echo $$; pwd; {listing}", tmp_path
    )
    group, leader, *rest = text.split()
    assert (code, group, rest) == (0, leader, [str(tmp_path), "4"])


def test_a_command_is_finished_as_soon_as_it_ends() -> None:
    async def main() -> float:
        async with aclosing(ProcessSessions()) as sessions:
            processes = [_start(sessions, "exec sleep 0.5") for _ in range(8)]
            started = time.monotonic()
            for process in processes:
                assert await process.wait(_WAIT_S)
            return time.monotonic() - started

    # One after another they would take four seconds.
    assert 0.4 < asyncio.run(main()) < 3


def test_a_background_child_that_holds_the_pipe_delays_the_end_only_a_little(
    tmp_path: Path,
) -> None:
    async def main(lifeline: Lifeline) -> None:
        async with aclosing(ProcessSessions()) as sessions:
            process = _start(
                sessions, f"{lifeline.hold} sleep 1000 & echo done; exit 5"
            )
            assert await process.wait(_WAIT_S)
            assert (process.exit_code, process.take_output().text()) == (5, "done\n")
            assert process.duration_s < 5
            lifeline.wait_until_up()
            assert lifeline.is_held()
        lifeline.wait_until_dead()

    with Lifeline(tmp_path) as lifeline:
        asyncio.run(main(lifeline))


@pytest.mark.parametrize("tty", [False, True])
@pytest.mark.parametrize(
    ("script", "code", "output"),
    [
        ("(sleep 0.1; echo late) & echo early; exit 3", 3, "early late"),
        ("(for n in 1 2 3 4 5; do sleep 0.2; echo $n; done) & exit 4", 4, "1 2 3 4 5"),
        ("setsid sh -c 'sleep 0.1; echo late' & kill -9 $$", 137, "late"),
        (
            "exec bash -c 'exec > >(sleep 0.1; tee) 2>&1; trap : HUP; echo text; exit 5'",
            5,
            "text",
        ),
    ],
)
def test_output_is_read_that_comes_just_after_the_end(
    script: str, code: int, output: str, tty: bool
) -> None:
    # The end of the leader of a terminal hangs up the others.
    ended, text = _run(f"trap '' HUP; {script}", tty=tty)
    assert (ended, text.split()) == (code, output.split())


def test_a_background_child_that_never_stops_printing_delays_the_end_only_a_little() -> (
    None
):
    async def main() -> float:
        async with aclosing(ProcessSessions()) as sessions:
            process = _start(sessions, "yes & exit 5")
            assert await process.wait(_WAIT_S)
            assert process.exit_code == 5
            return process.duration_s

    assert asyncio.run(main()) < 15


def test_a_background_process_can_go_on_printing(tmp_path: Path) -> None:
    """A server that was started with `&` must not die of a broken pipe, nor fill it and stand still."""
    go, done = tmp_path / "go", tmp_path / "done"
    os.mkfifo(go)
    os.mkfifo(done)

    async def main() -> str:
        async with aclosing(ProcessSessions()) as sessions:
            background = (
                f"(read x <{go}; head -c 3000000 /dev/zero; echo survived >{done}) &"
            )
            process = _start(sessions, background)
            assert await process.wait(_WAIT_S)
            go.write_text("now\n", encoding="utf-8")
            return await asyncio.to_thread(done.read_text, "utf-8")

    assert asyncio.run(main()) == "survived\n"


def test_much_output_is_read_in_little_memory() -> None:
    resource = pytest.importorskip("resource")

    async def main() -> tuple[int, int, float]:
        async with aclosing(ProcessSessions()) as sessions:
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            process = _start(sessions, "head -c 50000000 /dev/zero; echo end")
            assert await process.wait(_WAIT_S)
            after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            output = process.take_output()
            assert output.text().endswith("\0end\n")
            return output.total_bytes, output.omitted_bytes, after - before

    total, omitted, grown = asyncio.run(main())
    assert (total, omitted) == (50_000_004, 50_000_004 - (1 << 20))
    # Kilobytes on Linux, bytes on macOS.
    assert grown < (20_000 if sys.platform == "linux" else 20_000_000)


def test_output_is_taken_in_turns_and_characters_stay_whole(tmp_path: Path) -> None:
    go = tmp_path / "go"
    os.mkfifo(go)

    async def main() -> None:
        printed = asyncio.Event()
        async with aclosing(ProcessSessions()) as sessions:
            process = sessions.spawn(
                ["sh", "-c", rf"printf 'a\342\202'; read x <{go}; printf '\254b'"],
                cwd=tmp_path,
                environment=dict(os.environ),
                on_output=lambda _: printed.set(),
            )
            await asyncio.wait_for(printed.wait(), _WAIT_S)
            first = process.take_output().text()
            go.write_text("\n", encoding="utf-8")
            assert await process.wait(_WAIT_S)
            assert (first, process.take_output().text()) == ("a", "€b")
            assert process.all_output().text() == "a€b"

    asyncio.run(main())


def test_a_killed_command_takes_its_descendants_along(tmp_path: Path) -> None:
    async def main(lifeline: Lifeline) -> int | None:
        async with aclosing(ProcessSessions()) as sessions:
            script = (
                f"trap '' TERM; {lifeline.hold} sleep 1000 & (sleep 1000; true) & wait"
            )
            process = _start(sessions, script)
            lifeline.wait_until_up()
            await process.stop()
            lifeline.wait_until_dead()
            return process.exit_code

    with Lifeline(tmp_path) as lifeline:
        assert asyncio.run(main(lifeline)) == 137


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_a_killed_command_takes_along_what_has_left_its_session(tmp_path: Path) -> None:
    async def main(lifeline: Lifeline) -> int | None:
        async with aclosing(ProcessSessions()) as sessions:
            script = f"setsid sh -c '{lifeline.hold} sleep 1000 & wait' & wait"
            process = _start(sessions, script)
            lifeline.wait_until_up()
            await process.stop(exit_code=124)
            lifeline.wait_until_dead()
            return process.exit_code

    with Lifeline(tmp_path) as lifeline:
        assert asyncio.run(main(lifeline)) == 124


def test_killing_a_finished_command_does_nothing() -> None:
    async def main() -> int | None:
        async with aclosing(ProcessSessions()) as sessions:
            process = _start(sessions, "exit 7")
            assert await process.wait(_WAIT_S)
            await process.stop(exit_code=124)
            return process.exit_code

    assert asyncio.run(main()) == 7


def test_a_terminal_is_the_controlling_one_and_has_a_size() -> None:
    code, text = _run(
        "test -t 0 && test -t 1 && test -t 2; echo $?; echo hi >/dev/tty; stty size",
        tty=True,
    )
    assert (code, text) == (0, "0\r\nhi\r\n40 120\r\n")


@pytest.mark.parametrize("inherited", [signal.default_int_handler, signal.SIG_IGN])
def test_a_terminal_echoes_and_interrupts(inherited: Any) -> None:
    """Also where we are ourselves a job in the background, which ignores the keyboard."""
    before = signal.signal(signal.SIGINT, inherited)

    async def main() -> tuple[int | None, str]:
        async with aclosing(ProcessSessions()) as sessions:
            printed = bytearray()
            answered = asyncio.Event()

            def listen(data: bytes) -> None:
                printed.extend(data)
                if printed.count(b"hello\r\n") == 2:
                    answered.set()

            process = sessions.spawn(
                ["cat"],
                cwd=Path("/"),
                environment=dict(os.environ),
                tty=True,
                on_output=listen,
            )
            process.write(b"hello\n")
            await asyncio.wait_for(answered.wait(), _WAIT_S)
            process.write(b"\x03")
            assert await process.wait(_WAIT_S)
            return process.exit_code, process.take_output().text()

    try:
        assert asyncio.run(main()) == (130, "hello\r\nhello\r\n^C")
        assert signal.getsignal(signal.SIGINT) == inherited
    finally:
        signal.signal(signal.SIGINT, before)


def test_typing_to_a_command_that_reads_nothing_is_bounded() -> None:
    async def main() -> None:
        async with aclosing(ProcessSessions()) as sessions:
            process = _start(sessions, "stty raw; echo; exec sleep 1000", tty=True)
            # Until it is raw, a terminal throws away what does not fit into a line.
            async with asyncio.timeout(_WAIT_S):
                while not process.take_output().text():
                    await process.wait(0.05)
            process.write(b"x" * 1_000_000)
            with pytest.raises(BufferError):
                process.write(b"x" * 100_000)

    asyncio.run(main())


def test_a_missing_directory_is_told_from_a_missing_program(tmp_path: Path) -> None:
    async def main() -> None:
        async with aclosing(ProcessSessions()) as sessions:
            missing = tmp_path / "missing"
            with pytest.raises(FileNotFoundError) as directory:
                _start(sessions, "true", missing)
            assert directory.value.filename == missing
            with pytest.raises(FileNotFoundError) as program:
                sessions.spawn(
                    ["no-such-program"], cwd=tmp_path, environment={"PATH": "/bin"}
                )
            assert program.value.filename == "no-such-program"

    asyncio.run(main())


@pytest.mark.parametrize("tty", [False, True])
def test_a_command_that_cannot_start_leaves_nothing_open(
    tmp_path: Path, tty: bool
) -> None:
    async def main() -> None:
        async with aclosing(ProcessSessions()) as sessions:
            assert await _start(sessions, "true").wait(_WAIT_S)
            before = _open_descriptor_count()
            for _ in range(3):
                with pytest.raises(OSError, match=f"Errno {errno.E2BIG}"):
                    sessions.spawn(
                        ["true", "x" * 10_000_000],
                        cwd=tmp_path,
                        environment={},
                        tty=tty,
                    )
                with pytest.raises(ValueError, match="null byte"):
                    sessions.spawn(
                        ["true", "a\0b"], cwd=tmp_path, environment={}, tty=tty
                    )
            assert _open_descriptor_count() <= before

    asyncio.run(main())


def test_finished_commands_leave_no_descriptor_and_no_zombie() -> None:
    async def main() -> None:
        async with aclosing(ProcessSessions()) as sessions:
            assert await _start(sessions, "true").wait(_WAIT_S)
            before = _open_descriptor_count()
            for tty in (False, True):
                process = _start(sessions, "echo x", tty=tty)
                assert isinstance(process, LocalProcess)
                assert await process.wait(_WAIT_S)
                # A zombie would still be there to be signalled, and to be waited for.
                with pytest.raises(ProcessLookupError):
                    os.kill(process.child.id, 0)
                with pytest.raises(ChildProcessError):
                    os.waitpid(process.child.id, os.WNOHANG)  # noqa: ASYNC222 - it does not wait
            assert _open_descriptor_count() <= before

    asyncio.run(main())


def test_signals_that_python_ignores_have_their_effect_in_commands() -> None:
    assert _run("kill -PIPE $$; echo alive") == (128 + signal.SIGPIPE, "")


def _open_descriptor_count() -> int:
    """How many are open. What earlier tests left behind goes before they are counted."""
    gc.collect()
    return len(list(Path("/dev/fd").iterdir()))

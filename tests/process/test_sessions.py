import asyncio
import os
import shlex
import sys
from contextlib import aclosing
from pathlib import Path

import pytest

from codex_py.process.process import Process
from codex_py.process.sessions import ProcessSessions
from tests.support.lifeline import Lifeline

_WAIT_S = 20.0


def _start(sessions: ProcessSessions, script: str, *, tty: bool = False) -> Process:
    return sessions.spawn(
        ["sh", "-c", script], cwd=Path("/"), environment=dict(os.environ), tty=tty
    )


def test_a_kept_process_is_found_until_it_is_forgotten() -> None:
    async def main() -> None:
        async with aclosing(ProcessSessions()) as sessions:
            process = _start(sessions, "exec sleep 1000")
            session_id = sessions.keep(process)
            assert sessions.find(session_id) is process
            sessions.forget(session_id)
            assert sessions.find(session_id) is None
            assert await process.wait(_WAIT_S)
            assert process.exit_code == 137

    asyncio.run(main())


def test_an_exited_session_makes_room_before_one_that_runs() -> None:
    async def main() -> None:
        async with aclosing(ProcessSessions(max_sessions=2)) as sessions:
            running = sessions.keep(_start(sessions, "exec sleep 1000"))
            ended = _start(sessions, "exit 0")
            ended_id = sessions.keep(ended)
            assert await ended.wait(_WAIT_S)
            sessions.keep(_start(sessions, "exec sleep 1000"))
            assert sessions.find(ended_id) is None
            assert sessions.find(running) is not None

    asyncio.run(main())


def test_the_least_recently_used_session_is_killed_for_a_new_one() -> None:
    async def main() -> None:
        async with aclosing(ProcessSessions(max_sessions=2)) as sessions:
            first, second = (_start(sessions, "exec sleep 1000") for _ in range(2))
            first_id, second_id = sessions.keep(first), sessions.keep(second)
            sessions.find(first_id)
            sessions.keep(_start(sessions, "exec sleep 1000"))
            assert await second.wait(_WAIT_S)
            assert sessions.find(second_id) is None
            assert not first.finished.is_set()

    asyncio.run(main())


def test_closing_lets_a_command_save_its_state(tmp_path: Path) -> None:
    saved = tmp_path / "saved"

    async def main(lifeline: Lifeline) -> int | None:
        sessions = ProcessSessions()
        process = _start(
            sessions,
            f"trap 'echo x >{saved}; exit 4' TERM; {lifeline.hold} sleep 1000 & wait",
        )
        lifeline.wait_until_up()
        await sessions.aclose()
        return process.exit_code

    with Lifeline(tmp_path) as lifeline:
        assert asyncio.run(main(lifeline)) == 4
    assert saved.read_text(encoding="utf-8") == "x\n"


def test_closing_kills_what_does_not_listen(tmp_path: Path) -> None:
    async def main(lifeline: Lifeline) -> None:
        sessions = ProcessSessions()
        ended: list[int | None] = []
        for tty in (False, True):
            sessions.spawn(
                [
                    "sh",
                    "-c",
                    f"trap '' TERM HUP; {lifeline.hold} while :; do sleep 1000; done",
                ],
                cwd=tmp_path,
                environment=dict(os.environ),
                tty=tty,
                on_finished=lambda process: ended.append(process.exit_code),
            )
        lifeline.wait_until_up(2)
        await sessions.aclose()
        assert ended == [137, 137]
        lifeline.wait_until_dead()

    with Lifeline(tmp_path) as lifeline:
        asyncio.run(main(lifeline))


def test_closing_kills_what_finished_commands_left_in_the_background(
    tmp_path: Path,
) -> None:
    async def main(lifeline: Lifeline) -> None:
        sessions = ProcessSessions()
        process = _start(
            sessions,
            f"{lifeline.hold} sleep 1000 >/dev/null 2>&1 & (setsid sleep 1000 &) ; exit 0",
        )
        assert await process.wait(_WAIT_S)
        lifeline.wait_until_up()
        # Starting another looks after what is left, and must not lose it.
        assert await _start(sessions, "true").wait(_WAIT_S)
        assert lifeline.is_held()
        await sessions.aclose()
        lifeline.wait_until_dead()

    with Lifeline(tmp_path) as lifeline:
        asyncio.run(main(lifeline))


def test_a_cancelled_close_still_kills_everything(tmp_path: Path) -> None:
    async def main(lifeline: Lifeline) -> int | None:
        sessions = ProcessSessions()
        process = _start(
            sessions, f"trap '' TERM; {lifeline.hold} while :; do sleep 1000; done"
        )
        lifeline.wait_until_up()
        closing = asyncio.ensure_future(sessions.aclose())
        await asyncio.sleep(0)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        lifeline.wait_until_dead()
        return process.exit_code

    with Lifeline(tmp_path) as lifeline:
        assert asyncio.run(main(lifeline)) == 137


def test_commands_can_be_started_again_after_closing() -> None:
    async def main() -> None:
        sessions = ProcessSessions()
        for _ in range(2):
            process = _start(sessions, "exit 2")
            assert await process.wait(_WAIT_S)
            assert process.exit_code == 2
            await sessions.aclose()

    asyncio.run(main())


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what has ended")
def test_an_ended_process_that_is_never_reaped_does_not_count_as_running() -> None:
    # The child of a process that does not wait for it, and has a group of its own.
    code = (
        "import os, time\n"
        "if not os.fork():\n"
        "    ended = os.fork() or os._exit(0)\n"
        "    os.waitid(os.P_PID, ended, os.WEXITED | os.WNOWAIT)\n"
        "    os.setpgid(0, 0)\n"
        "    print(flush=True)\n"
        "    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)\n"
        "    os.dup2(1, 2)\n"
        "    time.sleep(1000)\n"
    )

    async def main() -> None:
        async with aclosing(ProcessSessions()) as sessions:
            process = _start(
                sessions, f"exec {sys.executable} -c {shlex.quote(code)} | read -r _"
            )
            assert await process.wait(_WAIT_S)
            assert sessions.is_idle

    asyncio.run(main())

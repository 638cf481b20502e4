import asyncio
import os
import signal
import subprocess
import sys
import time

import pytest

from codex_py.command_line.interruption import Interruption
from codex_py.errors import CodexError


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_first_signal_cancels_the_task(number: signal.Signals) -> None:
    before = signal.getsignal(number)

    was_cancelled = False

    async def work() -> int:
        nonlocal was_cancelled
        os.kill(os.getpid(), number)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            was_cancelled = True
            raise
        return 0

    interruption = Interruption()
    assert asyncio.run(interruption.run(work())) == 128 + number
    assert (was_cancelled, interruption.signal) == (True, number)
    assert signal.getsignal(number) == before


def test_an_error_behind_a_signal_is_an_interrupt() -> None:
    async def work() -> int:
        os.kill(os.getpid(), signal.SIGINT)
        raise CodexError("git failed: exit code -2")

    assert asyncio.run(Interruption().run(work())) == 128 + signal.SIGINT


def test_what_must_be_finished_is_finished_first() -> None:
    script = """if True:
        import asyncio, os, signal, time
        from codex_py.command_line.interruption import Interruption
        from codex_py.protocol.finishing import finishing

        def renew():
            with finishing("the renewal"):
                print("begun", flush=True)
                time.sleep(1)
                print("done", flush=True)

        async def work():
            await asyncio.to_thread(renew)

        raise SystemExit(asyncio.run(Interruption().run(work())))
    """
    pipe = subprocess.PIPE
    program = subprocess.Popen([sys.executable, "-c", script], stdout=pipe, stderr=pipe)
    with program:
        assert program.stdout is not None
        assert program.stdout.readline() == b"begun\n"
        for _ in range(3):
            program.send_signal(signal.SIGINT)
            time.sleep(0.1)
        said, told = program.communicate(timeout=30)
    assert (said, program.returncode) == (b"done\n", 128 + signal.SIGINT)
    assert told == b"Finishing the renewal first, for up to half a minute.\n"


def test_a_second_signal_ends_the_program_even_while_a_write_blocks() -> None:
    script = """if True:
        import asyncio, os, signal
        from codex_py.command_line.interruption import Interruption
        from codex_py.streams.standard import OutputStream

        async def work():
            OutputStream(1).write(b"x" * 10_000_000)

        asyncio.run(Interruption().run(work()))
    """
    program = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    with program:
        assert program.stdout is not None
        # It is writing, and blocked from here on, for nobody reads the rest.
        assert program.stdout.read(1) == b"x"
        program.send_signal(signal.SIGINT)
        while program.poll() is None:
            program.send_signal(signal.SIGTERM)
        assert program.returncode == 128 + signal.SIGTERM

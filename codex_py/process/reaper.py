"""Tells the event loop that a child has exited, without polling."""

import asyncio
import os
import subprocess
import threading
from collections.abc import Callable
from contextlib import suppress


def call_at_exit(process: subprocess.Popen[bytes], callback: Callable[[], None]) -> None:
    """Call `callback` once in the running loop when the process has exited.

    The child may be unreaped then; `process.wait()` does not block.
    """
    loop = asyncio.get_running_loop()
    try:
        descriptor = os.pidfd_open(process.pid)
    except (AttributeError, OSError):
        # Not Linux, or the kernel or the container refuses.
        _wait_in_thread(process, loop, callback)
        return

    def exited() -> None:
        loop.remove_reader(descriptor)
        os.close(descriptor)
        callback()

    loop.add_reader(descriptor, exited)


def _wait_in_thread(
    process: subprocess.Popen[bytes], loop: asyncio.AbstractEventLoop, callback: Callable[[], None]
) -> None:
    def wait() -> None:
        process.wait()
        # The loop may be closed by now.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(callback)

    threading.Thread(target=wait, name=f"wait-{process.pid}", daemon=True).start()

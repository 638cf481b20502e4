"""One running command: its output, its end, and how to end it."""

import asyncio
import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from codex_py.process.group import ProcessGroup
from codex_py.process.marker import kill_marked
from codex_py.process.output import HeadTailBuffer
from codex_py.process.reaper import call_at_exit
from codex_py.process.signals import default_keyboard_signals
from codex_py.process.terminal import Terminal, open_terminal

# As much as one read takes: a larger pipe saves switches between the command and us.
_PIPE_BYTES = 256 * 1024
# The command has exited and something it left running holds the pipe. What the command itself printed
# is in the pipe already; this only lets one that ends at the same time have its last word.
_PIPE_GRACE_S = 0.2
# A pipe gives all that it holds in one read; a terminal, at most 64 KB, in pieces of 4 KB.
_LAST_READS = 16
# SIGKILL is not refused, but a process stuck in the kernel takes it late.
_KILL_WAIT_S = 1.0
_MAX_UNSENT_BYTES = 1 << 20
_SIGNAL_EXIT_BASE = 128

OutputListener = Callable[[bytes], None]


class Process:
    """A command that leads a session and a process group of its own.

    `finished` is set when the command has exited, was reaped, and its output was read: to the end, or
    for a moment where something in the background still holds it. That something keeps its output, which
    is read and dropped from then on: a server that was started with `&` must not die of a broken pipe.
    """

    def __init__(
        self,
        child: subprocess.Popen[bytes],
        output: int,
        mark: str,
        terminal: Terminal | None,
        on_output: OutputListener | None,
        on_finished: Callable[["Process"], None],
    ) -> None:
        self.group = ProcessGroup(child)
        self.exit_code: int | None = None
        """128 + n after signal n; None until finished."""
        self.started_at = time.monotonic()
        self.duration_s = 0.0
        self.finished = asyncio.Event()
        self._child = child
        self._output: int | None = output
        self._mark = mark
        self._terminal = terminal
        self._on_output = on_output
        self._on_finished = on_finished
        self._unread = HeadTailBuffer()
        self._taken: HeadTailBuffer | None = None
        self._unsent = bytearray()
        self._exit_code_if_killed: int | None = None
        self._has_exited = False
        self._grace: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(output, self._read)
        call_at_exit(child, self._exited)

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def has_input(self) -> bool:
        """Whether `write` reaches the command; without a terminal its stdin is at its end."""
        return self._terminal is not None

    @property
    def holds_output(self) -> bool:
        """Whether someone may still write to the output, finished or not."""
        return self._output is not None

    async def wait(self, timeout_s: float) -> bool:
        """Wait until it is finished, and say whether it is."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self.finished.wait()
        return self.finished.is_set()

    def take_output(self) -> HeadTailBuffer:
        """What was printed since the last time. A character that is not complete is left for the next."""
        taken, self._unread = self._unread, HeadTailBuffer()
        if not self.finished.is_set():
            self._unread.append(taken.pop_incomplete())
        if self._taken is None:
            self._taken = HeadTailBuffer()
        self._taken.absorb(taken)
        return taken

    def all_output(self) -> HeadTailBuffer:
        """What was printed so far, taken or not."""
        if self._taken is None:
            return self._unread
        everything = HeadTailBuffer()
        everything.absorb(self._taken)
        everything.absorb(self._unread)
        return everything

    def write(self, data: bytes) -> None:
        """Type into the terminal. What it does not take at once follows when it does.

        Raises:
            BufferError: the command reads nothing, and 1 MiB is waiting already.
        """
        if len(self._unsent) + len(data) > _MAX_UNSENT_BYTES:
            raise BufferError
        self._unsent += data
        self._send()

    def hang_up(self) -> None:
        """Ask the group to end: as a terminal that is closed does, or else with SIGTERM."""
        self.group.send_signal(signal.SIGHUP if self._terminal else signal.SIGTERM)

    def kill(self, *, exit_code: int | None = None) -> None:
        """SIGKILL the command and all that it started, also what has left its group.

        It is finished soon after, with the given exit code if there is one. Nothing happens to one that
        is finished already.
        """
        if not self.finished.is_set():
            self._exit_code_if_killed = exit_code
            self.group.send_signal(signal.SIGKILL)
            kill_marked(self._mark)

    async def stop(self, *, exit_code: int | None = None) -> None:
        """Kill it and wait until it is finished, which it is afterwards in any case."""
        self.kill(exit_code=exit_code)
        try:
            await self.wait(_KILL_WAIT_S)
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Count a killed command as finished although the kernel has not let go of it."""
        if not self.finished.is_set():
            self._finish()

    def close(self) -> None:
        """Stop reading what is left in the background."""
        if self._output is not None:
            self._loop.remove_reader(self._output)
            self._loop.remove_writer(self._output)
            os.close(self._output)
            self._output = None

    def _read(self) -> None:
        data = self._read_some()
        if data is None:
            return
        if data:
            self._unread.append(data)
            if self._on_output is not None:
                self._on_output(data)
            return
        self.close()
        if self._has_exited:
            self._finish()

    def _read_some(self) -> bytes | None:
        """Some output; empty at its end; None if there is none now."""
        if self._output is None:
            return b""
        try:
            return os.read(self._output, _PIPE_BYTES)
        except BlockingIOError:
            return None
        except OSError:
            # EIO is how Linux says that the other end of a terminal is closed.
            return b""

    def _exited(self) -> None:
        self._has_exited = True
        if self._terminal is not None:
            os.close(self._terminal.slave)
        if self.finished.is_set():
            # Abandoned, and dead at last.
            self._child.wait()
        elif self._output is None:
            self._finish()
        else:
            self._grace = self._loop.call_later(_PIPE_GRACE_S, self._finish)

    def _finish(self) -> None:
        if self._grace is not None:
            self._grace.cancel()
        if self._output is not None:
            self._read_last()
        if self._has_exited:
            code = self._child.wait()
            self.exit_code = code if code >= 0 else _SIGNAL_EXIT_BASE - code
        else:
            self.exit_code = _SIGNAL_EXIT_BASE + signal.SIGKILL
        if self._exit_code_if_killed is not None:
            self.exit_code = self._exit_code_if_killed
        self.duration_s = time.monotonic() - self.started_at
        self.finished.set()
        self._on_finished(self)

    def _read_last(self) -> None:
        """Take what the pipe holds now, and have the rest dropped."""
        for _ in range(_LAST_READS):
            data = self._read_some()
            if not data:
                break
            self._unread.append(data)
        if self._output is not None:
            self._loop.remove_writer(self._output)
            self._loop.add_reader(self._output, self._drop)
            self._drop()

    def _drop(self) -> None:
        if self._read_some() == b"":
            self.close()

    def _send(self) -> None:
        if self._output is None:
            return
        try:
            sent = os.write(self._output, self._unsent)
        except BlockingIOError:
            sent = 0
        except OSError:
            # No one is there to read it; that the command is gone is told where it is waited for.
            sent = len(self._unsent)
        del self._unsent[:sent]
        if self._unsent:
            self._loop.add_writer(self._output, self._send)
        else:
            self._loop.remove_writer(self._output)


def spawn(
    argv: Sequence[str],
    *,
    cwd: Path,
    environment: dict[str, str],
    mark: str,
    tty: bool,
    on_output: OutputListener | None,
    on_finished: Callable[[Process], None],
) -> Process:
    """Start a command. Its stdout and stderr are one pipe, so that their order is the program's own.

    Raises:
        OSError: it cannot be started; where the directory is at fault, `filename` is `cwd`.
        ValueError: an argument has a NUL or a character that the file system's encoding lacks.
    """
    descriptors: list[int] = []
    try:
        if tty:
            terminal = open_terminal()
            output = terminal.master
            descriptors += [terminal.master, terminal.slave]
            child = _popen(terminal.attached(argv), subprocess.DEVNULL, cwd, environment)
        else:
            terminal = None
            output, write_end = os.pipe()
            descriptors += [output, write_end]
            _widen(output)
            child = _popen(argv, write_end, cwd, environment)
            os.close(write_end)
    except BaseException:
        for descriptor in descriptors:
            os.close(descriptor)
        raise
    return Process(child, output, mark, terminal, on_output, on_finished)


def _popen(
    argv: Sequence[str], output: int, cwd: Path, environment: dict[str, str]
) -> subprocess.Popen[bytes]:
    # No preexec_fn: it would turn vfork into fork, whose cost grows with our memory (11 ms at 300 MB).
    with default_keyboard_signals():
        return subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            cwd=cwd,
            env=environment,
        )


def _widen(pipe: int) -> None:
    os.set_blocking(pipe, False)
    if sys.platform == "linux":
        # Refused to users who have many pipes open; the usual 64 KB do as well.
        with suppress(OSError):
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)

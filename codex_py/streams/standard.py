"""Reads from and writes to the descriptors that the program was given.

A terminal, a file, a pipe or nothing at all may be at their other end.
"""

import errno
import json
import os
import select
import stat
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from codex_py.errors import ExitCode
from codex_py.streams.terminal import aligned, on_one_line, printable

READER_LEFT = 141
"""The exit code for an output that nobody reads any more: 128 + SIGPIPE, as a shell reports it."""

_PIECE = 1024 * 1024
_ATOMIC = 4096
"""Bytes that a pipe takes without blocking once it is ready: PIPE_BUF of Linux."""


def print_out(text: str) -> int:
    """Write a text to standard output, and an error message if that fails.

    Bytes that were decoded with `surrogateescape` go out as they were.

    Returns:
        The exit code of a program that has nothing more to do: 0 if the text was written.
    """
    stdout = OutputStream(1)
    stdout.write(text.encode(errors="surrogateescape"))
    if stdout.failure is None:
        return ExitCode.DONE
    if stdout.reader_left:
        return READER_LEFT
    tell(f"Error: Failed to write to standard output: {stdout.failure.strerror}")
    return ExitCode.TURN_FAILED


def print_json(
    value: Any, *, indent: int | None = None, ensure_ascii: bool = True
) -> int:
    """Write a value to standard output as JSON, with a newline. Returns the result of
    `print_out`."""
    return print_out(json.dumps(value, indent=indent, ensure_ascii=ensure_ascii) + "\n")


def print_table(rows: Iterable[Sequence[str]]) -> int:
    """Print rows in columns, with each cell made safe for a terminal. Returns the exit code."""
    safe_rows = [[on_one_line(cell) for cell in row] for row in rows]
    lines = [f"{line.rstrip()}\n" for line in aligned(safe_rows)]
    return print_out("".join(lines))


def tell(text: str) -> None:
    """Write a line to standard error, made safe for a terminal."""
    OutputStream(2).write_text(f"{printable(text)}\n")


def read_all(fd: int, grown: Callable[[int], None]) -> bytes:
    """Read a descriptor to its end.

    Args:
        grown: gets the number of bytes so far, after each piece. An exception from it ends the
            reading.

    Raises:
        OSError: the descriptor cannot be read.
    """
    pieces: list[bytes] = []
    size = 0
    while True:
        try:
            piece = os.read(fd, _PIECE)
        except BlockingIOError:
            # Whoever started us made the descriptor non-blocking (Node does that).
            select.select([fd], [], [])
            continue
        if not piece:
            return b"".join(pieces)
        pieces.append(piece)
        size += len(piece)
        grown(size)


class OutputStream:
    """A descriptor that is written to at once, without a buffer.

    Writing never raises. After the first failure `failure` says why, and the rest is dropped.

    Args:
        timeout_s: the seconds to wait in total for a pipe whose reader is too slow. Then the rest
            is dropped. None waits for ever.

    Attributes:
        failure: the first error.
        on_failure: called once, at the first error.
    """

    def __init__(self, fd: int, *, timeout_s: float | None = None) -> None:
        self.failure: OSError | None = None
        self.on_failure: Callable[[], None] = lambda: None
        self._fd = fd
        # Only a pipe can have a reader that never reads. A terminal that was stopped with Ctrl-S is
        # waited for.
        self._timeout_s = timeout_s if is_pipe(fd) else None

    def write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest and self.failure is None:
            piece = rest
            if self._timeout_s is not None:
                began = time.monotonic()
                if not self._wait_writable(self._timeout_s):
                    return
                waited_s = time.monotonic() - began
                self._timeout_s = max(0.0, self._timeout_s - waited_s)
                piece = rest[:_ATOMIC]
            try:
                rest = rest[os.write(self._fd, piece) :]
            except BlockingIOError:
                # Whoever started us made the descriptor non-blocking (Node does that).
                self._wait_writable(None)
            except OSError as error:
                self.failure = error
                self.on_failure()

    def write_text(self, text: str) -> None:
        self.write(text.encode(errors="replace"))

    @property
    def reader_left(self) -> bool:
        """True if writing failed because nobody reads any more, as with `| head`."""
        return self.failure is not None and self.failure.errno == errno.EPIPE

    def _wait_writable(self, timeout_s: float | None) -> bool:
        """Wait until the descriptor takes more. False after the time-out; None waits for ever."""
        timeout_ms = None if timeout_s is None else timeout_s * 1000
        poll = select.poll()
        poll.register(self._fd, select.POLLOUT)
        return bool(poll.poll(timeout_ms))


def is_pipe(fd: int) -> bool:
    """True for a pipe or a socket; False if the descriptor is closed."""
    try:
        mode = os.fstat(fd).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)

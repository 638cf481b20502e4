"""Begins a run of `exec`: opens standard error, and reads the prompt.

The prompt is an argument, standard input, or both.

With a prompt argument, piped input goes below it. The program does not wait for a pipe that stays
open and silent, and a notice says so. Without an argument, standard input is the prompt and is read
to its end. Notices and the form of the block are Codex's.
"""

import os
import select
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial

from codex_py.errors import CodexError, ExitCode, UsageError
from codex_py.filesystem.texts import NotText, decode_text
from codex_py.streams.standard import OutputStream, is_pipe, read_all

_STDERR_TIMEOUT_S = 2.0

GRACE_S = 0.5
"""Time that an open pipe has for its first byte if there is also a prompt argument: a program such
as `git log` needs some time on a busy machine."""

_SILENT = (
    "warning: nothing has come on standard input yet, so the prompt is sent without it. To wait for a"
    " slow command, pipe the prompt as well: (echo PROMPT; COMMAND) | codex-py exec"
)

MAX_BYTES = 64 * 1024 * 1024
"""More than any model accepts. The limit keeps an endless stream from filling the memory."""


def exec_stderr() -> OutputStream:
    """Open standard error for a run of `exec`.

    A caller that reads standard output alone must not stop us when the other pipe is full.
    """
    return OutputStream(2, timeout_s=_STDERR_TIMEOUT_S)


def start_reading(
    argument: str | None,
    *,
    notice: Callable[[str], None],
    piped: bool = True,
    fd: int = 0,
) -> "Future[str]":
    """Begin to read the prompt, in a thread; the result is its text.

    The result is an exception (`CodexError`) for an empty prompt, text that cannot be decoded, and
    input without an end.

    Args:
        argument: the prompt on the command line, if any; `-` stands for standard input.
        notice: gets a line when the user may wonder why nothing happens; in any thread.
        piped: input goes below a prompt on the command line; otherwise it is not read.

    Raises:
        UsageError: there is no prompt, and standard input is a terminal.
    """
    reading: Future[str] = Future()
    is_terminal = os.isatty(fd)
    if argument is None:
        if is_terminal:
            raise UsageError(
                "no prompt: give one as an argument, or pipe it into standard input"
            )
        notice("Reading prompt from stdin...")
        read = partial(_prompt, fd)
    elif not argument.strip():
        raise UsageError("the prompt is empty", code="no_prompt")
    elif argument == "-":
        read = partial(_prompt, fd)
    elif is_terminal or not piped:
        reading.set_result(argument)
        return reading
    else:
        deadline = time.monotonic() + GRACE_S
        read = partial(_prompt_with_input, argument, fd, deadline, notice)

    def settle() -> None:
        try:
            reading.set_result(read())
        except BaseException as error:  # noqa: BLE001 - raised where the result is asked for
            reading.set_exception(error)

    # Marked as running, so that nobody can cancel it.
    reading.set_running_or_notify_cancel()
    # A daemon: a pool would wait at exit for input that may never end.
    thread = threading.Thread(target=settle, name="stdin", daemon=True)
    thread.start()
    return reading


def _prompt(fd: int) -> str:
    """Read a prompt that stands in standard input alone."""
    prompt = decode_prompt(_read_all(fd))
    if not prompt.strip():
        raise UsageError("No prompt provided via stdin.", code="no_prompt")
    return prompt


def _prompt_with_input(
    argument: str,
    fd: int,
    deadline: float,
    notice: Callable[[str], None],
) -> str:
    """Read the argument, with standard input below it if that delivers a byte by the deadline."""
    if not _has_input(fd, deadline):
        notice(_SILENT)
        return argument
    # Empty input, as in CI jobs, is not announced, although Codex does so.
    announce = partial(notice, "Reading additional input from stdin...")
    data = _read_all(fd, announce)
    if not data:
        return argument
    extra = decode_prompt(data)
    if extra.strip():
        # Tell the user: a shell loop that reads a list from standard input would miss the rest.
        lines = len(extra.splitlines())
        some = "1 line" if lines == 1 else f"{lines:,} lines"
        notice(f"The prompt ends with {some} of standard input.")
    return below(argument, extra)


def below(prompt: str, extra: str) -> str:
    """The prompt with piped text in a block below it; blank text adds nothing."""
    if not extra.strip():
        return prompt
    newline = "" if extra.endswith("\n") else "\n"
    return f"{prompt}\n\n<stdin>\n{extra}{newline}</stdin>"


def decode_prompt(data: bytes) -> str:
    """Text in UTF-8, or in the encoding that its byte order mark names, without the mark.

    Raises:
        CodexError: the data is not such text, and the message names the offset of the first bad
            byte; or it contains NUL bytes.
    """
    try:
        return decode_text(data)
    except NotText as error:
        raise _input_error(f"{error}; convert it to UTF-8 and try again") from error


def _read_all(fd: int, begun: Callable[[], None] | None = None) -> bytes:
    """Read everything up to the end. `begun` is called when the first bytes have arrived."""
    has_begun = False

    def grown(size: int) -> None:
        nonlocal has_begun
        if begun is not None and not has_begun:
            begun()
        has_begun = True
        if size > MAX_BYTES:
            raise _input_error(f"there are more than {MAX_BYTES >> 20} MiB of it")

    try:
        return read_all(fd, grown)
    except OSError as error:
        raise _input_error(error.strerror or str(error)) from error


def _has_input(fd: int, deadline: float) -> bool:
    """False if `fd` is an open pipe or socket that has delivered nothing by the deadline.

    `deadline`: on the clock of `time.monotonic`.
    """
    if not is_pipe(fd):
        return True
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    wait_s = max(0.0, deadline - time.monotonic())
    return bool(poll.poll(wait_s * 1000))


def _input_error(what: str) -> CodexError:
    message = f"Failed to read prompt from stdin: {what}"
    return CodexError(message, code="stdin", exit_code=ExitCode.USAGE)

"""Keeps the keys that are typed while the terminal session loads, Enter and Ctrl-D included.

They are not echoed. LIGHT.
"""

import fcntl
import os
import signal
import termios
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

_IFLAG = 0
_OFLAG = 1
_LFLAG = 3
_WITH_VALUE = {
    "-c",
    "--config",
    "-s",
    "--sandbox",
    "-a",
    "--ask-for-approval",
    "-m",
    "--model",
    "-p",
    "--profile",
    "-C",
    "--cd",
    "--add-dir",
    "--local-provider",
}
"""The usual options of a session whose value may look like a command."""


def take_keyboard(argv: Sequence[str]) -> Callable[[], None]:
    """Make the terminal pass on every key, if the command line begins a terminal session.

    Ctrl-C and Ctrl-Z still send their signals. Returns a function that restores the terminal.
    Until other handlers are installed, SIGTERM and SIGHUP restore it and end the process.
    """
    before = None
    with suppress(termios.error, OSError):
        # In the background, changing the modes would stop the program.
        if os.tcgetpgrp(0) == os.getpgrp():
            before = termios.tcgetattr(0)
    if before is None or not os.isatty(1) or not _begins_session(argv):
        return lambda: None
    if not before[_LFLAG] & termios.ICANON:
        # A program that was killed has left the terminal raw.
        _make_cooked(before)

    def give_back() -> None:
        # The terminal may be gone.
        with suppress(termios.error):
            termios.tcsetattr(0, termios.TCSANOW, before)

    def end(number: int, _frame: object) -> None:
        give_back()
        os._exit(128 + number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, end)
    modes = [*before]
    modes[_LFLAG] &= ~(termios.ICANON | termios.ECHO)
    termios.tcsetattr(0, termios.TCSANOW, modes)
    # The kernel returns the number of bytes that were typed before, as an integer of four bytes. It
    # counts a Ctrl-D only because the terminal is no longer in canonical mode.
    waiting = fcntl.ioctl(0, termios.FIONREAD, bytes(4))
    has_input = waiting != bytes(4)
    if not has_input:
        # From now on, Enter gives a carriage return. If the flag is off, `raw_mode` knows that no key
        # was translated before it reads the first one.
        modes[_IFLAG] &= ~termios.ICRNL
        termios.tcsetattr(0, termios.TCSANOW, modes)
    elif os.environ.get("TERM", "dumb") != "dumb":
        # Erase the echo: the input will appear in the composer. Lines above may be the shell's.
        with suppress(OSError):
            os.write(1, b"\r\x1b[K")
    return give_back


def _make_cooked(modes: list[Any]) -> None:
    """Change modes, as `tcgetattr` returns them, to those of a terminal with a shell."""
    modes[_IFLAG] |= termios.ICRNL
    modes[_OFLAG] |= termios.OPOST
    modes[_LFLAG] |= termios.ICANON | termios.ECHO | termios.ISIG | termios.IEXTEN


def _begins_session(argv: Sequence[str]) -> bool:
    """True if the command line begins a terminal session.

    The table of commands is not loaded yet. So the answer is False if any word could be another
    command.
    """
    if argv and argv[0] in {"resume", "fork"}:
        return True
    before = ""
    for word in argv:
        is_option_or_value = word.startswith("-") or before in _WITH_VALUE
        # The name of a command has letters and hyphens; a prompt mostly has blanks.
        if not is_option_or_value and word.replace("-", "").isalpha():
            return False
        before = word
    return True

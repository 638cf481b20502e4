"""Keeps the keys that are typed while the terminal session loads, Enter and Ctrl-D included. They
are not echoed. LIGHT."""

import fcntl
import os
import signal
import termios
from collections.abc import Callable, Sequence
from contextlib import suppress

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
        before[_IFLAG] |= termios.ICRNL
        before[_OFLAG] |= termios.OPOST
        before[_LFLAG] |= termios.ICANON | termios.ECHO | termios.ISIG | termios.IEXTEN

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
    # If something was typed before, Enter stays a newline; this tells `raw_mode` about the input.
    # FIONREAD counts a Ctrl-D in this mode only.
    if not any(fcntl.ioctl(0, termios.FIONREAD, bytes(4))):
        modes[_IFLAG] &= ~termios.ICRNL
        termios.tcsetattr(0, termios.TCSANOW, modes)
    elif os.environ.get("TERM", "dumb") != "dumb":
        # Erase the echo: the input will appear in the composer. Lines above may be the shell's.
        with suppress(OSError):
            os.write(1, b"\r\x1b[K")
    return give_back


def _begins_session(argv: Sequence[str]) -> bool:
    """False if a word could be another command: the table of commands is not loaded yet."""
    pairs = zip(("", *argv), argv, strict=False)
    words = (
        word for option, word in pairs if word[:1] != "-" and option not in _WITH_VALUE
    )
    return argv[:1] in (["resume"], ["fork"]) or not any(
        word.replace("-", "").isalpha() for word in words
    )

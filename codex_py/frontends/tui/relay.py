"""Passes keys to a command of the user, and the command's output unchanged to the terminal."""

import asyncio
import os
import re
import termios
import tty
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Final

from codex_py.frontends.tui.output import TerminalWriter
from codex_py.process.foreground import ForegroundCommand
from codex_py.streams.plain_text import command_output

_MOST_WAITING: Final = 64 * 1024
"""Bytes that the terminal has not taken. Beyond them, a command that prints has to wait."""
_LOOK_S: Final = 0.01
"""Seconds after which the amount that waits is looked at again."""
_KEYS: Final = 4096
"""Bytes that are read at once."""
_LONGEST_SEQUENCE: Final = 64
_ENDING_KEYS: Final = re.compile(rb"[\x03\x1a\x1c]")
"""Ctrl-C, Ctrl-Z and Ctrl-\\."""
_STOPS_S: Final = 0.2
"""Seconds within which a command handles such a key."""

_MODE: Final = re.compile(
    rb"\x1b(?:\[\?([0-9;]{1,40})([hl])|\[([><])[0-9]*u|\[[0-9;]{0,20}(r)|([=>]))"
)
"""A sequence that sets modes, the keyboard's protocol, the margins, or the keypad."""
_UNFINISHED: Final = re.compile(rb"\x1b(?:\[[?<>0-9;]*)?\Z")
_FIRST_ON: Final = frozenset({b"7", b"25"})
"""Modes that are on in every terminal: long rows wrap, and the cursor is shown."""
_COVERED: Final = re.compile(
    r"\x1b\[\?(?:47|1047|1049)h.*?(?:\x1b\[\?(?:47|1047|1049)l|\Z)", re.DOTALL
)
"""All that was printed while a program had the whole screen."""
_NOT_KEPT: Final = "[what was shown over the whole screen is not kept]\n"


class Modes:
    """Tracks the terminal modes that a program sets, so that they can be undone."""

    def __init__(self) -> None:
        self._changed: dict[bytes, bool] = {}
        """The modes that were changed, by number: True if they are on."""
        self._keyboards = 0
        """The number of pushed states of the kitty keyboard protocol."""
        self._has_keypad = False
        self._has_margins = False
        self._unfinished = b""

    def follow(self, data: bytes) -> None:
        """Read the next piece of output. A sequence at its end may continue in the next one."""
        data = self._unfinished + data
        for numbers, letter, keyboard, margins, keypad in _MODE.findall(data):
            for number in filter(None, numbers.split(b";")):
                self._set(number, is_on=letter == b"h")
            if keyboard == b">":
                self._keyboards += 1
            elif keyboard:
                self._keyboards = max(0, self._keyboards - 1)
            if margins:
                self._has_margins = True
            if keypad:
                self._has_keypad = keypad == b"="
        rest = _UNFINISHED.search(data[-_LONGEST_SEQUENCE:])
        self._unfinished = rest[0] if rest else b""

    def taken_back(self) -> bytes:
        """The sequences that restore the terminal, except for what was printed."""
        parts: list[bytes] = []
        if self._keyboards:
            parts.append(b"\x1b[<%du" % self._keyboards)
        if self._has_margins:
            # This sequence moves the cursor, so save and restore it.
            parts.append(b"\x1b7\x1b[r\x1b8")
        for number, is_on in self._changed.items():
            if is_on:
                parts.append(b"\x1b[?%bl" % number)
            else:
                parts.append(b"\x1b[?%bh" % number)
        if self._has_keypad:
            parts.append(b"\x1b>")
        return b"".join((*parts, b"\x1b[0m"))

    def _set(self, number: bytes, *, is_on: bool) -> None:
        if is_on is (number in _FIRST_ON):
            self._changed.pop(number, None)
        else:
            self._changed[number] = is_on


@contextmanager
def raw_terminal(
    fd: int, keys: Callable[[bytes], None], lost: Callable[[], object]
) -> Generator[None]:
    """Read every key of a terminal, as bytes, in the running loop.

    `lost` is called if the terminal is gone.
    """
    loop = asyncio.get_running_loop()

    def read() -> None:
        data = b""
        with suppress(OSError):
            data = os.read(fd, _KEYS)
        if data:
            keys(data)
        else:
            loop.remove_reader(fd)
            lost()

    modes = None
    with suppress(termios.error):
        modes = termios.tcgetattr(fd)
        tty.setraw(fd, termios.TCSANOW)
    loop.add_reader(fd, read)
    try:
        yield
    finally:
        loop.remove_reader(fd)
        if modes is not None:
            with suppress(termios.error):
                termios.tcsetattr(fd, termios.TCSANOW, modes)


class Relay:
    """Passes a command's output to the terminal; the command waits if the terminal does."""

    def __init__(self, writer: TerminalWriter) -> None:
        self.command: ForegroundCommand | None = None
        self._writer = writer
        self._modes = Modes()
        self._is_waiting = False

    def print(self, data: bytes) -> None:
        """Print a piece of the output. The command waits if the terminal has not taken enough."""
        self._modes.follow(data)
        self._writer.send(data)
        if self._is_waiting or self.command is None:
            return
        if self._writer.backlog > _MOST_WAITING:
            self._is_waiting = True
            self.command.process.leave_output()
            self._go_on_soon()

    def type(self, data: bytes) -> None:
        """Pass keys to the command."""
        # Input for which a command that reads nothing has no room is lost, as in any terminal.
        with suppress(BufferError):
            if self.command is not None:
                self.command.process.write(data)
        if _ENDING_KEYS.search(data):
            asyncio.get_running_loop().call_later(_STOPS_S, self._continue)

    def _continue(self) -> None:
        """Continue a command that has stopped itself: nothing else could, not even Ctrl-C."""
        if self.command is not None and not self.command.ended.is_set():
            self.command.process.continue_foreground()

    def end(self) -> None:
        """Undo the modes that the command has set, and end its last row."""
        sequences = self._modes.taken_back()
        if self.command is not None:
            printed = command_output(_COVERED.sub("", self.command.output))
            _, _, last_row = printed.rpartition("\n")
            if last_row:
                sequences += b"\r\n"
        self._writer.send(sequences)

    def _go_on_soon(self) -> None:
        """Read the output again as soon as the terminal has taken half of what waits."""
        if self._writer.backlog > _MOST_WAITING // 2:
            asyncio.get_running_loop().call_later(_LOOK_S, self._go_on_soon)
        elif self.command is not None:
            self._is_waiting = False
            self.command.process.read_output()


def kept_output(printed: str) -> str:
    """The output as text, without what programs showed over the whole screen."""
    kept, count = _COVERED.subn("", printed)
    kept = kept.replace("\r\n", "\n")
    if count:
        return f"{kept}{_NOT_KEPT}"
    return kept

"""The real program in a real terminal: a pseudo-terminal, whose screen is read back with pyte."""

import copy
import fcntl
import os
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import pyte

from tests.support.codex_process import leading_session, start_codex_py

_READ_S = 0.5
"""Longer than a question that replaces another one keeps keys from itself."""
_DEADLINE_S = 60.0
ANOTHER = "Another question"
"""The hint while a question that replaces another one takes no keys yet."""

KEYS: Final = {
    "enter": "\r",
    "tab": "\t",
    "esc": "\x1b",
    "up": "\x1b[A",
    "down": "\x1b[B",
    "right": "\x1b[C",
    "left": "\x1b[D",
    "home": "\x1b[H",
    "end": "\x1b[F",
    "pageup": "\x1b[5~",
    "pagedown": "\x1b[6~",
    "backspace": "\x7f",
    "shift-tab": "\x1b[Z",
    "f5": "\x1b[15~",
    "paste-begin": "\x1b[200~",
    "paste-end": "\x1b[201~",
    "focus-in": "\x1b[I",
    "focus-out": "\x1b[O",
}


class _Screen(pyte.HistoryScreen):
    """With the alternate screen, which pyte does not know: what was there comes back when it is left."""

    saved: tuple[Any, Any] | None = None

    def set_mode(self, *modes: int, **kwargs: Any) -> None:
        super().set_mode(*modes, **kwargs)
        if 1049 in modes and self.saved is None:
            self.saved = copy.deepcopy(self.buffer), copy.copy(self.cursor)
            self.erase_in_display(2)

    def reset_mode(self, *modes: int, **kwargs: Any) -> None:
        super().reset_mode(*modes, **kwargs)
        if 1049 in modes and self.saved is not None:
            self.buffer, self.cursor = self.saved
            self.saved = None
            self.dirty.update(range(self.lines))


class PtyProgram:
    """A program under a terminal of so many columns and rows; leaving the context kills it."""

    def __init__(
        self,
        argv: Sequence[str],
        cwd: Path,
        environment: Mapping[str, str],
        *,
        columns: int = 80,
        rows: int = 24,
        codex_py: bool = False,
    ) -> None:
        """Start it. With `codex_py`, `argv` has the arguments of `start_codex_py`."""
        self.raw = b""
        """All that the program has written."""
        self.reports_focus = False
        """As tmux does: as soon as it is asked to."""
        self.background: str | None = None
        """Of the terminal, as `rgb:0000/0000/0000`; one that is asked for it says so."""
        self._screen = _Screen(columns, rows, history=10_000, ratio=0.1)
        self._stream = pyte.ByteStream(self._screen)
        self._fd, slave = os.openpty()
        self._set_size(columns, rows)
        self.initial_modes: list[Any] = termios.tcgetattr(slave)
        self._slave = slave
        """Kept open, so that the modes can be read when the program has gone."""
        if codex_py:
            self.process = start_codex_py(
                argv,
                cwd,
                environment,
                stdin=slave,
                stdout=slave,
                stderr=slave,
                terminal=True,
            )
        else:
            self.process = subprocess.Popen(
                leading_session(argv),
                cwd=cwd,
                env=dict(environment),
                stdin=slave,
                stdout=slave,
                stderr=slave,
                start_new_session=True,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
        self.process.wait()
        os.close(self._fd)
        os.close(self._slave)

    @property
    def screen(self) -> pyte.Screen:
        return self._screen

    @property
    def is_covered(self) -> bool:
        """The program shows the alternate screen."""
        return self._screen.saved is not None

    @property
    def lines(self) -> list[str]:
        """What the screen shows, without blanks at the ends of lines and empty lines at its end."""
        return (
            "\n".join(line.rstrip() for line in self._screen.display)
            .rstrip()
            .split("\n")
        )

    @property
    def scrollback(self) -> list[str]:
        """What has been scrolled off the screen, then what is on it."""
        above = [
            "".join(line[x].data for x in range(self._screen.columns)).rstrip()
            for line in self._screen.history.top
        ]
        return [*above, *self.lines]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    @property
    def cursor(self) -> tuple[int, int]:
        """Column and row, from 0."""
        return self._screen.cursor.x, self._screen.cursor.y

    @property
    def title(self) -> str:
        return self._screen.title

    def modes(self) -> list[Any]:
        """Of the terminal, as `tcgetattr` gives them."""
        return termios.tcgetattr(self._slave)

    def type(self, text: str) -> None:
        os.write(self._fd, text.encode())

    def press(self, *names: str) -> None:
        """Names of `KEYS`, or `c-x` for a letter with Ctrl."""
        for name in names:
            if name.startswith("c-"):
                self.type(chr(ord(name[2]) & 0x1F))
            else:
                self.type(KEYS[name])

    def paste(self, text: str) -> None:
        self.type(f"{KEYS['paste-begin']}{text}{KEYS['paste-end']}")

    def resize(self, columns: int, rows: int) -> None:
        self._screen.resize(rows, columns)
        self._set_size(columns, rows)

    def wait_for(self, text: str, *, timeout_s: float = _DEADLINE_S) -> None:
        """Until the screen shows it, and no question that would drop what is typed next."""

        def is_shown() -> bool:
            shown = self.text
            takes_keys = text == ANOTHER or ANOTHER not in shown
            return text in shown and takes_keys

        self.wait_until(is_shown, what=repr(text), timeout_s=timeout_s)

    def wait_for_question(self, text: str) -> None:
        """Until a question with the text is shown, and takes keys.

        One that replaces another takes none before a person can have read it.
        """
        self.wait_for(text)
        self.read_for(_READ_S)

    def wait_until(
        self,
        condition: Callable[[], bool],
        *,
        what: str = "it",
        timeout_s: float = _DEADLINE_S,
    ) -> None:
        """Until the condition holds, which is asked again whenever something was written."""
        deadline = time.monotonic() + timeout_s
        while not condition():
            left = deadline - time.monotonic()
            if left <= 0 or not self._read(left):
                assert condition(), (
                    f"waited for {what} in vain; on the screen:\n{self.text}"
                )
                return

    def settle(self, quiet_s: float = 0.15) -> None:
        """Until nothing has been written for a while."""
        while self._read(quiet_s):
            pass

    def read_for(self, seconds: float) -> None:
        """Take in what is written within the time, however much it is."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            self._read(left)

    def wait(self, timeout_s: float = _DEADLINE_S) -> int:
        """The exit code; what is written until then is read."""
        deadline = time.monotonic() + timeout_s
        while self.process.poll() is None:
            assert time.monotonic() < deadline, (
                f"it goes on; on the screen:\n{self.text}"
            )
            self._read(0.05)
        self.settle(0.02)
        return self.process.returncode

    def hang_up(self) -> None:
        """Close the terminal under the program, as a window that is closed does."""
        os.close(self._slave)
        os.close(self._fd)
        # They are closed again at the end.
        self._fd, self._slave = os.openpty()

    def _read(self, timeout_s: float) -> bool:
        """Take in what is written within the time; whether there was something."""
        ready, _, _ = select.select([self._fd], [], [], timeout_s)
        if not ready:
            return False
        try:
            data = os.read(self._fd, 65536)
        except OSError:
            return False
        self.raw += data
        if self.reports_focus and b"\x1b[?1004h" in data:
            self.press("focus-out")
        if self.background is not None and b"\x1b]11;?" in data:
            self.type(f"\x1b]11;{self.background}\x1b\\")
        # pyte takes the private mark of this one for its end.
        self._stream.feed(data.replace(b"\x1b[<2u", b""))
        return bool(data)

    def _set_size(self, columns: int, rows: int) -> None:
        fcntl.ioctl(
            self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0)
        )

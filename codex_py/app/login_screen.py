"""Shows a login on the terminal: opens a browser, and reads pasted addresses."""

import asyncio
import os
import signal
import sys
import threading
import webbrowser  # noqa: TID251 - `find_browsers_safely` makes `PATH` safe
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress

from codex_py.app.user_programs import user_programs
from codex_py.config.config import Config
from codex_py.streams.escape_key import ESCAPE, escape_was_alone
from codex_py.streams.standard import is_pipe, tell

_STDIN = 0


class TerminalLogin:
    """A `LoginScreen` on the terminal: prints addresses, and reads lines if somebody can write
    them."""

    def __init__(
        self,
        show: Callable[[str], None],
        *,
        opens_browser: bool,
        how_to_paste: str = "",
    ) -> None:
        """
        Args:
            show: prints the address that the user has to open.
            how_to_paste: is printed if an address can be pasted, and no browser is opened.
        """
        self._show = show
        self._opens_browser = opens_browser
        self._how_to_paste = how_to_paste
        self._lines: asyncio.Queue[str] = asyncio.Queue()
        # A file will not grow: do not wait for lines from it.
        self._listens = os.isatty(_STDIN) or is_pipe(_STDIN)
        if self._listens:
            # Reading may last as long as the program runs.
            loop = asyncio.get_running_loop()
            reader = threading.Thread(
                target=self._read,
                args=(loop,),
                daemon=True,
            )
            reader.start()

    def visit(self, address: str) -> None:
        self._show(address)
        if self._opens_browser:
            # The call may last as long as the browser runs.
            browser = threading.Thread(
                target=webbrowser.open, args=(address,), daemon=True
            )
            browser.start()
        elif self._listens and self._how_to_paste:
            tell(self._how_to_paste)

    async def pasted(self) -> str:
        return await self._lines.get()

    def refuse(self, reason: str) -> None:
        tell(f"Warning: {reason}")

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        # RuntimeError: the login is over.
        with suppress(OSError, RuntimeError):
            for line in filter(bytes.strip, _read_lines()):
                text = line.decode(errors="replace").strip()
                loop.call_soon_threadsafe(self._lines.put_nowait, text)


def _read_lines() -> Iterator[bytes]:
    """The lines of standard input. At a terminal, Esc alone has the effect of Ctrl-C.

    See `escape_ends_lines`, without which Esc comes with the next line end only.
    """
    is_terminal = os.isatty(_STDIN)
    line = b""
    while byte := os.read(_STDIN, 1):
        if byte == ESCAPE and is_terminal:
            if escape_was_alone(_STDIN):
                os.kill(os.getpid(), signal.SIGINT)
        elif byte == b"\n":
            yield line
            line = b""
        else:
            line += byte
    yield line


def has_browser(environment: Mapping[str, str]) -> bool:
    """True if a page can open outside this terminal. A browser inside would take it over."""
    if environment.get("BROWSER") or sys.platform == "darwin":
        return True
    return bool(environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY"))


def find_browsers_safely(config: Config, environment: Mapping[str, str]) -> None:
    """Take the folders of the agent off this process's `PATH`, on which `webbrowser` looks."""
    os.environ.update(user_programs(config, environment).environment(os.environ))

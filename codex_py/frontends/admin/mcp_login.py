"""`codex-py mcp login`: send the user to a page, and wait for where it sends them back."""

import asyncio
import os
import sys
import threading
import webbrowser
from collections.abc import Mapping, Sequence

from codex_py.app.features.mcp import server_headers
from codex_py.app.mcp_login import log_in
from codex_py.config.config import Config
from codex_py.errors import ExitCode
from codex_py.frontends.streams import OutputStream, print_out

_STDIN = 0


def login(
    config: Config,
    name: str,
    environment: Mapping[str, str],
    scopes: Sequence[str],
    *,
    no_browser: bool,
) -> int:
    """Have the user log in.

    Raises:
        CodexError: there is no login.
    """

    async def run() -> None:
        screen = _Screen(name, opens_browser=not no_browser and _has_browser(environment))
        # What it warns of is a token, with which there is no login.
        server = config.mcp_servers[name]
        headers = server_headers(name, server, environment, lambda _: None)
        screen.listen()
        try:
            await log_in(config, name, screen, headers=headers, scopes=scopes)
        finally:
            screen.close()

    asyncio.run(run())
    return print_out(f"Successfully logged in to MCP server '{name}'.\n") or ExitCode.DONE


def _has_browser(environment: Mapping[str, str]) -> bool:
    """Whether a page can be shown where the user sees it. A browser in the terminal would take ours over."""
    if environment.get("BROWSER") or sys.platform == "darwin":
        return True
    return bool(environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY"))


class _Screen:
    """The terminal: addresses go out, and lines come in, where there is somebody to write them."""

    def __init__(self, name: str, *, opens_browser: bool) -> None:
        self._name = name
        self._opens_browser = opens_browser
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[str] = asyncio.Queue()
        self._partial = b""
        self._listens = False

    def visit(self, address: str) -> None:
        # The words are Codex's: programs look for the address behind them.
        text = f"Authorize `{self._name}` by opening this URL in your browser:\n{address}\n\n"
        OutputStream(1).write_text(text)
        if self._opens_browser:
            # It may run for as long as the browser does.
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
        elif self._listens:
            OutputStream(2).write_text(
                "If your browser is on another machine, paste the address here that it ends at.\n"
            )

    async def pasted(self) -> str:
        return await self._lines.get()

    def refuse(self, reason: str) -> None:
        OutputStream(2).write_text(f"Warning: {reason}\n")

    def listen(self) -> None:
        try:
            self._loop.add_reader(_STDIN, self._read)
        except OSError:
            # A file, or nothing: nobody will write.
            return
        self._listens = True

    def close(self) -> None:
        if self._listens:
            self._listens = False
            self._loop.remove_reader(_STDIN)

    def _read(self) -> None:
        try:
            data = os.read(_STDIN, 65536)
        except OSError:
            data = b""
        if not data:
            self.close()
            return
        *lines, self._partial = (self._partial + data).split(b"\n")
        for line in lines:
            if line.strip():
                self._lines.put_nowait(line.decode(errors="replace").strip())

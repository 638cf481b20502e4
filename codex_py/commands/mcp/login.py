"""`codex-py mcp login` and `logout`. A login sends the user to a page, and waits for its answer."""

import asyncio
import os
import sys
import threading
import webbrowser  # noqa: TID251 - `run_login` makes `PATH` safe
from collections.abc import Mapping, Sequence
from contextlib import suppress

from codex_py.app.features.mcp import server_headers
from codex_py.app.mcp_login import log_in, log_out
from codex_py.app.user_programs import user_programs
from codex_py.command_line.subcommand import command_parser
from codex_py.commands.mcp.mcp_command import configured_server
from codex_py.streams.standard import OutputStream, is_pipe, print_out, tell

_STDIN = 0


def run_login(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Have the user log in to a server. Returns the exit code."""
    parser = command_parser("--no-browser")
    parser.add_argument("--scopes")
    options, name, config = configured_server(parser, argv, environment, "login")
    scopes: list[str] = []
    if options.scopes is not None:
        words = map(str.strip, options.scopes.split(","))
        scopes = [word for word in words if word]

    async def run() -> None:
        opens_browser = not options.no_browser and _has_browser(environment)
        screen = _Screen(name, opens_browser=opens_browser)
        server = config.mcp_servers[name]
        # The only warning is about a token, and a server with a token needs no login.
        headers = server_headers(name, server, environment, lambda _: None)
        await log_in(config, name, screen, headers=headers, scopes=scopes)

    # `webbrowser` looks for browsers on our own `PATH`, which must have no folder of the agent's.
    os.environ.update(user_programs(config, environment).environment(os.environ))
    asyncio.run(run())
    return print_out(f"Successfully logged in to MCP server '{name}'.\n")


def run_logout(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Forget the login to a server. Returns the exit code."""
    _, name, config = configured_server(command_parser(), argv, environment, "logout")
    if log_out(config, name):
        return print_out(f"Removed OAuth credentials for '{name}'.\n")
    return print_out(f"No OAuth credentials stored for '{name}'.\n")


def _has_browser(environment: Mapping[str, str]) -> bool:
    """True if a page can open outside this terminal. A browser inside would take it over."""
    if environment.get("BROWSER") or sys.platform == "darwin":
        return True
    return bool(environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY"))


class _Screen:
    """The terminal: prints addresses, and reads lines if somebody can write them."""

    def __init__(self, name: str, *, opens_browser: bool) -> None:
        self._name = name
        self._opens_browser = opens_browser
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
        # The words are Codex's: programs look for the address after them.
        text = f"Authorize `{self._name}` by opening this URL in your browser:\n{address}\n\n"
        OutputStream(1).write_text(text)
        if self._opens_browser:
            # The call may last as long as the browser runs.
            browser = threading.Thread(
                target=webbrowser.open, args=(address,), daemon=True
            )
            browser.start()
        elif self._listens:
            tell(
                "If your browser runs on another machine, paste here the address that it shows in the end."
            )

    async def pasted(self) -> str:
        return await self._lines.get()

    def refuse(self, reason: str) -> None:
        tell(f"Warning: {reason}")

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        # RuntimeError: the login is over.
        with (
            suppress(OSError, RuntimeError),
            open(_STDIN, "rb", 0, closefd=False) as stdin,
        ):
            for line in filter(bytes.strip, stdin):
                text = line.decode(errors="replace").strip()
                loop.call_soon_threadsafe(self._lines.put_nowait, text)

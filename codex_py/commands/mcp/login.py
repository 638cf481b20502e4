"""`codex-py mcp login` and `logout`. A login sends the user to a page, and waits for its answer."""

import asyncio
from collections.abc import Mapping, Sequence

from codex_py.app.features.mcp import server_headers
from codex_py.app.login_screen import (
    TerminalLogin,
    find_browsers_safely,
    has_browser,
)
from codex_py.app.mcp_login import log_in, log_out
from codex_py.command_line.subcommand import command_parser
from codex_py.commands.mcp.mcp_command import configured_server
from codex_py.streams.standard import OutputStream, print_out


def run_login(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Have the user log in to a server. Returns the exit code."""
    parser = command_parser("--no-browser")
    parser.add_argument("--scopes")
    options, name, config = configured_server(parser, argv, environment, "login")
    scopes: list[str] = []
    if options.scopes is not None:
        words = map(str.strip, options.scopes.split(","))
        scopes = [word for word in words if word]

    def show(address: str) -> None:
        # The words are Codex's: programs look for the address after them.
        text = f"Authorize `{name}` by opening this URL in your browser:\n{address}\n\n"
        OutputStream(1).write_text(text)

    async def run() -> None:
        screen = TerminalLogin(
            show,
            opens_browser=not options.no_browser and has_browser(environment),
            how_to_paste="If your browser runs on another machine, paste here the address that it shows"
            " in the end.",
        )
        server = config.mcp_servers[name]
        # The only warning is about a token, and a server with a token needs no login.
        headers = server_headers(name, server, environment, lambda _: None)
        await log_in(config, name, screen, headers=headers, scopes=scopes)

    find_browsers_safely(config, environment)
    asyncio.run(run())
    return print_out(f"Successfully logged in to MCP server '{name}'.\n")


def run_logout(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Forget the login to a server. Returns the exit code."""
    _, name, config = configured_server(command_parser(), argv, environment, "logout")
    if log_out(config, name):
        return print_out(f"Removed OAuth credentials for '{name}'.\n")
    return print_out(f"No OAuth credentials stored for '{name}'.\n")

"""`codex-py [PROMPT]`: from the command line to the terminal, and back to the shell."""

import asyncio
from collections.abc import Mapping

from prompt_toolkit.input import create_input

from codex_py.config.config import Config
from codex_py.frontends.arguments import Arguments, terminal_target
from codex_py.frontends.command_parser import working_folder
from codex_py.frontends.configuration import load_terminal_config
from codex_py.frontends.streams import OutputStream
from codex_py.frontends.tui.program import Terminal
from codex_py.frontends.tui.surface import Launch
from codex_py.frontends.tui.theme import terminal_theme
from codex_py.frontends.tui.writer import TerminalWriter

_DRAIN_S = 1.0


def run_terminal(arguments: Arguments, environment: Mapping[str, str]) -> int:
    """Run the terminal to its end; the exit code.

    Raises:
        CodexError: before anything is drawn.
    """

    def load() -> Config:
        return load_terminal_config(arguments, environment)

    target = terminal_target(arguments)
    config = load()
    config.require_enforced()
    add_dirs = tuple(working_folder(arguments.cd) / name for name in arguments.add_dir)
    return asyncio.run(_run(Launch(config, load, target, add_dirs, environment)))


async def _run(launch: Launch) -> int:
    writer = TerminalWriter(1)
    config = launch.config
    wanted = config.values.get("tui", {}).get("theme")
    theme = terminal_theme(launch.environment, wanted, cwd=str(config.cwd))
    terminal = Terminal(launch, theme, writer, create_input())
    try:
        code = await terminal.run()
    finally:
        # Before anything else is written, be it a traceback.
        writer.drain(_DRAIN_S)
    if code == 0 and terminal.farewell:
        OutputStream(1).write_text(terminal.farewell)
    return code

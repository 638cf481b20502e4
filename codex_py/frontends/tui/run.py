"""`codex-py [PROMPT]`: from the command line to the terminal, and back to the shell."""

import asyncio
import gc
from collections.abc import Mapping

from prompt_toolkit.input import create_input

from codex_py.app import SessionOptions
from codex_py.config.config import Config
from codex_py.frontends.arguments import Arguments
from codex_py.frontends.exec_config import load_terminal_config
from codex_py.frontends.streams import OutputStream
from codex_py.frontends.tui.program import Terminal
from codex_py.frontends.tui.theme import terminal_theme
from codex_py.frontends.tui.writer import TerminalWriter


def run_terminal(
    prompt: str | None,
    arguments: Arguments,
    environment: Mapping[str, str],
    options: SessionOptions,
) -> int:
    """
    Raises:
        CodexError: before anything is drawn.
    """
    config = load_terminal_config(arguments, environment)
    return asyncio.run(_run(config, options, prompt, environment))


async def _run(
    config: Config, options: SessionOptions, prompt: str | None, environment: Mapping[str, str]
) -> int:
    writer = TerminalWriter(1)
    keyboard = create_input()
    terminal = Terminal(
        config,
        options,
        environment,
        theme=terminal_theme(environment),
        writer=writer,
        keyboard=keyboard,
    )
    gc.enable()
    code = await terminal.run(prompt)
    writer.drain(1.0)
    if code == 0 and terminal.farewell:
        OutputStream(1).write_text(terminal.farewell)
    return code

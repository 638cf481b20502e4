"""`codex-py [PROMPT]`: from the command line to the terminal, and back to the shell."""

import asyncio
import gc
from collections.abc import Callable, Mapping

from prompt_toolkit.input import create_input

from codex_py.app import SessionOptions
from codex_py.config.config import Config
from codex_py.frontends.arguments import Arguments, TerminalTarget
from codex_py.frontends.exec_config import load_terminal_config, working_directory
from codex_py.frontends.streams import OutputStream
from codex_py.frontends.tui.program import Terminal
from codex_py.frontends.tui.theme import terminal_theme
from codex_py.frontends.tui.writer import TerminalWriter


def run_terminal(
    target: TerminalTarget, arguments: Arguments, environment: Mapping[str, str]
) -> int:
    """Run the terminal to its end; the exit code.

    Raises:
        CodexError: before anything is drawn.
    """

    def load() -> Config:
        return load_terminal_config(arguments, environment)

    options = SessionOptions(
        source="cli",
        originator="codex-tui",
        resume=target.resume,
        resume_last=target.resume_last,
        resume_all=target.resume_all,
        fork=target.fork,
        add_dirs=tuple(working_directory(arguments) / name for name in arguments.add_dir),
    )
    return asyncio.run(_run(load, options, target, environment))


async def _run(
    load: Callable[[], Config],
    options: SessionOptions,
    target: TerminalTarget,
    environment: Mapping[str, str],
) -> int:
    config = load()
    writer = TerminalWriter(1)
    terminal = Terminal(
        config,
        options,
        environment,
        reload=load,
        theme=terminal_theme(environment),
        writer=writer,
        keyboard=create_input(),
    )
    gc.enable()
    code = await terminal.run(target.prompt, pick=target.pick)
    writer.drain(1.0)
    if code == 0 and terminal.farewell:
        OutputStream(1).write_text(terminal.farewell)
    return code

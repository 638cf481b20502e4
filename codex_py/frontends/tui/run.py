"""`codex-py [PROMPT]`: from the command line to the terminal, and back to the shell."""

import asyncio
import gc
from collections.abc import Mapping

from prompt_toolkit.input import Input, create_input

from codex_py import __version__
from codex_py.app.loading import load
from codex_py.config.config import Config
from codex_py.frontends.arguments import Arguments, terminal_target
from codex_py.frontends.command_parser import working_folder
from codex_py.frontends.configuration import load_session_config
from codex_py.frontends.streams import OutputStream
from codex_py.frontends.terminal import printable
from codex_py.frontends.tui.fitting import Fragments
from codex_py.frontends.tui.keys import program_keys
from codex_py.frontends.tui.layout import program_layout
from codex_py.frontends.tui.output import TerminalWriter
from codex_py.frontends.tui.surface import LateHalf, Launch, Surface
from codex_py.frontends.tui.theme import Theme, terminal_theme

_DRAIN_S = 1.0
_LOADED = "codex_py.frontends.tui.loaded:Loaded"
"""300 ms: more than the first frame takes."""


def run_terminal(arguments: Arguments, environment: Mapping[str, str]) -> int:
    """Run the terminal to its end; the exit code.

    Raises:
        CodexError: before anything is drawn.
    """

    def configured() -> Config:
        return load_session_config(arguments, environment, {})

    target = terminal_target(arguments)
    config = configured()
    config.require_enforced()
    add_dirs = tuple(working_folder(arguments.cd) / name for name in arguments.add_dir)
    return asyncio.run(_run(Launch(config, configured, target, add_dirs, environment)))


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


class Terminal:
    """The program from its first frame to its last. There is one per process.

    Attributes:
        farewell: what to print when the terminal is the shell's again.
    """

    def __init__(
        self, launch: Launch, theme: Theme, writer: TerminalWriter, keyboard: Input
    ) -> None:
        self.farewell = ""
        self._half = LateHalf(lambda: load(_LOADED)(self._surface, launch))
        self._surface = surface = Surface(launch, theme, writer, keyboard, self._half)
        keys = program_keys(surface, self._half)
        surface.screen.show(program_layout(surface, self._live), keys, surface.status.title)
        processor = surface.screen.app.key_processor
        processor.before_key_press += surface.panels.before_key
        processor.before_key_press += surface.hints.key_pressed
        processor.after_key_press += surface.panels.after_key

    async def run(self) -> int:
        """Show the program until the user leaves; the exit code."""
        surface = self._surface
        surface.leaving.listen()
        surface.screen.print(self._greeting())
        try:
            async with surface.tasks:
                opening = surface.tasks.create_task(self._begin())
                try:
                    await surface.screen.run()
                except EOFError:
                    surface.leaving.lost_terminal()
                finally:
                    opening.cancel()
                    if self._half.loaded is not None:
                        self.farewell = await self._half.loaded.close()
                    surface.panels.close()
        finally:
            # One of the tasks may still have read it.
            surface.composer.history.close()
        return surface.leaving.result()

    async def _begin(self) -> None:
        # While the user looks at the first frame.
        await asyncio.to_thread(load, _LOADED)
        gc.enable()
        await self._half().begin()

    def _live(self, width: int, max_rows: int) -> list[Fragments]:
        half = self._half.loaded
        return [] if half is None else half.live(width, max_rows)

    def _greeting(self) -> str:
        """Without rich, which is not loaded yet."""
        where = printable(str(self._surface.cwd))
        if self._surface.screen.theme.dumb:
            return f"codex-py {__version__} in {where}\n"
        return f"\x1b[1mcodex-py {__version__}\x1b[0m in {where}\n"

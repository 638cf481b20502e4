"""The interactive program: puts the parts of its light half together, and loads the other one."""

import asyncio
import gc
from collections.abc import Callable

from prompt_toolkit.input import Input

from codex_py import __version__
from codex_py.app.user_programs import user_programs
from codex_py.frontends.terminal import printable
from codex_py.frontends.tui.compose.files import FileIndex
from codex_py.frontends.tui.compose.sources import CommandSource, FileSource, SkillSource
from codex_py.frontends.tui.compose.submission import Outbox
from codex_py.frontends.tui.composer import Composer
from codex_py.frontends.tui.fitting import Fragments
from codex_py.frontends.tui.hints import Hints, Tasks
from codex_py.frontends.tui.keys import program_keys
from codex_py.frontends.tui.layout import program_layout
from codex_py.frontends.tui.leaving import Leaving
from codex_py.frontends.tui.notifications import Notifications
from codex_py.frontends.tui.panels import Panels
from codex_py.frontends.tui.reflow import reflows
from codex_py.frontends.tui.screen import Screen
from codex_py.frontends.tui.status import ITEMS, TITLE_ITEMS, Status
from codex_py.frontends.tui.surface import LateHalf, Launch, LoadedHalf, Surface
from codex_py.frontends.tui.theme import Theme
from codex_py.frontends.tui.writer import TerminalWriter


class Terminal:
    """The program from its first frame to its last. There is one per process.

    Attributes:
        farewell: what to print when the terminal is the shell's again.
    """

    def __init__(
        self, launch: Launch, theme: Theme, writer: TerminalWriter, keyboard: Input
    ) -> None:
        config, environment = launch.config, launch.environment
        settings = config.values.get("tui", {})
        self.farewell = ""
        self._launch = launch
        self._half = half = LateHalf(lambda: _load()(self._surface, launch))
        is_vi = settings.get("vim_mode_default", False)
        screen = Screen(theme, writer, keyboard, reflows=reflows(environment), vi=is_vi)
        hints = Hints(screen.changed)
        status = Status(
            items=settings.get("status_line", ITEMS),
            title_items=settings.get("terminal_title", TITLE_ITEMS),
        )
        programs = user_programs(config, environment, launch.add_dirs)
        safe_environment = programs.environment(environment)
        files = FileIndex(config.cwd, safe_environment, use_git=config.inside_git)
        skills = SkillSource()
        composer = Composer(
            config,
            lambda submission: half().submitted(submission),
            sources=(CommandSource(lambda: half().commands), FileSource(files), skills),
            changed=screen.changed,
        )
        notify = Notifications(settings, environment, screen)
        self._surface = Surface(
            environment=environment,
            safe_environment=safe_environment,
            cwd=config.cwd,
            screen=screen,
            status=status,
            hints=hints,
            tasks=Tasks(hints),
            outbox=Outbox(),
            composer=composer,
            skills=skills,
            panels=Panels(screen, composer, status, notify),
            notify=notify,
            leaving=Leaving(screen.exit),
        )
        self._connect()

    def _connect(self) -> None:
        """Give the screen what it draws, and the keys their meaning."""
        surface, screen = self._surface, self._surface.screen
        keys = program_keys(surface, self._half)
        screen.show(program_layout(surface, self._live), keys, surface.status.title)
        processor = screen.app.key_processor
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
        await asyncio.to_thread(_load)
        gc.enable()
        await self._half().begin()

    def _live(self, width: int, max_rows: int) -> list[Fragments]:
        half = self._half.loaded
        return [] if half is None else half.live(width, max_rows)

    def _greeting(self) -> str:
        """Without rich, which is not loaded yet."""
        where = printable(str(self._launch.config.cwd))
        if self._surface.screen.theme.dumb:
            return f"codex-py {__version__} in {where}\n"
        return f"\x1b[1mcodex-py {__version__}\x1b[0m in {where}\n"


def _load() -> Callable[[Surface, Launch], LoadedHalf]:
    # 300 ms: more than the first frame takes.
    from codex_py.frontends.tui.loaded import Loaded  # noqa: PLC0415

    return Loaded

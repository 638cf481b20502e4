"""The interactive program: its parts, put together, and what commands, keys and questions ask of it."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import merge_key_bindings

from codex_py import __version__
from codex_py.app.user_programs import user_programs
from codex_py.config.config import Config
from codex_py.errors import CodexError
from codex_py.frontends.arguments import TerminalTarget
from codex_py.frontends.terminal import printable
from codex_py.frontends.tui.commands.registry import Command, Commands
from codex_py.frontends.tui.compose.actions import writing_keys
from codex_py.frontends.tui.compose.files import FileIndex
from codex_py.frontends.tui.composer import Composer, Submission
from codex_py.frontends.tui.conversation import Conversation
from codex_py.frontends.tui.keys import program_keys
from codex_py.frontends.tui.layout import program_layout, program_style
from codex_py.frontends.tui.leaving import Leaving, how_to_resume
from codex_py.frontends.tui.notifications import Notifications
from codex_py.frontends.tui.opening import Opening
from codex_py.frontends.tui.panel import Panel
from codex_py.frontends.tui.panels import Panels
from codex_py.frontends.tui.progress import Progress
from codex_py.frontends.tui.reflow import reflows
from codex_py.frontends.tui.screen import Screen
from codex_py.frontends.tui.sending import Sending
from codex_py.frontends.tui.shell import UserShell
from codex_py.frontends.tui.status import ITEMS, TITLE_ITEMS, Status
from codex_py.frontends.tui.theme import Theme
from codex_py.frontends.tui.writer import TerminalWriter
from codex_py.protocol.events import ThreadItem

if TYPE_CHECKING:
    # The first frame does not need them.
    from codex_py.app.session import SessionOptions
    from codex_py.frontends.tui.render import Renderer
    from codex_py.frontends.tui.transcript import Transcript
    from codex_py.protocol.settings import Choices

T = TypeVar("T")


class Terminal:
    """The program from its first frame to its last. There is one per process.

    Args:
        target: what it begins with.
        add_dirs: writable roots beside those of the configuration; absolute.
        reload: reads the configuration again.

    Attributes:
        config: what the next session is opened with.
        safe_environment: for programs such as git: its `PATH` leads to none that the project or the model can have made.
        typed_at: when a key was last pressed that was the composer's, `time.monotonic()`.
        answered_hint: the hint that was shown when the last key was pressed; empty if none was.
        farewell: what is printed when the terminal is the shell's again.
        tasks: what is done beside all else; a mistake in one of them ends the program.
        conversation, composer, panels, transcript, screen, status, …: its parts.
    """

    def __init__(
        self,
        config: Config,
        target: TerminalTarget,
        environment: Mapping[str, str],
        *,
        add_dirs: tuple[Path, ...],
        reload: Callable[[], Config],
        theme: Theme,
        writer: TerminalWriter,
        keyboard: Input,
    ) -> None:
        self.config = config
        self.environment = environment
        programs = user_programs(config, environment, add_dirs)
        self.safe_environment = programs.environment(environment)
        self.theme = theme
        self.typed_at = 0.0
        self.answered_hint = ""
        self.farewell = ""
        self.tasks = asyncio.TaskGroup()
        self._renderer: Renderer | None = None
        self._transcript: Transcript | None = None
        self._hint = ""
        self._title = ""
        self._prompt = target.prompt or ""
        settings = config.values.get("tui", {})
        self.status = Status(
            Path.home(),
            items=settings.get("status_line", ITEMS),
            title_items=settings.get("terminal_title", TITLE_ITEMS),
        )
        self.opening = Opening(self, target, add_dirs=add_dirs, reload=reload)
        self.sending = Sending(self)
        self.progress = Progress(self)
        self.panels = Panels(self)
        self.commands = Commands(self._load_commands)
        self.composer = Composer(
            theme,
            self.sending.submitted,
            config=config,
            environment=environment,
            files=FileIndex(config.cwd, self.safe_environment, use_git=config.inside_git),
            commands=self.commands,
            changed=lambda: self.screen.changed(),
            size=lambda: (self.screen.width, self.screen.height),
        )
        self.shell = UserShell(config, environment, self.progress)
        self.conversation = Conversation(environment, self.progress, ended=self.progress.turn_ended)
        self.screen = Screen(
            program_layout(self),
            keys=merge_key_bindings([program_keys(self), writing_keys(self)]),
            style=program_style(theme),
            theme=theme,
            writer=writer,
            terminal=keyboard,
            reflows=reflows(environment),
            vi=settings.get("vim_mode_default", False),
        )
        self._leaving = Leaving(self.screen.exit)
        self.notify = Notifications(
            settings,
            environment,
            send=self.screen.send,
            is_focused=lambda: self.screen.is_focused,
        )
        self.screen.app.key_processor.before_key_press += self._key_pressed
        self.screen.app.key_processor.after_key_press += self.panels.key_pressed

    @property
    def renderer(self) -> "Renderer":
        if self._renderer is None:
            # rich takes as long to load as all of the first frame.
            from codex_py.frontends.tui.render import Renderer  # noqa: PLC0415

            self._renderer = Renderer(self.theme)
        return self._renderer

    @property
    def transcript(self) -> "Transcript":
        if self._transcript is None:
            from codex_py.frontends.tui.transcript import Transcript  # noqa: PLC0415

            self._transcript = Transcript(
                self.renderer,
                print_lines=self.screen.print,
                changed=self.screen.changed,
                width=lambda: self.screen.width,
                show_reasoning=not self.config.hide_agent_reasoning,
            )
        return self._transcript

    @property
    def has_transcript(self) -> bool:
        """Whether anything has been shown by it: it is made when it is first asked for."""
        return self._transcript is not None

    @property
    def said(self) -> list[ThreadItem]:
        """The conversation as it was shown, and what was gone back from no more."""
        return self.progress.said

    @property
    def hinted(self) -> str:
        return self._hint

    @property
    def is_composing(self) -> bool:
        """Whether the composer is what is typed into."""
        return self.panels.top is None

    @property
    def is_working(self) -> bool:
        """Whether a turn or a command of the user's is under way."""
        return self.conversation.is_working or self.shell.is_running

    @property
    def is_leaving(self) -> bool:
        return self._leaving.is_under_way

    async def run(self) -> int:
        """Show the program until the user leaves; the exit code."""
        self._leaving.listen()
        self.screen.print(self._greeting())
        self.sending.begin(self._prompt)
        try:
            async with self.tasks:
                opening = self.tasks.create_task(self.opening.begin())
                try:
                    await self.screen.run()
                except EOFError:
                    self._leaving.lost_terminal()
                finally:
                    opening.cancel()
                    await self._close()
        finally:
            # One of the tasks may still have read it.
            self.composer.history.close()
        return self._leaving.result()

    def leave(self, code: int = 0) -> None:
        """End in order, with this exit code."""
        self._leaving.leave(code)

    async def open(self, options: "SessionOptions") -> None:
        """Go on with another session; with this one, if that cannot be opened, and the user is told why."""
        await self.opening.open(options)

    def new_session(self) -> "SessionOptions":
        """Options for a session that begins anew."""
        return self.opening.new_session()

    async def show(self, panel: Panel[T]) -> T:
        """Put a panel in the composer's place until it has its result."""
        return await self.panels.show(panel)

    async def ask(self, panel: Callable[[], Panel[T]], *, about: str) -> T:
        """Show a question of the agent's, when it is its turn: see `Panels.ask`."""
        return await self.panels.ask(panel, about=about)

    def send(self, submission: Submission) -> None:
        """Have the model told, now or as soon as it can be."""
        self.sending.send(submission)

    def run_command(self, command: Command, argument: str) -> None:
        self.sending.run_command(command, argument)

    def compact(self) -> None:
        if self.conversation.session is not None:
            self.progress.work_begins()
            self.conversation.compact(self.tasks)

    def retry(self) -> None:
        """Go on with the turn that did not come to its end."""
        if self.conversation.session is not None:
            self.progress.work_begins()
            self.conversation.retry(self.tasks)

    def interrupt(self) -> bool:
        """End what is under way, or wait for it no longer; whether there was something."""
        if self.shell.stop() or self.opening.patience.lose():
            return True
        if not self.conversation.is_working:
            return False
        self.tasks.create_task(self.conversation.interrupt())
        return True

    def change(self, choices: "Choices") -> None:
        """Run the next turns with other settings.

        Raises:
            ConfigError: there can be no such settings.
        """
        session = self.conversation.session
        assert session is not None
        session.change(choices)
        self.refresh()

    def refresh(self) -> None:
        """The session's settings or its name have changed: show them."""
        if (session := self.conversation.session) is not None:
            self.status.settings = session.settings
            self.status.thread = session.thread_id
            self.status.name = session.name or ""
        self.show_title()
        self.screen.changed()

    def use_theme(self, theme: Theme) -> None:
        """Look like this from now on; what has been printed stays as it is."""
        self.theme = theme
        self.renderer.theme = theme
        self.screen.app.style = program_style(theme)
        self.screen.changed()

    def show_title(self) -> None:
        """Name the window after what is going on."""
        title = self.status.title(self.theme)
        if title != self._title:
            self._title = title
            self.screen.title(title)

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Have something done beside all else; the user is told why if it can not be."""

        async def run() -> None:
            try:
                await work
            except CodexError as error:
                self.hint(printable(str(error)))

        self.tasks.create_task(run())

    def hint(self, text: str, *, for_s: float | None = None) -> None:
        """Say something below the composer until the next key, or for a time."""
        self._hint = text
        self.screen.changed()
        if for_s is not None:
            asyncio.get_running_loop().call_later(for_s, self._end_hint, text)

    async def _close(self) -> None:
        self.progress.close()
        if (session := self.conversation.session) is not None:
            has_used = self.status.usage is not None
            self.farewell = how_to_resume(session, with_usage=has_used)
        await self.shell.aclose()
        await self.conversation.close()

    def _greeting(self) -> str:
        """Without rich, which is not loaded yet."""
        where = printable(str(self.config.cwd))
        if self.theme.dumb:
            return f"codex-py {__version__} in {where}\n"
        return f"\x1b[1mcodex-py {__version__}\x1b[0m in {where}\n"

    def _load_commands(self) -> list[Command]:
        from codex_py.frontends.tui.commands.builtin import builtin_commands  # noqa: PLC0415
        from codex_py.frontends.tui.commands.custom import custom_commands  # noqa: PLC0415

        return [*builtin_commands(), *custom_commands(self.config.home)]

    def _key_pressed(self, _processor: object) -> None:
        if self.is_composing:
            self.typed_at = time.monotonic()
        self.answered_hint = self._hint
        self._end_hint(self._hint)

    def _end_hint(self, text: str) -> None:
        if text and self._hint == text:
            self.hint("")

"""The interactive program: what is on the screen, which keys mean what, and how it ends."""

import asyncio
import signal
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from prompt_toolkit.filters import Condition
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent, merge_key_bindings
from prompt_toolkit.layout import AnyContainer, DynamicContainer, HSplit, Window
from prompt_toolkit.layout.controls import FormattedTextControl
from prompt_toolkit.styles import Style

from codex_py import __version__
from codex_py.app import SessionOptions
from codex_py.config.config import Config
from codex_py.core.settings import Choices
from codex_py.core.transcript import thread_items
from codex_py.errors import CodexError
from codex_py.frontends.terminal import printable
from codex_py.frontends.tui.approval import TerminalApprover
from codex_py.frontends.tui.commands.builtin import builtin_commands
from codex_py.frontends.tui.commands.custom import custom_commands
from codex_py.frontends.tui.commands.registry import Command, Commands
from codex_py.frontends.tui.commands.sessions import go_back, pick_session
from codex_py.frontends.tui.compose.actions import writing_keys
from codex_py.frontends.tui.composer import Composer, Submission
from codex_py.frontends.tui.conversation import Conversation
from codex_py.frontends.tui.panel import Panel
from codex_py.frontends.tui.render import Fragments, Renderer
from codex_py.frontends.tui.screen import Screen
from codex_py.frontends.tui.shell import UserShell
from codex_py.frontends.tui.status import Status
from codex_py.frontends.tui.theme import Theme
from codex_py.frontends.tui.transcript import Transcript
from codex_py.frontends.tui.welcome import explain_missing_key, settle_trust
from codex_py.frontends.tui.writer import TerminalWriter
from codex_py.protocol.events import Event, ItemCompleted, UsageReported, UserMessage

T = TypeVar("T")

_TO_LEAVE = "Press Ctrl-C again to leave"
_TWICE_WITHIN_S = 2.0


class Terminal:
    """The program from its first frame to its last. There is one per process.

    Args:
        reload: reads the configuration again.

    Attributes:
        config: what the next session is opened with.
        options: what the first one is.
        conversation, composer, transcript, screen, status: its parts, for the commands.
    """

    def __init__(
        self,
        config: Config,
        options: SessionOptions,
        environment: Mapping[str, str],
        *,
        reload: Callable[[], Config],
        theme: Theme,
        writer: TerminalWriter,
        keyboard: Input,
    ) -> None:
        self.config = config
        self.options = options
        self.environment = environment
        self._reload = reload
        self.theme = theme
        self.status = Status()
        self.commands = Commands([*builtin_commands(), *custom_commands(config.home)])
        self.renderer = Renderer(theme)
        self.composer = Composer(
            theme,
            self._submitted,
            config=config,
            environment=environment,
            commands=self.commands,
            changed=lambda: self.screen.changed(),
            size=lambda: (self.screen.width, self.screen.height),
        )
        self.shell = UserShell(config.cwd, environment, self._event)
        self.conversation = Conversation(
            environment, self._event, approver=TerminalApprover(self), ended=self._turn_ended
        )
        self._panels: list[AnyContainer] = []
        """The last one is shown."""
        self._hint = ""
        self._waiting: list[Submission] = []
        """Sent off before there was a session."""
        self._code = 0
        self._farewell = ""
        self._last_escape = 0.0
        self.screen = Screen(
            self._layout(),
            keys=merge_key_bindings([self._keys(), writing_keys(self)]),
            style=_style(theme),
            theme=theme,
            writer=writer,
            terminal=keyboard,
            vi=config.values.get("tui", {}).get("vim_mode_default", False),
        )
        self.screen.app.key_processor.before_key_press += self._key_pressed
        self.transcript = Transcript(
            self.renderer,
            print_lines=self.screen.print,
            changed=self.screen.changed,
            width=lambda: self.screen.width,
            show_reasoning=not config.hide_agent_reasoning,
        )
        self._tasks = asyncio.TaskGroup()

    async def run(self, prompt: str | None, *, pick: bool = False) -> int:
        """Show the program until the user leaves; the exit code.

        Args:
            pick: have the user choose a session to go on with first.
        """
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self.leave, 128 + number)
        if prompt:
            self._waiting.append(Submission(prompt))
        self.transcript.notice(f"codex-py {__version__} in {self.config.cwd}")
        async with self._tasks:
            opening = self._tasks.create_task(self._begin(pick))
            clock = self._tasks.create_task(self._tick())
            try:
                await self.screen.run()
            except EOFError:
                # The terminal was closed under us.
                self._code = self._code or 128 + signal.SIGHUP
            finally:
                clock.cancel()
                opening.cancel()
                self._farewell = self._how_to_resume()
                await self.shell.aclose()
                await self.conversation.close()
                self.composer.history.close()
        return self._code

    async def _begin(self, pick: bool) -> None:
        try:
            if await settle_trust(self):
                self.config = self._reload()
            explain_missing_key(self)
        except CodexError as error:
            self.transcript.error(str(error))
            return
        options = self.options
        if pick:
            picked = await pick_session(self)
            if picked is None:
                self.leave()
                return
            options = replace(options, resume=picked)
        await self.open(options)

    @property
    def farewell(self) -> str:
        """What is printed when the terminal is the shell's again."""
        return self._farewell

    async def open(self, options: SessionOptions) -> None:
        """Go on with another session. If it can not be opened, the user is told why."""
        try:
            session = await self.conversation.open(self.config, options)
        except CodexError as error:
            self.transcript.error(str(error))
            return
        self.status.settings = session.settings
        self.transcript.replay(thread_items(session.earlier))
        self.screen.changed()
        self.start(self.composer.begin(self.config))
        waiting, self._waiting = self._waiting, []
        for submission in waiting:
            self.send(submission)

    async def show(self, panel: Panel[T]) -> T:
        """Put a panel in the composer's place until it has its result. Later ones come on top."""
        self._panels.append(panel.container)
        self.screen.app.layout.focus(panel.container)
        self.screen.changed()
        try:
            return await panel.result
        finally:
            self._panels.remove(panel.container)
            top = self._panels[-1] if self._panels else self.composer.buffer
            self.screen.app.layout.focus(top)
            self.screen.changed()

    def new_session(self) -> SessionOptions:
        """Options for a session that begins anew."""
        return replace(self.options, resume=None, resume_last=False, fork=False)

    def change(self, choices: Choices) -> None:
        """Run the next turns with other settings.

        Raises:
            ConfigError: there can be no such settings.
        """
        session = self.conversation.session
        assert session is not None
        session.change(choices)
        self.status.settings = session.settings
        self.screen.changed()

    def compact(self) -> None:
        if self.conversation.session is not None:
            self.status.working_since = time.monotonic()
            self.conversation.compact(self._tasks)

    @property
    def is_composing(self) -> bool:
        """Whether the composer is what is typed into."""
        return not self._panels

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Have something done beside all else; the user is told why if it can not be."""

        async def run() -> None:
            try:
                await work
            except CodexError as error:
                self.hint(printable(str(error)))

        self._tasks.create_task(run())

    def leave(self, code: int = 0) -> None:
        self._code = code
        self.screen.exit()

    def hint(self, text: str) -> None:
        """Say something below the composer until the next key."""
        self._hint = text
        self.screen.changed()

    def send(self, submission: Submission) -> None:
        """Have the model told, now or as soon as it can be."""
        if self.conversation.session is None:
            self._waiting.append(submission)
            return
        if not self.conversation.is_working:
            self._show_prompt(submission)
        self.conversation.submit(submission, self._tasks)
        self.screen.changed()

    def _show_prompt(self, submission: Submission) -> None:
        self.transcript.user(submission.text)
        self.status.working_since = time.monotonic()

    def _submitted(self, submission: Submission) -> None:
        """The user has sent off what the composer held."""
        line = submission.text
        session = self.conversation.session
        self.composer.history.add(line, "" if session is None else session.thread_id)
        if line.startswith("!"):
            self._run_shell(submission)
        elif not line.startswith("/"):
            self.send(submission)
        elif (found := self.commands.find(line)) is not None:
            self._run_command(*found)
        elif (problem := self.commands.unknown(line)) is not None:
            self.composer.set_text(line)
            self.hint(problem)
        else:
            self.send(submission)

    def _run_command(self, command: Command, argument: str) -> None:
        if self.conversation.is_working and not command.while_working:
            self.hint(f"/{command.name} has to wait for the end of the turn; Esc interrupts it")
            return

        async def work() -> None:
            try:
                await command.run(self, argument)
            except CodexError as error:
                self.transcript.error(str(error))

        self._tasks.create_task(work())

    def _run_shell(self, submission: Submission) -> None:
        session, command = self.conversation.session, submission.text[1:].strip()
        if session is None or not command or self.shell.is_running:
            self.composer.restore([submission])
            self.hint(
                "a command is running; Esc stops it"
                if self.shell.is_running
                else "! runs a command of yours in your shell: !git status"
            )
        else:
            self.start(self.shell.run(command, session.tell))

    def _how_to_resume(self) -> str:
        session = self.conversation.session
        if session is None or self.status.usage is None:
            return ""
        return f"To continue this session, run: codex-py resume {session.thread_id}\n"

    def _event(self, event: Event) -> None:
        match event:
            case UsageReported():
                self.status.usage = event
            case ItemCompleted(UserMessage()):
                self.conversation.was_told()
            case _:
                pass
        self.transcript(event)

    def _turn_ended(self, is_whole: bool) -> None:
        self.status.working_since = None
        if not is_whole:
            self.composer.restore(self.conversation.take_unsent())
        if is_whole and self.conversation.queue:
            self._show_prompt(self.conversation.queue[0])
        self.screen.changed()

    async def _tick(self) -> None:
        """Keep the clock of a running turn going."""
        while True:
            await asyncio.sleep(1)
            if self.status.working_since is not None:
                self.screen.changed()

    def _layout(self) -> AnyContainer:
        live = Window(FormattedTextControl(self._live), dont_extend_height=True)
        below = Window(FormattedTextControl(self._below), height=1)
        return HSplit(
            [
                live,
                DynamicContainer(
                    lambda: self._panels[-1] if self._panels else self.composer.container
                ),
                below,
            ]
        )

    def _live(self) -> Fragments:
        """What is under way, the line that says so, and an empty line above the composer."""
        room = max(3, self.screen.height - 8)
        lines = list(self.transcript.live(self.screen.width, room))
        if working := self.status.working(self.theme):
            lines += [[], working]
        for waiting in (*self.conversation.steered, *self.conversation.queue):
            text = printable(waiting.text.splitlines()[0])
            lines.append([("class:quiet", f"  {self.theme.glyph('prompt')} {text}")])
        lines += [[]]
        return [fragment for line in lines for fragment in (*line, ("", "\n"))]

    def _below(self) -> Fragments:
        if self._hint:
            return [("class:quiet", self._hint)]
        return [*self.composer.mode(), *self.status.line(self.theme, Path.home())]

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()
        composing = Condition(lambda: self.is_composing)

        @keys.add("escape", filter=composing & Condition(lambda: not self.composer.holds_escape))
        def _(_event: KeyPressEvent) -> None:
            self._escape()

        @keys.add("c-c", filter=composing)
        def _(_event: KeyPressEvent) -> None:
            if self._interrupt():
                return
            if self._hint == _TO_LEAVE:
                self.leave()
            elif self.composer.text:
                self.composer.clear()
            else:
                self._offer_to_leave()

        @keys.add("c-d", filter=composing & Condition(lambda: not self.composer.text))
        def _(_event: KeyPressEvent) -> None:
            self.leave()

        @keys.add("c-z")
        def _(event: KeyPressEvent) -> None:
            event.app.suspend_to_background()

        return keys

    def _key_pressed(self, _processor: object) -> None:
        if self._hint and self._hint != _TO_LEAVE:
            self.hint("")

    def _interrupt(self) -> bool:
        if self.shell.stop():
            return True
        if not self.conversation.is_working:
            return False
        self._tasks.create_task(self.conversation.interrupt())
        return True

    def _escape(self) -> None:
        """Interrupt; or, the second time in a row with nothing to interrupt, go back."""
        if self._interrupt() or self.composer.text:
            return
        now = time.monotonic()
        if now - self._last_escape < _TWICE_WITHIN_S:
            self._last_escape = 0.0
            self._tasks.create_task(go_back(self))
        else:
            self._last_escape = now
            self.hint("Press Esc again to go back to an earlier prompt")

    def _offer_to_leave(self) -> None:
        self.hint(_TO_LEAVE)
        asyncio.get_running_loop().call_later(_TWICE_WITHIN_S, self._forget, _TO_LEAVE)

    def _forget(self, hint: str) -> None:
        if self._hint == hint:
            self.hint("")


def _style(theme: Theme) -> Style:
    names = ("quiet", "accent", "error", "warning", "ok", "user")
    return Style.from_dict({name: _ptk_style(theme.style(name)) for name in names})


def _ptk_style(style: str) -> str:
    """A style of the theme in prompt-toolkit's words."""
    return " ".join(
        word if word in {"bold", "dim", "underline"} else f"ansi{word}" for word in style.split()
    )

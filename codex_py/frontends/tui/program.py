"""The interactive program: what is on the screen, which keys mean what, and how it ends."""

import asyncio
import gc
import os
import signal
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import merge_key_bindings
from prompt_toolkit.layout import AnyContainer, DynamicContainer, HSplit, Window
from prompt_toolkit.layout.controls import FormattedTextControl
from prompt_toolkit.styles import Style

from codex_py import __version__
from codex_py.config.config import Config
from codex_py.errors import CodexError
from codex_py.frontends.arguments import TerminalTarget
from codex_py.frontends.terminal import printable
from codex_py.frontends.tui.commands.registry import Command, Commands
from codex_py.frontends.tui.compose.actions import writing_keys
from codex_py.frontends.tui.composer import Composer, Submission
from codex_py.frontends.tui.conversation import Conversation
from codex_py.frontends.tui.fragments import Fragments
from codex_py.frontends.tui.keys import TO_LEAVE, program_keys
from codex_py.frontends.tui.notifications import Notifications
from codex_py.frontends.tui.panel import Panel
from codex_py.frontends.tui.patience import Patience
from codex_py.frontends.tui.reflow import reflows
from codex_py.frontends.tui.screen import Screen
from codex_py.frontends.tui.shell import UserShell
from codex_py.frontends.tui.status import ITEMS, TITLE_ITEMS, Status
from codex_py.frontends.tui.theme import Theme
from codex_py.frontends.tui.writer import TerminalWriter
from codex_py.protocol.events import (
    AgentMessage,
    CommandExecution,
    Event,
    ItemCompleted,
    ItemStarted,
    ThreadItem,
    UsageReported,
    UserMessage,
)

if TYPE_CHECKING:
    # The first frame does not need them.
    from codex_py.app import SessionOptions
    from codex_py.core.settings import Choices
    from codex_py.frontends.tui.render import Renderer
    from codex_py.frontends.tui.transcript import Transcript

T = TypeVar("T")

_LATER = (
    "codex_py.app",
    "codex_py.frontends.tui.transcript",
    "codex_py.frontends.tui.approval",
    "codex_py.frontends.tui.elicitation",
    "codex_py.frontends.tui.commands.builtin",
    "codex_py.frontends.tui.commands.custom",
)


class Terminal:
    """The program from its first frame to its last. There is one per process.

    Args:
        target: what it begins with.
        add_dirs: writable roots beside those of the configuration; absolute.
        reload: reads the configuration again.

    Attributes:
        config: what the next session is opened with.
        said: the conversation as it was shown, and what was gone back from no more.
        typed_at: when a key was pressed last, `time.monotonic()`.
        conversation, composer, transcript, screen, status: its parts, for the commands.
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
        self.theme = theme
        self.typed_at = 0.0
        self._target = target
        self._add_dirs = add_dirs
        self._reload = reload
        self._renderer: Renderer | None = None
        self._transcript: Transcript | None = None
        settings = config.values.get("tui", {})
        self.status = Status(
            Path.home(),
            items=settings.get("status_line", ITEMS),
            title_items=settings.get("terminal_title", TITLE_ITEMS),
        )
        self.commands = Commands(self._load_commands)
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
        self.conversation = Conversation(environment, self._event, ended=self._turn_ended)
        self._panels: list[AnyContainer] = []
        """The last one is shown."""
        self._asking = asyncio.Lock()
        self._no_panel = asyncio.Event()
        self._no_panel.set()
        self._hint = ""
        self._waiting: list[Submission] = [Submission(target.prompt)] if target.prompt else []
        """Sent off before there was a session."""
        self._patience = Patience(self.status, lambda: self.screen.changed())
        self.said: list[ThreadItem] = []
        self._last_answer = ""
        self._title = ""
        self._clock: asyncio.TimerHandle | None = None
        self._code: int | None = None
        """To exit with, once it is settled."""
        self._failure: BaseException | None = None
        self._farewell = ""
        self.screen = Screen(
            self._layout(),
            keys=merge_key_bindings([program_keys(self), writing_keys(self)]),
            style=_style(theme),
            theme=theme,
            writer=writer,
            terminal=keyboard,
            reflows=reflows(environment),
            vi=settings.get("vim_mode_default", False),
        )
        self.notify = Notifications(
            settings,
            environment,
            send=self.screen.send,
            is_focused=lambda: self.screen.is_focused,
        )
        self.screen.app.key_processor.before_key_press += self._key_pressed
        self._tasks = asyncio.TaskGroup()

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

    async def run(self) -> int:
        """Show the program until the user leaves; the exit code."""
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(self._went_wrong)
        for number in (signal.SIGTERM, signal.SIGHUP):
            # `nohup` asks to live on when the terminal goes.
            if signal.getsignal(number) != signal.SIG_IGN:
                loop.add_signal_handler(number, self._told_to_end, 128 + number)
        self.screen.print(self._greeting())
        async with self._tasks:
            opening = self._tasks.create_task(self._begin())
            try:
                await self.screen.run()
            except EOFError:
                # The terminal was closed under us.
                self._code = self._code or 128 + signal.SIGHUP
            finally:
                opening.cancel()
                if self._clock is not None:
                    self._clock.cancel()
                self._farewell = self._how_to_resume()
                await self.shell.aclose()
                await self.conversation.close()
                self.composer.history.close()
        if self._failure is not None:
            raise self._failure
        return self._code or 0

    async def _begin(self) -> None:
        # While the first frame is looked at.
        await asyncio.to_thread(_load_the_rest)
        gc.enable()
        from codex_py.frontends.tui.welcome import explain_missing_key, settle_trust  # noqa: PLC0415

        try:
            if await settle_trust(self):
                self.config = self._reload()
            explain_missing_key(self)
        except CodexError as error:
            self.transcript.error(str(error))
            return
        target = self._target
        options = replace(
            self.new_session(),
            resume=target.resume,
            resume_last=target.resume_last,
            resume_all=target.resume_all,
            fork=target.fork,
        )
        if target.pick:
            from codex_py.frontends.tui.commands.sessions import pick_session  # noqa: PLC0415

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

    async def open(self, options: "SessionOptions") -> None:
        """Go on with another session. If it can not be opened, the user is told why."""
        from codex_py.core.transcript import thread_items  # noqa: PLC0415
        from codex_py.frontends.tui.approval import TerminalApprover  # noqa: PLC0415
        from codex_py.frontends.tui.elicitation import TerminalElicitor  # noqa: PLC0415

        try:
            session = await self.conversation.open(
                self.config,
                options,
                approver=TerminalApprover(self),
                elicitor=TerminalElicitor(self),
                patience=self._patience,
            )
        except CodexError as error:
            self.transcript.error(str(error))
            if waiting := self._waiting:
                self._waiting = []
                self.composer.restore(waiting)
            return
        self.status.usage = session.token_usage if session.earlier else None
        self.status.commands.clear()
        self.refresh()
        self.said = thread_items(session.earlier)
        self.transcript.replay(self.said)
        self.start(self._look_around())
        waiting, self._waiting = self._waiting, []
        for submission in waiting:
            self.send(submission)

    async def _look_around(self) -> None:
        """Read what is in the files of the user and of the project, in threads."""
        await self._find_branch()
        await self.composer.begin(self.config)

    async def _find_branch(self) -> None:
        from codex_py.rollout.git_info import git_info  # noqa: PLC0415

        info = await asyncio.to_thread(git_info, self.config.cwd)
        self.status.branch = info.get("branch", "")
        self.screen.changed()

    def refresh(self) -> None:
        """The session's settings or its name have changed: show them."""
        if (session := self.conversation.session) is not None:
            self.status.settings = session.settings
            self.status.thread = session.thread_id
            self.status.name = session.name or ""
        self._set_title()
        self.screen.changed()

    async def show(self, panel: Panel[T]) -> T:
        """Put a panel in the composer's place until it has its result. Later ones come on top."""
        self._panels.append(panel.container)
        self._no_panel.clear()
        self.screen.app.layout.focus(panel.container)
        self.screen.changed()
        try:
            return await panel.result
        finally:
            self._panels.remove(panel.container)
            if not self._panels:
                self._no_panel.set()
            top = self._panels[-1] if self._panels else self.composer.buffer
            self.screen.app.layout.focus(top)
            self.screen.changed()

    async def ask(self, panel: Callable[[], Panel[T]], *, about: str) -> T:
        """Show a question of the agent's: one after the other, and not while a list is open.

        Args:
            panel: makes it, when it is its turn.
            about: what a user who is not here is told; empty for what goes on from another.
        """
        if about:
            self.notify("approval-requested", about)
        self.status.questions += 1
        try:
            async with self._asking:
                await self._no_panel.wait()
                self.status.questions -= 1
                try:
                    self.status.is_asking = True
                    self._set_title()
                    return await self.show(panel())
                finally:
                    self.status.questions += 1
                    self.status.is_asking = False
                    self._set_title()
        finally:
            self.status.questions -= 1

    def new_session(self) -> "SessionOptions":
        """Options for a session that begins anew."""
        from codex_py.app import SessionOptions  # noqa: PLC0415

        return SessionOptions(source="cli", originator="codex-tui", add_dirs=self._add_dirs)

    def change(self, choices: "Choices") -> None:
        """Run the next turns with other settings.

        Raises:
            ConfigError: there can be no such settings.
        """
        session = self.conversation.session
        assert session is not None
        session.change(choices)
        self.refresh()

    def compact(self) -> None:
        if self.conversation.session is not None:
            self._work_begins()
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
        """End in order, with this exit code."""
        if self._code is None:
            self._code = code
        self.screen.exit()

    def hint(self, text: str) -> None:
        """Say something below the composer until the next key."""
        self._hint = text
        self.screen.changed()

    @property
    def hinted(self) -> str:
        return self._hint

    def interrupt(self) -> bool:
        """End what is under way, or wait for it no longer; whether there was something."""
        if self.shell.stop() or self._patience.lose():
            return True
        if not self.conversation.is_working:
            return False
        self._tasks.create_task(self.conversation.interrupt())
        return True

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
        self.said.append(UserMessage(id="", text=submission.text))
        self.transcript.user(submission.text)
        self._work_begins()

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
            self.run_command(*found)
        elif (problem := self.commands.unknown(line)) is not None:
            self.composer.set_text(line)
            self.hint(problem)
        else:
            self.send(submission)

    def run_command(self, command: Command, argument: str) -> None:
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

    def _greeting(self) -> str:
        """Without rich, which is not loaded yet."""
        where = printable(str(self.config.cwd))
        if self.theme.dumb:
            return f"codex-py {__version__} in {where}\n"
        return f"\x1b[1mcodex-py {__version__}\x1b[0m in {where}\n"

    def _how_to_resume(self) -> str:
        session = self.conversation.session
        if session is None or not self._has_spoken:
            return ""
        used = session.token_usage.total
        tokens = (
            f"Token usage: total={used.total_tokens:,} input={used.input_tokens:,}"
            f" (+ {used.cached_input_tokens:,} cached) output={used.output_tokens:,}\n"
            if self.status.usage is not None and used.total_tokens
            else ""
        )
        return f"{tokens}To continue this session, run: codex-py resume {session.thread_id}\n"

    @property
    def _has_spoken(self) -> bool:
        session = self.conversation.session
        return session is not None and bool(session.past_prompts())

    def _event(self, event: Event) -> None:
        match event:
            case UsageReported():
                self.status.usage = event
            case ItemCompleted(UserMessage()):
                self.conversation.was_told()
            case ItemCompleted(AgentMessage(text=text)):
                self._last_answer = text
            case _:
                pass
        match event:
            case ItemStarted(CommandExecution() as item):
                self.status.commands[item.id] = item.command, time.monotonic()
            case ItemCompleted(item):
                self.status.commands.pop(item.id, None)
                self.said.append(item)
            case _:
                pass
        self.transcript(event)

    def _turn_ended(self, is_whole: bool) -> None:
        self.status.working_since = None
        if not is_whole:
            self.composer.restore(self.conversation.take_unsent())
        if is_whole and self.conversation.queue:
            self._show_prompt(self.conversation.queue[0])
        elif self._code is None:
            self.notify("agent-turn-complete", self._last_answer or "The turn is over")
            self.start(self._find_branch())
        self._last_answer = ""
        self._set_title()
        self.screen.changed()

    def _work_begins(self) -> None:
        self.status.working_since = time.monotonic()
        self._set_title()
        if self._clock is None:
            self._tick()

    def _tick(self) -> None:
        """Keep the clock of what is under way going; there is none else."""
        self._clock = None
        if self.status.working_since is not None:
            self._clock = asyncio.get_running_loop().call_later(1, self._tick)
            self.screen.changed()

    def _set_title(self) -> None:
        title = self.status.title(self.theme)
        if title != self._title:
            self._title = title
            self.screen.title(title)

    def _told_to_end(self, code: int) -> None:
        if self._code is not None:
            # For the second time: what we have started dies with us.
            os._exit(code)
        self.leave(code)

    def _went_wrong(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """A mistake of ours, outside of every task: out, and with a traceback, as from inside of one."""
        error = context.get("exception")
        if error is None:
            return
        self._failure = self._failure or error
        self.screen.exit()

    def _load_commands(self) -> list[Command]:
        from codex_py.frontends.tui.commands.builtin import builtin_commands  # noqa: PLC0415
        from codex_py.frontends.tui.commands.custom import custom_commands  # noqa: PLC0415

        return [*builtin_commands(), *custom_commands(self.config.home)]

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
        lines: list[Fragments] = []
        if self._transcript is not None:
            lines += self._transcript.live(self.screen.width, room)
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
        mode = self.composer.mode()
        room = self.screen.width - sum(len(text) for _, text, *_ in mode)
        return [*mode, *self.status.line(self.theme, room)]

    def _key_pressed(self, _processor: object) -> None:
        self.typed_at = time.monotonic()
        if self._hint and self._hint != TO_LEAVE:
            self.hint("")


def _load_the_rest() -> None:
    """Import what a session needs, and the first frame does not."""
    for name in _LATER:
        import_module(name)


def _style(theme: Theme) -> Style:
    names = ("quiet", "accent", "error", "warning", "ok", "user")
    return Style.from_dict({name: _ptk_style(theme.style(name)) for name in names})


def _ptk_style(style: str) -> str:
    """A style of the theme in prompt-toolkit's words."""
    return " ".join(
        word if word in {"bold", "dim", "underline"} else f"ansi{word}" for word in style.split()
    )

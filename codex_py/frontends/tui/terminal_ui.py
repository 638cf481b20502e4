"""The border between the two halves of the terminal: the interface that each offers the other.

The first frame needs only the light half; `session_half.py` is the other one.
"""

import asyncio
import os
import signal
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Protocol

from prompt_toolkit.input import Input

from codex_py.app.file_index import FileIndex
from codex_py.app.user_programs import user_programs
from codex_py.config.declared.tui import Tui
from codex_py.config.skills import Skill
from codex_py.errors import CodexError
from codex_py.frontends.tui.compose.completion import (
    CommandName,
    command_source,
    file_source,
    skill_source,
)
from codex_py.frontends.tui.composer import Composer, Outbox, Submission
from codex_py.frontends.tui.first_frame import BEGINNING
from codex_py.frontends.tui.fitting import Fragments
from codex_py.frontends.tui.key_codes import KeyNames
from codex_py.frontends.tui.keyboard import parser_of
from codex_py.frontends.tui.keymap import COMPOSING, Keymap
from codex_py.frontends.tui.launch import Launch
from codex_py.frontends.tui.output import TerminalWriter
from codex_py.frontends.tui.panels import Panels
from codex_py.frontends.tui.screen import Screen
from codex_py.frontends.tui.status import ITEMS, TITLE_ITEMS, Status, notifications
from codex_py.streams.terminal import printable


class Hints:
    """Shows a remark until the next key is pressed, or for a time. `changed` draws it.

    Attributes:
        text: empty if there is no remark.
        answered: the remark that was shown when the last key was pressed; empty if there was none.
    """

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self.text = ""
        self.answered = ""

    def show(self, text: str, *, for_s: float | None = None) -> None:
        """Show a remark, at most for so many seconds."""
        self.text = text
        self._changed()
        if for_s is not None:
            asyncio.get_running_loop().call_later(for_s, self._end, text)

    def key_pressed(self, _processor: object) -> None:
        self.answered = self.text
        if self.text:
            self.show("")

    def _end(self, text: str) -> None:
        if text and self.text == text:
            self.show("")


class Leaving:
    """Ends the program. `end` stops the drawing.

    Attributes:
        was_told: a signal or the loss of the terminal ends the program, not its user.
        has_left_screen: the terminal is as it was found. Until then, a second signal does not kill.
    """

    def __init__(self, end: Callable[[], None]) -> None:
        self._end = end
        self.was_told = False
        self.has_left_screen = False
        self._code: int | None = None
        """The exit code, once it is settled."""
        self._failure: BaseException | None = None

    @property
    def is_under_way(self) -> bool:
        return self._code is not None

    def leave(self, code: int = 0) -> None:
        """End the program in order, with this exit code."""
        if self._code is None:
            self._code = code
        self._end()

    def lost_terminal(self) -> None:
        """Settle the exit code: the terminal is gone, as after a SIGHUP."""
        self.was_told = True
        self._code = self._code or 128 + signal.SIGHUP

    def listen(self) -> None:
        """End the program on a signal, and on a bug outside of all tasks."""
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(self._went_wrong)

        def told(number: int, _frame: object) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(self._told_to_end, 128 + number)

        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            # With `nohup` the program should survive the loss of the terminal.
            if signal.getsignal(number) != signal.SIG_IGN:
                # `Screen.pause` replaces the handler for a time; one of the loop would be called
                # even then.
                signal.signal(number, told)

    def result(self) -> int:
        """Return the exit code.

        Raises:
            BaseException: the bug that has ended the program.
        """
        if self._failure is not None:
            raise self._failure
        return self._code or 0

    def _told_to_end(self, code: int) -> None:
        if self._code is not None and self.has_left_screen:
            # The second signal: our child processes die with us.
            os._exit(code)
        self.was_told = True
        self.leave(code)

    def _went_wrong(
        self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]
    ) -> None:
        error = context.get("exception")
        if error is None:
            return
        self._failure = self._failure or error
        self._end()


class SessionInterface(Protocol):
    """The functions of `session_half.py` that the keys and the frame need."""

    @property
    def commands(self) -> Sequence[CommandName]:
        """The slash commands, for the suggestions."""
        ...

    @property
    def is_working(self) -> bool:
        """True while a turn or a command of the user is running."""
        ...

    def live(self, width: int, max_rows: int) -> list[Fragments]:
        """The rows that may still change."""
        ...

    def submitted(self, submission: Submission) -> None:
        """Send a prompt, or run the command that it is. An empty one tries a failed turn again."""
        ...

    def run_command(self, name: str) -> None:
        """Run a command by its name without the slash."""
        ...

    def interrupt(self) -> bool:
        """End the running work, or stop waiting for it; True if there was any."""
        ...

    async def begin(self) -> None:
        """Ask the questions of the start, and open the first session."""
        ...

    async def close(self) -> str:
        """Close the session. Returns the text to print when the shell has the terminal again."""
        ...


def _status(settings: Tui, keymap: Keymap) -> Status:
    """The status of a program that has no session yet."""
    items = settings.status_line
    if items is None:
        items = ITEMS
    title_items = settings.terminal_title
    if title_items is None:
        title_items = TITLE_ITEMS
    stop_key, *_ = [*keymap.keys("chat.interrupt_turn"), "ctrl-c"]
    hint = BEGINNING.replace("?", "{composer.toggle_shortcuts}")
    return Status(
        items=items,
        title_items=title_items,
        stop_key=stop_key.title(),
        background_key=keymap.free("ctrl-b"),
        answer_key=keymap.named("{composer.queue}"),
        hint=keymap.named(hint),
    )


class TerminalUI:
    """The half of the terminal that draws and reads keys; the first frame needs only this one.

    Attributes:
        programs: the user's programs, such as git and an editor.
        safe_environment: the environment for programs such as git: no program in its `PATH` can
            have been made by the project or the model.
        tasks: work beside everything else. A bug in a task ends the program.
        keymap: the user's own keys.
        skills: the skills that are known so far.
        session_half: the other half; None until it is first needed.
    """

    def __init__(
        self,
        launch: Launch,
        writer: TerminalWriter,
        keyboard: Input,
        load: "Callable[[TerminalUI], SessionInterface]",
    ) -> None:
        self.launch = launch
        self.session_half: SessionInterface | None = None
        self._load = load
        config = launch.config
        self.environment = launch.environment
        settings = config.settings.tui
        is_vi = settings.vim_mode_default is True
        self.cwd = config.cwd
        self.programs = user_programs(config, self.environment, launch.add_dirs)
        self.safe_environment = self.programs.environment(self.environment)
        self.screen = Screen(launch.theme, writer, keyboard, self.environment, vi=is_vi)
        self.keymap = Keymap(config)
        self.status = _status(settings, self.keymap)
        self.hints = Hints(self.screen.changed)
        self.tasks = asyncio.TaskGroup()
        self.outbox = Outbox()
        files = FileIndex(
            config.cwd, self.programs, self.environment, use_git=config.inside_git
        )
        self.skills: Sequence[Skill] = ()
        self.composer = Composer(
            config,
            lambda submission: self.load_session_half().submitted(submission),
            sources=(
                command_source(lambda: self.load_session_half().commands),
                file_source(files),
                skill_source(lambda: self.skills),
            ),
            changed=self.screen.changed,
        )
        if not self.keymap.free("ctrl-o"):
            self.composer.attachments.key = ""
        self.notify = notifications(settings, self.environment, self.screen)
        self.panels = Panels(self.screen, self.composer, self.status, self.notify)
        self.panels.named = self.keymap.named
        self.leaving = Leaving(self.screen.exit)
        parser = parser_of(keyboard)
        parser.finds_bursts = not config.settings.disable_paste_burst
        parser.reads_commands = self._reads_commands
        if self.keymap.is_own:
            parser.translate = self._translated

    def _reads_commands(self) -> bool:
        """True if each letter is a command now: in an overlay, and in vi's normal mode."""
        if self.panels.top is not None:
            return self.panels.covers
        return self.composer.vi_mode in {"NORMAL", "VISUAL"}

    def _translated(
        self,
        name: str,
        keys: KeyNames,
        data: str,
    ) -> tuple[KeyNames, str]:
        """Translate a key by the keymap, in the contexts of what has the keyboard."""
        contexts = self.composer.contexts
        if self.panels.top is not None:
            contexts = self.panels.contexts
        elif self.composer.completion.is_open:
            contexts = ("list", *COMPOSING)
        return self.keymap.pressed(name, keys, data, contexts)

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run work as a task; a hint reports a `CodexError`."""

        async def run() -> None:
            try:
                await work
            except CodexError as error:
                self.hints.show(printable(str(error)))

        self.tasks.create_task(run())

    def load_session_half(self) -> SessionInterface:
        """The other half, which is loaded now if necessary."""
        if self.session_half is None:
            self.session_half = self._load(self)
        return self.session_half

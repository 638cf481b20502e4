"""Slash commands of extensions, in the form of the terminal's own."""

import inspect
from collections.abc import Callable, Container, Mapping
from functools import partial
from typing import Any

from codex_py.app import slash_commands
from codex_py.app.views.conversation import Conversation
from codex_py.config.config import Config
from codex_py.errors import CodexError, ConfigError
from codex_py.frontends.tui.commands.registry import CommandContext, SlashCommand
from codex_py.frontends.tui.composer import Submission
from codex_py.frontends.tui.panel import Postponed, yes_or_no
from codex_py.protocol.bugs import bug_found
from codex_py.streams.terminal import on_one_line, printable


class ContextTerminal:
    """The `Terminal` of a slash command."""

    def __init__(self, context: CommandContext) -> None:
        self._context = context

    @property
    def config(self) -> Config:
        return self._context.config

    @property
    def environment(self) -> Mapping[str, str]:
        return self._context.ui.environment

    async def conversation(self) -> Conversation:
        session = await self._context.conversation.opened()
        config = self._context.config
        return Conversation(
            thread_id=session.thread_id,
            name=session.name,
            cwd=str(config.cwd),
            model=session.settings.model,
            provider=config.model_provider,
            usage=session.token_usage.total,
            items=tuple(self._context.conversation.monitor.said),
        )

    def show(self, text: str) -> None:
        self._context.transcript.notice(_shown(text))

    def warn(self, text: str) -> None:
        self._context.transcript.notice(_shown(text), "warning")

    async def ask(self, question: str, yes: str = "Yes", no: str = "No") -> bool:
        panel = yes_or_no([("bold", _shown(question))], yes, no)
        try:
            return await self._context.ui.panels.show(panel)
        except Postponed:
            return False

    def send(self, prompt: str) -> None:
        self._context.conversation.send(Submission(prompt))


def _shown(text: str) -> str:
    return "\n".join(printable(line) for line in text.split("\n"))


class AddedCommands:
    """The slash commands of extensions. `warn` tells the user of one that cannot be used."""

    def __init__(self, warn: Callable[[str], None]) -> None:
        self._warn = warn
        self._loaded: dict[str, SlashCommand | None] = {}
        """The commands that were listed, by name; None for those that cannot be used."""

    def named(self, name: str) -> SlashCommand | None:
        """Return the command of this name; None if there is none.

        Raises:
            ConfigError: the command cannot be used.
        """
        command = slash_commands.slash_command(name)
        if command is None:
            return None
        return _adapted(name, command)

    def listed(self, taken: Container[str]) -> list[SlashCommand]:
        """Load all commands, and return those that can be used. The user is told once of the others.

        Args:
            taken: names of commands that come first.
        """
        found: list[SlashCommand] = []
        for name in slash_commands.slash_command_names():
            if name in taken:
                continue
            if name not in self._loaded:
                self._load(name)
            command = self._loaded[name]
            if command is not None:
                found.append(command)
        return found

    def _load(self, name: str) -> None:
        self._loaded[name] = None
        try:
            self._loaded[name] = self.named(name)
        except ConfigError as error:
            self._warn(str(error))


def _adapted(name: str, command: slash_commands.SlashCommand) -> SlashCommand:
    return SlashCommand(
        name,
        on_one_line(command.help),
        partial(_run, name, command),
        argument=on_one_line(command.argument),
        while_working=command.while_working,
    )


async def _run(
    name: str,
    command: slash_commands.SlashCommand,
    context: CommandContext,
    argument: str,
) -> None:
    """Run a command. A bug of the extension becomes a `ConfigError`, and is told to the session's log."""
    try:
        running: Any = command.run(ContextTerminal(context), argument)
        if not inspect.isawaitable(running):
            text = f"its function must be an `async def`; it returned {running!r}"
            raise TypeError(text)
        await running
    except CodexError:
        raise
    except (Exception, SystemExit) as error:
        session = context.conversation.session
        if session is not None:
            session.emit(bug_found(error))
        raise slash_commands.failed(name, error) from error

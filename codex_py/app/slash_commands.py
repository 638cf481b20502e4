"""Finds the slash commands of extensions; `api.slash_commands` describes them.

Nothing is imported before somebody lists or types a command of an extension.
"""

import re
import traceback
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Protocol

from codex_py.app.views.conversation import Conversation
from codex_py.config.config import Config
from codex_py.errors import ConfigError
from codex_py.protocol.frozen import frozen
from codex_py.registry import (
    SLASH_COMMANDS,
    EntryPoint,
    find,
    installed_names,
    load,
    own_points,
    unusable,
)

_KIND: Final = "slash command"
_NAME: Final = re.compile(r"[a-z][a-z0-9-]*")


class Terminal(Protocol):
    """The terminal, as a slash command sees it. All of it belongs to the thread of the event loop."""

    @property
    def config(self) -> Config:
        """The configuration of the next session. `cwd` is the working folder, `home` `$CODEX_HOME`."""
        ...

    @property
    def environment(self) -> Mapping[str, str]:
        """The environment of the program."""
        ...

    async def conversation(self) -> Conversation:
        """Return what was said so far. If a session is being opened, wait for it.

        Raises:
            CodexError: there is no conversation.
        """
        ...

    def show(self, text: str) -> None:
        """Print lines below the conversation. Control characters are made visible."""
        ...

    def warn(self, text: str) -> None:
        """Print a warning as `show` does."""
        ...

    async def ask(self, question: str, yes: str = "Yes", no: str = "No") -> bool:
        """Ask a question whose default is no. `yes` and `no`: the texts of the answers.

        False is returned, too, if the user closes the question or goes on writing a prompt.
        """
        ...

    def send(self, prompt: str) -> None:
        """Send a prompt, as the user does: a running turn gets it at its next step."""
        ...


@frozen
class SlashCommand:
    """A slash command of the terminal. Its name is that of the entry point."""

    run: Callable[[Terminal, str], Awaitable[None]]
    """An `async def`, which gets the stripped text after the name. A `CodexError` that it raises is
    shown as one sentence; a `UsageError` gives the line back to the user, too. Any other exception
    is a bug, which is shown with the name of the command and its line; the log of `--log` has the
    traceback. Neither ends the terminal. Work that takes longer than a few milliseconds belongs in
    `asyncio.to_thread`."""
    help: str = ""
    """A short phrase without a full stop, for the list of commands."""
    argument: str = ""
    """The argument, as the list shows it: `NAME`, or `[NAME]` if the command works without it."""
    while_working: bool = True
    """True if the command may run during a turn."""


def own_slash_commands() -> list[str]:
    """List the names of the slash commands that folders of `codex_py/extensions` have."""
    return [point.name for point in own_points(SLASH_COMMANDS)]


def slash_command_names() -> list[str]:
    """List the names of all slash commands of extensions; those of folders come first."""
    return [*own_slash_commands(), *installed_names(SLASH_COMMANDS)]


def slash_command(name: str) -> SlashCommand | None:
    """Load the slash command of this name. None if no extension has one.

    The metadata of installed packages, which takes 20 ms, is read only if no folder has the name.

    Raises:
        ConfigError: several packages have it, or it cannot be used.
    """
    point = find(SLASH_COMMANDS, name)
    if point is None:
        return None
    return _loaded(point)


def failed(name: str, error: BaseException) -> ConfigError:
    """Make the error for a slash command that has raised an error other than a `CodexError`.

    It names the line of the command's own file that was the last to run.
    """
    text = f"the {_KIND} /{name} has failed: {error!r}"
    # The first frame is that of the caller, the next one that of the command.
    frames = traceback.extract_tb(error.__traceback__)[1:]
    own = [frame for frame in frames if frame.filename == frames[0].filename]
    if own:
        text += f", in line {own[-1].lineno} of {own[-1].filename}"
    return ConfigError(text)


def _loaded(point: EntryPoint) -> SlashCommand:
    if _NAME.fullmatch(point.name) is None:
        reason = "its name has more than small letters, digits and hyphens"
        raise unusable(point, _KIND, reason)
    command = load(point, _KIND)
    if not isinstance(command, SlashCommand):
        is_now = type(command).__name__
        reason = f"its entry point is a {is_now}, not a `SlashCommand`"
        raise unusable(point, _KIND, reason)
    return command

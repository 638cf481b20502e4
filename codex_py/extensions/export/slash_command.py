"""`/export`: writes the conversation of the terminal to a file."""

import os
from datetime import datetime
from pathlib import Path
from typing import Final

from codex_py.api.slash_commands import CodexError, SlashCommand, Terminal
from codex_py.extensions.export.forms import without_keys, writer_for

_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
"""Flags for a file that does not exist yet."""


async def _export(terminal: Terminal, argument: str) -> None:
    path = _path(terminal, argument)
    document = await terminal.conversation()
    write = writer_for(path)
    home = terminal.config.home
    document, notes = without_keys(document, terminal.environment, home)
    try:
        opened = os.open(path, _NEW, 0o600)
        with os.fdopen(
            opened, "w", encoding="utf-8", errors="replace", newline=""
        ) as file:
            file.writelines(write(document))
    except OSError as error:
        message = f"cannot write {str(path)!r}: {error.strerror}"
        raise CodexError(message, code="export") from error
    terminal.show(f"The conversation was written to {path}")
    for note in notes:
        terminal.show(note)


def _path(terminal: Terminal, argument: str) -> Path:
    """The file that the user means, or a new one in the user's home folder.

    Raises:
        CodexError: no file can have this name.
    """
    if "\0" in argument:
        message = f"cannot write {argument!r}: it has a NUL character"
        raise CodexError(message, code="export")
    if argument.startswith("~/"):
        return Path.home() / argument.removeprefix("~/")
    if argument:
        return terminal.config.cwd / argument
    # Not into the repository: the file would be a change there.
    now = datetime.now().astimezone()
    return Path.home() / f"codex-{now:%Y-%m-%d-%H%M%S}.md"


command = SlashCommand(
    _export, help="write the conversation to a file", argument="[FILE]"
)

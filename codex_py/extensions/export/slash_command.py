"""`/export`: writes the conversation of the terminal to a file."""

from datetime import datetime
from pathlib import Path

from codex_py.api.slash_commands import CodexError, SlashCommand, Terminal
from codex_py.extensions.export.forms import without_keys, writer_for


async def _export(terminal: Terminal, argument: str) -> None:
    document = await terminal.conversation()
    path = _path(terminal, argument)
    write = writer_for(path)
    home = terminal.config.home
    document, notes = without_keys(document, terminal.environment, home)
    try:
        with path.open("x", encoding="utf-8", newline="") as file:
            file.writelines(write(document))
    except OSError as error:
        message = f"cannot write {str(path)!r}: {error.strerror}"
        raise CodexError(message, code="export") from error
    terminal.show(f"The conversation was written to {path}")
    for note in notes:
        terminal.show(note)


def _path(terminal: Terminal, argument: str) -> Path:
    """The file that the user means, or a new one in the user's home folder."""
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

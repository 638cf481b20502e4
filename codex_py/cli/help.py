"""`codex-py help [COMMAND]`."""

from collections.abc import Mapping, Sequence

from codex_py.cli.commands import find_command
from codex_py.cli.help_pages import help_text
from codex_py.cli.package_commands import (
    help_of_command,
    known_commands,
    list_of_commands,
    list_of_options,
)
from codex_py.command_line.parser import suggestion
from codex_py.errors import UsageError
from codex_py.streams.standard import print_out


def run_help(argv: Sequence[str], environment: Mapping[str, str]) -> int:  # noqa: ARG001 - every command gets it
    """Print the help of the command that the words name; `exec resume` has the help of `exec`.

    Without words, list all commands, those of installed packages too.
    """
    words = [word for word in argv if not word.startswith("-")]
    if not words:
        return print_out(help_text("") + list_of_commands())
    word = words[0]
    command = find_command(word)
    if command is not None:
        text = help_text(word)
        if command.names[0] == "exec":
            text += list_of_options()
        return print_out(text)
    added = help_of_command(word)
    if added is None:
        near = suggestion(word, known_commands())
        raise UsageError(f"unknown command {word!r}.{near}")
    return print_out(added)

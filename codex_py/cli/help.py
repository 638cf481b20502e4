"""`codex-py help [COMMAND]`."""

from collections.abc import Mapping, Sequence

from codex_py.cli.commands import NAMES, find_command, help_text
from codex_py.cli.package_commands import list_of_commands, package_command
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
    if find_command(word) is not None:
        return print_out(help_text(word))
    added = package_command(word)
    if added is None:
        raise UsageError(f"unknown command {word!r}.{suggestion(word, NAMES)}")
    return print_out(added.help)

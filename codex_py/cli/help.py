"""`--help`, and `codex-py help`. The texts are files for 80 columns; a test compares them with the options."""

from collections.abc import Mapping
from pathlib import Path

from codex_py.cli.commands import COMMANDS, NAMES, find_command
from codex_py.frontends.arguments import Arguments
from codex_py.frontends.command_parser import UsageError, suggestion
from codex_py.frontends.streams import print_out

_FOLDER = Path(__file__).with_name("help_texts")


def help_text(word: str) -> str:
    """The text for a command; for one without its own text, the list of all commands."""
    command = find_command(word)
    if command is not None and (path := _FOLDER / f"{command.name}.txt").exists():
        return path.read_text(encoding="utf-8")
    lines = (f"  {row.usage:18}  {row.summary}\n" for row in COMMANDS)
    text = (_FOLDER / "top.txt").read_text(encoding="utf-8")
    return text.format(commands="".join(lines))


def run_help(arguments: Arguments, environment: Mapping[str, str]) -> int:  # noqa: ARG001 - every command gets it
    """Print the help of the command that the words name; of `exec resume` that of `exec`."""
    word = arguments.words[1] if len(arguments.words) > 1 else ""
    if word and find_command(word) is None:
        raise UsageError(f"unknown command {word!r}.{suggestion(word, NAMES)}")
    return print_out(help_text(word))

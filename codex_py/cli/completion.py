"""`codex-py completion SHELL`: prints a shell script that asks this program for completions.

The completions come from the table of commands and from the parsers that the commands use.
"""

import argparse
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

from codex_py import registry
from codex_py.api.commands import Command as PackageCommand
from codex_py.app.loading import load
from codex_py.cli.commands import Command, find_command
from codex_py.cli.help_pages import help_text
from codex_py.cli.package_commands import (
    further_members,
    known_commands,
    package_command,
)
from codex_py.command_line.arguments import Arguments
from codex_py.command_line.extension_options import session_parser
from codex_py.command_line.parser import CommandParser, HelpRequested, OneOf
from codex_py.config.paths import codex_home
from codex_py.rollout.index import recent_sessions, thread_names
from codex_py.rollout.records import ARCHIVED_SESSIONS, SESSIONS
from codex_py.streams.standard import print_out

_ASK: Final = "--candidates"
"""`codex-py completion --candidates -- WORD…` prints the completions of the last word, one per
line. It prints nothing where a file is expected."""
_MOST_SESSIONS: Final = 100
_OF_SESSIONS: Final = {"exec resume", "exec fork", "resume", "fork"}
"""Commands whose arguments may name a session, although their parser declares no such word."""

_SCRIPTS: Final = Path(__file__).with_name("completion_scripts")
"""The scripts start the command word if it is an absolute path, else the program in an absolute
folder of PATH: before Enter, nothing from the working directory may run."""
_SHELLS: Final = ("bash", "zsh", "fish")


def run_completion(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Print the script, or the completions that the script asks for. Returns the exit code."""
    if argv[:1] == [_ASK]:
        words = _candidates(argv[2:], environment)
        lines = [f"{word}\n" for word in words]
        return print_out("".join(lines))
    parser = CommandParser(Arguments, only={"overrides"})
    parser.add_argument(
        "shell",
        nargs="?",
        default="bash",
        type=OneOf(*_SHELLS),
    )
    shell = parser.parse_args(list(argv)).shell
    return print_out((_SCRIPTS / f"codex-py.{shell}").read_text(encoding="utf-8"))


def _candidates(words: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """Complete the last of the words that follow the name of this program.

    Each completion begins with that word.
    """
    # bash splits `--color=always` into three words; the last word may be the `=` alone.
    parts = [word.removeprefix("=") for word in words]
    current = parts.pop() if parts else ""
    before = [word for word in parts if word]
    suggested = dict.fromkeys(_suggestions(before, current, environment))
    return [word for word in suggested if word.startswith(current)]


def _suggestions(
    before: Sequence[str],
    current: str,
    environment: Mapping[str, str],
) -> Iterable[str]:
    """List what may stand in the place of `current`, after the words `before`.

    Not all of it begins with `current`.
    """
    row, member = _command(before)
    added, words = _added(row, member, before)
    if added is not None:
        shown = added.help_text()
        if row is not None and not shown:
            shown = help_text(row.names[0])
        return _of_package(added, words, current, shown, environment)
    if row is not None:
        if row.members and not member:
            return [*row.members, *further_members(row.names[0])]
        if row.names[0] == "help":
            return known_commands()
    parser = _parser(row, member)
    option = _option_with_value(parser, before)
    if option is not None:
        return _values(option)
    if current.startswith("-"):
        shown = _shown_options(row, parser)
        if row is not None and row.names[0] == "exec":
            installed = registry.installed_names(registry.OPTIONS)
            shown += [f"--{name}" for name in installed]
        return shown
    if row is None:
        return known_commands()
    place = f"{row.names[0]} {member}".strip()
    arguments = _arguments(parser, place, environment)
    if member:
        return arguments
    return [*row.words, *arguments]


def _added(
    row: Command | None, member: str, before: Sequence[str]
) -> tuple[PackageCommand | None, Sequence[str]]:
    """Find the command of an extension that the words name, and the words behind its name.

    Args:
        row: the command of the program among the words.
        member: the member of that command among the words.
    """
    if row is None and before:
        return package_command(before[0]), before[1:]
    if row is not None and row.members and not member:
        further = further_members(row.names[0])
        for number, word in enumerate(before):
            if word in further:
                command = package_command(f"{row.names[0]}.{word}")
                return command, before[number + 1 :]
    return None, ()


def _of_package(
    command: PackageCommand,
    before: Sequence[str],
    current: str,
    shown: str,
    environment: Mapping[str, str],
) -> Iterable[str]:
    """List what may stand in the place of `current` in a command of an extension.

    Args:
        shown: the help that names the options.
    """
    if command.members:
        if not before:
            return command.members
        member = command.members.get(before[0])
        if member is None:
            return ()
        help_of_member = member.help_text()
        return _of_package(member, before[1:], current, help_of_member, environment)
    if command.options is None:
        return ()
    parser = CommandParser(command.options)
    option = _option_with_value(parser, before)
    if option is not None:
        return _values(option)
    if current.startswith("-"):
        return _named_in(shown, parser)
    return _arguments(parser, "", environment)


def _option_with_value(
    parser: CommandParser, before: Sequence[str]
) -> argparse.Action | None:
    """The option whose value comes next: the last word, if it is one. None if there is none."""
    if not before:
        return None
    option = parser.option_named(before[-1])
    if option is None or option.nargs == 0:
        return None
    return option


def _named_in(text: str, parser: CommandParser) -> list[str]:
    """The options of a parser that a help text names."""
    shown = re.findall(r"--[\w-]+", text)
    return [name for name in shown if parser.option_named(name) is not None]


def _shown_options(row: Command | None, parser: CommandParser) -> list[str]:
    """The options of a command that its help shows. The others are not worth suggesting."""
    if row is not None and row.own_options:
        text = help_text(row.names[0])
    else:
        text = help_text("exec")
    return _named_in(text, parser)


def _command(words: Sequence[str]) -> tuple[Command | None, str]:
    """Find the command that the words name, or None, and its subcommand, or ""."""
    for word in words:
        row = find_command(word)
        if row is not None:
            members = row.members or row.words
            named = [word for word in words if word in members]
            return row, named[0] if named else ""
    return None, ""


def _parser(row: Command | None, member: str) -> CommandParser:
    """The parser of a command. One with its own options hands it over when asked for its help."""
    if row is not None and row.own_options:
        try:
            load(row.target(member))(["--help"], {})
        except HelpRequested as request:
            if isinstance(request.parser, CommandParser):
                return request.parser
    return session_parser()


def _values(action: argparse.Action) -> Sequence[str]:
    if isinstance(action.type, OneOf):
        return action.type.allowed
    return ()


def _arguments(
    parser: CommandParser,
    place: str,
    environment: Mapping[str, str],
) -> Iterator[str]:
    """List the values of the arguments of a command. `place`: the command, with its subcommand."""
    positionals = parser.positionals()
    names = {each.dest for each in positionals}
    if place in _OF_SESSIONS or "session" in names:
        if place == "unarchive":
            folder = ARCHIVED_SESSIONS
        else:
            folder = SESSIONS
        yield from _sessions(codex_home(environment), folder)
    for each in positionals:
        yield from _values(each)


def _sessions(home: Path, folder: str) -> Iterator[str]:
    """The ids of the sessions, the latest first. A name that is one word comes before its id."""
    names = thread_names(home)
    recent = recent_sessions(home, cwd=None, folder=folder)
    for _, meta, _ in islice(recent, _MOST_SESSIONS):
        name = names.get(meta.id, "")
        # A name from a foreign session must be neither an option nor code for the shell.
        if re.fullmatch(r"\w[\w.-]*", name):
            yield name
        yield meta.id

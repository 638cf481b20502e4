"""`codex-py completion SHELL`: a script that completes the words and options of every command.

All of it comes from the table of commands and from the parsers that the commands themselves use.
"""

import argparse
import re
from collections.abc import Iterator, Mapping, Sequence

from codex_py.app.loading import load
from codex_py.cli.commands import COMMANDS, NAMES, Command, help_text
from codex_py.cli.completion_scripts import SCRIPTS, Option, Place
from codex_py.frontends.arguments import Arguments
from codex_py.frontends.command_parser import CommandParser, HelpRequested, OneOf
from codex_py.frontends.streams import print_out


def run_completion(argv: Sequence[str], environment: Mapping[str, str]) -> int:  # noqa: ARG001 - every command gets it
    """Print the script; the exit code."""
    parser = CommandParser(Arguments, only={"overrides"})
    parser.add_argument("shell", nargs="?", default="bash", type=OneOf(*SCRIPTS))
    shell: str = parser.parse_args(list(argv)).shell
    return print_out(SCRIPTS[shell](list(_places())))


def _places() -> Iterator[Place]:
    """All places of a command line where something can be completed."""
    session = _options(CommandParser(Arguments), "exec")
    yield Place((), "", session, [(row.names[0], row.summary) for row in COMMANDS])
    for row in COMMANDS:
        words = [(word, "") for word in (row.members or _words(row))]
        if row.names[0] == "help":
            yield Place(row.names, "", [], [(name, "") for name in NAMES])
        elif row.members:
            yield Place(row.names, "", [], words)
            for name, target in row.members.items():
                yield _place([f"{row.names[0]} {name}"], _parser(target))
        elif row.own_options:
            yield _place(row.names, _parser(row.target), words)
        else:
            names = [row.names, *([f"{row.names[0]} {word}"] for word, _ in words)]
            for each in names:
                takes_session = each[0].split()[-1] in {"resume", "fork"}
                below = words if each == row.names else []
                yield Place(each, "session" if takes_session else "file", session, below)


def _place(
    names: Sequence[str], parser: CommandParser, words: Sequence[tuple[str, str]] = ()
) -> Place:
    arguments = parser.positionals()
    takes_session = any(action.dest == "session" for action in arguments)
    choices = [(word, "") for action in arguments for word in _values(action) or ()]
    options = _options(parser, names[0].split()[0])
    return Place(names, "session" if takes_session else "file", options, [*words, *choices])


def _words(row: Command) -> list[str]:
    """The words in lower case that the usage of a command has behind its name."""
    return re.findall(r"[a-z]+", row.usage.rpartition(", ")[2].partition(" ")[2])


def _parser(target: str) -> CommandParser:
    try:
        load(f"codex_py.{target}")(["--help"], {})
    except HelpRequested as request:
        if isinstance(request.parser, CommandParser):
            return request.parser
    raise AssertionError(f"{target} parses no options")


def _options(parser: CommandParser, command: str) -> list[Option]:
    """The options that the help of the command names: the others are not worth suggesting."""
    named = set(re.findall(r"--?[\w-]+", help_text(command)))
    return [
        Option(tuple(action.option_strings), _values(action))
        for action in parser.options()
        if named & set(action.option_strings)
    ]


def _values(action: argparse.Action) -> tuple[str, ...] | None:
    if action.nargs == 0:
        return None
    return action.type.allowed if isinstance(action.type, OneOf) else ()

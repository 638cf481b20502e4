"""`codex-py completion SHELL`: prints a shell script that asks this program for completions.

The completions come from the table of commands and from the parsers that the commands use.
"""

import argparse
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

from codex_py.app.loading import load
from codex_py.cli.commands import NAMES, Command, find_command, help_text
from codex_py.command_line.arguments import Arguments
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

_SCRIPTS: Final = Path(__file__).with_name("completion_scripts")
"""The scripts start the command word if it is an absolute path, else the program in an absolute
folder of PATH: before Enter, nothing from the working directory may run."""
_SHELLS: Final = ("bash", "zsh", "fish")


def run_completion(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Print the script, or the completions that the script asks for. Returns the exit code."""
    if argv[:1] == [_ASK]:
        return print_out(
            "".join(f"{word}\n" for word in _candidates(argv[2:], environment))
        )
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
    # bash splits `--color=always` into three words; the last word may be the `=` alone.
    *before, current = [word.removeprefix("=") for word in words] or [""]
    before = [word for word in before if word]
    row, member = _command(before)
    command = row.names[0] if row else ""
    if row is not None and row.members and not member:
        found: Sequence[str] = list(row.members)
    elif command == "help":
        found = NAMES
    else:
        parser = _parser(row, member)
        if before:
            option = parser.option_named(before[-1])
        else:
            option = None
        if option is not None and option.nargs != 0:
            found = _values(option)
        elif current.startswith("-"):
            text = help_text(command if row and row.own_options else "exec")
            # Options that the help leaves out are not worth suggesting.
            found = [o for o in re.findall(r"--[\w-]+", text) if parser.option_named(o)]
        elif row is None:
            found = NAMES
        else:
            place = f"{command} {member}".strip()
            found = [] if member else [*row.words]
            found += _arguments(parser, place, environment)
    return [word for word in dict.fromkeys(found) if word.startswith(current)]


def _command(words: Sequence[str]) -> tuple[Command | None, str]:
    """Find the command that the words name, or None, and its subcommand, or ""."""
    row = next(filter(None, map(find_command, words)), None)
    if row is None:
        return None, ""
    members = row.members or row.words
    return row, next((word for word in words if word in members), "")


def _parser(row: Command | None, member: str) -> CommandParser:
    if row is not None and row.own_options:
        try:
            load(row.target(member))(["--help"], {})
        except HelpRequested as request:
            if isinstance(request.parser, CommandParser):
                return request.parser
    return CommandParser(Arguments)


def _values(action: argparse.Action) -> Sequence[str]:
    if isinstance(action.type, OneOf):
        return action.type.allowed
    return ()


def _arguments(
    parser: CommandParser, place: str, environment: Mapping[str, str]
) -> Iterator[str]:
    words = parser.positionals()
    if place in _OF_SESSIONS or any(each.dest == "session" for each in words):
        if place == "unarchive":
            folder = ARCHIVED_SESSIONS
        else:
            folder = SESSIONS
        yield from _sessions(codex_home(environment), folder)
    for each in words:
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

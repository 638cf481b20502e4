"""Runs the subcommands of extensions; see `api.commands`."""

from collections.abc import Mapping, Sequence
from typing import Final

from codex_py.api.commands import Command
from codex_py.cli.commands import COMMANDS as TABLE
from codex_py.cli.commands import NAMES, OF_CODEX, find_command, may_be_command
from codex_py.command_line.extension_options import session_parser
from codex_py.command_line.parser import (
    TYPING_MISTAKE,
    HelpRequested,
    parse_options,
    suggestion,
)
from codex_py.errors import UsageError, nearest
from codex_py.registry import (
    COMMANDS,
    OPTIONS,
    EntryPoint,
    find,
    installed_names,
    load,
    own_points,
    unusable,
)
from codex_py.streams.standard import print_out

_SHORTEST: Final = 4
"""The length from which a word counts as the beginning of a command, and not as a prompt."""


def has_command(name: str) -> bool:
    """True if an extension has this command. Raises a `ConfigError` if several packages have it."""
    return _point(name) is not None


def package_command(name: str) -> Command | None:
    """Load the command of this name. None if no extension has one.

    Args:
        name: `GROUP.MEMBER` is a further member of a group of the program.

    Raises:
        ConfigError: more than one package has it, or it cannot be loaded.
    """
    point = _point(name)
    if point is None:
        return None
    command = load(point, "command")
    if not isinstance(command, Command):
        is_now = type(command).__name__
        reason = f"its entry point is a {is_now}, not a `Command`"
        raise unusable(point, "command", reason)
    if command.run is None and not command.members:
        raise unusable(point, "command", "it has neither `run` nor `members`")
    return command


def _point(name: str) -> EntryPoint | None:
    """Find the entry point of a command. None if no command can have the name."""
    if not all(map(may_be_command, name.split("."))):
        return None
    return find(COMMANDS, name)


def run_package_command(
    name: str, command: Command, argv: Sequence[str], environment: Mapping[str, str]
) -> int:
    """Run a command with the words behind its name. Returns the exit code.

    Raises whatever the command raises, and `HelpRequested` for the help of a command without one.
    """
    words = list(argv)
    if command.members:
        member = words.pop(0) if words else ""
        if member in {"-h", "--help", "help"}:
            return _print_help(command)
        return run_package_command(
            f"{name} {member}", _member(name, command, member), words, environment
        )
    assert command.run is not None
    if command.options is None:
        if {"-h", "--help"} & {*words}:
            return _print_help(command)
        return command.run(words, environment)
    try:
        options = parse_options(command.options, words)
        return command.run(options, environment)
    except HelpRequested:
        return _print_help(command)


def _print_help(command: Command) -> int:
    """Print the help of a command. Returns the exit code.

    Raises:
        HelpRequested: it has none. The help of its group is printed then.
    """
    text = command.help_text()
    if not text:
        raise HelpRequested
    return print_out(text)


def _member(name: str, group: Command, word: str) -> Command:
    """Return the member of a group that the word names.

    Raises:
        UsageError: there is no such member.
    """
    member = group.members.get(word)
    if member is not None:
        return member
    known = ", ".join(group.members)
    if not word or word.startswith("-"):
        raise UsageError(f"say what to do: codex-py {name} COMMAND, one of {known}")
    near = suggestion(word, group.members) or f" Use one of {known}."
    raise UsageError(f"unknown command `{name} {word}`.{near}")


def _added_names() -> list[str]:
    """List the commands of extensions, and the members that they add to groups: `GROUP.MEMBER`."""
    own = [point.name for point in own_points(COMMANDS)]
    return [*own, *_installed_commands()]


def _installed_commands() -> Mapping[str, str]:
    """List the commands of installed packages that can be run, with the package of each."""
    found = installed_names(COMMANDS).items()
    return {name: package for name, package in found if _is_free(name)}


def _is_free(name: str) -> bool:
    """True if a package may have a command of this name, or this member of a group."""
    group, _, member = name.partition(".")
    if group in OF_CODEX or not all(map(may_be_command, name.split("."))):
        return False
    command = find_command(group)
    return command is None or (bool(member) and member not in command.members)


def known_commands() -> list[str]:
    """List the names of all commands, those of extensions too."""
    return [*NAMES, *(name for name in _added_names() if "." not in name)]


def meant_commands(word: str) -> str:
    """Say which commands an unknown word may mean, before other words; empty if it is like none.

    They are those that begin with the word, or else the most similar one.
    """
    known = known_commands()
    begun = sorted(name for name in known if name.startswith(word))
    if begun and len(word) >= _SHORTEST:
        return " or ".join(begun)
    return nearest(word, known) or ""


def misspelt_command(word: str) -> str | None:
    """Return the command that a word alone, which may be a prompt, has a typing mistake in."""
    return nearest(word, known_commands(), alike=TYPING_MISTAKE)


def further_members(group: str) -> list[str]:
    """List the members that extensions add to a group of the program."""
    start = f"{group}."
    names = [name for name in _added_names() if name.startswith(start)]
    return [name.removeprefix(start) for name in names]


def several_words(word: str) -> UsageError:
    """Make the error for words that begin with no command.

    They may be a misspelt command, a member of a group, or a prompt. `word`: the first of them.
    """
    groups = [each.names[0] for each in TABLE if word in each.members]
    end = f".{word}"
    added = [name for name in _added_names() if name.endswith(end)]
    groups += [name.removesuffix(end) for name in added]
    if len(groups) == 1:
        meant = f"codex-py {groups[0]} {word}"
        return UsageError(f"put quotes around the prompt, or write `{meant}`")
    meant = meant_commands(word)
    if meant:
        return UsageError(f"unknown command {word!r}. Did you mean {meant}?")
    text = f"put quotes around the prompt; there is no command {word!r}"
    return UsageError(text)


def list_of_commands() -> str:
    """List the commands of installed packages for the help; empty if there are none."""
    return _listed("Commands of installed packages", _installed_commands())


def list_of_options() -> str:
    """List the options of installed packages for the help of `exec`; empty if there are none."""
    parser = session_parser()
    found = {f"--{name}": each for name, each in installed_names(OPTIONS).items()}
    options = {
        name: package
        for name, package in found.items()
        if parser.option_named(name) is None
    }
    return _listed("Options of installed packages", options)


def _listed(heading: str, found: Mapping[str, str]) -> str:
    if not found:
        return ""
    width = max(map(len, found))
    rows = [f"  {name:<{width}}  {package}" for name, package in found.items()]
    return "\n".join(["", f"{heading}:", *rows, ""])

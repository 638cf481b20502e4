"""Runs the subcommands of extensions; see `api.commands`."""

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, get_type_hints

from codex_py.api.commands import Command
from codex_py.cli.commands import COMMANDS as TABLE
from codex_py.cli.commands import NAMES, OF_CODEX, find_command, may_be_command
from codex_py.command_line.extension_options import session_parser
from codex_py.command_line.parser import (
    TYPING_MISTAKE,
    CommandParser,
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

_OPTION_LINE: Final = re.compile(
    r"^ +(-\w(?:, --[\w-]+)*|--[\w-]+)(?=[ =\[]|$)", re.MULTILINE
)
"""The names of an option at the beginning of a line of a help text."""


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
    name: str, argv: Sequence[str], environment: Mapping[str, str]
) -> int:
    """Run the command of this name with the words behind it. Returns the exit code.

    Raises:
        HelpRequested: its help is asked for, and it has none.
        ConfigError: it cannot be used.
        Exception: what the command raises.
    """
    point = _point(name)
    command = package_command(name)
    assert point is not None
    assert command is not None
    return _run(point, name.replace(".", " "), command, argv, environment)


def _run(
    point: EntryPoint,
    name: str,
    command: Command,
    argv: Sequence[str],
    environment: Mapping[str, str],
) -> int:
    words = list(argv)
    if command.members:
        member = words.pop(0) if words else ""
        if member in {"-h", "--help", "help"}:
            return _print_help(point, command)
        of_member = _member(name, command, member)
        return _run(point, f"{name} {member}", of_member, words, environment)
    if command.run is None:
        raise unusable(point, "command", f"`{name}` has neither `run` nor `members`")
    try:
        options = _options(point, command, words)
        code = _result(point, command.run, options, environment)
    except HelpRequested:
        return _print_help(point, command)
    is_code = isinstance(code, int) and not isinstance(code, bool)
    if not is_code or code not in range(256):
        if inspect.iscoroutine(code):
            code.close()
        reason = f"its function returned {code!r}, not an exit code from 0 to 255"
        raise unusable(point, "command", reason)
    return code


def _result(
    point: EntryPoint,
    function: Callable[[Any, Mapping[str, str]], Any],
    options: Any,
    environment: Mapping[str, str],
) -> Any:
    """Call the function of a command, which may raise anything. Returns what it returns."""
    try:
        return function(options, environment)
    except AttributeError as error:
        if error.obj is not options or not isinstance(options, list):
            raise
        reason = (
            "its `Command` has no class of options, so its function got the list"
            f" of the words: {error}"
        )
        raise unusable(point, "command", reason) from error


def _options(point: EntryPoint, command: Command, words: list[str]) -> Any:
    """Parse the words: the options of a command, or the words themselves if it has no class.

    Raises:
        HelpRequested: `--help` is among them.
        UsageError: they have a mistake.
        ConfigError: the class of the options has one.
    """
    kind = command.options
    if kind is None:
        if {"-h", "--help"} & {*words}:
            raise HelpRequested
        return words
    _require_options(point, kind)
    try:
        return parse_options(kind, words)
    except TypeError as error:
        reason = f"its options cannot be given to {kind.__qualname__}: {error}"
        raise unusable(point, "command", reason) from error


def _require_options(point: EntryPoint, kind: type[Any]) -> CommandParser:
    """Make the parser of a class of options.

    Raises:
        ConfigError: the class declares no options in the right form, or takes none.
    """
    try:
        parser = CommandParser(kind)
    except Exception as error:
        reason = f"its class of options is wrong: {error!r}"
        raise unusable(point, "command", reason) from error
    takes_values = (
        kind.__init__ is not object.__init__ or kind.__new__ is not object.__new__
    )
    if not takes_values and get_type_hints(kind):
        reason = f"{kind.__qualname__} takes no options: it needs `@frozen`"
        raise unusable(point, "command", reason)
    return parser


def _print_help(point: EntryPoint, command: Command) -> int:
    """Print the help of a command. Returns the exit code.

    Raises:
        HelpRequested: it has none. The help of its group is printed then.
        ConfigError: it cannot be read, or is wrong.
    """
    text = _help_text(point, command)
    if not text:
        raise HelpRequested
    return print_out(text)


def help_of_command(name: str) -> str | None:
    """Return the help of the command of this name. None if no extension has the command.

    Raises:
        ConfigError: the command cannot be loaded, or its help cannot be read or is wrong.
    """
    point = _point(name)
    command = package_command(name)
    if point is None or command is None:
        return None
    return _help_text(point, command)


def _help_text(point: EntryPoint, command: Command) -> str:
    try:
        text: Any = command.help_text()
    except (OSError, ValueError) as error:
        reason = f"its help cannot be read: {error}"
        raise unusable(point, "command", reason) from error
    if not isinstance(text, str):
        reason = f"its help is a {type(text).__name__}, not a text or a `Path`"
        raise unusable(point, "command", reason)
    if command.options is None:
        return text
    parser = _require_options(point, command.options)
    for names in _OPTION_LINE.findall(text):
        for name in names.split(", "):
            if parser.option_named(name) is None:
                reason = f"its help lists {name}, which its class of options does not declare"
                raise unusable(point, "command", reason)
    return text


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

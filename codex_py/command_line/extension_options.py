"""Takes the options of extensions out of a command line; see `api.options`."""

import re
from collections.abc import Sequence
from pathlib import Path

from codex_py.command_line.arguments import FLAG, Arguments
from codex_py.command_line.options import Options
from codex_py.command_line.parser import CommandParser, given
from codex_py.errors import UsageError
from codex_py.registry import (
    FAILURES,
    OPTIONS,
    EntryPoint,
    find,
    installed_names,
    load,
    own_points,
    own_texts,
    unusable,
)

_NOT_YET = {"--remote"}
"""Options of Codex that this program knows of and does not have."""


def take_extension_options(
    words: Sequence[str],
) -> tuple[tuple[Options, ...], list[str]]:
    """Parse the options of extensions.

    Args:
        words: what the options of the program itself have left of a command line.

    Returns:
        An instance of each class with an option among the words, and the other words.

    Raises:
        UsageError: one of the options has a bad value, or none; or nobody has it.
        ConfigError: the class of an option cannot be used.
    """
    rest = list(words)
    options: list[Options] = []
    for kind in dict.fromkeys(map(_class, _points(words))):
        found, rest = CommandParser(kind).parse_known_args(rest)
        options.append(kind(**given(found)))
    for word in rest:
        _refuse_unknown_option(word)
    return tuple(options), rest


def _points(words: Sequence[str]) -> Sequence[EntryPoint]:
    """List the entry point of each option that an extension has.

    They are in the order of the folders and packages, so that the order of the words means nothing.
    Our folders come first, or a package could take an option of theirs.
    """
    points: list[EntryPoint] = []
    for word in words:
        named = re.match(r"--([a-z][a-z0-9-]*)(?:=|$)", word)
        point = named and find(OPTIONS, named[1])
        if point:
            points.append(point)
    return sorted(points, key=lambda point: (not point.is_ours, point.value))


def _loaded(point: EntryPoint) -> type[Options]:
    kind = load(point, "option")
    if not isinstance(kind, type) or not issubclass(kind, Options):
        reason = "its entry point is no subclass of `Options`"
        raise unusable(point, "option", reason)
    return kind


def _class(point: EntryPoint) -> type[Options]:
    """Load the class with an option. Raises a `ConfigError` if it cannot be used."""
    kind = _loaded(point)
    if CommandParser(kind).option_named(f"--{point.name}") is None:
        reason = f"its class declares no option --{point.name}"
        raise unusable(point, "option", reason)
    return kind


def failure_options(values: Sequence[str]) -> tuple[Options, ...]:
    """Make the options of extensions for values of `--fail-on`.

    Args:
        values: names of the group `FAILURES`.

    Returns:
        An instance of each class that a value names, with its values in `fail_on`.

    Raises:
        ConfigError: the class of a value cannot be used.
    """
    found: dict[type[Options], list[str]] = {}
    for value in values:
        point = find(FAILURES, value)
        assert point is not None
        found.setdefault(_loaded(point), []).append(value)
    return tuple(kind(fail_on=tuple(named)) for kind, named in found.items())


def session_parser() -> CommandParser:
    """Make a parser with all options of sessions, also those of the folders of `extensions`."""
    parser = CommandParser(Arguments)
    for kind in dict.fromkeys(map(_class, own_points(OPTIONS))):
        parser.declare(kind)
    return parser


def _unknown_option(name: str) -> UsageError:
    """Make the error for an option that neither the program nor an extension has."""
    installed = [f"--{each}" for each in installed_names(OPTIONS)]
    return session_parser().unknown_option(name, installed)


def _refuse_unknown_option(word: str) -> None:
    """Raise a `UsageError` if a word has the form of an option, which the parser did not know."""
    option = FLAG.match(word)
    is_prompt = " " in word.partition("=")[0]
    if option is None or is_prompt:
        return
    name = option[0]
    if name in _NOT_YET:
        raise UsageError(f"{name} is not supported yet")
    advice = _foreign_options().get(name)
    if advice is not None:
        raise UsageError(f"unknown option {name}. {advice}")
    raise _unknown_option(name)


def _foreign_options() -> dict[str, str]:
    """Read the advice for people who come from other agents, by the option that they type."""
    name = "foreign_options.txt"
    listed = Path(__file__).with_name(name).read_text(encoding="utf-8")
    advice: dict[str, str] = {}
    for line in "\n".join([listed, *own_texts(name)]).splitlines():
        if line and not line.startswith("#"):
            names, _, text = line.partition(" | ")
            advice |= dict.fromkeys(names.split(", "), text)
    return advice

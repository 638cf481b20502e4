"""Takes the options of extensions out of a command line; see `api.options`."""

import re
from collections.abc import Iterator, Sequence

from codex_py.command_line.arguments import Arguments
from codex_py.command_line.options import Options
from codex_py.command_line.parser import CommandParser, given
from codex_py.errors import UsageError
from codex_py.registry import (
    OPTIONS,
    EntryPoint,
    find,
    installed_names,
    load,
    own_points,
    unusable,
)


def take_extension_options(
    words: Sequence[str],
) -> tuple[tuple[Options, ...], list[str]]:
    """Parse the options of extensions.

    Args:
        words: what the options of the program itself have left of a command line.

    Returns:
        An instance of each class with an option among the words, and the other words.

    Raises:
        UsageError: one of the options has a bad value, or none.
        ConfigError: the class of an option cannot be used.
    """
    rest = list(words)
    options: list[Options] = []
    kinds = dict.fromkeys(_classes(words))
    # Our folders come first, or a package could take an option of theirs.
    for kind in sorted(kinds, key=_is_foreign):
        found, rest = CommandParser(kind).parse_known_args(rest)
        options.append(kind(**given(found)))
    return tuple(options), rest


def _classes(words: Sequence[str]) -> Iterator[type[Options]]:
    """Yield the class for each option that an extension has."""
    for word in words:
        named = re.match(r"--([a-z][a-z0-9-]*)(?:=|$)", word)
        if named is None:
            continue
        point = find(OPTIONS, named[1])
        if point is not None:
            yield _class(point)


def _is_foreign(kind: type[Options]) -> bool:
    """True if an installed package has the class, and no folder of `codex_py/extensions`."""
    return not kind.__module__.startswith("codex_py.")


def _class(point: EntryPoint) -> type[Options]:
    """Load the class with an option. Raises a `ConfigError` if it cannot be used."""
    kind = load(point, "option")
    if not isinstance(kind, type) or not issubclass(kind, Options):
        reason = "its entry point is no subclass of `Options`"
        raise unusable(point, "option", reason)
    if CommandParser(kind).option_named(f"--{point.name}") is None:
        reason = f"its class declares no option --{point.name}"
        raise unusable(point, "option", reason)
    return kind


def session_parser() -> CommandParser:
    """Make a parser with all options of sessions, also those of the folders of `extensions`."""
    parser = CommandParser(Arguments)
    for kind in dict.fromkeys(map(_class, own_points(OPTIONS))):
        parser.declare(kind)
    return parser


def unknown_option(name: str) -> UsageError:
    """Make the error for an option that neither the program nor an extension has."""
    parser = session_parser()
    for installed in installed_names(OPTIONS):
        parser.add_argument(f"--{installed}")
    return parser.unknown_option(name)

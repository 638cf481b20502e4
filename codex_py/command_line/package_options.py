"""Takes the options of installed packages out of a command line; see `api.options`."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from codex_py.command_line.parser import CommandParser, given
from codex_py.registry import OPTIONS, find, load, unusable


def take_package_options(words: Sequence[str]) -> tuple[tuple[Any, ...], list[str]]:
    """Parse the options of installed packages.

    Args:
        words: what the options of the program itself have left of a command line.

    Returns:
        An instance of each class with an option among the words, and the other words.

    Raises:
        UsageError: one of the options has a bad value, or none.
        ConfigError: the class of an option cannot be used.
    """
    rest = list(words)
    options: list[Any] = []
    for kind in dict.fromkeys(_classes(words)):
        found, rest = CommandParser(kind).parse_known_args(rest)
        options.append(kind(**given(found)))
    return tuple(options), rest


def _classes(words: Sequence[str]) -> Iterator[Any]:
    """Yield the class for each option that an installed package has."""
    for word in words:
        named = re.match(r"--([a-z][a-z0-9-]*)(?:=|$)", word)
        if named is None:
            continue
        point = find(OPTIONS, named[1])
        if point is None:
            continue
        kind = load(point, "option")
        if not isinstance(kind, type) or not callable(getattr(kind, "feature", None)):
            reason = "its entry point is no class with a method `feature`"
            raise unusable(point, "option", reason)
        if CommandParser(kind).option_named(f"--{point.name}") is None:
            reason = f"its class declares no option --{point.name}"
            raise unusable(point, "option", reason)
        yield kind

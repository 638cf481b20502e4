"""Parses settings that are given on the command line as `-c KEY=VALUE`."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any, cast

from codex_py.config.check import (
    KeyPath,
    dotted,
    kind_of,
    leaves,
    lookup,
    problems,
    suggestion,
)
from codex_py.config.declared.kinds import Secret
from codex_py.config.files import require_shallow
from codex_py.errors import OptionError
from codex_py.protocol.addresses import shown_url

_QUOTED_KEY = re.compile(r"""((?:[^="']|"[^"]*"|'[^']*')*)=(.*)\Z""", re.DOTALL)
"""Matches a key and a value with the first equals sign outside of quotes between them."""


def parse_overrides(overrides: Sequence[str]) -> dict[str, Any]:
    """Parse the overrides into one table; later ones win.

    A value that is not valid TOML is taken as plain text: `model=gpt-5.5` needs no quotes.

    Raises:
        OptionError: an override has no equals sign, or no key.
    """
    values: dict[str, Any] = {}
    for override in overrides:
        key, value = _assignment(override)
        *parents, last = parse_key(key)
        table = values
        for part in parents:
            inner = table.get(part)
            if not isinstance(inner, dict):
                inner = cast("dict[str, Any]", {})
                table[part] = inner
            table = cast("dict[str, Any]", inner)
        table[last] = _value(value)
    require_shallow(values, "-c")
    return values


def _assignment(override: str) -> tuple[str, str]:
    """Split an override into key and value. Raises an `OptionError` if it has no key."""
    found = _QUOTED_KEY.match(override)
    if found is not None:
        key, value = found.groups()
    else:
        # A quote is not closed before the equals sign.
        key, equals, value = override.partition("=")
        if not equals:
            raise OptionError(
                f"Error parsing -c overrides: Invalid override (missing '='): {override};"
                " -c is followed by KEY=VALUE"
            )
    if not key.strip():
        raise OptionError(
            f"Error parsing -c overrides: Empty key in override: {override}"
        )
    return key.strip(), value


def parse_key(text: str) -> KeyPath:
    """The parts of a dotted key, which may be quoted: `projects."/a.b".trust_level`."""
    try:
        table: Any = tomllib.loads(f"{text} = 0")
    except (ValueError, RecursionError):
        # More lenient than TOML: names may contain spaces and letters beyond ASCII.
        return tuple(text.split("."))
    path, rest = only_path(table)
    # The text may have more than a key in it, such as a table header.
    if isinstance(rest, dict):
        return tuple(text.split("."))
    return path


def unknown_setting(override: str) -> str | None:
    """Say that a `KEY=VALUE` names no setting, and which one was perhaps meant; None if it does.

    Raises:
        OptionError: see `parse_overrides`.
    """
    return unknown_of(parse_overrides([override]))


def bad_setting(override: str) -> str | None:
    """Say that the value of a `KEY=VALUE` is not what the setting takes; None if it is, or the key is
    unknown.

    Raises:
        OptionError: see `parse_overrides`.
    """
    for problem in problems(parse_overrides([override])):
        if not problem.unknown:
            return f"`{dotted(problem.key)}` {problem.text}"
    return None


def unknown_of(settings: Mapping[str, Any]) -> str | None:
    """Say that settings, in the form of `config.toml`, have one that does not exist; None if all do."""
    for problem in problems(settings):
        if problem.unknown:
            near = suggestion(problem.key)
            hint = "" if near is None else f"; did you mean `{near}`?"
            return f"there is no setting `{dotted(problem.key)}`{hint}"
    return None


def sets_secret(override: str) -> bool:
    """True if an override sets a credential, or a value that may not be shown whole.

    Args:
        override: a valid `KEY=VALUE`.
    """
    values = parse_overrides([override])
    for leaf in leaves(values, ()):
        if kind_of(leaf) is Secret:
            return True
        value = lookup(values, leaf)
        if isinstance(value, str) and shown_url(value) != value:
            return True
    return False


def only_path(value: object) -> tuple[KeyPath, object]:
    """Follow tables of one entry each; returns the keys on the way, and the value at the end."""
    path: list[str] = []
    while isinstance(value, dict):
        table = cast("dict[str, object]", value)
        if len(table) != 1:
            break
        ((part, value),) = table.items()
        path.append(part)
    return tuple(path), cast("object", value)


def _value(text: str) -> Any:
    """Parse a value; text that is not valid TOML stands for itself."""
    text = text.strip()
    try:
        table = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    # Text with a line break could set other keys too.
    if table.keys() == {"value"}:
        return table["value"]
    return text

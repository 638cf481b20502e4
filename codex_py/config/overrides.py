"""Settings given on the command line as `-c KEY=VALUE`."""

import re
import tomllib
from collections.abc import Sequence
from typing import Any, cast

from codex_py.config.check import KeyPath, kind_of, leaves, lookup
from codex_py.config.declared.kinds import Secret
from codex_py.config.files import require_shallow
from codex_py.errors import OptionError
from codex_py.protocol.addresses import shown_url

# The first equals sign outside of quotes, else the first equals sign.
_ASSIGNMENT = re.compile(
    r"""((?:[^="']|"[^"]*"|'[^']*')*)=(.*)\Z | ([^=]*)=(.*)\Z""", re.DOTALL | re.VERBOSE
)


def parse_overrides(overrides: Sequence[str]) -> dict[str, Any]:
    """Parse the overrides into one table; later ones win.

    A value that is not valid TOML is taken as plain text: `model=gpt-5.5` needs no quotes.

    Raises:
        OptionError: an override has no equals sign, or no key.
    """
    values: dict[str, Any] = {}
    for override in overrides:
        found = _ASSIGNMENT.match(override)
        if found is None:
            raise OptionError(
                f"Error parsing -c overrides: Invalid override (missing '='): {override}"
            )
        key, value = (
            (found[1], found[2]) if found[1] is not None else (found[3], found[4])
        )
        if not key.strip():
            raise OptionError(
                f"Error parsing -c overrides: Empty key in override: {override}"
            )
        *parents, last = parse_key(key.strip())
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


def sets_secret(override: str) -> bool:
    """True if a `-c KEY=VALUE` sets a credential, or a value that may not be shown whole.

    Its key and form are valid.
    """
    values = parse_overrides([override])
    for leaf in leaves(values, ()):
        value = lookup(values, leaf)
        if kind_of(leaf) is Secret or (
            isinstance(value, str) and shown_url(value) != value
        ):
            return True
    return False


def only_path(value: object) -> tuple[KeyPath, object]:
    """Follow tables of one entry each; the keys on the way, and the value at the end."""
    path: list[str] = []
    while isinstance(value, dict) and len(table := cast("dict[str, Any]", value)) == 1:
        ((part, value),) = table.items()
        path.append(part)
    return tuple(path), cast("object", value)


def _value(text: str) -> Any:
    text = text.strip()
    try:
        table = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    # Text with a line break could set other keys too.
    if table.keys() == {"value"}:
        return table["value"]
    return text

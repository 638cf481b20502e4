"""Checks configuration values against the table of known keys."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

from codex_py.config.keymap import key_name
from codex_py.config.schema import KEYS, TABLES
from codex_py.config.tables import PLAIN, AnyOf, Kind, Setting, Table, setting
from codex_py.errors import nearest
from codex_py.protocol.frozen import frozen

KeyPath: TypeAlias = tuple[str, ...]
"""The parts of a dotted key."""

_RENAMED: Final = {
    "experimental_instructions_file": "model_instructions_file",
    "include_plan_tool": "tools.update_plan.enabled",
    "preferred_auth_method": "forced_login_method",
}
"""Keys of older versions of Codex that have a successor."""
_KEY_NAMES: Final = {"api_key", "apikey", "api_key_env", "key", "token", "secret"}
"""Other names for `env_key` of a provider."""
_PROVIDER: Final = TABLES["model_providers.*"]
_NOT_SHOWN: Final = ("secret", "variable")
_PROTECTING_TABLES: Final = (
    "protection",
    "gates",
    "budget",
    "permissions",
    "sandbox_workspace_write",
    "sandbox_limits",
)
"""Tables in which an unknown key was most likely meant to protect something."""
_PROTECTING_KEYS: Final = (
    *_PROTECTING_TABLES,
    "approval_policy",
    "approvals_reviewer",
    "sandbox_mode",
    "default_permissions",
    "allow_unenforced",
    "shell_environment_policy",
    "hooks",
    "forced_login_method",
)
_LONGEST: Final = 30
"""Characters of a misspelt key."""
_MISSPELT: Final = 0.85
"""How alike a key and a protecting one are if it is a misspelling: one letter of five is missing or added, or one of
seven is another."""


@frozen
class Problem:
    key: KeyPath
    text: str
    """The mistake, to be read after the key."""
    unknown: bool = False
    """The key is unknown, which is an error only with `--strict-config`."""


def lookup(values: Mapping[str, Any], key: KeyPath) -> Any:
    """The value at a key; None if it is not set, which TOML has no value for."""
    value: Any = values
    for part in key:
        if isinstance(value, Mapping):
            value = cast("Mapping[str, Any]", value).get(part)
        else:
            value = None
    return value


def problems(values: Any, kind: Kind = KEYS) -> list[Problem]:
    """The mistakes in a table, in its own order."""
    return list(_check(values, kind, ()))


def without_effect(values: Mapping[str, Any]) -> tuple[str, ...]:
    """A warning, in one sentence, of settings that have no effect in this version; or nothing.

    Settings that protect are not among them, see `config.unenforced`.
    """
    names = [dotted(key) for key in unused_keys(values)]
    if not names:
        return ()
    if len(names) == 1:
        these = "This setting has"
    else:
        these = "These settings have"
    return (f"{these} no effect in this version: {', '.join(sorted(names))}.",)


def unused_keys(
    values: Mapping[str, Any], kinds: Table = KEYS, key: KeyPath = ()
) -> Iterator[KeyPath]:
    """The settings that have no effect in this version, of the table at `key`."""
    for name, value in values.items():
        known = setting(kinds, name)
        if known is None:
            continue
        if known.harmless is not None and value not in known.harmless:
            yield (*key, name)
        elif isinstance(known.kind, dict) and isinstance(value, dict):
            yield from unused_keys(
                cast("dict[str, Any]", value), known.kind, (*key, name)
            )


def may_protect(key: KeyPath) -> bool:
    """True for an unknown key that someone may rely on: one of a table of protections, or a misspelt name of one."""
    if key[0] in KEYS:
        return key[0] in _PROTECTING_TABLES
    # Comparing takes time in proportion to the square of a key's length, and a file may have thousands of keys.
    is_short = len(key[0]) <= _LONGEST
    return is_short and nearest(key[0], _PROTECTING_KEYS, alike=_MISSPELT) is not None


def remedy(key: KeyPath) -> str | None:
    """A clause that says what to do about an unknown key; None if nothing is known that is like it."""
    if len(key) > 1 and key[-1] in KEYS and ".".join(key) not in _RENAMED:
        return f"`{key[-1]}` belongs above the first [table] of the file"
    similar = suggestion(key)
    if similar is None:
        return None
    return f"did you mean `{similar}`?"


def suggestion(key: KeyPath) -> str | None:
    """The known key, dotted, that is most similar to an unknown one."""
    successor = _RENAMED.get(".".join(key))
    if successor is not None:
        return successor
    if kind_of(key[:-1]) is _PROVIDER and key[-1].lower() in _KEY_NAMES:
        return ".".join((*key[:-1], "env_key"))
    if key[0] == "model_prices" and key[-1][:1].isdigit():
        # TOML splits the name of a model at its dot.
        return dotted((key[0], ".".join(key[1:])))
    if key[-1] in _PROVIDER and len(key) == 1:
        return f"model_providers.NAME.{key[0]}"
    if key[-1] in KEYS:
        # A key of the top level that was written below the header of a table.
        return key[-1]
    near = nearest(key[-1], _names(kind_of(key[:-1])))
    if near is None:
        return None
    return ".".join((*key[:-1], near))


def leaves(value: Any, path: KeyPath) -> Iterator[KeyPath]:
    """The keys of all values in a table that lies at a path, but for those that are tables with entries."""
    if isinstance(value, dict) and value:
        for name, part in cast("dict[str, Any]", value).items():
            yield from leaves(part, (*path, name))
    else:
        yield path


def kind_of(key: KeyPath, table: Table = KEYS) -> "Kind | None":
    """The kind of the value at a key, the table itself for the empty one; None for an unknown key."""
    kind: Kind | None = table
    for part in key:
        kind = member(kind, part)
        if kind is None:
            return None
    return kind


def member(kind: Kind, part: str) -> "Kind | None":
    """The kind of one key in values of a kind; None for an unknown key."""
    match kind:
        case dict():
            known = setting(kind, part)
            if known is None:
                return None
            return known.kind
        case AnyOf():
            return next(
                (found for one in kind if (found := member(one, part)) is not None),
                None,
            )
        case "table" | "array" | "any":
            return "any"
        case _:
            return None


def _names(kind: "Kind | None") -> list[str]:
    match kind:
        case dict():
            others = kind.get("*")
            if isinstance(others, Setting) and others.names:
                listed = others.names()
            else:
                listed = ()
            return [name for name in (*kind, *listed) if name != "*"]
        case AnyOf():
            return [name for one in kind for name in _names(one)]
        case _:
            return []


def _check(value: Any, kind: Kind, key: KeyPath) -> Iterator[Problem]:
    if isinstance(kind, AnyOf):
        # A kind of the same shape names the mistake inside a table.
        kind = next((one for one in kind if _same_shape(value, one)), kind)
    match kind:
        case dict() if isinstance(value, dict):
            for name, part in cast("dict[str, Any]", value).items():
                known = setting(kind, name)
                if known is None:
                    yield Problem((*key, name), "is unknown", unknown=True)
                else:
                    yield from _check(part, known.kind, (*key, name))
        case list() if isinstance(value, list):
            for number, element in enumerate(cast("list[Any]", value)):
                yield from _check(element, kind[0], (*key, str(number)))
        case str() if _is_plain(value, kind):
            pass
        case tuple() if value in kind and not isinstance(kind, AnyOf):
            pass
        case _:
            if kind in _NOT_SHOWN:
                given = ""
            else:
                given = f", not {shown(value)}"
            yield Problem(key, f"must be {expected(kind)}{given}")


def _same_shape(value: Any, kind: Kind) -> bool:
    if isinstance(kind, str):
        return _is_plain(value, kind)
    # A choice is a tuple of strings.
    return isinstance(value, str if isinstance(kind, tuple) else type(kind))


def _is_plain(value: Any, kind: str) -> bool:
    if kind != "any" and isinstance(value, bool):
        return kind == "boolean"  # Python takes a boolean for an integer
    if not isinstance(value, PLAIN[kind][1]):
        return False
    match kind:
        case "count":
            return value >= 0
        case "limit" | "positive":
            return 0 < value < math.inf
        case "price":
            return 0 <= value < math.inf
        case "key":
            return key_name(value) is not None
        case "variable":
            return not value or _may_be_variable(value)
        case _:
            return True


def _may_be_variable(text: str) -> bool:
    """False for text that no variable is called, and for a key: a long mixture of letters and digits."""
    changes = re.findall(r"(?=[A-Za-z]\d|\d[A-Za-z])", text)
    is_name = re.fullmatch(r"[A-Za-z_]\w*", text, re.ASCII) is not None
    return is_name and (len(text) < 20 or len(changes) < 6)


def expected(kind: Kind) -> str:
    """The kind in words: `a string`."""
    match kind:
        case dict():
            return "a table"
        case list():
            return "an array"
        case AnyOf():
            return " or ".join(expected(one) for one in kind)
        case tuple():
            return "one of " + ", ".join(f"`{choice}`" for choice in kind)
        case _:
            return PLAIN[kind][0]


def shown(value: Any) -> str:
    """A value for a message as TOML writes it, shortened."""
    match value:
        case dict():
            return "a table"
        case list():
            return "an array"
        case bool():
            return f"`{str(value).lower()}`"
        case str():
            return f'`"{_shortened(value)}"`'
        case _:
            return f"`{_shortened(str(cast('object', value)))}`"


def _shortened(text: str) -> str:
    if len(text) <= 40:
        return text
    return text[:39] + "…"


def escaped(text: str) -> str:
    """Escape the characters of a TOML string that are not printable: they could control a terminal.

    Bytes that are not UTF-8 are left as they are, because TOML has no escapes for them.
    """
    return "".join(
        c if c.isprintable() or "\ud800" <= c <= "\udfff" else f"\\U{ord(c):08X}"
        for c in text
    )


def dotted(key: Sequence[str]) -> str:
    """A key as TOML writes it: parts that are not plain names are quoted."""
    return ".".join(
        part
        if part and part.isascii() and part.replace("-", "").replace("_", "").isalnum()
        else '"' + escaped(part.replace("\\", "\\\\").replace('"', '\\"')) + '"'
        for part in key
    )

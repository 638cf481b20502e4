"""Checks configuration values against the declarations of their keys."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

from codex_py.config.declared.claimed import is_like_protecting
from codex_py.config.declared.kinds import Secret, Variable
from codex_py.config.declared.model import ModelProvider
from codex_py.config.declared.section import REST, key_of, keys_of, names_of
from codex_py.config.declared.settings import Settings
from codex_py.config.declared.tools import McpServer
from codex_py.errors import nearest
from codex_py.protocol.annotations import Kind, expected, form, kind_at, known_names
from codex_py.protocol.checked import Mistake, read
from codex_py.protocol.frozen import frozen
from codex_py.registry import TABLES, installed_names

KeyPath: TypeAlias = tuple[str, ...]
"""The parts of a dotted key."""

_RENAMED: Final = {
    "experimental_instructions_file": "model_instructions_file",
    "include_plan_tool": "tools.update_plan.enabled",
    "preferred_auth_method": "forced_login_method",
}
"""Keys of older versions of Codex that have a successor."""
_OTHER_NAMES: Final[Mapping[Kind, Mapping[str, str]]] = {
    Settings: {
        "approval": "approval_policy",
        "approvals": "approval_policy",
        "approval_mode": "approval_policy",
        "mcp": "mcp_servers",
        "sandbox": "sandbox_mode",
    },
    ModelProvider: {
        "api_base": "base_url",
        "endpoint": "base_url",
        "url": "base_url",
        "api_key": "env_key",
        "api_key_env": "env_key",
        "apikey": "env_key",
        "key": "env_key",
        "secret": "env_key",
        "token": "env_key",
    },
    McpServer: {"cmd": "command"},
}
"""Names that users expect for the keys of a table, and that are not similar enough."""
_NOT_SHOWN: Final = (Secret, Variable)
_PROTECTING_TABLES: Final = (
    "protection",
    "budget",
    "permissions",
    "sandbox_workspace_write",
    "sandbox_limits",
)
"""Tables in which an unknown key was most likely meant as a protection."""
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
    "forced_chatgpt_workspace_id",
)
_SIMILAR: Final = 0.66
"""The similarity from which a known key is suggested: `approvals_review`, but not `features` for
`temperature`."""
_LONGEST: Final = 30
"""The length, in characters, up to which a key can count as misspelt."""
_MISSPELT: Final = 0.85
"""The similarity from which a key counts as a misspelt protecting key: one letter of five is
missing or added, or one of seven is another."""


@frozen
class Problem:
    key: KeyPath
    text: str
    """The mistake, to be read after the key."""
    unknown: bool = False
    """The key is unknown, which is an error only with `--strict-config`."""


def lookup(values: Mapping[str, Any], key: KeyPath) -> Any:
    """The value at a key; None if it is not set. TOML itself has no null."""
    value: Any = values
    for part in key:
        if not isinstance(value, Mapping):
            return None
        value = cast("Mapping[str, Any]", value).get(part)
    return value


def problems(values: Any, kind: Kind = Settings) -> list[Problem]:
    """The mistakes in a value of a declared type, such as a section, in the order of the value."""
    _, mistakes = read(kind, values, exact=True)
    return list(map(_problem, mistakes))


def _problem(mistake: Mistake) -> Problem:
    if mistake.reason == "unknown":
        return Problem(mistake.path, "is unknown", unknown=True)
    if _is_instead_of_named_table(mistake):
        hint = remedy(mistake.path)
        if hint is not None:
            return Problem(mistake.path, f"is unknown; {hint}")
    text = f"must be {expected(mistake.kind, 'a table')}"
    if mistake.kind not in _NOT_SHOWN:
        text += f", not {shown(mistake.value)}"
    if len(mistake.path) > 1 and form(mistake.kind) == "fields":
        *table, name = mistake.path
        if name in known_names(mistake.kind):
            place = dotted([*table, "NAME"])
            text += f"; it belongs into a table with a name, such as `[{place}]`"
    return Problem(mistake.path, text)


def _is_instead_of_named_table(mistake: Mistake) -> bool:
    """True for a value where a table with a name of the user's own could be, such as a role.

    Its name is probably a misspelt key of the table around it.
    """
    if not mistake.path or form(mistake.kind) != "fields":
        return False
    *table, name = mistake.path
    around = kind_of(tuple(table))
    if around is None or form(around) != "fields":
        return False
    known = key_of(around, name)
    return known is not None and known.name == REST and known.kind is mistake.kind


def without_effect(values: Mapping[str, Any]) -> tuple[str, ...]:
    """One sentence that warns of settings without effect in this version; empty if none is.

    Protective settings are not among them; see `config.unenforced`.
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
    values: Mapping[str, Any],
    kind: Kind = Settings,
    path: KeyPath = (),
) -> Iterator[KeyPath]:
    """Find the settings that have no effect in this version, in a table at `path`."""
    for name, value in values.items():
        if _has_no_effect(kind, name, value):
            yield (*path, name)
            continue
        inner = kind_at(kind, name)
        # Search tables only. The type of a key that may also be a boolean, for instance, has another
        # form.
        if form(inner) in {"fields", "mapping"} and isinstance(value, dict):
            table = cast("dict[str, Any]", value)
            yield from unused_keys(table, inner, (*path, name))


def _has_no_effect(
    kind: Kind,
    name: str,
    value: Any,
) -> bool:
    """True if the setting `name` of a section has no effect, and the user should know that.

    A harmless value asks for what this version does anyway.
    """
    if form(kind) != "fields":
        return False
    known = key_of(kind, name)
    if known is None or known.harmless is None:
        return False
    return value not in known.harmless


def may_protect(key: KeyPath) -> bool:
    """True for an unknown key that the user may rely on for protection.

    Such a key is in a table of protections, or is a misspelt name of a protection.
    """
    known = key_of(Settings, key[0])
    if known is not None:
        # The unknown key is inside of a known table.
        return key[0] in _PROTECTING_TABLES or getattr(known.kind, "protects", False)
    meant = _OTHER_NAMES[Settings].get(key[0]) or _with_table(key[0])
    if meant is not None and meant.partition(".")[0] in _PROTECTING_KEYS:
        return True
    # Comparing takes time in proportion to the square of a key's length, and a file may have
    # thousands of keys.
    if len(key[0]) > _LONGEST:
        return False
    if nearest(key[0], _PROTECTING_KEYS, alike=_MISSPELT) is not None:
        return True
    return is_like_protecting(key[0], _MISSPELT)


def _is_setting(name: str) -> bool:
    """True if the top level has a key of this name."""
    return key_of(Settings, name) is not None


def _with_table(name: str) -> str | None:
    """The dotted key of a table that a key of the top level was meant as; None if several have one."""
    found: list[str] = []
    for each in keys_of(Settings):
        is_table = form(each.kind) == "fields"
        if is_table and name in names_of(each.kind):
            found.append(f"{each.name}.{name}")
    if len(found) == 1:
        return found[0]
    return None


def remedy(key: KeyPath) -> str | None:
    """A clause that says what to do about an unknown key; None if no known key is similar."""
    if len(key) == 1 and key[0].lower().endswith(("api_key", "apikey")):
        return (
            "keys do not belong into this file: run `codex-py login --with-api-key`, or set a"
            " variable such as OPENAI_API_KEY"
        )
    is_inside_table = len(key) > 1
    is_renamed = ".".join(key) in _RENAMED
    if is_inside_table and _is_setting(key[-1]) and not is_renamed:
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
    *table, name = key
    table_kind = kind_of(tuple(table))
    meant = _OTHER_NAMES.get(table_kind, {}).get(name.lower())
    if meant is not None:
        return ".".join((*table, meant))
    if key[0] == "model_prices" and name[:1].isdigit():
        # TOML splits the name of a model at its dot.
        model = ".".join(key[1:])
        return dotted(("model_prices", model))
    if not table and key_of(ModelProvider, name) is not None:
        return f"model_providers.NAME.{name}"
    if not table:
        meant = _with_table(name)
        if meant is not None:
            return meant
    if _is_setting(name):
        # A key of the top level that was written below the header of a table.
        return name
    names = [*known_names(table_kind)]
    if not table:
        names += installed_names(TABLES)
    near = nearest(name, names, alike=_SIMILAR)
    if near is None:
        return None
    return ".".join((*table, near))


def leaves(value: Any, path: KeyPath) -> Iterator[KeyPath]:
    """The keys of all values at and below `path`. A table with entries is not a value itself."""
    if isinstance(value, dict) and value:
        for name, part in cast("dict[str, Any]", value).items():
            yield from leaves(part, (*path, name))
    else:
        yield path


def kind_of(key: KeyPath, kind: Kind = Settings) -> "Kind | None":
    """The type of the value at a key; None for an unknown key.

    The key begins at `kind`, which is also the type at the empty key.
    """
    for part in key:
        kind = kind_at(kind, part)
        if kind is None:
            return None
    return kind


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
            return f'`"{_shortened(escaped(value))}"`'
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
    return "".join(map(_escaped_character, text))


def _escaped_character(character: str) -> str:
    if character.isprintable() or "\ud800" <= character <= "\udfff":
        return character
    return f"\\U{ord(character):08X}"


def dotted(key: Sequence[str]) -> str:
    """A key as TOML writes it: parts that are not plain names are quoted."""
    return ".".join(map(_key_part, key))


def _key_part(part: str) -> str:
    letters = part.replace("-", "").replace("_", "")
    if part.isascii() and letters.isalnum():
        return part
    text = part.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped(text)}"'

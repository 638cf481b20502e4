"""Writes files that are derived from tables of the program.

These are the JSON Schemas of the events and of the configuration, the reference of the configuration, the codes of a
`CodexError`, and the manual page. The schemas are for editors and for other languages. `tests/test_reference.py`
compares all five with the program.
"""

import json
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import (
    Any,
    ClassVar,
    Final,
    Literal,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from codex_py import registry
from codex_py.cli.commands import COMMANDS
from codex_py.cli.help_pages import help_text
from codex_py.cli.package_commands import package_command
from codex_py.config.declared.claimed import claimed_key, own_tables
from codex_py.config.declared.names import hook_events
from codex_py.config.declared.requirements import RequirementKeys
from codex_py.config.declared.section import REST, Key, Section, keys_of
from codex_py.config.declared.settings import Settings
from codex_py.config.keymap import ALIASES, KEY
from codex_py.protocol import events
from codex_py.protocol.annotations import Kind, alternatives, form, plain
from codex_py.protocol.error_codes import CODES, OTHER_CODES, ErrorCode
from codex_py.protocol.json_fields import JsonObject
from codex_py.protocol.json_schema import SchemaWriter

ROOT: Final = Path(__file__).parent.parent
SCHEMAS: Final = ROOT / "codex_py" / "schemas"
_ERROR_CODES: Final = ROOT / "docs" / "codex-error-codes.md"
_GENERATED: Final = (
    "<!-- The lists below are written by scripts/generate-reference. -->\n"
)
_DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"
_ONE_KEY: Final = (
    rf"((ctrl|control|alt|option|shift|super)-)*({KEY}|{'|'.join(ALIASES)})"
)
_DEFINITIONS: Final = {
    "key": {"type": "string", "pattern": rf"^(leader )?{_ONE_KEY}( {_ONE_KEY})*$"},
}
"""Schemas that several keys refer to."""
_TYPES: Final[Mapping[str, JsonObject]] = {
    "variable": {"type": "string", "pattern": r"^([A-Za-z_]\w*)?$"},
    "key": {"$ref": "#/$defs/key"},
    "boolean": {"type": "boolean"},
    "integer": {"type": "integer"},
    "count": {"type": "integer", "minimum": 0},
    "limit": {"type": "integer", "exclusiveMinimum": 0},
    "number": {"type": "number"},
    "price": {"type": "number", "minimum": 0},
    "positive": {"type": "number", "exclusiveMinimum": 0},
    "any": {},
}


def files() -> dict[Path, str]:
    """The texts of the files, by path."""
    return {
        SCHEMAS / "config.json": _json(config_schema()),
        SCHEMAS / "events.json": _json(events_schema()),
        ROOT / "docs" / "configuration-reference.md": configuration_page(),
        _ERROR_CODES: error_codes_page(),
        ROOT / "docs" / "codex-py.1": manual_page(),
    }


def keys(cls: type[Section] = Settings, path: str = "") -> Iterator[tuple[str, Key]]:
    """Yield the dotted name of every key that has an effect, and its declaration."""
    for each in declared_keys(cls):
        if each.harmless is None:
            yield from _keys_at(f"{path}{_shown_name(each)}", each, each.kind)


def declared_keys(cls: type[Section]) -> Sequence[Key]:
    """The keys of a section. Those of the top level have the tables of our extensions among them."""
    if cls is not Settings:
        return keys_of(cls)
    claimed = [claimed_key(name) for name in own_tables()]
    return [*keys_of(cls), *(key for key in claimed if key is not None)]


def _keys_at(name: str, declared: Key, kind: Kind) -> Iterator[tuple[str, Key]]:
    """Yield a key, unless it has only keys below it, and the keys below it."""
    options = alternatives(kind)
    below = [each for each in options if form(each) == "fields" or _has_entries(each)]
    if len(below) < len(options):
        yield name, declared
    for each in below:
        if form(each) == "fields":
            yield from keys(each, f"{name}.")
        else:
            yield from _keys_at(f"{name}.*", declared, get_args(each)[1])


def _shown_name(declared: Key) -> str:
    if declared.names is hook_events:
        return "EVENT"
    return declared.name


def _has_entries(kind: Kind) -> bool:
    """True for a table of names that the user chooses, and whose values are of one type."""
    return form(kind) == "mapping" and get_args(kind)[1] is not Any


def config_schema() -> dict[str, Any]:
    return {
        "$schema": _DRAFT,
        "title": "config.toml of codex-py",
        "$defs": _DEFINITIONS,
        **_SettingsWriter().of_fields(Settings),
    }


class _SettingsWriter(SchemaWriter):
    """Writes the schemas of sections, with the description of each key."""

    def members(self, kind: Kind) -> Sequence[Kind]:
        # TOML has no null.
        return alternatives(kind)

    def of_fields(self, cls: type[Section]) -> JsonObject:
        properties: JsonObject = {}
        rest: Any = False
        for each in declared_keys(cls):
            schema = self._of_key(each)
            if each.names is not None:
                properties |= dict.fromkeys(sorted(each.names()), schema)
            elif each.name == REST:
                rest = schema
            else:
                properties[each.name] = schema
        ordered = dict(sorted(properties.items()))
        return {"type": "object", "properties": ordered, "additionalProperties": rest}

    def of_plain(self, kind: Kind) -> JsonObject:
        return dict(_TYPES.get(plain(kind).name, {"type": "string"}))

    def _of_key(self, declared: Key) -> JsonObject:
        schema = self.of_type(declared.kind)
        description = {"description": declared.about}
        if declared.harmless is not None:
            schema = {"description": "No effect in codex-py.", **schema}
        elif declared.about and _has_entries(declared.kind):
            entry = schema["additionalProperties"]
            schema["additionalProperties"] = description | entry
        elif declared.about:
            schema = description | schema
        if declared.default is not None:
            schema["default"] = declared.default
        return schema


def events_schema() -> dict[str, Any]:
    """The schema of a line of `exec --json`."""
    definitions: dict[str, Any] = {}
    printed = [event for event in get_args(events.Event) if event.type is not None]
    lines = [_class_schema(event, definitions) for event in printed]
    return {
        "$schema": _DRAFT,
        "title": "An event of codex-py exec --json",
        "description": "Further fields, items and events may come with later versions.",
        "anyOf": lines,
        "$defs": dict(sorted(definitions.items())),
    }


def _class_schema(cls: type[Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """A reference to the schema of the object that `plain_data` makes of a value of this class."""
    reference = {"$ref": f"#/$defs/{cls.__name__}"}
    if cls.__name__ in definitions:
        return reference
    definitions[cls.__name__] = schema = {"type": "object"}
    hints = get_type_hints(cls)
    properties: dict[str, Any] = {}
    required: list[str] = []
    if (tag := getattr(cls, "type", None)) is not None:
        properties["type"] = {"const": tag}
        required.append("type")
    for field in fields(cls):
        shown = field.metadata.get("json", True)
        if not shown or shown == "inline" or get_origin(hints[field.name]) is ClassVar:
            continue
        properties[field.name] = _value_schema(hints[field.name], definitions, shown)
        if shown != "unless none":
            required.append(field.name)
    schema |= {"properties": properties, "required": required}
    return reference


def _value_schema(
    hint: Any, definitions: dict[str, Any], shown: Any = True
) -> dict[str, Any]:
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        kinds = [
            each for each in args if not (each is type(None) and shown == "unless none")
        ]
        kinds = [each for each in kinds if not getattr(each, "live_only", False)]
        schemas = [_value_schema(each, definitions) for each in kinds]
        return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
    if origin is Literal:
        return {"enum": list(args)}
    if origin in (Sequence, list, tuple):
        return {"type": "array", "items": _value_schema(args[0], definitions)}
    if origin in (Mapping, dict):
        return {
            "type": "object",
            "additionalProperties": _value_schema(args[1], definitions),
        }
    if hasattr(hint, "__dataclass_fields__"):
        return _class_schema(hint, definitions)
    plain = {
        str: "string",
        int: "integer",
        bool: "boolean",
        float: "number",
        type(None): "null",
    }
    return {"type": plain[hint]} if hint in plain else {}


def configuration_page() -> str:
    """The page of all keys that have an effect, with a section for each large table of the file."""
    required = [
        f"| `{name}` | {_kind_text(_entry_kind(each))} | {each.about} |"
        for name, each in keys(RequirementKeys)
        if not name.startswith("permissions.*.")
    ]
    return "\n".join(
        (
            "# All settings",
            "",
            "This page lists every setting of `config.toml` that has an effect, and those of `requirements.toml`."
            " [Configuration](configuration.md)",
            "says where the files are. `codex-py config explain KEY` prints the value of a setting and its source.",
            "",
            "- `*` stands for a name that you choose, such as that of a provider.",
            '- "Not in a project" means that a project cannot set it.',
            "- Settings of Codex without an effect here are accepted with a warning, and are not listed.",
            "- `codex_py/schemas/config.json` of the installation is a JSON Schema of `config.toml`, for editors.",
            "",
            *_sections(),
            "## `requirements.toml`",
            "",
            "An [administrator](configuration.md#for-administrators) sets these. They override all settings above. The"
            " keys of `permissions.*` are the same as above.",
            "",
            "| key | value | meaning |",
            "|---|---|---|",
            *required,
            "",
        )
    )


_SECTION_ROWS: Final = 3
"""The number of keys from which on a table of the file has a section of its own."""


def _sections() -> Iterator[str]:
    """Yield the lines of the sections, the first with the keys outside of all large tables."""
    rows: dict[str, list[str]] = {}
    for name, each in keys():
        about = each.about
        if not each.in_project and not about.endswith("Not in a project."):
            about += " Not in a project."
        kind = _kind_text(_entry_kind(each))
        row = f"| `{name}` | {kind} | {_default_text(each)} | {about} |"
        rows.setdefault(name.partition(".")[0], []).append(row)
    large = {name: each for name, each in rows.items() if len(each) >= _SECTION_ROWS}
    general: list[str] = []
    for name, each in rows.items():
        if name not in large:
            general += each
    yield from _section("General", general)
    for name, each in large.items():
        yield from _section(f"`{name}`", each)


def _section(title: str, rows: Sequence[str]) -> Iterator[str]:
    yield f"## {title}"
    yield ""
    yield "| key | value | default | meaning |"
    yield "|---|---|---|---|"
    yield from rows
    yield ""


def error_codes_page() -> str:
    """The page of the codes of a `CodexError`: its prose as it is, and the lists."""
    prose, mark, _ = _ERROR_CODES.read_text(encoding="utf-8").partition(_GENERATED)
    parts = [f"{prose}{mark}"]
    for title, codes in CODES.items():
        rows = "\n".join(map(_error_code_row, codes))
        parts.append(
            f"## {title}\n\n| code | when | retryable |\n|---|---|---|\n{rows}\n"
        )
    names = ", ".join(f"`{name}`" for name in sorted(OTHER_CODES))
    parts.append(
        "## Of subcommands, servers and the terminal\n\n"
        f"An `Agent` never gives one of these; the message says what was wrong: {names}.\n"
    )
    return "\n".join(parts)


def _error_code_row(code: ErrorCode) -> str:
    retryable = "yes" if code.retryable else "no"
    occasion = f"{code.occasion[0].upper()}{code.occasion[1:]}."
    return f"| `{code.name}` | {occasion} | {retryable} |"


def _entry_kind(declared: Key) -> Kind:
    """The type of the values of a key, or of those of each name in its table."""
    if _has_entries(declared.kind):
        return get_args(declared.kind)[1]
    return declared.kind


def _kind_text(kind: Kind) -> str:
    return ", or ".join(_in_words(each) for each in alternatives(kind))


def _in_words(kind: Kind) -> str:
    match form(kind):
        case "fields" | "mapping":
            return "a table"
        case "array" if get_args(kind)[0] is Any:
            return "an array"
        case "array":
            return f"a list: {_kind_text(get_args(kind)[0])}"
        case "choice":
            return ", ".join(f"`{each}`" for each in get_args(kind))
        case "plain":
            return plain(kind).words


def _default_text(declared: Key) -> str:
    is_of_entry = _has_entries(declared.kind)
    if declared.default is None or is_of_entry:
        return ""
    return f"`{json.dumps(declared.default)}`"


def manual_page() -> str:
    """The help of every command, in the form of man(7)."""
    out = [
        r".\" Written by scripts/generate-reference.",
        ".TH CODEX-PY 1",
        ".SH NAME",
        r"codex-py \- a streaming coding agent for the terminal and for CI",
        ".SH DESCRIPTION",
        *_roff(help_text("")),
    ]
    for command in COMMANDS:
        text = help_text(command.names[0])
        if text != help_text(""):
            out += [f".SH CODEX-PY {command.names[0].upper()}", *_roff(text)]
    for point in registry.own_points(registry.COMMANDS):
        added = package_command(point.name)
        if added is not None and "." not in point.name:
            out += [f".SH CODEX-PY {point.name.upper()}", *_roff(added.help_text())]
    return "\n".join((*out, ""))


def _roff(text: str) -> list[str]:
    lines = text.rstrip("\n").replace("\\", "\\e").replace("-", "\\-").split("\n")
    shown = [f"\\&{line}" if line.startswith((".", "'")) else line for line in lines]
    return [".nf", *shown, ".fi"]


def _json(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    SCHEMAS.mkdir(exist_ok=True)
    for path, text in files().items():
        path.write_text(text, encoding="utf-8")

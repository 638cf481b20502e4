"""Write what follows from tables of the program: JSON Schemas of the events and of the configuration, the reference of
the configuration, and the manual page.

The schemas are for editors and for other languages; `tests/test_reference.py` holds all four against the program.
"""

import json
import types
from collections.abc import Collection, Iterator, Mapping, Sequence
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

from codex_py.cli.commands import COMMANDS, help_text
from codex_py.config import tables
from codex_py.config.keymap import ALIASES, KEY
from codex_py.config.requirements import known_keys
from codex_py.config.schema import KEYS
from codex_py.config.tables import PLAIN, AnyOf, Kind, Setting, Table
from codex_py.protocol import events

ROOT: Final = Path(__file__).parent.parent
SCHEMAS: Final = ROOT / "codex_py" / "schemas"
_DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"
_ONE_KEY: Final = (
    rf"((ctrl|control|alt|option|shift|super)-)*({KEY}|{'|'.join(ALIASES)})"
)
_DEFINITIONS: Final = {
    "key": {"type": "string", "pattern": rf"^(leader )?{_ONE_KEY}( {_ONE_KEY})*$"},
}
"""Of what stands in many places."""
_TYPES: Final[Mapping[str, dict[str, Any]]] = {
    "variable": {"type": "string", "pattern": r"^([A-Za-z_]\w*)?$"},
    "key": {"$ref": "#/$defs/key"},
    "boolean": {"type": "boolean"},
    "integer": {"type": "integer"},
    "count": {"type": "integer", "minimum": 0},
    "limit": {"type": "integer", "exclusiveMinimum": 0},
    "number": {"type": "number"},
    "price": {"type": "number", "minimum": 0},
    "positive": {"type": "number", "exclusiveMinimum": 0},
    "table": {"type": "object"},
    "array": {"type": "array"},
    "any": {},
}


def files() -> dict[Path, str]:
    """All that is written, by its path."""
    return {
        SCHEMAS / "config.json": _json(config_schema()),
        SCHEMAS / "events.json": _json(events_schema()),
        ROOT / "docs" / "configuration-reference.md": configuration_page(),
        ROOT / "docs" / "codex-py.1": manual_page(),
    }


def keys(
    table: Table = KEYS, path: tuple[str, ...] = ()
) -> Iterator[tuple[str, Setting]]:
    """The dotted name of every key that has an effect, and what the table says of it."""
    for name, entry in table.items():
        setting = entry if isinstance(entry, Setting) else Setting(entry)
        below = [each for each in _alternatives(setting.kind) if isinstance(each, dict)]
        if setting.harmless is not None:
            continue
        if path == ("hooks",) and name in tables.HOOK_EVENTS:
            continue
        if len(below) < len(_alternatives(setting.kind)):
            yield ".".join((*path, name)), setting
        for each in below:
            yield from keys(each, (*path, name))
    if path == ("hooks",):
        event = table[tables.HOOK_EVENTS[0]]
        assert isinstance(event, Setting)
        yield "hooks.EVENT", event


def config_schema() -> dict[str, Any]:
    return {
        "$schema": _DRAFT,
        "title": "config.toml of codex-py",
        "$defs": _DEFINITIONS,
        **_table_schema(KEYS),
    }


def _table_schema(table: Table) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    for name, entry in table.items():
        setting = entry if isinstance(entry, Setting) else Setting(entry)
        schema = _kind_schema(setting.kind)
        if setting.about:
            schema = {"description": setting.about, **schema}
        elif setting.harmless is not None:
            schema = {"description": "No effect in codex-py.", **schema}
        if setting.default is not None:
            schema["default"] = setting.default
        properties |= dict.fromkeys(
            sorted(setting.names()) if setting.names else [name], schema
        )
    rest = properties.pop("*", False)
    ordered = dict(sorted(properties.items()))
    return {"type": "object", "properties": ordered, "additionalProperties": rest}


def _kind_schema(kind: Kind) -> dict[str, Any]:
    match kind:
        case str():
            return dict(_TYPES.get(kind, {"type": "string"}))
        case AnyOf():
            return {"anyOf": [_kind_schema(each) for each in kind]}
        case tuple():
            return {"enum": [str(each) for each in kind]}
        case list():
            return {"type": "array", "items": _kind_schema(kind[0])}
        case _:
            return _table_schema(kind)


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
    """The tables of all keys that have an effect."""
    rows = [
        f"| `{name}` | {_kind_text(setting.kind)} | {_default_text(setting)} | {setting.about}"
        f"{'' if setting.project else ' Not in a project.'} |"
        for name, setting in keys()
    ]
    required = [
        f"| `{name}` | {_kind_text(setting.kind)} | {setting.about} |"
        for name, setting in keys(known_keys())
        if not name.startswith("permissions.*.")
    ]
    return "\n".join(
        (
            "# All keys",
            "",
            "Written by `scripts/generate-reference`. A `*` stands for a name of yours, such as that of a provider."
            " [Configuration](configuration.md) says where",
            "the files are. An editor that knows JSON Schema finds one for `config.toml` in"
            " `codex_py/schemas/config.json` of the installation. Keys of Codex",
            "that have no effect here are accepted, with a warning, and are not in the table.",
            "",
            "| key | value | default | |",
            "|---|---|---|---|",
            *rows,
            "",
            "## `requirements.toml`",
            "",
            "What an [administrator](configuration.md#for-administrators) may require, above all of these. The keys of"
            " `permissions.*` are those above.",
            "",
            "| key | value | |",
            "|---|---|---|",
            *required,
            "",
        )
    )


def _kind_text(kind: Kind) -> str:
    match kind:
        case str():
            return PLAIN[kind][0]
        case AnyOf():
            return ", or ".join(_kind_text(each) for each in kind)
        case tuple():
            return ", ".join(f"`{each}`" for each in kind)
        case list():
            return f"a list: {_kind_text(kind[0])}"
        case _:
            return "a table"


def _default_text(setting: Setting) -> str:
    return "" if setting.default is None else f"`{json.dumps(setting.default)}`"


def _alternatives(kind: Kind) -> Collection[Kind]:
    return kind if isinstance(kind, AnyOf) else (kind,)


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

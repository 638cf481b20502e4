"""What `scripts/generate-reference` writes is that of this program, and holds for it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from codex_py.config.check import problems
from codex_py.config.schema import KEYS, TABLES
from codex_py.config.tables import AnyOf, Kind, Setting, Table
from scripts.reference import config_schema, events_schema, files, keys


@pytest.mark.parametrize("path", [pytest.param(path, id=path.name) for path in files()])
def test_the_file_is_up_to_date(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == files()[path], (
        "run scripts/generate-reference"
    )


def test_every_key_with_an_effect_is_described_and_no_other() -> None:
    assert [name for name, setting in keys() if not setting.about] == []
    entries = [entry for table in TABLES.values() for entry in table.values()]
    unused = [
        each
        for each in entries
        if isinstance(each, Setting) and each.harmless is not None
    ]
    assert unused
    assert not any(each.about for each in unused)


@pytest.mark.parametrize(
    "schema", [config_schema(), events_schema()], ids=["config", "events"]
)
def test_the_schema_is_one(schema: dict[str, Any]) -> None:
    Draft202012Validator.check_schema(schema)


def paths(table: Table, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every key, with a name of one's own for each `*`."""
    for name, entry in table.items():
        setting = entry if isinstance(entry, Setting) else Setting(entry)
        names = (
            sorted(setting.names())[:1] if setting.names else [name.replace("*", "own")]
        )
        for each in names:
            yield (*path, each)
            yield from within(setting.kind, (*path, each))


def within(kind: Kind, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if isinstance(kind, AnyOf):
        for each in kind:
            yield from within(each, path)
    elif isinstance(kind, dict):
        yield from paths(kind, path)


VALUES: list[Any] = [
    "low",
    "a/b",
    True,
    0,
    -1,
    7,
    0.5,
    ["a"],
    [1],
    [],
    {},
    {"a": 1},
    {"own": {}},
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_the_schema_of_the_configuration_accepts_what_the_program_accepts(
    value: Any,
) -> None:
    validator = Draft202012Validator(config_schema())
    differing: list[tuple[str, ...]] = []
    for path in [*paths(KEYS), ("unknown",), ("features", "unknown")]:
        table: dict[str, Any] = {path[-1]: value}
        for name in reversed(path[:-1]):
            table = {name: table}
        is_valid = validator.is_valid(table)  # pyright: ignore[reportUnknownMemberType]
        if is_valid != (problems(table) == []):
            differing.append(path)
    assert differing == []

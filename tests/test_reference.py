"""What `scripts/generate-reference` writes is that of this program, and holds for it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from jsonschema import Draft202012Validator

from codex_py.config.check import problems
from codex_py.config.declared.section import REST, Key, Section, keys_of
from codex_py.config.declared.settings import Settings
from codex_py.protocol.annotations import Kind, alternatives, form
from scripts.reference import config_schema, events_schema, files, keys


@pytest.mark.parametrize("path", [pytest.param(path, id=path.name) for path in files()])
def test_the_file_is_up_to_date(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == files()[path], (
        "run scripts/generate-reference"
    )


def test_every_key_with_an_effect_is_described_and_no_other() -> None:
    assert [name for name, each in keys() if not each.about] == []
    unused = [each for each in declared(Settings) if each.harmless is not None]
    assert unused
    assert not any(each.about for each in unused)


@pytest.mark.parametrize(
    "schema", [config_schema(), events_schema()], ids=["config", "events"]
)
def test_the_schema_is_one(schema: dict[str, Any]) -> None:
    Draft202012Validator.check_schema(schema)


def declared(cls: type[Section]) -> Iterator[Key]:
    """The keys of a section and of all that may be below it."""
    for each in keys_of(cls):
        yield each
        for section in sections(each.kind):
            yield from declared(section)


def sections(kind: Kind) -> Iterator[type[Section]]:
    for each in alternatives(kind):
        if form(each) == "fields":
            yield each
        elif form(each) == "mapping":
            yield from sections(get_args(each)[1])
        elif form(each) == "array":
            yield from sections(get_args(each)[0])


def paths(cls: type[Section], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every key, with a name of one's own for each `*`."""
    for each in keys_of(cls):
        name = each.name.replace(REST, "own")
        if each.names is not None:
            name = min(each.names())
        yield (*path, name)
        yield from within(each.kind, (*path, name))


def within(kind: Kind, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for each in alternatives(kind):
        if form(each) == "fields":
            yield from paths(each, path)
        elif form(each) == "mapping":
            yield (*path, "own")
            yield from within(get_args(each)[1], (*path, "own"))


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
    for path in [*paths(Settings), ("unknown",), ("features", "unknown")]:
        table: dict[str, Any] = {path[-1]: value}
        for name in reversed(path[:-1]):
            table = {name: table}
        is_valid = validator.is_valid(table)  # pyright: ignore[reportUnknownMemberType]
        if is_valid != (problems(table) == []):
            differing.append(path)
    assert differing == []

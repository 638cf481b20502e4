"""Tables of the configuration that extensions declare: entry points of `codex_py.tables`. LIGHT."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Self

from codex_py.config.declared.section import Key, Section, keys_of
from codex_py.errors import nearest
from codex_py.protocol.annotations import expected
from codex_py.protocol.checked import read
from codex_py.protocol.frozen import frozen
from codex_py.protocol.place import Place
from codex_py.registry import (
    TABLES,
    find,
    installed_names,
    load,
    own_points,
    unusable,
)

if TYPE_CHECKING:
    from codex_py.protocol.extension import Feature


@frozen
class Verification:
    """The scripts that must succeed before a change is accepted."""

    scripts: Sequence[str]
    """Lines for `/bin/sh`, in their order."""
    timeout_s: float
    """The time that each of them may take."""


class ClaimedTable(Section):
    """A table at the top level of the configuration, and the feature that it asks for.

    A subclass declares the keys.
    """

    in_project: ClassVar[bool] = False
    """True if a project may set the table. A project must not decide where data go, which programs
    are started, or whom to trust."""
    protects: ClassVar[bool] = False
    """True: an unknown key in the table was most likely meant as a protection, so it stops the
    start."""
    place: ClassVar[Place] = Place.OUTERMOST
    """The place of the feature among the others."""

    @classmethod
    def of(cls, config: Any) -> Self:
        """Return the table in a `Config`. If no file has it, its keys have their defaults."""
        for table in config.settings.claimed.values():
            if isinstance(table, cls):
                return table
        return cls({})

    @classmethod
    def check(cls, layers: Any) -> None:
        """Check the table in all `Layers` of a configuration together, when they are read.

        Raises:
            ConfigError: a value is wrong. If the error has a key, its place is told.
        """

    @classmethod
    def verification(cls, layers: Any) -> Verification | None:  # noqa: ARG003 - for subclasses
        """Return the scripts that the table requires, for features that test a change again.

        None: the table is not about scripts. It is called after `check`, with the same `Layers`.
        """
        return None

    def feature(self, setup: Any) -> Feature | None:  # noqa: ARG002 - for subclasses
        """Make the feature of a session at the top from its `SessionSetup`.

        None: the table asks for none. See `Options.feature`.

        Raises:
            ConfigError: the values of the keys contradict each other.
        """
        return None


class _ClaimedKey(Key):
    is_table = True

    def __init__(self, name: str, kind: type[ClaimedTable]) -> None:
        super().__init__("", name, in_project=kind.in_project)
        self.kind = kind


@cache
def claimed_key(name: str) -> Key | None:
    """Find the declaration of a table. None if no extension claims the name.

    Raises:
        ConfigError: more than one package claims it, or its class cannot be used.
    """
    point = find(TABLES, name)
    if point is None:
        return None
    kind = load(point, "table", (name,))
    if not isinstance(kind, type) or not issubclass(kind, ClaimedTable):
        reason = "its entry point is no subclass of `ClaimedTable`"
        raise unusable(point, "table", reason, (name,))
    reason = None if point.is_ours else _wrong_default(kind)
    if reason is not None:
        raise unusable(point, "table", reason, (name,))
    return _ClaimedKey(name, kind)


def is_of_package(name: str) -> bool:
    """True if an installed package claims the table. Nothing of the package is loaded."""
    if any(point.name == name for point in own_points(TABLES)):
        return False
    return name in installed_names(TABLES)


def _wrong_default(kind: type[ClaimedTable]) -> str | None:
    """Return which default of a key has another type than the key, as a clause. None if none has."""
    for each in keys_of(kind):
        if not isinstance(each.default, str | int | float):
            continue
        _, mistakes = read(each.kind, each.default, exact=True)
        if mistakes:
            wanted = expected(each.kind, "a table")
            return (
                f"the default of `{each.name}` must be {wanted}, not {each.default!r}"
            )
    return None


def verifications(config: Any) -> list[Verification]:
    """List the scripts that the tables of a `Config` require of a change, by table."""
    tables = config.settings.claimed.values()
    found = [table.verification(config.layers) for table in tables]
    return [each for each in found if each is not None]


def own_tables() -> dict[str, type[ClaimedTable]]:
    """The tables of the folders of `codex_py/extensions`, by their names."""
    names = [point.name for point in own_points(TABLES)]
    keys = [claimed_key(name) for name in names]
    return {key.name: key.kind for key in keys if key is not None}


def is_like_protecting(name: str, alike: float) -> bool:
    """True if a name is, or is at least this much like, that of a table that protects."""
    tables = own_tables()
    near = nearest(name, tables, alike=alike)
    return near is not None and tables[near].protects

"""Extensions of installed packages: entry points of the group `codex_py.extensions`.

The module is loaded only if the configuration names an extension.
"""

from collections.abc import Mapping, Sequence
from importlib.metadata import EntryPoint
from typing import Any, cast

from codex_py.app.guarded_extension import GuardedFeature
from codex_py.errors import ConfigError
from codex_py.protocol.extension import Feature
from codex_py.registry import EXTENSIONS, find


def installed_features(tables: Mapping[str, Mapping[str, Any]]) -> Sequence[Feature]:
    """Return the features of the tables `[extensions.NAME]`.

    The entry point NAME makes each feature from its table. Mistakes are reported with the name.

    Raises:
        ConfigError: an extension is not installed, or fails.
    """
    return [_made(_found(name), table) for name, table in tables.items()]


def _found(name: str) -> EntryPoint:
    """The entry point of an extension. Raises a `ConfigError` unless there is exactly one."""
    point = find(EXTENSIONS, name)
    if point is None:
        text = f"no installed package has an extension {name!r}"
        raise ConfigError(text, key=("extensions", name))
    return point


def _made(
    point: EntryPoint,
    table: Mapping[str, Any],
) -> Feature:
    """The feature that an entry point makes from its table."""
    name = f"the extension {point.name!r} ({point.value})"
    key = ("extensions", point.name)
    try:
        make = point.load()
        feature: Any = make(table)
    except Exception as error:
        text = f"{name} cannot be used: {error!r}"
        raise ConfigError(text, key=key) from error
    if not callable(feature):
        text = (
            f"{name} cannot be used: its entry point returned {type(feature).__name__}, not a"
            " feature, which is a function that takes the session and returns an `Extension`"
        )
        raise ConfigError(text, key=key)
    return GuardedFeature(cast("Feature", feature), name, key)

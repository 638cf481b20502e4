"""Extensions, options and wires of installed packages.

The module is loaded only if the configuration names one.
"""

from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import EntryPoint
from typing import Any, cast

from codex_py.app.guarded_extension import GuardedFeature
from codex_py.config.check import KeyPath, dotted, problems
from codex_py.config.declared.section import Section
from codex_py.errors import CodexError, ConfigError, nearest
from codex_py.protocol.annotations import known_names
from codex_py.protocol.extension import Feature
from codex_py.protocol.stream import Wire
from codex_py.registry import EXTENSIONS, WIRES, find, load, unusable


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


def _made(point: EntryPoint, table: Mapping[str, Any]) -> Feature:
    """The feature that an entry point makes from its table."""
    key = ("extensions", point.name)
    make: Any = load(point, "extension", key)
    if isinstance(make, type) and issubclass(make, Section):
        _require_valid(make, table, key)
    try:
        feature = make(table)
        if isinstance(feature, Section):
            feature = cast("Any", feature).feature()
    except CodexError as error:
        raise unusable(point, "extension", str(error), key) from error
    except Exception as error:
        raise unusable(point, "extension", repr(error), key) from error
    if not callable(feature):
        reason = (
            f"its entry point returned {type(feature).__name__}, not a feature, which is a function"
            " that takes the session and returns an `Extension`"
        )
        raise unusable(point, "extension", reason, key)
    name = f"the extension {point.name!r} ({point.value})"
    return GuardedFeature(cast("Feature", feature), name, key)


def _require_valid(
    kind: type[Section], table: Mapping[str, Any], path: KeyPath
) -> None:
    """Raise a `ConfigError` for the first mistake in the table of an extension."""
    for problem in problems(table, kind):
        key = (*path, *problem.key)
        text = f"`{dotted(key)}` {problem.text}"
        if problem.unknown and len(problem.key) == 1:
            near = nearest(problem.key[0], known_names(kind))
            if near is not None:
                text += f"; did you mean `{near}`?"
        raise ConfigError(text, key=key)


def option_features(options: Sequence[Any]) -> Sequence[Feature]:
    """Return the features of options of packages; see `api.options`.

    Raises:
        CodexError: an instance refuses its options, or cannot make its feature.
    """
    return [_of_options(each) for each in options]


def _of_options(options: Any) -> Feature:
    kind: type[object] = options.__class__
    name = f"the options {kind.__qualname__!r} ({kind.__module__})"
    try:
        feature: Any = options.feature()
    except CodexError:
        raise
    except Exception as error:
        raise ConfigError(f"{name} cannot be used: {error!r}") from error
    if not callable(feature):
        is_now = type(feature).__name__
        raise ConfigError(f"{name} cannot be used: `feature` returned {is_now}")
    return GuardedFeature(cast("Feature", feature), name, ())


def installed_wire(name: str) -> Callable[..., Wire]:
    """Return the class, or another maker, of the wire that `wire_api` names.

    Raises:
        ConfigError: it is not installed, or cannot be used.
    """
    point = find(WIRES, name)
    if point is None:
        raise ConfigError(f"no installed package has a wire {name!r}")
    make = load(point, "wire")
    if not callable(make):
        is_now = type(make).__name__
        raise unusable(point, "wire", f"its entry point is a {is_now}, not a class")
    return cast("Callable[..., Wire]", make)

"""What extensions have for a session: folders of `codex_py/extensions`, and installed packages.

The module is loaded only if an option or the configuration asks for one.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from codex_py.app.guarded_extension import GuardedFeature
from codex_py.app.options import MakesFeature, SessionSetup
from codex_py.config.check import KeyPath, dotted, problems
from codex_py.config.config import Config
from codex_py.config.declared.claimed import claimed_key
from codex_py.config.declared.section import Section
from codex_py.config.reviewers import reviewer_point
from codex_py.errors import CodexError, ConfigError, nearest
from codex_py.protocol.annotations import known_names
from codex_py.protocol.events import Event, EventSink
from codex_py.protocol.extension import Feature
from codex_py.protocol.place import Place
from codex_py.registry import (
    EXTENSIONS,
    REPORTS,
    REVIEW_FORMATS,
    TABLES,
    WIRES,
    EntryPoint,
    description,
    failures_named,
    find,
    installed_names,
    load,
    unusable,
)

if TYPE_CHECKING:
    from codex_py.app.review.findings import ReviewReport


def features_of_extensions(setup: SessionSetup) -> Mapping[Place, list[Feature]]:
    """Make the features for a session at the top, by their place and in their order.

    Raises:
        ConfigError: an extension is not installed, or fails.
        CodexError: an extension refuses its options or settings.
    """
    settings = setup.config.settings
    features: dict[Place, list[Feature]] = {place: [] for place in Place}
    for options in setup.options.of_extensions:
        _add(features, options, setup, ())
    for name, claimed in settings.claimed.items():
        _add(features, claimed, setup, (name,))
    reviewer = reviewer_point(settings.approvals_reviewer)
    if reviewer is not None:
        features[Place.BEHIND_HOOKS].insert(0, _reviewer(reviewer, setup))
    for name, table in settings.extensions.items():
        made, place = _of_table(name, table)
        feature = _feature_of_table(name, made, setup)
        features[place].append(feature)
    return features


def _add(
    features: Mapping[Place, list[Feature]],
    maker: MakesFeature,
    setup: SessionSetup,
    key: KeyPath,
) -> None:
    """Add the feature of options, or of the table at `key`, if there is one."""
    kind: type[object] = maker.__class__
    name = f"the extension {kind.__qualname__!r} ({kind.__module__})"
    try:
        feature = maker.feature(setup)
    except CodexError:
        raise
    except Exception as error:
        raise ConfigError(f"{name} cannot be used: {error!r}", key=key) from error
    if feature is None:
        return
    if not callable(feature):
        is_now = type(feature).__name__
        reason = f"`feature` returned {is_now}, which is not callable"
        raise ConfigError(f"{name} cannot be used: {reason}", key=key)
    features[maker.place].append(_guarded(feature, name, key, kind.__module__))


def _guarded(feature: Feature, name: str, key: KeyPath, module: str) -> Feature:
    """Guard the feature of a foreign package. A bug of our own needs no other name."""
    if module.startswith("codex_py."):
        return feature
    return GuardedFeature(feature, name, key)


def _reviewer(point: EntryPoint, setup: SessionSetup) -> Feature:
    """Make the feature that decides approvals in place of the user."""
    key = ("approvals_reviewer",)
    make = load(point, "reviewer", key)
    with failures_named(point, "reviewer", key):
        feature: Any = make(setup)
    _require_callable(feature, point, "reviewer", key)
    name = f"the reviewer {point.name!r} ({point.value})"
    return _guarded(feature, name, key, point.value)


def _found(name: str) -> EntryPoint:
    """The entry point of an extension. Raises a `ConfigError` unless there is exactly one."""
    point = find(EXTENSIONS, name)
    if point is None:
        text = f"no installed package has an extension {name!r}"
        near = nearest(name, installed_names(EXTENSIONS))
        if near is not None:
            text += f"; did you mean {near!r}?"
        raise ConfigError(text, key=("extensions", name))
    return point


def used_extensions(config: Config) -> Mapping[str, Callable[[], object]]:
    """Find what a configuration uses of installed packages: tables, extensions, wires and a reviewer.

    Returns:
        For each, by its place in the configuration, a function that loads it and raises a
        `ConfigError` if it cannot be used.
    """
    settings = config.settings
    found: dict[str, Callable[[], object]] = {}
    installed = installed_names(TABLES)
    for name in settings.claimed:
        if name in installed:
            found[f"[{name}]"] = partial(claimed_key, name)
    for name, table in settings.extensions.items():
        found[f"[extensions.{name}]"] = partial(_of_table, name, table)
    for name, provider in config.model_providers.items():
        wire = find(WIRES, str(provider.get("wire_api")))
        if wire is not None:
            key = ("model_providers", name, "wire_api")
            found[dotted(key)] = partial(load, wire, "wire", key)
    reviewer = reviewer_point(settings.approvals_reviewer)
    if reviewer is not None and not reviewer.is_ours:
        key = ("approvals_reviewer",)
        found[dotted(key)] = partial(load, reviewer, "reviewer", key)
    return found


def _of_table(name: str, table: Mapping[str, Any]) -> tuple[Any, Place]:
    """Call the entry point of an extension with its table.

    Returns:
        A feature, or a `Section` that makes one; and the place of the feature.

    Raises:
        ConfigError: the extension is not installed, or fails.
    """
    point = _found(name)
    key = ("extensions", name)
    make: Any = load(point, "extension", key)
    place = Place.OUTERMOST
    if isinstance(make, type) and issubclass(make, Section):
        _require_valid(make, table, key)
        place = getattr(make, "place", place)
    with failures_named(point, "extension", key):
        made = make(table)
    if not isinstance(made, Section):
        _require_callable(made, point, "extension", key)
    return made, place


def _feature_of_table(name: str, made: Any, setup: SessionSetup) -> Feature:
    """Return the feature that `_of_table` has returned, or let its `Section` make it."""
    point = _found(name)
    key = ("extensions", name)
    feature: Any = made
    if isinstance(made, Section):
        with failures_named(point, "extension", key):
            feature = cast("Any", made).feature(setup)
        _require_callable(feature, point, "extension", key)
    return GuardedFeature(
        cast("Feature", feature), f"the extension {name!r} ({point.value})", key
    )


def _require_callable(
    feature: object, point: EntryPoint, what: str, key: KeyPath
) -> None:
    """Raise a `ConfigError` unless a feature can be called with a session."""
    if callable(feature):
        return
    reason = (
        f"its entry point returned {type(feature).__name__}, not a feature, which is a function"
        " that takes the session and returns an `Extension`"
    )
    raise unusable(point, what, reason, key)


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


def reports_to_ci(
    variables: Mapping[str, str], warn: Callable[[str], None]
) -> list[EventSink]:
    """Make the sinks that report a run to the CI services of these variables; see `api.reports`.

    Raises:
        ConfigError: a report cannot be loaded, or fails before the run.
    """
    sinks: list[EventSink] = []
    for name, value in variables.items():
        point = find(REPORTS, name)
        if point is not None:
            sinks.append(_report(point, value, warn))
    return sinks


def _report(point: EntryPoint, value: str, warn: Callable[[str], None]) -> EventSink:
    """Make the sink of one report."""
    make = load(point, "report")
    with failures_named(point, "report", ()):
        sink: Any = make(value, warn)
    if not callable(sink):
        is_now = type(sink).__name__
        reason = f"its entry point returned {is_now}, not a function that takes events"
        raise unusable(point, "report", reason)
    report = cast("EventSink", sink)
    if point.is_ours:
        return report
    return _GuardedReport(report, point, warn)


class _GuardedReport:
    """The sink of a package's report. A bug in it ends the report, and not the run."""

    def __init__(
        self, sink: EventSink, point: EntryPoint, warn: Callable[[str], None]
    ) -> None:
        self._sink = sink
        self._point = point
        self._warn = warn
        self._has_failed = False

    def __call__(self, event: Event) -> None:
        if self._has_failed:
            return
        try:
            self._sink(event)
        except Exception as error:  # noqa: BLE001 - of foreign code
            self._has_failed = True
            name = f"The report {self._point.name!r} ({self._point.value})"
            self._warn(f"{name} has failed, and ends: {description(error)}")


def review_format(name: str) -> "Callable[[ReviewReport], str]":
    """Return the function that writes a review in the format of this name; see `api.reviews`.

    Raises:
        ConfigError: it is not installed, or cannot be loaded.
    """
    point = find(REVIEW_FORMATS, name)
    if point is None:
        raise ConfigError(f"no installed package has a format {name!r} of reviews")
    return load(point, "format")

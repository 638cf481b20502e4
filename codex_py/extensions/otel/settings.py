"""`[otel]`: the OpenTelemetry collectors that receive data about sessions.

An exporter is contacted only if the user or the administrator names it: no project sets a key of
`[otel]`.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from codex_py.api.addresses import url_problem
from codex_py.api.extensions import ConfigError, frozen
from codex_py.api.tables import raw
from codex_py.extensions.otel.keys import (
    EventOtlp,
    ExporterSetting,
    MetricOtlp,
    SpanOtlp,
)

_SIGNALS: Final = {
    "exporter": "logs",
    "trace_exporter": "traces",
    "metrics_exporter": "metrics",
}
"""The kind of signal that each key of `[otel]` configures."""
_TLS: Final = {
    "ca-certificate": "certificate_file",
    "client-certificate": "client_certificate_file",
    "client-private-key": "client_key_file",
}
"""The keys of Codex, with the matching parameters of the exporters."""


@frozen
class Exporter:
    """The destination of one kind of signal."""

    endpoint: str
    """The URL, which is used unchanged."""
    is_json: bool
    headers: Mapping[str, str]
    certificates: Mapping[str, str]
    """Paths of files, by the parameter of the SDK's exporters that takes each."""


def exporters_of(
    settings: Mapping[str, ExporterSetting | None], warn: Callable[[str], None]
) -> Iterator[tuple[str, Exporter]]:
    """Yield the kind of signal and the exporter of each key that asks for an export.

    Args:
        settings: the values of the keys of `[otel]` with exporters.

    Raises:
        ConfigError: one of them cannot be used.
    """
    for key, exporter in settings.items():
        match exporter:
            case None | "none":
                pass
            case "statsig":
                warn(
                    f"otel.{key}: nothing is exported: `statsig` is a service of Codex's own."
                )
            case _:
                yield _SIGNALS[key], _checked(key, exporter.otlp_http)


def _checked(key: str, otlp: EventOtlp | SpanOtlp | MetricOtlp) -> Exporter:
    """Check the settings of an exporter. Raises a `ConfigError` if it cannot be used."""
    if otlp.endpoint is None or otlp.protocol is None:
        text = "only `otlp-http` is supported, with an `endpoint` and a `protocol`"
        raise ConfigError(f"`otel.{key}`: {text}", key=("otel", key))
    problem = url_problem(otlp.endpoint)
    if problem is not None:
        raise ConfigError(f"`otel.{key}`: `endpoint` {problem}", key=("otel", key))
    files = raw(otlp.tls)
    certificates = {_TLS[name]: path for name, path in files.items()}
    is_json = otlp.protocol == "json"
    return Exporter(otlp.endpoint, is_json, otlp.headers, certificates)

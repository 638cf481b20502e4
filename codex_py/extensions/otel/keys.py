"""Declares the tables below `[otel]`. LIGHT."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

from codex_py.api.tables import Secret, Section, key, rest, table


class Tls(Section):
    """`[otel.exporter.otlp-http.tls]`"""

    ca_certificate: Path | None = key(
        "A file with the certificates that may sign the collector's certificate.",
        name="ca-certificate",
    )
    client_certificate: Path | None = key(
        "The client certificate for the collector.", name="client-certificate"
    )
    client_private_key: Path | None = key(
        "The private key of the client certificate.", name="client-private-key"
    )


class EventOtlp(Section):
    """`[otel.exporter.otlp-http]`"""

    endpoint: str | None = key("The address for events; nothing is appended to it.")
    protocol: Literal["binary", "json"] | None = key("The encoding of events.")
    headers: Mapping[str, Secret] = table("Headers of the requests.")
    tls: Tls = table()


class EventExporter(Section):
    """`[otel.exporter]`"""

    otlp_http: EventOtlp = table(name="otlp-http")
    others: Mapping[str, Any] = rest("Other exporters, which are refused.")


class SpanOtlp(Section):
    """`[otel.trace_exporter.otlp-http]`"""

    endpoint: str | None = key("The address for spans; nothing is appended to it.")
    protocol: Literal["binary", "json"] | None = key("The encoding of spans.")
    headers: Mapping[str, Secret] = table("Headers of the requests.")
    tls: Tls = table()


class SpanExporter(Section):
    """`[otel.trace_exporter]`"""

    otlp_http: SpanOtlp = table(name="otlp-http")
    others: Mapping[str, Any] = rest("Other exporters, which are refused.")


class MetricOtlp(Section):
    """`[otel.metrics_exporter.otlp-http]`"""

    endpoint: str | None = key("The address for metrics; nothing is appended to it.")
    protocol: Literal["binary", "json"] | None = key("The encoding of metrics.")
    headers: Mapping[str, Secret] = table("Headers of the requests.")
    tls: Tls = table()


class MetricExporter(Section):
    """`[otel.metrics_exporter]`"""

    otlp_http: MetricOtlp = table(name="otlp-http")
    others: Mapping[str, Any] = rest("Other exporters, which are refused.")


ExporterSetting: TypeAlias = (
    Literal["none", "statsig"] | EventExporter | SpanExporter | MetricExporter
)
"""The value of a key that has an exporter."""

"""`[otel]`: its keys, and the feature that they ask for, whose packages need not be installed. LIGHT."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any, Final, Literal

from codex_py.api.program import DISTRIBUTION
from codex_py.api.tables import (
    ClaimedTable,
    ConfigError,
    Feature,
    SessionSetup,
    key,
    rest,
)
from codex_py.extensions.otel.keys import (
    EventExporter,
    ExporterSetting,
    MetricExporter,
    SpanExporter,
)
from codex_py.extensions.otel.settings import exporters_of

_PACKAGES: Final = (
    "requests",
    "google",
    "google.protobuf",
    "opentelemetry",
    "opentelemetry.sdk",
)


class Otel(ClaimedTable):
    """`[otel]`"""

    environment: str | None = key("The attribute `env` of all exported data (`dev`).")
    log_user_prompt: bool | None = key("Export the text of prompts with events.")
    log_tool_output: bool | None = key(
        "Export the arguments and outputs of calls with events."
    )
    exporter: Literal["none", "statsig"] | EventExporter | None = key(
        "The exporter of events."
    )
    trace_exporter: Literal["none", "statsig"] | SpanExporter | None = key(
        "The exporter of spans."
    )
    metrics_exporter: Literal["none", "statsig"] | MetricExporter | None = key(
        "The exporter of metrics."
    )
    others: Mapping[str, Any] = rest(harmless=())

    @property
    def exporters(self) -> Mapping[str, ExporterSetting | None]:
        """The settings of all exporters by their keys."""
        return {
            "exporter": self.exporter,
            "trace_exporter": self.trace_exporter,
            "metrics_exporter": self.metrics_exporter,
        }

    @property
    def has_exporter(self) -> bool:
        return any(each not in {None, "none"} for each in self.exporters.values())

    def feature(self, setup: SessionSetup) -> Feature | None:
        """Make the feature that exports what the table asks for; None if it asks for nothing.

        Raises:
            ConfigError: the packages of the extra are not installed, or an exporter cannot be used.
        """
        if not self.has_exporter:
            return None
        require_packages()
        from codex_py.extensions.otel.spans import Telemetry  # 150 ms

        return Telemetry(
            setup,
            exporters=dict(exporters_of(self.exporters, setup.warn)),
            environment=self.environment,
            log_prompt=self.log_user_prompt is True,
            log_output=self.log_tool_output is True,
        )


def require_packages() -> None:
    """Raise a `ConfigError` if the packages of the extra are not installed."""
    if any(find_spec(package) is None for package in _PACKAGES):
        text = f"`[otel]` needs OpenTelemetry: pip install '{DISTRIBUTION}[otel]'"
        raise ConfigError(text, key=("otel",))

"""Makes the feature for `[otel]`, whose packages need not be installed."""

from importlib.util import find_spec
from typing import Final

from codex_py.app.options import SessionSetup
from codex_py.errors import ConfigError
from codex_py.protocol.extension import Feature
from codex_py.version import DISTRIBUTION

_PACKAGES: Final = (
    "requests",
    "google",
    "google.protobuf",
    "opentelemetry",
    "opentelemetry.sdk",
)


def telemetry(setup: SessionSetup) -> Feature:
    """Make the feature that exports what `[otel]` asks for.

    Raises:
        ConfigError: the packages of the extra are not installed, or an exporter cannot be used.
    """
    require_packages()
    from codex_py.app.features.otel.spans import Telemetry  # 150 ms

    return Telemetry(setup)


def require_packages() -> None:
    """Raises a `ConfigError` if the packages of the extra are not installed."""
    if any(find_spec(package) is None for package in _PACKAGES):
        text = f"`[otel]` needs OpenTelemetry: pip install '{DISTRIBUTION}[otel]'"
        raise ConfigError(text, key=("otel",))

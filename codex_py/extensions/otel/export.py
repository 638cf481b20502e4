"""Connects to the SDK of OpenTelemetry and its OTLP/HTTP exporters."""

# pyright: basic, reportMissingImports=false
# The packages belong to an extra, and are absent if it is not installed.

import asyncio
import json
from base64 import b64decode
from collections.abc import Mapping
from contextlib import suppress
from http.cookiejar import DefaultCookiePolicy
from logging import NullHandler, getLogger
from threading import Thread
from typing import Any, Final, cast

import requests
from google.protobuf.json_format import MessageToDict
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
)
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
)
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from codex_py.api.addresses import shown_url
from codex_py.extensions.otel.settings import Exporter

_END_S: Final = 1.0
"""The time that the end of a session waits for all its exporters together."""
_TYPE: Final = "content-type"
_IDS: Final = ("traceId", "spanId", "parentSpanId")
_KINDS: Final = {
    "traces": (OTLPSpanExporter, ExportTraceServiceRequest),
    "logs": (OTLPLogExporter, ExportLogsServiceRequest),
    "metrics": (OTLPMetricExporter, ExportMetricsServiceRequest),
}
"""The SDK's exporter for each kind of signal, and the type of the messages that it sends."""


class Exports:
    """The providers of a session. None of them becomes the global one of the process.

    Args:
        exporters: the destinations by the kind of signal: `traces`, `logs` or `metrics`.
        resource: the attributes of the program, which all data carry.

    Raises:
        ValueError: a variable of the SDK cannot be read.
    """

    def __init__(
        self,
        exporters: Mapping[str, Exporter],
        resource: Mapping[str, str],
    ) -> None:
        # `failure` has the failures; nothing is printed.
        getLogger("opentelemetry").addHandler(NullHandler())
        self._posts: list[_Post] = []
        options: Any = {
            "resource": Resource.create(dict(resource)),
            "shutdown_on_exit": False,
        }
        self.traces = TracerProvider(**options)
        self.logs = LoggerProvider(**options)
        readers = []
        for signal, exporter in exporters.items():
            sdk_exporter = self._sdk_exporter(signal, exporter)
            match signal:
                case "traces":
                    self.traces.add_span_processor(BatchSpanProcessor(sdk_exporter))
                case "logs":
                    processor = BatchLogRecordProcessor(sdk_exporter)
                    self.logs.add_log_record_processor(processor)
                case _:
                    readers.append(PeriodicExportingMetricReader(sdk_exporter))
        self.metrics = MeterProvider(readers, **options)

    @property
    def failure(self) -> str | None:
        """The reason why the last export failed; None if it succeeded."""
        for post in self._posts:
            if post.failure:
                return post.failure
        return None

    async def aclose(self) -> None:
        """Export the remaining data.

        An exporter that does not answer within a second is abandoned.
        """
        loop = asyncio.get_running_loop()
        ended = asyncio.Event()
        providers = [self.traces, self.logs, self.metrics]
        for post in self._posts:
            post.is_last = True

        def shut_down(provider: Any) -> None:
            provider.shutdown()
            providers.remove(provider)
            if not providers:
                # If the loop is closed, nobody waits any more.
                with suppress(RuntimeError):
                    loop.call_soon_threadsafe(ended.set)

        for provider in [*providers]:
            # The program ends without waiting for threads of this kind.
            ending = Thread(target=shut_down, args=(provider,), daemon=True)
            ending.start()
        try:
            async with asyncio.timeout(_END_S):
                await ended.wait()
        except TimeoutError:
            for post in self._posts:
                post.failure = post.failure or post.pending

    def _sdk_exporter(self, signal: str, exporter: Exporter) -> Any:
        make, message = _KINDS[signal]
        post = _Post(message if exporter.is_json else None)
        self._posts.append(post)
        return make(
            endpoint=exporter.endpoint,
            headers=dict(exporter.headers),
            compression=Compression.NoCompression,
            session=post,
            **exporter.certificates,
        )


class _Post(requests.Session):
    """Sends the encoded data of an exporter.

    Args:
        message: the type of the messages, to send them as JSON; None to send them as they are.
    """

    def __init__(self, message: Any) -> None:
        super().__init__()
        # The cookies of a collector would add up.
        self.cookies.set_policy(DefaultCookiePolicy(allowed_domains=()))
        self._message = message
        self.failure: str | None = None
        """The failure of the last request; `pending` while a request is running."""
        self.pending: str | None = None
        self.is_last = False
        """True at the end of the session, when no request is tried again."""

    def get_redirect_target(self, resp: requests.Response) -> None:
        """Follow no redirect: collectors send none, and the answer's body would be read."""

    def request(self, method: str, url: str, **options: Any) -> requests.Response:
        """Send a request and keep its failure. The body of the response is empty."""
        shown = shown_url(url)
        self.pending = f"{shown} does not answer"
        try:
            if self._message is not None:
                options |= self._in_json(options["data"], options["headers"])
            response = super().request(method, url, **options, stream=True)
        except (OSError, ValueError) as error:
            self.failure = f"{shown} cannot be reached ({type(error).__name__})"
            if self.is_last:
                # Only an error of the connection would be tried again.
                raise InterruptedError(self.failure) from error
            raise
        finally:
            self.pending = None
        # Only the status counts, and the body may have no end.
        response._content = b""
        response.close()
        self.failure = None
        if not 200 <= response.status_code < 300:
            self.failure = f"{shown} answers with status {response.status_code}"
        return response

    def _in_json(
        self,
        data: bytes,
        headers: Mapping[str, str],
    ) -> dict[str, Any]:
        """Return the data and the headers of a request that sends the same message as JSON."""
        message = self._message.FromString(data)
        fields = MessageToDict(message, use_integers_for_enums=True)
        others = {
            name: value for name, value in headers.items() if name.lower() != _TYPE
        }
        return {
            "data": json.dumps(_with_hex_ids(fields)).encode(),
            "headers": {**others, _TYPE: "application/json"},
        }


def _with_hex_ids(value: Any) -> Any:
    """Convert ids to hexadecimal, which OTLP's JSON has where Protobuf's JSON has Base64.

    See https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding.
    """
    match value:
        case dict():
            converted: dict[str, Any] = {}
            for key, each in cast("dict[str, Any]", value).items():
                if key in _IDS:
                    converted[key] = b64decode(each).hex()
                else:
                    converted[key] = _with_hex_ids(each)
            return converted
        case list():
            return [_with_hex_ids(each) for each in value]
        case _:
            return value

"""Connects to the SDK of OpenTelemetry and its OTLP/HTTP exporters.

The shutdown takes at most a second.
"""

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

from codex_py.app.features.otel.settings import Exporter
from codex_py.protocol.addresses import shown_url

_END_S: Final = 1.0
"""The time that the end of a session waits for all its exporters together."""
_TYPE: Final = "content-type"
_IDS: Final = ("traceId", "spanId", "parentSpanId")


class Exports:
    """The providers of a session. None of them becomes the global one of the process."""

    def __init__(
        self, exporters: Mapping[str, Exporter], resource: Mapping[str, str]
    ) -> None:
        # `failure` has the failures; nothing is printed.
        getLogger("opentelemetry").addHandler(NullHandler())
        self._posts: list[_Post] = []
        about: Any = {
            "resource": Resource.create(dict(resource)),
            "shutdown_on_exit": False,
        }
        self.traces = TracerProvider(**about)
        self.logs = LoggerProvider(**about)
        readers = []
        for signal, exporter in exporters.items():
            match signal:
                case "traces":
                    spans = self._made(
                        OTLPSpanExporter, exporter, ExportTraceServiceRequest
                    )
                    self.traces.add_span_processor(BatchSpanProcessor(spans))
                case "logs":
                    records = self._made(
                        OTLPLogExporter, exporter, ExportLogsServiceRequest
                    )
                    self.logs.add_log_record_processor(BatchLogRecordProcessor(records))
                case _:
                    values = self._made(
                        OTLPMetricExporter, exporter, ExportMetricsServiceRequest
                    )
                    readers.append(PeriodicExportingMetricReader(values))
        self.metrics = MeterProvider(readers, **about)

    @property
    def failure(self) -> str | None:
        """The reason why the last export failed; None if it succeeded."""
        return next((post.failure for post in self._posts if post.failure), None)

    async def aclose(self) -> None:
        """Export the remaining data. An exporter that does not answer in time is abandoned."""
        loop = asyncio.get_running_loop()
        ended = asyncio.Event()
        providers = [self.traces, self.logs, self.metrics]
        for post in self._posts:
            post.is_last = True

        def shut_down(provider: Any) -> None:
            provider.shutdown()
            providers.remove(provider)
            if not providers:
                with suppress(
                    RuntimeError
                ):  # The loop is closed: nobody waits any more.
                    loop.call_soon_threadsafe(ended.set)

        for provider in [*providers]:
            # The program ends without waiting for threads of this kind.
            Thread(target=shut_down, args=(provider,), daemon=True).start()
        try:
            async with asyncio.timeout(_END_S):
                await ended.wait()
        except TimeoutError:
            for post in self._posts:
                post.failure = post.failure or post.pending

    def _made(
        self,
        make: Any,
        exporter: Exporter,
        message: Any,
    ) -> Any:
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

    `message`: the type of the data, if it is sent as JSON.
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

    def get_redirect_target(self, resp: requests.Response) -> None:
        """Follow no redirect: collectors send none, and the answer's body would be read."""

    def request(
        self,
        method: str,
        url: str,
        **options: Any,
    ) -> requests.Response:
        shown = shown_url(url)
        self.pending = f"{shown} does not answer"
        try:
            if self._message is not None:
                message = self._message.FromString(options["data"])
                data = _with_hex_ids(
                    MessageToDict(message, use_integers_for_enums=True)
                )
                headers = {
                    name: value
                    for name, value in options["headers"].items()
                    if name.lower() != _TYPE
                }
                options["headers"] = {**headers, _TYPE: "application/json"}
                options["data"] = json.dumps(data).encode()
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
        ok = 200 <= response.status_code < 300
        if ok:
            self.failure = None
        else:
            self.failure = f"{shown} answers with status {response.status_code}"
        return response


def _with_hex_ids(value: Any) -> Any:
    """Convert ids to hexadecimal, which OTLP's JSON has where Protobuf's JSON has Base64.

    See https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding.
    """
    match value:
        case dict():
            made: dict[str, Any] = {}
            for key, each in cast("dict[str, Any]", value).items():
                if key in _IDS:
                    made[key] = b64decode(each).hex()
                else:
                    made[key] = _with_hex_ids(each)
            return made
        case list():
            return [_with_hex_ids(each) for each in value]
        case _:
            return value

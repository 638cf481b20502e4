"""An OTLP/HTTP collector on this machine that reads what real ones read."""

# pyright: basic, reportMissingImports=false

import gzip
import json
import threading
from base64 import b64encode
from collections.abc import Callable
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

import pytest

json_format = pytest.importorskip("google.protobuf.json_format")
pytest.importorskip("opentelemetry.exporter.otlp.proto.http")

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (  # noqa: E402
    ExportLogsServiceRequest,
)
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (  # noqa: E402
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (  # noqa: E402
    ExportTraceServiceRequest,
)

_MESSAGES = {
    "/v1/traces": ExportTraceServiceRequest,
    "/v1/metrics": ExportMetricsServiceRequest,
    "/v1/logs": ExportLogsServiceRequest,
}


class Collector:
    """Keeps what is exported. `status` is that of its answers; a `silent` one never answers; `answer` answers in its
    place."""

    def __init__(
        self,
        *,
        status: int = 200,
        silent: bool = False,
        answer: Callable[[BaseHTTPRequestHandler], None] | None = None,
    ) -> None:
        self.received: list[tuple[str, Any]] = []
        self.bodies: list[bytes] = []
        self.headers: list[Message] = []
        ended = self._ended = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if silent:
                    ended.wait(60)
                    self.close_connection = True
                    return
                if self.headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                outer.take(self.path, body, self.headers)
                if answer is not None:
                    self.close_connection = True
                    answer(self)
                    return
                self.send_response(status)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._server.shutdown()
        self._server.server_close()

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}{path}"

    def config(self, protocol: str = "binary", more: str = "") -> str:
        """`[otel]` with everything exported to this."""
        keys = {
            "exporter": "logs",
            "trace_exporter": "traces",
            "metrics_exporter": "metrics",
        }
        lines = [
            f'{key} = {{ otlp-http = {{ endpoint = "{self.url(f"/v1/{signal}")}",'
            f' protocol = "{protocol}", headers = {{ x-team = "blue" }} }} }}'
            for key, signal in keys.items()
        ]
        return "\n".join(["[otel]", *lines, more, ""])

    def take(self, path: str, body: bytes, headers: Message) -> None:
        message = _MESSAGES[path]()
        if headers["Content-Type"] == "application/json":
            json_format.ParseDict(_with_base64(json.loads(body)), message)
        else:
            assert headers["Content-Type"] == "application/x-protobuf"
            message.ParseFromString(body)
        self.received.append((path, message))
        self.bodies.append(body)
        self.headers.append(headers)

    @property
    def resource(self) -> dict[str, Any]:
        _, message = self.received[0]
        kind = next(iter(message.DESCRIPTOR.fields_by_name))
        return _attributes(getattr(message, kind)[0].resource.attributes)

    @property
    def spans(self) -> list[dict[str, Any]]:
        return [
            {
                "name": span.name,
                "trace": span.trace_id.hex(),
                "id": span.span_id.hex(),
                "parent": span.parent_span_id.hex(),
                "failed": span.status.code == 2,
                "ns": span.end_time_unix_nano - span.start_time_unix_nano,
                **_attributes(span.attributes),
            }
            for path, message in self.received
            if path == "/v1/traces"
            for resource in message.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    def span(self, name: str) -> dict[str, Any]:
        (found,) = [span for span in self.spans if span["name"] == name]
        return found

    @property
    def logs(self) -> list[dict[str, Any]]:
        return [
            {"trace": record.trace_id.hex(), **_attributes(record.attributes)}
            for path, message in self.received
            if path == "/v1/logs"
            for resource in message.resource_logs
            for scope in resource.scope_logs
            for record in scope.log_records
        ]

    def log(self, name: str) -> dict[str, Any]:
        return next(log for log in self.logs if log["event.name"] == name)

    @property
    def metrics(self) -> list[dict[str, Any]]:
        return [
            {
                "name": metric.name,
                "sum": point.sum,
                "n": point.count,
                **_attributes(point.attributes),
            }
            for path, message in self.received
            if path == "/v1/metrics"
            for resource in message.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
            for point in metric.histogram.data_points
        ]


def _attributes(pairs: Any) -> dict[str, Any]:
    return {
        pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in pairs
    }


def _with_base64(value: Any) -> Any:
    """What JSON of OTLP has in hexadecimal, as the parser of Protobuf wants it."""
    match value:
        case dict():
            return {
                k: b64encode(bytes.fromhex(v)).decode()
                if k in {"traceId", "spanId", "parentSpanId"}
                else _with_base64(v)
                for k, v in value.items()
            }
        case list():
            return [_with_base64(each) for each in value]
        case _:
            return value

"""An MCP server at an address, which answers what a test tells it to."""

import gzip
import json
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class HttpMcpServer:
    url: str = ""
    stream: bool = False
    """Answer with an event stream instead of JSON."""
    refuse: int | None = None
    """Answer every POST with this status."""
    forget: bool = False
    """Know no session but new ones, until the next `initialize`."""
    forgetful_answer: tuple[int, bytes] = (404, b"")
    """What is said then."""
    refuse_calls: int | None = None
    """Answer every call of a tool with this status."""
    result_bytes: int = 0
    """Length of what `echo` adds to its answer."""
    instead: bytes | None = None
    """The body of every answer that would be a message."""
    encoding: str | None = None
    """The `content-encoding` of every answer; those with a message are packed with `pack` then."""
    pack: Callable[[bytes], bytes] = gzip.compress
    requests: list[tuple[str, dict[str, str], str]] = field(
        default_factory=list[tuple[str, dict[str, str], str]]
    )
    """HTTP method, headers with names in lower case, and the method of the message."""

    def refusal(self, method: str, request_id: int | None) -> tuple[int, bytes] | None:
        """A status and a body, in which `null` becomes the id of the request."""
        if self.refuse is not None:
            return self.refuse, b""
        if self.refuse_calls is not None and method == "tools/call":
            return self.refuse_calls, b""
        if not self.forget:
            return None
        status, body = self.forgetful_answer
        return status, body.replace(
            b'"id": null', b'"id": %s' % json.dumps(request_id).encode()
        )

    def body_instead_of(self, message: bytes) -> bytes:
        body = message if self.instead is None else self.instead
        return body if self.encoding is None else self.pack(body)

    def sent(self, method: str) -> list[dict[str, str]]:
        """The headers of the requests of one method, HTTP's or MCP's."""
        return [
            headers for http, headers, mcp in self.requests if method in {http, mcp}
        ]


@contextmanager
def http_mcp_server(**settings: Any) -> Generator[HttpMcpServer]:
    state = HttpMcpServer(**settings)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            method = body.get("method", "")
            self._note(method)
            if method == "initialize":
                state.forget = False
            if (refusal := state.refusal(method, body.get("id"))) is not None:
                self._send(*refusal, "application/json")
            elif "id" not in body:
                self._send(202, b"", "text/plain")
            else:
                answer = {
                    "jsonrpc": "2.0",
                    "id": body["id"],
                    "result": result(state, body),
                }
                data = json.dumps(answer).encode()
                if state.stream:
                    data = b"event: message\ndata: " + data + b"\n\n"
                self._send(
                    200,
                    data,
                    "text/event-stream" if state.stream else "application/json",
                )

        def do_GET(self) -> None:
            self._note("")
            self._send(405, b"", "text/plain")

        def do_DELETE(self) -> None:
            self._note("")
            self._send(200, b"", "text/plain")

        def log_message(self, format: str, *args: Any) -> None:
            pass

        def _note(self, method: str) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            state.requests.append((self.command, headers, method))

        def _send(self, status: int, data: bytes, kind: str) -> None:
            data = data and state.body_instead_of(data)
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(data)))
            self.send_header("mcp-session-id", "s1")
            if state.encoding is not None:
                self.send_header("content-encoding", state.encoding)
            self.end_headers()
            self.wfile.write(data)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        state.url = f"http://127.0.0.1:{server.server_address[1]}/mcp"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield state
        finally:
            server.shutdown()
            thread.join()


def result(state: HttpMcpServer, message: dict[str, Any]) -> dict[str, Any]:
    match message["method"]:
        case "initialize":
            return {
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "http", "version": "1"},
            }
        case "ping":
            return {}
        case "tools/list":
            return {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}
        case _:
            text = json.dumps(message["params"]["arguments"]) + "x" * state.result_bytes
            return {"content": [{"type": "text", "text": text}]}

"""A loopback server that answers requests of the Responses API from a script, and watches them.

Every request is checked for what must hold of all requests of an agent: each call in the input has exactly one
output, behind it, and each output its call; and the input begins with the input of the request
before it of the same thread. What breaks this is answered with status 400, and raised when the
server is closed.
"""

import json
import socket
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Self, TypeAlias, cast

from codex_py.testing.events import sse

_CALLS = {"function_call", "custom_tool_call", "local_shell_call"}
_OUTPUTS = {"function_call_output", "custom_tool_call_output"}
_TIMEOUT_S = 60.0
"""After which a connection that says nothing is closed: a test should fail rather than hang."""


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    method: str
    path: str
    headers: Mapping[str, str]
    """Names in lower case."""
    raw: bytes

    @property
    def body(self) -> dict[str, Any]:
        return json.loads(self.raw)

    @property
    def input(self) -> list[dict[str, Any]]:
        return self.body["input"]

    def output(self, call_id: str) -> Any:
        """What a call was answered with.

        Raises:
            StopIteration: there is no such output.
        """
        return next(
            item["output"]
            for item in self.input
            if item.get("type") in _OUTPUTS and item["call_id"] == call_id
        )


@dataclass(frozen=True, slots=True)
class Pause:
    """A place in a reply where the server waits until a test sets the event."""

    until: threading.Event = field(default_factory=threading.Event)
    reached: threading.Event = field(default_factory=threading.Event)
    """Set by the server when it gets here; all before it has been sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A reply in full detail; a bare list of events is `Reply(events=…)`."""

    events: Sequence[Mapping[str, Any] | Pause] = ()
    body: bytes | None = None
    """In place of events; sent as it is."""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    cut: bool = False
    """Drop the connection where the body should end."""
    chunk_each: bool = False
    """One HTTP chunk for each event, as live servers send them."""


Script: TypeAlias = (
    Sequence[Mapping[str, Any] | Pause] | Reply | Callable[[RecordedRequest], "Script"]
)


class ScriptedServer:
    """Plays one reply of the script for each request, in order. Use it as a context manager.

    Attributes:
        requests: what has come in, oldest first.
        violations: what broke the rules above.
    """

    def __init__(self, script: Iterable[Script] = (), *, check_prefix: bool = True) -> None:
        """`check_prefix`: turn it off where the history is replaced on purpose (compaction)."""
        self._script = list(script)
        self._check_prefix = check_prefix
        self._lock = threading.Lock()
        self._last_input: dict[str, list[Any]] = {}
        self._connections: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.requests: list[RecordedRequest] = []
        self.violations: list[str] = []
        self.port: int = self._listener.getsockname()[1]

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def config_toml(self, **provider: Any) -> str:
        """A configuration that sends codex-py, or Codex, here.

        Further arguments are keys of the provider, such as `request_max_retries=0`. The key is read
        from the variable `MOCK_KEY`.
        """
        keys = {
            "name": "mock",
            "base_url": self.base_url,
            "env_key": "MOCK_KEY",
            "wire_api": "responses",
            **provider,
        }
        lines = [f"{key} = {json.dumps(value)}" for key, value in keys.items()]
        return "\n".join(
            ['model = "gpt-5.5"', 'model_provider = "mock"', "[model_providers.mock]", *lines, ""]
        )

    def add(self, *replies: Script) -> None:
        """Lengthen the script while the server runs."""
        with self._lock:
            self._script += replies

    def start(self) -> None:
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Stop, and drop all connections.

        Raises:
            AssertionError: a request broke the rules.
        """
        self._listener.close()
        with self._lock:
            for connection in self._connections:
                _shut(connection)
        if self.violations:
            raise AssertionError("\n".join(self.violations))

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        try:
            self.close()
        except AssertionError:
            # What a test itself found out says more.
            if error is None:
                raise

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            connection.settimeout(_TIMEOUT_S)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                self._connections.add(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        # The client may leave at any time, which a test may want it to.
        with suppress(OSError), connection, connection.makefile("rb") as reader:
            while (request := _read_request(reader)) is not None:
                if not _send(connection, self._reply(request)):
                    break
        with self._lock:
            self._connections.discard(connection)

    def _reply(self, request: RecordedRequest) -> Reply:
        if request.method == "GET":
            # Codex asks for a WebSocket first; this sends it back to HTTP at once.
            return Reply(status=426, body=b"")
        with self._lock:
            self.requests.append(request)
            problem = self._problem(request)
            if problem is not None:
                self.violations.append(f"request {len(self.requests)}: {problem}")
                return _error(400, problem)
            if not self._script:
                return _error(500, "the script is at its end")
            script = self._script.pop(0)
        while callable(script):
            script = script(request)
        return script if isinstance(script, Reply) else Reply(events=script)

    def _problem(self, request: RecordedRequest) -> str | None:
        try:
            body = request.body
        except ValueError:
            return "the body is not JSON"
        items = body.get("input")
        if not isinstance(items, list):
            return "the input is no list"
        history = cast("list[dict[str, Any]]", items)
        if (problem := pairing_problem(history)) is not None:
            return problem
        thread = str(body.get("prompt_cache_key"))
        before = self._last_input.get(thread, [])
        self._last_input[thread] = history
        if self._check_prefix and history[: len(before)] != before:
            at = next(
                (n for n, (a, b) in enumerate(zip(before, history, strict=False)) if a != b),
                len(history),
            )
            return f"the input does not begin with the last one: they differ at item {at}"
        return None


def pairing_problem(items: Iterable[Mapping[str, Any]]) -> str | None:
    """What is wrong with the calls and outputs of an input; None if nothing is.

    They are paired by place: an output answers the earliest open call of its id.
    """
    open_calls: list[str] = []
    for item in items:
        # The oldest form of a local shell call is answered under its `id`.
        call_id = str(item.get("call_id") or item.get("id"))
        if item.get("type") in _CALLS:
            open_calls.append(call_id)
        elif item.get("type") in _OUTPUTS:
            if call_id not in open_calls:
                return f"an output without its call: {call_id!r}"
            open_calls.remove(call_id)
    return f"calls without output: {open_calls!r}" if open_calls else None


def _read_request(reader: Any) -> RecordedRequest | None:
    start = reader.readline().decode("latin-1").split()
    if len(start) != 3:
        return None
    headers: dict[str, str] = {}
    while (line := reader.readline().decode("latin-1").strip()) != "":
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    raw = reader.read(int(headers.get("content-length", "0")))
    return RecordedRequest(start[0], start[1], headers, raw)


def _send(connection: socket.socket, reply: Reply) -> bool:
    """Whether the connection can be used again."""
    streamed = reply.body is None
    headers = {"content-type": "text/event-stream" if streamed else "application/json"}
    headers |= {name.lower(): value for name, value in reply.headers.items()}
    if streamed:
        headers["transfer-encoding"] = "chunked"
    elif not reply.cut:
        headers["content-length"] = str(len(reply.body or b""))
    head = f"HTTP/1.1 {reply.status} Scripted\r\n"
    head += "".join(f"{name}: {value}\r\n" for name, value in headers.items()) + "\r\n"
    if not streamed:
        connection.sendall(head.encode("latin-1") + (reply.body or b""))
    else:
        connection.sendall(head.encode("latin-1"))
        for piece in _pieces(reply):
            if isinstance(piece, Pause):
                piece.reached.set()
                piece.until.wait(_TIMEOUT_S)
            else:
                connection.sendall(piece)
        if not reply.cut:
            connection.sendall(b"0\r\n\r\n")
    if reply.cut:
        _shut(connection)
    return not reply.cut


def _pieces(reply: Reply) -> list[bytes | Pause]:
    """The chunks of a body: one for each event, or one for all between two pauses."""
    pieces: list[bytes | Pause] = []
    waiting: list[bytes] = []

    def flush() -> None:
        if waiting:
            data = b"".join(waiting)
            pieces.append(data if reply.chunk_each else _chunk(data))
            waiting.clear()

    for event in reply.events:
        if isinstance(event, Pause):
            flush()
            pieces.append(event)
        else:
            waiting.append(_chunk(sse([event])) if reply.chunk_each else sse([event]))
    flush()
    return pieces


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def _error(status: int, message: str) -> Reply:
    error = {"error": {"message": message, "type": "scripted_server", "code": None}}
    return Reply(status=status, body=json.dumps(error).encode())


def _shut(connection: socket.socket) -> None:
    # It may be closed already.
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)

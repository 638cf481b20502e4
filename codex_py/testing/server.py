"""A loopback server that answers requests of the Responses API from a script, and watches them.

Every request is checked for what must hold of all requests of an agent: each call in the input has
exactly one output, behind it, and each output its call; and the input begins with the input of the
request before it of the same thread. What breaks this is answered with status 400, and raised when
the server is closed.
"""

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from io import BufferedReader
from typing import Any, Self, TypeAlias, cast

from codex_py.testing.invariants import OUTPUTS, pairing_problem, prefix_problem
from codex_py.testing.reply import Part, Pause, RenderedReply, Reply

_IDLE_S = 60.0
"""A silent connection is closed after this time: a test should fail rather than hang."""


@dataclass(frozen=True)
class RecordedRequest:
    method: str
    path: str
    """With its query."""
    headers: Mapping[str, str]
    """Names in lower case."""
    raw: bytes
    received_s: float
    """When its head was complete, on the clock of `time.monotonic`."""

    @cached_property
    def body(self) -> dict[str, Any]:
        """
        Raises:
            ValueError: the body is not JSON.
        """
        return json.loads(self.raw)

    @property
    def input(self) -> list[dict[str, Any]]:
        return self.body["input"]

    def output(self, call_id: str) -> Any:
        """The output of a call; the first one, if its id was used again.

        Raises:
            LookupError: there is no such output.
        """
        for item in self.input:
            if item.get("type") in OUTPUTS and item["call_id"] == call_id:
                return item["output"]
        raise LookupError(f"no output for {call_id!r}")


Script: TypeAlias = Sequence[Part] | bytes | Reply | Callable[[RecordedRequest], "Script"]
"""One reply. Bytes are a whole stream; a function may look at the request, and wait."""


class ScriptedServer:
    """Plays one reply of the script for each POST, in order. Use it as a context manager.

    It serves every connection in its own thread and keeps connections alive. It answers a handshake for a
    WebSocket with 426, so that Codex continues over HTTP at once.

    Attributes:
        requests: the POSTs that have come in, oldest first.
        violations: the broken rules, one sentence each.
    """

    def __init__(
        self,
        script: Iterable[Script] = (),
        *,
        port: int = 0,
        check_calls: bool = True,
        check_prefix: bool = True,
        each_thread: bool = False,
        watch: Callable[[RecordedRequest, str | None], None] | None = None,
    ) -> None:
        """
        Args:
            port: 0 is a free one.
            check_prefix: turn it off where the history is replaced on purpose (compaction).
            each_thread: play the whole script for every thread, told apart by their
                `prompt_cache_key`, instead of once.
            watch: gets every POST as it comes, and what is wrong with it.

        Raises:
            OSError: the port is taken.
        """
        self._script: list[RenderedReply | Callable[[RecordedRequest], Script]] = []
        self._check_calls = check_calls
        self._check_prefix = check_prefix
        self._each_thread = each_thread
        self._watch = watch
        self._lock = threading.Lock()
        self._played: dict[str, int] = {}
        self._last_input: dict[str, list[Any]] = {}
        self._connections: set[socket.socket] = set()
        self._pauses: list[Pause] = []
        self._listener = socket.create_server(("127.0.0.1", port), backlog=128)
        self._acceptor = threading.Thread(target=self._accept, daemon=True)
        self.requests: list[RecordedRequest] = []
        self.violations: list[str] = []
        self.port: int = self._listener.getsockname()[1]
        self.add(*script)

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
        lines = [f"{key} = {_toml(value)}" for key, value in keys.items()]
        return "\n".join(
            ['model = "gpt-5.5"', 'model_provider = "mock"', "[model_providers.mock]", *lines, ""]
        )

    def add(self, *replies: Script) -> None:
        """Lengthen the script, also while the server runs."""
        ready = [reply if callable(reply) else _rendered(reply) for reply in replies]
        with self._lock:
            self._script += ready

    def start(self) -> None:
        self._acceptor.start()

    def close(self) -> None:
        """Stop, end all pauses and drop all connections.

        Raises:
            AssertionError: a request broke the rules.
        """
        # On Linux closing alone does not wake a thread that waits in accept().
        _shut(self._listener)
        self._listener.close()
        if self._acceptor.is_alive():
            self._acceptor.join()
        with self._lock:
            for connection in self._connections:
                _shut(connection)
            for pause in self._pauses:
                pause.until.set()
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
            connection.settimeout(_IDLE_S)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                self._connections.add(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            with connection, connection.makefile("rb") as reader:
                while (request := _read_request(reader)) is not None:
                    if not self._reply(request).send(connection):
                        break
                _shut(connection)
        except OSError:
            pass  # the client left, which a test may want it to
        finally:
            with self._lock:
                self._connections.discard(connection)

    def _reply(self, request: RecordedRequest) -> RenderedReply:
        if request.method != "POST":
            upgrade = "upgrade" in request.headers
            return _error(426, "no WebSockets here") if upgrade else _error(404, "nothing here")
        with self._lock:
            self.requests.append(request)
            problem = self._problem(request)
            if self._watch is not None:
                self._watch(request, problem)
            if problem is not None:
                self.violations.append(f"request {len(self.requests)}: {problem}")
                return _error(400, problem)
            thread = _thread(request) if self._each_thread else ""
            place = self._played.get(thread, 0)
            if place == len(self._script):
                return _error(500, "the script is at its end")
            self._played[thread] = place + 1
            script = self._script[place]
        while not isinstance(script, RenderedReply):
            answer = script(request)
            script = answer if callable(answer) else _rendered(answer)
        with self._lock:
            self._pauses += script.pauses
        return script

    def _problem(self, request: RecordedRequest) -> str | None:
        is_checked = self._check_calls or self._check_prefix
        if not is_checked or not request.path.partition("?")[0].endswith("/responses"):
            return None
        try:
            history = _history(request)
        except ValueError as error:
            return str(error)
        if self._check_calls and (problem := pairing_problem(history)) is not None:
            return problem
        thread = _thread(request)
        before = self._last_input.get(thread, [])
        self._last_input[thread] = history
        return prefix_problem(before, history) if self._check_prefix else None


def _history(request: RecordedRequest) -> list[dict[str, Any]]:
    """
    Raises:
        ValueError: the body has no list of items; the text says why.
    """
    try:
        items = request.body.get("input")
    except ValueError as error:
        raise ValueError(f"the body is not JSON: {error}") from error
    if not isinstance(items, list) or any(not isinstance(i, dict) for i in cast("Any", items)):
        raise ValueError("the input is no list of objects")
    return cast("list[dict[str, Any]]", items)


def _thread(request: RecordedRequest) -> str:
    return str(request.body.get("prompt_cache_key"))


def _rendered(script: Sequence[Part] | bytes | Reply) -> RenderedReply:
    if isinstance(script, bytes):
        script = [script]
    return RenderedReply(script if isinstance(script, Reply) else Reply(events=script))


def _read_request(reader: BufferedReader) -> RecordedRequest | None:
    """None at the end of the connection."""
    start = reader.readline().decode("latin-1").split()
    if len(start) != 3:
        return None
    headers: dict[str, str] = {}
    while (line := reader.readline().decode("latin-1").strip()) != "":
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    received_s = time.monotonic()
    raw = reader.read(int(headers.get("content-length", "0")))
    return RecordedRequest(start[0], start[1], headers, raw, received_s)


def _error(status: int, message: str) -> RenderedReply:
    error = {"error": {"message": message, "type": "scripted_server", "code": None}}
    return RenderedReply(Reply(status=status, body=json.dumps(error).encode()))


def _toml(value: object) -> str:
    if isinstance(value, Mapping):
        table = cast("Mapping[str, object]", value)
        return "{" + ", ".join(f"{json.dumps(k)} = {_toml(v)}" for k, v in table.items()) + "}"
    # TOML knows JSON's strings, numbers and lists of them, but no escaped surrogates.
    return json.dumps(value, ensure_ascii=False)


def _shut(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):  # it is closed already
        connection.shutdown(socket.SHUT_RDWR)

"""A loopback server that answers requests to a model from a script, and watches them.

The path decides which API it speaks: `…/responses`, `…/chat/completions` (Chat Completions) or `…/messages`
(Anthropic). The same script is played in each: events of the Responses API are translated, others go out as they are.

Every request is checked by `Rules`: calls have one output each, and a request begins with the one before it of the same
thread. What breaks this is answered with status 400, and raised when the server is closed.
"""

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self, TypeAlias, cast

from codex_py.testing.apis import AnthropicApi, ChatApi, ResponsesApi
from codex_py.testing.reply import Part, Pause, RenderedReply, Reply
from codex_py.testing.request import RecordedRequest, read_request
from codex_py.testing.rules import Refusal, Rules, prefix_problem

_IDLE_S = 60.0
"""A silent connection is closed after this time: a test should fail rather than hang."""

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
        rules: Rules | None = None,
        models: Sequence[str] = (),
        each_thread: bool = False,
        watch: Callable[[RecordedRequest, str | None], None] | None = None,
    ) -> None:
        """
        Args:
            port: 0 is a free one.
            check_calls: refuse what the rules refuse.
            check_prefix: turn it off where the history is replaced on purpose (compaction).
            rules: other rules than those of this package.
            models: the ids that `…/models` lists; without any there is no list.
            each_thread: play the whole script for every thread, told apart by their
                `prompt_cache_key` or header `thread-id`, instead of once.
            watch: gets every POST as it comes, and what is wrong with it.

        Raises:
            OSError: the port is taken.
        """
        self._script: list[RenderedReply | Callable[[RecordedRequest], Script]] = []
        self._rules = rules or Rules()
        self._check_calls = check_calls
        self._check_prefix = check_prefix
        self._models = {"data": [{"id": model, "object": "model"} for model in models]}
        self._each_thread = each_thread
        self._watch = watch
        self._lock = threading.Lock()
        self._played: dict[str, int] = {}
        self._last: dict[tuple[str, ...], list[Any]] = {}
        self._connections: set[socket.socket] = set()
        self._pauses: list[Pause] = []
        self._listener = socket.create_server(("127.0.0.1", port), backlog=128)
        self._acceptor = threading.Thread(target=self._accept, daemon=True)
        self.requests: list[RecordedRequest] = []
        self.violations: list[str] = []
        self.port: int = self._listener.getsockname()[1]
        self._responses = ResponsesApi()
        self._apis: Sequence[ResponsesApi] = (
            self._responses,
            ChatApi(),
            AnthropicApi(secret=str(self.port)),
        )
        self.add(*script)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def config_toml(
        self, *, wire_api: str = "responses", model: str = "gpt-5.5", **provider: Any
    ) -> str:
        """A configuration that sends codex-py, or Codex, here.

        Args:
            provider: keys of the provider, such as `request_max_retries=0`. The key is read from the
                variable `MOCK_KEY`.
        """
        keys = {
            "name": "mock",
            "base_url": self.base_url,
            "env_key": "MOCK_KEY",
            "wire_api": wire_api,
            **provider,
        }
        lines = [f"{key} = {_toml(value)}" for key, value in keys.items()]
        return "\n".join(
            [
                f"model = {_toml(model)}",
                'model_provider = "mock"',
                "[model_providers.mock]",
                *lines,
                "",
            ]
        )

    def add(self, *replies: Script) -> None:
        """Lengthen the script, also while the server runs."""
        ready = [reply if callable(reply) else self._rendered(reply) for reply in replies]
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
                while (request := read_request(reader)) is not None:
                    if not self._reply(request).send(connection):
                        break
                _shut(connection)
        except OSError:
            pass  # the client left, which a test may want it to
        finally:
            with self._lock:
                self._connections.discard(connection)

    def _reply(self, request: RecordedRequest) -> RenderedReply:
        path = request.path.partition("?")[0]
        api = next((api for api in self._apis if path.endswith(api.path)), None)
        errors = api or self._responses
        if request.method == "GET" and path.endswith("/models") and self._models["data"]:
            return RenderedReply(Reply(body=json.dumps(self._models).encode()))
        if request.method != "POST":
            upgrade = "upgrade" in request.headers
            status, message = (426, "no WebSockets here") if upgrade else (404, "nothing here")
            return _error(errors, status, message)
        with self._lock:
            self.requests.append(request)
            try:
                problem = self._problem(request, api)
                if problem is not None:
                    self.violations.append(f"request {len(self.requests)}: {problem}")
            except Refusal as refusal:
                problem = str(refusal)
            if self._watch is not None:
                self._watch(request, problem)
            if problem is not None:
                return _error(errors, 400, problem)
            thread = request.thread if self._each_thread else ""
            place = self._played.get(thread, 0)
            if place == len(self._script):
                return _error(errors, 500, "the script is at its end")
            self._played[thread] = place + 1
            script = self._script[place]
        while not isinstance(script, RenderedReply):
            answer = script(request)
            script = answer if callable(answer) else self._rendered(answer)
        with self._lock:
            self._pauses += script.pauses
        if api is None or api is self._responses:
            return script
        try:
            reply = api.reply(script.reply, request.body)
        except ValueError as error:
            with self._lock:
                self.violations.append(f"reply to request {len(self.requests)}: {error}")
            return _error(errors, 500, str(error))
        self._rules.answered(b"".join(part for part in reply.events if isinstance(part, bytes)))
        return RenderedReply(reply)

    def _problem(self, request: RecordedRequest, api: ResponsesApi | None) -> str | None:
        if api is None or not (self._check_calls or self._check_prefix):
            return None
        try:
            body = request.fields
            if self._check_calls:
                self._rules.check(request)
            if not self._check_prefix:
                return None
            prefix = list(self._rules.prefix(request))
        except ValueError as error:
            return str(error)
        # Providers cache for each model, and so each may get a history of its own.
        place = (request.path, str(body.get("model")), request.thread)
        before = self._last.get(place, [])
        self._last[place] = prefix
        return prefix_problem(before, prefix)

    def _rendered(self, script: Sequence[Part] | bytes | Reply) -> RenderedReply:
        if isinstance(script, bytes):
            script = [script]
        return RenderedReply(script if isinstance(script, Reply) else Reply(events=script))


def _error(api: ResponsesApi, status: int, message: str) -> RenderedReply:
    return RenderedReply(Reply(status=status, body=api.error(status, message)))


def _toml(value: object) -> str:
    if isinstance(value, Mapping):
        table = cast("Mapping[str, object]", value)
        return "{" + ", ".join(f"{json.dumps(k)} = {_toml(v)}" for k, v in table.items()) + "}"
    # TOML knows JSON's strings, numbers and lists of them, but no escaped surrogates.
    return json.dumps(value, ensure_ascii=False)


def _shut(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):  # it is closed already
        connection.shutdown(socket.SHUT_RDWR)

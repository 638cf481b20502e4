"""A loopback server that answers requests to a model from a script, and checks them.

If a request has violated the rules of `ScriptedModel`, closing the server raises an error.
"""

import contextlib
import json
import socket
import threading
from collections.abc import Iterable, Mapping
from typing import Any, Self, cast

from codex_py.testing.request import read_request
from codex_py.testing.script import Script as Script
from codex_py.testing.script import ScriptedModel

_IDLE_S = 60.0
"""The time after which a silent connection is closed: a test should fail rather than hang."""


class ScriptedServer(ScriptedModel):
    """Serves the script on 127.0.0.1. Use it as a context manager.

    The server handles every connection in its own thread and keeps connections alive. It answers a
    WebSocket handshake with 426, so that Codex continues over HTTP at once.
    """

    def __init__(
        self, script: Iterable[Script] = (), *, port: int = 0, **options: Any
    ) -> None:
        """
        Args:
            port: the port to listen on; 0 for any free port.
            options: see `ScriptedModel`.

        Raises:
            OSError: the port is taken.
            TypeError: a reply of the script is of a wrong type.
        """
        # If the script is wrong, no socket is left open.
        super().__init__(script, **options)
        self._connections: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", port), backlog=128)
        self._acceptor = threading.Thread(target=self._accept, daemon=True)
        self.port: int = self._listener.getsockname()[1]
        # Another server, or a later one, does not accept what this one has signed.
        self.secret = str(self.port)

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
        lines = [
            f"model = {_toml(model)}",
            'model_provider = "mock"',
            "[model_providers.mock]",
        ]
        for key, value in keys.items():
            lines.append(f"{key} = {_toml(value)}")
        return "\n".join([*lines, ""])

    def start(self) -> None:
        """Serve requests until `close`."""
        self._acceptor.start()

    def close(self) -> None:
        """Stop, end all pauses and drop all connections.

        Raises:
            AssertionError: a request violated the rules.
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

    def __exit__(
        self,
        kind: object,
        error: object,
        traceback: object,
    ) -> None:
        try:
            self.close()
        except AssertionError:
            # The test's own error says more.
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
            threading.Thread(
                target=self._serve, args=(connection,), daemon=True
            ).start()

    def _serve(self, connection: socket.socket) -> None:
        """Answer the requests of one connection."""
        try:
            with connection, connection.makefile("rb") as reader:
                can_go_on = True
                while can_go_on:
                    request = read_request(reader)
                    if request is None:
                        break
                    can_go_on = self._reply(request).send(connection)
                _shut(connection)
        except OSError:
            pass  # the client left, which a test may want it to
        finally:
            with self._lock:
                self._connections.discard(connection)


def _toml(value: object) -> str:
    if isinstance(value, Mapping):
        table = cast("Mapping[str, object]", value)
        entries = [f"{json.dumps(key)} = {_toml(table[key])}" for key in table]
        return f"{{{', '.join(entries)}}}"
    # TOML knows JSON's strings, numbers and lists of them, but no escaped surrogates.
    return json.dumps(value, ensure_ascii=False)


def _shut(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):  # it is closed already
        connection.shutdown(socket.SHUT_RDWR)

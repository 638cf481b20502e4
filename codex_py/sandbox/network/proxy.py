"""The proxy of a session: one thread, which serves the commands that may reach only some hosts.

Each such command has a network of its own, with nothing in it but a port at which it finds the
proxy. The launcher of the command listens there, and passes the listening socket to us: see
`sandbox.child.network`. So no process outside of the command can reach the port, and we know which
command asks.
"""

import asyncio
import os
import socket
import threading
from concurrent.futures import Future
from typing import Final

from codex_py.protocol.domain_rules import DomainRules
from codex_py.protocol.network_report import NetworkReport
from codex_py.sandbox.network.gate import opens
from codex_py.sandbox.network.server import Server

_NAME_BYTES: Final = 16
_BACKLOG: Final = 64
_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1", "0.0.0.0")
"""The loopback hosts without `[::1]`. Some programs know no other spelling, but `httpx` cannot
start with it."""


class NetworkProxy:
    """The proxy. It starts with the first `address`, and again after `close`."""

    def __init__(self, report: NetworkReport) -> None:
        self._report = report
        self._addresses: dict[DomainRules, str] = {}
        self._thread: threading.Thread | None = None

    def address(self, rules: DomainRules) -> str:
        """The abstract socket at which the proxy awaits launchers of commands with these rules."""
        if self._thread is None:
            self._server = Server(self._report)
            started: Future[asyncio.AbstractEventLoop] = Future()
            run = self._server.run(started.set_result)
            self._thread = threading.Thread(
                target=lambda: asyncio.run(run), name="network proxy", daemon=True
            )
            self._thread.start()
            self._loop = started.result()
        if rules not in self._addresses:
            listening = socket.socket(socket.AF_UNIX)
            # An abstract socket has no file, which a kill would leave behind. Only the same user
            # may connect.
            name = f"codex-py-{os.urandom(_NAME_BYTES).hex()}"
            listening.bind(f"\0{name}")
            listening.listen(_BACKLOG)
            listening.setblocking(False)
            self._loop.call_soon_threadsafe(self._server.begin, listening, rules)
            self._addresses[rules] = name
        return self._addresses[rules]

    def direct_hosts(self, rules: DomainRules) -> tuple[str, ...]:
        """The spellings of the loopback address by which a command means its own servers.

        The loopback interface of a command is its own, so the command reaches no server of the
        machine without the proxy. A spelling that the rules open leads to the machine instead,
        through the proxy.
        """
        return tuple(host for host in _LOOPBACK if not opens(rules, host))

    def close(self) -> None:
        """End the thread and all connections."""
        if self._thread is not None:
            self._loop.call_soon_threadsafe(self._server.stop)
            self._thread.join()
            self._thread = None
            self._addresses.clear()

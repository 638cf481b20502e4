"""Runs the proxy of a session: a thread that serves the commands that may reach only some hosts.

Each such command has a network of its own, in which there is only a port at which it finds the
proxy. The launcher of the command listens there, and passes the listening socket to us; see
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
    """The proxy. It starts at the first call of `address`, and again after `close`."""

    def __init__(self, report: NetworkReport) -> None:
        self._report = report
        self._addresses: dict[DomainRules, str] = {}
        self._thread: threading.Thread | None = None

    def address(self, rules: DomainRules) -> str:
        """The abstract socket at which the proxy awaits launchers of commands with these rules."""
        if self._thread is None:
            self._thread = self._started_thread()
        if rules not in self._addresses:
            # An abstract socket has no file that a kill would leave behind. `Server` accepts only
            # processes of the same user.
            name = f"codex-py-{os.urandom(_NAME_BYTES).hex()}"
            listening = socket.socket(socket.AF_UNIX)
            listening.bind(f"\0{name}")
            listening.listen(_BACKLOG)
            listening.setblocking(False)
            self._loop.call_soon_threadsafe(self._server.begin, listening, rules)
            self._addresses[rules] = name
        return self._addresses[rules]

    def _started_thread(self) -> threading.Thread:
        """Start the thread, and wait until its server runs."""
        self._server = Server(self._report)
        started: Future[asyncio.AbstractEventLoop] = Future()
        run = self._server.run(started.set_result)
        thread = threading.Thread(
            target=lambda: asyncio.run(run), name="network proxy", daemon=True
        )
        thread.start()
        self._loop = started.result()
        return thread

    def direct_hosts(self, rules: DomainRules) -> tuple[str, ...]:
        """The spellings of the loopback address by which a command reaches its own servers.

        A command has its own loopback interface, and reaches the servers of the machine only
        through the proxy. A spelling that the rules open leads there instead.
        """
        return tuple(host for host in _LOOPBACK if not opens(rules, host))

    def close(self) -> None:
        """End the thread and all connections."""
        if self._thread is not None:
            self._loop.call_soon_threadsafe(self._server.stop)
            self._thread.join()
            self._thread = None
            self._addresses.clear()

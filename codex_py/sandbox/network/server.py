"""Serves the commands of a session: takes the sockets at which they find the proxy from their
launchers, and accepts the connections."""

import asyncio
import os
import socket
import struct
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Final

import h11

from codex_py.protocol.domain_rules import DomainRules
from codex_py.protocol.network_report import NetworkReport
from codex_py.sandbox.child.network import MAX_ID_BYTES
from codex_py.sandbox.network.gate import ConnectionGate, is_spare, resolved
from codex_py.sandbox.network.http import serve_http
from codex_py.sandbox.network.tunnel import serve_socks

_MAX_CONNECTIONS: Final = 256
"""The most connections of one command. Each takes two descriptors of this process."""
_SOCKS: Final = b"\5"
"""The first byte of a SOCKS connection."""
_WAIT_S: Final = 0.1


class _Ended(Exception):
    """Ends a task group."""


class Server:
    """Serves commands in one loop.

    Args:
        report: gets the blocked connections, and bugs.
    """

    def __init__(self, report: NetworkReport) -> None:
        self._report = report

    async def run(self, started: Callable[[asyncio.AbstractEventLoop], None]) -> None:
        """Serve until `stop`.

        Args:
            started: called with the loop in which the other methods must be called.
        """
        self._stop = asyncio.Event()
        try:
            async with asyncio.TaskGroup() as self._group:
                started(asyncio.get_running_loop())
                await self._stop.wait()
                raise _Ended
        except* _Ended:
            pass

    def stop(self) -> None:
        """End all connections, and `run`."""
        self._stop.set()

    def begin(self, listening: socket.socket, rules: DomainRules) -> None:
        """Serve the commands whose launchers connect to this socket, by these rules."""
        self._group.create_task(self._launchers(listening, rules))

    async def _launchers(self, listening: socket.socket, rules: DomainRules) -> None:
        """Accept launchers, and serve the command of each."""
        with listening:
            while True:
                link = await _accepted(listening)
                serving = self._serve_command(link, rules)
                self._group.create_task(_told(serving, self._report))

    async def _serve_command(self, link: socket.socket, rules: DomainRules) -> None:
        """Serve a command for as long as one of its processes holds the other end of the link."""
        with link:
            if _user_of(link) != os.geteuid():
                return
            link.setblocking(False)
            await _readable(link)
            call_id, given, _, _ = socket.recv_fds(link, MAX_ID_BYTES, 1)
            if not given:
                # The launcher has failed.
                return
            with socket.socket(fileno=given[0]) as listening:
                listening.setblocking(False)
                gate = ConnectionGate(
                    rules, os.fsdecode(call_id), self._report, resolved
                )
                try:
                    async with asyncio.TaskGroup() as group:
                        group.create_task(_accept(listening, gate))
                        await _end_of(link)
                        raise _Ended
                except* _Ended:
                    pass


async def _readable(link: socket.socket) -> None:
    """Wait until a socket has data, or has ended."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(link, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(link)


async def _end_of(link: socket.socket) -> None:
    """Wait until no process holds the other end of a link, on which nothing more is sent."""
    with suppress(OSError):
        await asyncio.get_running_loop().sock_recv(link, 1)


async def _accept(listening: socket.socket, gate: ConnectionGate) -> None:
    """Accept the connections of a command, and serve each in a task."""
    room = asyncio.Semaphore(_MAX_CONNECTIONS)

    async def serve(connection: socket.socket) -> None:
        try:
            await _told(_serve_connection(connection, gate), gate.report)
        finally:
            room.release()

    async with asyncio.TaskGroup() as group:
        while True:
            await room.acquire()
            connection = await _accepted(listening)
            while not is_spare(connection):
                connection.close()
                await asyncio.sleep(_WAIT_S)
                connection = await _accepted(listening)
            group.create_task(serve(connection))


async def _accepted(listening: socket.socket) -> socket.socket:
    """Wait for the next connection."""
    loop = asyncio.get_running_loop()
    while True:
        with suppress(OSError):
            connection, _ = await loop.sock_accept(listening)
            return connection
        # No descriptors are left for now.
        await asyncio.sleep(_WAIT_S)


async def _serve_connection(connection: socket.socket, gate: ConnectionGate) -> None:
    """Serve a connection as a SOCKS or an HTTP proxy, by its first byte."""
    client = await asyncio.open_connection(sock=connection)
    reader, writer = client
    try:
        first = await reader.read(1)
        if first == _SOCKS:
            await serve_socks(client, gate)
        elif first:
            await serve_http(client, gate, first)
    except (OSError, asyncio.IncompleteReadError, h11.ProtocolError):
        # The command sees that its connection ended.
        pass
    finally:
        writer.close()


async def _told(serving: Coroutine[Any, Any, None], report: NetworkReport) -> None:
    """Await a task, and report a bug in it, so that all others continue."""
    try:
        await serving
    except Exception as error:  # noqa: BLE001
        report.tell_bug(error)


def _user_of(link: socket.socket) -> int:
    """The id of the user at the other end."""
    size = struct.calcsize("3i")
    data = link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    _process, user, _group = struct.unpack("3i", data)
    return user

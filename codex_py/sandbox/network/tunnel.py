"""Passes bytes both ways, and serves SOCKS 5, which leads to such a tunnel.

https://www.rfc-editor.org/rfc/rfc1928
"""

import asyncio
import socket
from contextlib import suppress
from typing import Final

from codex_py.sandbox.network.gate import ConnectionBlocked, ConnectionGate, Streams

READ_BYTES: Final = 64 << 10
_VERSION = 5
_NO_LOGIN = 0
_NO_METHOD = 255
_CONNECT: Final = 1
_IPV4 = 1
_NAME = 3
_IPV6 = 4
_DONE = 0
_FORBIDDEN = 2
_UNREACHABLE = 4
_NO_COMMAND = 7
_NO_KIND = 8


async def join(one: Streams, other: Streams) -> None:
    """Pass bytes both ways until both sides have ended."""

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(READ_BYTES):
                writer.write(data)
                await writer.drain()
            writer.write_eof()
            return
        # After an error, the other direction would wait for ever.
        for _, each in (one, other):
            each.close()

    async with asyncio.TaskGroup() as group:
        group.create_task(copy(one[0], other[1]))
        group.create_task(copy(other[0], one[1]))


async def serve_socks(client: Streams, gate: ConnectionGate) -> None:
    """Serve a connection whose first byte was read, to its end. Names are resolved here.

    Raises:
        OSError, asyncio.IncompleteReadError: the connection broke.
    """
    reader, writer = client
    count = (await reader.readexactly(1))[0]
    has_method = _NO_LOGIN in await reader.readexactly(count)
    writer.write(bytes((_VERSION, _NO_LOGIN if has_method else _NO_METHOD)))
    if not has_method:
        return
    _, command, _, kind = await reader.readexactly(4)
    if kind not in {_IPV4, _NAME, _IPV6}:
        writer.write(_reply(_NO_KIND))
        return
    if kind == _NAME:
        size = (await reader.readexactly(1))[0]
    else:
        size = 4 if kind == _IPV4 else 16
    name = await reader.readexactly(size)
    port = int.from_bytes(await reader.readexactly(2), "big")
    if command != _CONNECT:
        writer.write(_reply(_NO_COMMAND))
        return
    if kind == _NAME:
        host = name.decode("latin-1")
    else:
        host = socket.inet_ntop(
            socket.AF_INET if kind == _IPV4 else socket.AF_INET6, name
        )
    try:
        upstream = await gate.open(host, port, "socks5_tcp")
    except (ConnectionBlocked, ValueError):
        writer.write(_reply(_FORBIDDEN))
        return
    except OSError:
        writer.write(_reply(_UNREACHABLE))
        return
    try:
        writer.write(_reply(_DONE))
        await join(client, upstream)
    finally:
        upstream[1].close()


def _reply(code: int) -> bytes:
    # The reply has an address and a port that nobody reads.
    return bytes((_VERSION, code, 0, _IPV4)) + bytes(4 + 2)

"""Passes bytes both ways between two connections, and serves SOCKS 5, which asks for that.

https://www.rfc-editor.org/rfc/rfc1928
"""

import asyncio
import socket
from typing import Final

from codex_py.sandbox.network.gate import ConnectionBlocked, ConnectionGate, Streams

READ_BYTES: Final = 64 << 10
_VERSION = 5
# The methods of login.
_NO_LOGIN = 0
_NO_METHOD = 255
_CONNECT: Final = 1
"""The only command that is served."""
# The kinds of addresses.
_IPV4 = 1
_NAME = 3
_IPV6 = 4
# The codes of replies.
_DONE = 0
_FORBIDDEN = 2
_UNREACHABLE = 4
_NO_COMMAND = 7
_NO_KIND = 8


async def join(one: Streams, other: Streams) -> None:
    """Pass bytes both ways until both sides have ended."""

    one_reader, one_writer = one
    other_reader, other_writer = other

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await _copy(reader, writer)
        except OSError:
            # Otherwise, the other direction would wait for ever.
            one_writer.close()
            other_writer.close()

    async with asyncio.TaskGroup() as group:
        group.create_task(copy(one_reader, other_writer))
        group.create_task(copy(other_reader, one_writer))


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Pass bytes on until the reader has ended, and end the writer's side.

    Raises:
        OSError: a connection broke.
    """
    data = await reader.read(READ_BYTES)
    while data:
        writer.write(data)
        await writer.drain()
        data = await reader.read(READ_BYTES)
    writer.write_eof()


async def serve_socks(client: Streams, gate: ConnectionGate) -> None:
    """Serve a connection whose first byte was read, to its end. Names are resolved here.

    Raises:
        OSError, asyncio.IncompleteReadError: the connection broke.
    """
    reader, writer = client
    if not await _agree_on_method(client):
        return
    _, command, _, kind = await reader.readexactly(4)
    if kind not in {_IPV4, _NAME, _IPV6}:
        writer.write(_reply(_NO_KIND))
        return
    host = await _read_host(reader, kind)
    port = int.from_bytes(await reader.readexactly(2), "big")
    if command != _CONNECT:
        writer.write(_reply(_NO_COMMAND))
        return
    try:
        upstream = await gate.open(host, port, "socks5_tcp")
    except (ConnectionBlocked, ValueError):
        writer.write(_reply(_FORBIDDEN))
        return
    except OSError:
        writer.write(_reply(_UNREACHABLE))
        return
    _, upstream_writer = upstream
    try:
        writer.write(_reply(_DONE))
        await join(client, upstream)
    finally:
        upstream_writer.close()


async def _agree_on_method(client: Streams) -> bool:
    """Agree on no login; False if the client does not offer that."""
    reader, writer = client
    (count,) = await reader.readexactly(1)
    if _NO_LOGIN in await reader.readexactly(count):
        writer.write(bytes((_VERSION, _NO_LOGIN)))
        return True
    writer.write(bytes((_VERSION, _NO_METHOD)))
    return False


async def _read_host(reader: asyncio.StreamReader, kind: int) -> str:
    """Read a name or an address."""
    if kind == _IPV4:
        return socket.inet_ntop(socket.AF_INET, await reader.readexactly(4))
    if kind == _IPV6:
        return socket.inet_ntop(socket.AF_INET6, await reader.readexactly(16))
    (size,) = await reader.readexactly(1)
    name = await reader.readexactly(size)
    return name.decode("latin-1")


def _reply(code: int) -> bytes:
    # The reply has an address and a port that nobody reads.
    return bytes((_VERSION, code, 0, _IPV4)) + bytes(4 + 2)

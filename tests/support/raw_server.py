"""A loopback server that answers with raw bytes, for what no well-behaved server would send."""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


@dataclass
class RawServer:
    url: str = ""
    requests: list[bytes] = field(default_factory=list[bytes])
    """Whole requests, as read by `RawConnection.request`."""
    connections: int = 0
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a handler is done, its connection closed."""


@dataclass
class RawConnection:
    number: int
    """From 1."""
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    server: RawServer

    async def request(self) -> bytes:
        """The next request, read by its content-length; nothing at the end of the connection."""
        try:
            head = await self.reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            return b""
        length = 0
        for line in head.lower().split(b"\r\n"):
            if line.startswith(b"content-length:"):
                length = int(line.partition(b":")[2])
        request = head + await self.reader.readexactly(length)
        self.server.requests.append(request)
        return request

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()


Handler = Callable[[RawConnection], Awaitable[None]]


@asynccontextmanager
async def raw_server(
    handler: Handler, tls: ssl.SSLContext | None = None
) -> AsyncGenerator[RawServer]:
    """Serve until the context is left; each connection is closed when its handler returns."""
    state = RawServer()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        state.connections += 1
        try:
            await handler(RawConnection(state.connections, reader, writer, state))
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()
            state.ended.set()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    port = server.sockets[0].getsockname()[1]
    state.url = (
        f"{'https' if tls else 'http'}://{'localhost' if tls else '127.0.0.1'}:{port}"
    )
    try:
        yield state
    finally:
        server.close()


def answers(*responses: bytes) -> Handler:
    """Answer the requests of one connection with these bytes, one after another, then close it."""

    async def handler(connection: RawConnection) -> None:
        for response in responses:
            if not await connection.request():
                return
            await connection.send(response)

    return handler

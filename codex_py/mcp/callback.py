"""Receives the browser's redirect after a login, on an address of this machine. RFC 8252, 7.3."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

_MAX_REQUEST_BYTES = 64 * 1024
_REQUEST_TIMEOUT_S = 10.0
PATH = "/callback"

_PAGES = {
    "200 OK": "Authentication complete. You may close this window.",
    "400 Bad Request": "This answer belongs to another login. Go back to the terminal.",
    "404 Not Found": "There is nothing here.",
}


@asynccontextmanager
async def callback_server(port: int, take: Callable[[str], bool]) -> AsyncGenerator[int]:
    """Listen on 127.0.0.1; yields the port.

    Args:
        port: 0 for any free port.
        take: gets the path and query of each redirect; True if it belongs to this login.

    Raises:
        OSError: the port is in use or not permitted.
    """

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_REQUEST_TIMEOUT_S):
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(_response(head, take))
                await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            # The browser can try again.
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", port, limit=_MAX_REQUEST_BYTES)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


def _response(head: bytes, take: Callable[[str], bool]) -> bytes:
    method, _, rest = head.decode("ascii", "replace").partition(" ")
    target = rest.partition(" ")[0]
    if method != "GET" or target.partition("?")[0] != PATH:
        status = "404 Not Found"
    elif take(target):
        status = "200 OK"
    else:
        status = "400 Bad Request"
    page = _PAGES[status].encode()
    fields = ("Content-Type: text/plain; charset=utf-8", f"Content-Length: {len(page)}")
    lines = (f"HTTP/1.1 {status}", *fields, "Cache-Control: no-store", "Connection: close", "", "")
    return "\r\n".join(lines).encode() + page

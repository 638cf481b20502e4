"""Waits for the answer to a login: the browser's redirect to an address of this machine (RFC 8252,
7.3), or the same address pasted by the user. LIGHT."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from typing import Protocol
from urllib.parse import parse_qs, urlsplit

_MAX_REQUEST_BYTES = 64 * 1024
_REQUEST_TIMEOUT_S = 10.0
PATH = "/callback"

_FIELDS = (
    "Content-Type: text/plain; charset=utf-8\r\n"
    "Cache-Control: no-store\r\n"
    "Connection: close\r\n"
)
_PAGES = {
    "200 OK": "Authentication complete. You may close this window.",
    "400 Bad Request": "This answer belongs to another login. Go back to the terminal.",
    "404 Not Found": "There is nothing here.",
}


class LoginScreen(Protocol):
    """Shows a login to the user."""

    def visit(self, address: str) -> None:
        """Ask the user to open an address."""
        ...

    async def pasted(self) -> str:
        """Wait for the next line that the user enters. Never returns if there is no input.

        This is for users whose browser cannot reach this machine.
        """
        ...

    def refuse(self, reason: str) -> None:
        """Tell the user why the last address was not accepted."""
        ...


class LoginAnswers:
    """Waits for the answer to one login, from the browser or pasted by the user."""

    def __init__(self, screen: LoginScreen) -> None:
        self._screen = screen
        self._state = ""
        self._answer: asyncio.Future[dict[str, str]] = (
            asyncio.get_running_loop().create_future()
        )

    @asynccontextmanager
    async def listening(self, port: int) -> AsyncGenerator[int]:
        """Wait for the browser on a port of 127.0.0.1. Yields the port.

        Args:
            port: the wanted port; 0 for any free one.

        Raises:
            OSError: the port is in use or not permitted.
        """
        limit = _MAX_REQUEST_BYTES
        server = await asyncio.start_server(self._serve, "127.0.0.1", port, limit=limit)
        with closing(server):
            _, used_port = server.sockets[0].getsockname()
            yield used_port

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            async with asyncio.timeout(_REQUEST_TIMEOUT_S):
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(self._response(head))
                await writer.drain()
        except (
            OSError,
            TimeoutError,
            asyncio.IncompleteReadError,
            asyncio.LimitOverrunError,
        ):
            # The browser can try again.
            pass
        finally:
            writer.close()

    def _response(self, request: bytes) -> bytes:
        method, _, rest = request.decode("ascii", "replace").partition(" ")
        target = rest.partition(" ")[0]
        if method != "GET" or target.partition("?")[0] != PATH:
            status = "404 Not Found"
        elif self._accept(target):
            status = "200 OK"
        else:
            status = "400 Bad Request"
        page = _PAGES[status].encode()
        head = f"HTTP/1.1 {status}\r\n{_FIELDS}Content-Length: {len(page)}\r\n\r\n"
        return head.encode() + page

    def _accept(self, address: str) -> bool:
        """Accept the answer in an address. False, and the user is told, if it is no answer to this
        login."""
        answer = _parameters(address)
        if "code" not in answer and "error" not in answer:
            self._screen.refuse("that is not an address that ends a login")
            return False
        if not self._state or answer.get("state") != self._state:
            self._screen.refuse("that is the answer to another login")
            return False
        if not self._answer.done():
            self._answer.set_result(answer)
        return True

    async def wait(self, address: str) -> dict[str, str]:
        """Send the user to an address. Returns the parameters of the redirect's address."""
        self._state = _parameters(address)["state"]
        self._screen.visit(address)
        typing = asyncio.create_task(self._typed())
        try:
            return await self._answer
        finally:
            typing.cancel()

    async def _typed(self) -> None:
        is_answered = False
        while not is_answered:
            address = await self._screen.pasted()
            is_answered = self._accept(address)


def _parameters(address: str) -> dict[str, str]:
    """Return the decoded query parameters of an address; the first one of each name."""
    values = parse_qs(urlsplit(address).query)
    return {name: first for name, (first, *_) in values.items()}

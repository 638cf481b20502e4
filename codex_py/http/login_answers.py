"""Waits for the answer to a login: the browser's redirect to an address of this machine (RFC 8252,
7.3), or the same address pasted by the user. LIGHT."""

import asyncio
import hmac
from collections.abc import AsyncGenerator, Collection
from contextlib import asynccontextmanager, closing, suppress
from typing import Final, Protocol
from urllib.parse import parse_qs, urlsplit

_MAX_REQUEST_BYTES = 64 * 1024
_REQUEST_TIMEOUT_S = 10.0
_LAST_PAGE_S: Final = 1.0
"""The time for the browser to receive the last page, once the login is over."""
_MAX_CONNECTIONS: Final = 32
"""The connections at one time. A browser opens a few; any program of this machine may open more."""
_OWN_HOSTS: Final = frozenset({"127.0.0.1", "localhost"})

_FIELDS = (
    "Content-Type: text/plain; charset=utf-8\r\n"
    "Cache-Control: no-store\r\n"
    "X-Content-Type-Options: nosniff\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "Connection: close\r\n"
)
_DONE: Final = "200 OK"
_FAILED: Final = "502 Bad Gateway"
_PAGES = {
    _DONE: "Authentication complete. You may close this window.",
    "400 Bad Request": "This answer belongs to another login. Go back to the terminal.",
    "403 Forbidden": "This page is for a browser on this machine.",
    "404 Not Found": "There is nothing here.",
    "409 Conflict": "This login was answered before. Go back to the terminal.",
    _FAILED: "The login failed. Go back to the terminal.",
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
    """Waits for the answer to one login, from the browser or pasted by the user.

    The browser that brings the answer gets its page when the login is over.
    """

    def __init__(
        self, screen: LoginScreen, path: str, hosts: Collection[str] = ()
    ) -> None:
        """
        Args:
            path: the only path that the browser may ask for.
            hosts: the names under which the browser may ask for it, beside those of this machine.
                Any other name is that of a page elsewhere, which has its name lead here.
        """
        self._screen = screen
        self._path = path
        self._hosts = _OWN_HOSTS.union(hosts)
        self._state = ""
        loop = asyncio.get_running_loop()
        self._answer: asyncio.Future[dict[str, str]] = loop.create_future()
        self._last_page: asyncio.Future[str] = loop.create_future()
        """The status of the page for the browser that has brought the answer."""
        self._connections: dict[asyncio.Task[None], asyncio.WriteTransport] = {}
        """The open connections, by the tasks that serve them."""
        self._awaiting_last_page: set[asyncio.Task[None]] = set()
        self._shown_refusals: set[str] = set()

    @asynccontextmanager
    async def listening(self, *ports: int) -> AsyncGenerator[int]:
        """Wait for the browser on a port of 127.0.0.1. Yields the port.

        When the context ends, the browser is told if the login is complete, and all connections
        are closed.

        Args:
            ports: the wanted ports, of which the first free one is used; 0 for any free one.

        Raises:
            OSError: the last port is in use or not permitted.
        """
        server = await self._server(ports)
        with closing(server):
            _, used_port = server.sockets[0].getsockname()
            try:
                yield used_port
                self._last_page.set_result(_DONE)
            finally:
                if not self._last_page.done():
                    self._last_page.set_result(_FAILED)
                server.close()
                await self._close_connections()

    async def _server(self, ports: tuple[int, ...]) -> asyncio.Server:
        """Listen on the first of the ports that is free."""
        *firsts, last = ports
        for port in firsts:
            with suppress(OSError):
                return await self._listen(port)
        return await self._listen(last)

    async def _listen(self, port: int) -> asyncio.Server:
        limit = _MAX_REQUEST_BYTES
        return await asyncio.start_server(
            self._begin_serving, "127.0.0.1", port, limit=limit
        )

    def _begin_serving(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Serve a new connection, unless too many are open."""
        if len(self._connections) >= _MAX_CONNECTIONS:
            writer.transport.abort()
            return
        task = asyncio.create_task(self._serve(reader, writer))
        self._connections[task] = writer.transport
        task.add_done_callback(self._connections.pop)

    async def _close_connections(self) -> None:
        """Close all connections, once the browsers that wait for the last page have it."""
        if self._awaiting_last_page:
            await asyncio.wait(self._awaiting_last_page, timeout=_LAST_PAGE_S)
        for transport in self._connections.values():
            transport.abort()
        await asyncio.gather(*self._connections)

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            async with asyncio.timeout(_REQUEST_TIMEOUT_S):
                head = await reader.readuntil(b"\r\n\r\n")
            status = self._status(head.decode("latin-1"))
            if status == _DONE:
                status = await self._waited_for()
            async with asyncio.timeout(_REQUEST_TIMEOUT_S):
                writer.write(_response(status))
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

    async def _waited_for(self) -> str:
        """The status of the page once the login is over."""
        task = asyncio.current_task()
        assert task is not None
        self._awaiting_last_page.add(task)
        task.add_done_callback(self._awaiting_last_page.discard)
        return await asyncio.shield(self._last_page)

    def _status(self, head: str) -> str:
        """The status of the answer to a request. A request with the answer to the login is accepted.

        Args:
            head: the request line and the header.
        """
        request, *lines = head.split("\r\n")
        method, _, rest = request.partition(" ")
        target = rest.partition(" ")[0]
        if _host(lines) not in self._hosts:
            return "403 Forbidden"
        if method != "GET" or target.partition("?")[0] != self._path:
            return "404 Not Found"
        if self._answer.done():
            return "409 Conflict"
        problem = self._accept(target)
        if problem is None:
            return _DONE
        # Any page that the user visits can send many of these.
        if problem not in self._shown_refusals:
            self._shown_refusals.add(problem)
            self._screen.refuse(problem)
        return "400 Bad Request"

    def _accept(self, address: str) -> str | None:
        """Accept the answer in an address. Returns the reason if it is no answer to this login."""
        answer = _parameters(address)
        if "code" not in answer and "error" not in answer:
            return "that is not an address that ends a login"
        if not self._is_own(answer.get("state", "")):
            return "that is the answer to another login"
        if not self._answer.done():
            self._answer.set_result(answer)
        return None

    def _is_own(self, state: str) -> bool:
        """Compare a state in a time that does not depend on its contents."""
        is_same = hmac.compare_digest(state.encode(), self._state.encode())
        return bool(self._state) and is_same

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
        while True:
            address = await self._screen.pasted()
            problem = self._accept(address)
            if problem is None:
                return
            self._screen.refuse(problem)


def _host(lines: list[str]) -> str | None:
    """The name of the host in a header, without its port; None unless there is exactly one."""
    hosts = [line for line in lines if line.lower().startswith("host:")]
    if len(hosts) != 1:
        return None
    named = hosts[0].partition(":")[2].strip().lower()
    return named.partition(":")[0]


def _response(status: str) -> bytes:
    page = _PAGES[status].encode()
    head = f"HTTP/1.1 {status}\r\n{_FIELDS}Content-Length: {len(page)}\r\n\r\n"
    return head.encode() + page


def _parameters(address: str) -> dict[str, str]:
    """Return the decoded query parameters of an address; the first one of each name.

    Any text may be pasted; one that is no address has none.
    """
    try:
        values = parse_qs(urlsplit(address).query)
    except ValueError:
        return {}
    return {name: first for name, (first, *_) in values.items()}

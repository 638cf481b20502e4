"""HTTP/1.1 below httpx: one kept connection for each origin, read in bulk.

httpx keeps its requests, errors and tests; only the bytes go another way. With the transport of httpx
itself a stream of small chunks costs 13-16 microseconds of CPU for each event, with this one 4: a read takes
all that has come, and `http1.Chunked` decodes it in one pass.
"""

import asyncio
import os
import re
import socket
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, TypeAlias, cast

import httpx

from codex_py.model.http1 import Body, Head, body_of, request_head, split_head
from codex_py.model.proxy import ProxyTransport, proxies_from

_READ_AHEAD_BYTES = 1_048_576
"""How much may wait unread before the socket is no longer read."""
_KEEP_S = 60.0
"""A connection idle for longer is not used again: firewalls forget it without telling us."""
_HAPPY_EYEBALLS_S = 0.25
"""Head start of each address over the next (RFC 8305)."""

REQUEST_SENT = "http11.send_request_body.complete"
"""The trace event (httpx, extension `trace`) that says the last byte of a request is written."""

_Origin: TypeAlias = tuple[str, str, int]
_Trace: TypeAlias = Callable[[str, dict[str, Any]], Awaitable[None]]


def http_client(
    *, environment: Mapping[str, str], transport: httpx.AsyncBaseTransport | None = None
) -> httpx.AsyncClient:
    """The client that everything is sent with. It follows no redirects and unpacks nothing.

    Raises:
        ConfigError: a proxy variable can not be used.
    """
    return httpx.AsyncClient(
        transport=transport or http_transport(environment),
        # What httpx would read from the process is read from `environment`, once.
        trust_env=False,
        headers={"accept-encoding": "identity"},
        timeout=httpx.Timeout(60.0),
    )


def http_transport(environment: Mapping[str, str]) -> httpx.AsyncBaseTransport:
    """Direct connections, and proxied ones for what `environment` says to proxy.

    Raises:
        ConfigError: a proxy variable can not be used.
    """
    proxies = proxies_from(environment)
    return ProxyTransport(BulkTransport(), proxies) if proxies else BulkTransport()


class BulkTransport(httpx.AsyncBaseTransport):
    """Direct HTTP/1.1 connections.

    Honours the extensions `timeout` (`connect`, `read`, `write`; seconds without any progress) and
    `trace`, of which it knows the event `REQUEST_SENT`. A request that finds its kept connection
    closed, before a byte of the answer, is sent once more on a fresh one.

    Raises:
        httpx.TransportError: as httpx's own transport does; the message is the cause in the words of
            the system.
    """

    def __init__(self) -> None:
        self._kept: dict[_Origin, tuple[_Connection, float]] = {}
        self._tls: ssl.SSLContext | None = None

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        stream = cast("httpx.AsyncByteStream", request.stream)
        content = b"".join([part async for part in stream])
        message = request_head(request, content) + content
        url = request.url
        host = url.raw_host.decode("ascii")
        origin = (url.scheme, host, url.port or (443 if url.scheme == "https" else 80))
        if (kept := self._take(origin)) is not None:
            try:
                return await self._exchange(kept, origin, request, message)
            except _NoAnswer:
                # It was closed while it lay idle.
                pass
        timeout_s: float | None = request.extensions.get("timeout", {}).get("connect")
        connection = await self._connect(origin, timeout_s)
        return await self._exchange(connection, origin, request, message)

    async def aclose(self) -> None:
        for connection, _ in self._kept.values():
            connection.close()
        self._kept.clear()
        # Sockets are closed in the next round of the loop.
        await asyncio.sleep(0)

    def _take(self, origin: _Origin) -> "_Connection | None":
        connection, since = self._kept.pop(origin, (None, 0.0))
        if connection is None:
            return None
        if connection.is_fresh and time.monotonic() - since < _KEEP_S:
            return connection
        connection.close()
        return None

    def _keep(self, origin: _Origin, connection: "_Connection") -> None:
        if origin in self._kept or not connection.is_fresh:
            connection.close()
        else:
            self._kept[origin] = (connection, time.monotonic())

    async def _connect(self, origin: _Origin, timeout_s: float | None) -> "_Connection":
        scheme, host, port = origin
        try:
            tls = self._tls_context() if scheme == "https" else None
            async with asyncio.timeout(timeout_s):
                # asyncio sets TCP_NODELAY on every connection.
                _, connection = await asyncio.get_running_loop().create_connection(
                    _Connection,
                    host,
                    port,
                    ssl=tls,
                    server_hostname=host if tls else None,
                    happy_eyeballs_delay=_HAPPY_EYEBALLS_S,
                )
        except TimeoutError as error:
            raise httpx.ConnectTimeout(_words(error) or f"no answer in {timeout_s:g} s") from error
        except OSError as error:
            raise httpx.ConnectError(_words(error)) from error
        return connection

    def _tls_context(self) -> ssl.SSLContext:
        if self._tls is None:
            # Some 20 ms to read the certificates, which a plain http:// server need not wait for.
            try:
                self._tls = httpx.create_ssl_context()
            except OSError as error:
                source = os.environ.get("SSL_CERT_FILE") or os.environ.get("SSL_CERT_DIR")
                raise httpx.ConnectError(
                    f"certificates can not be read from {source}: {_words(error)}"
                ) from error
            self._tls.set_alpn_protocols(["http/1.1"])
        return self._tls

    async def _exchange(
        self, connection: "_Connection", origin: _Origin, request: httpx.Request, message: bytes
    ) -> httpx.Response:
        timeouts: dict[str, float | None] = request.extensions.get("timeout", {})
        read_s = timeouts.get("read")
        trace: _Trace | None = request.extensions.get("trace")
        try:
            await connection.write(message, timeouts.get("write"))
            if trace is not None:
                await trace(REQUEST_SENT, {"return_value": None})
            head, rest = await _read_head(connection, read_s)
            body = body_of(head, request.method)
            # What follows a response without a body was not asked for.
            first = body.feed(rest) if body.done else rest
        except BaseException:
            connection.close()
            raise

        def release() -> None:
            if body.done and not body.rest and head.keeps_connection:
                self._keep(origin, connection)
            else:
                connection.close()

        return httpx.Response(
            head.status,
            headers=head.headers,
            stream=_ResponseStream(connection, body, first, read_s, release),
            extensions={
                "http_version": b"HTTP/" + head.version,
                "reason_phrase": head.reason,
            },
        )


async def _read_head(connection: "_Connection", timeout_s: float | None) -> tuple[Head, bytes]:
    data = b""
    while True:
        found = split_head(data)
        if found is not None and found[0].status == 101:
            raise httpx.RemoteProtocolError("the server switched to another protocol")
        if found is not None and found[0].status >= 200:
            return found
        if found is not None:
            data = found[1]
            continue
        try:
            more = await connection.read(timeout_s)
        except httpx.ReadError as error:
            if data:
                raise
            raise _NoAnswer(str(error)) from error
        if not more:
            if data:
                raise httpx.RemoteProtocolError("connection closed inside the response head")
            raise _NoAnswer("connection closed without an answer")
        data += more


class _NoAnswer(httpx.RemoteProtocolError):
    """The connection ended before any byte of the answer."""


class _ResponseStream(httpx.AsyncByteStream):
    def __init__(
        self,
        connection: "_Connection",
        body: Body,
        first: bytes,
        timeout_s: float | None,
        release: Callable[[], None],
    ) -> None:
        self._connection = connection
        self._body = body
        self._first = first
        self._timeout_s = timeout_s
        self._release: Callable[[], None] | None = release

    async def __aiter__(self) -> AsyncIterator[bytes]:
        body = self._body
        data = self._first
        self._first = b""
        if data and (content := body.feed(data)):
            yield content
        while not body.done:
            data = await self._connection.read(self._timeout_s)
            if not data:
                body.end()
            elif content := body.feed(data):
                yield content

    async def aclose(self) -> None:
        release, self._release = self._release, None
        if release is not None:
            release()


class _Connection(asyncio.Protocol):
    """A connection as reads and writes. It holds no more than `_READ_AHEAD_BYTES` and one read."""

    def __init__(self) -> None:
        self._transport = cast("asyncio.Transport", None)
        self._received: list[bytes] = []
        self._received_bytes = 0
        self._ended = False
        self._error: Exception | None = None
        self._writing_paused = False
        self._reading_paused = False
        self._changed: asyncio.Future[None] | None = None

    @property
    def is_fresh(self) -> bool:
        """Open, all written, and nothing to read: fit for another request."""
        return not (self._ended or self._received or self._writing_paused)

    async def write(self, data: bytes, timeout_s: float | None) -> None:
        """Return when the system has taken all of it, or when an answer or the end came before.

        Raises:
            httpx.WriteTimeout: nothing was taken for `timeout_s` seconds.
        """
        self._transport.write(data)
        while self._writing_paused and not self._received and not self._ended:
            waiting_bytes = self._transport.get_write_buffer_size()
            try:
                await self._wait(timeout_s)
            except TimeoutError as error:
                if self._transport.get_write_buffer_size() >= waiting_bytes:
                    raise httpx.WriteTimeout(f"nothing was taken for {timeout_s:g} s") from error

    async def read(self, timeout_s: float | None) -> bytes:
        """All that has come, at least a byte; nothing at the end of the connection.

        Raises:
            httpx.ReadTimeout: nothing came for `timeout_s` seconds.
            httpx.ReadError: the connection broke.
        """
        if not self._received and not self._ended:
            try:
                await self._wait(timeout_s)
            except TimeoutError as error:
                raise httpx.ReadTimeout(f"nothing came for {timeout_s:g} s") from error
        if not self._received and self._error is not None:
            raise httpx.ReadError(_words(self._error))
        data = self._received[0] if len(self._received) == 1 else b"".join(self._received)
        self._received.clear()
        self._received_bytes = 0
        if self._reading_paused:
            self._reading_paused = False
            self._transport.resume_reading()
        return data

    def close(self) -> None:
        self._transport.abort()

    async def _wait(self, timeout_s: float | None) -> None:
        self._changed = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(timeout_s):
                await self._changed
        finally:
            self._changed = None

    def _wake(self) -> None:
        if self._changed is not None and not self._changed.done():
            self._changed.set_result(None)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        # Writing is "paused" from the first byte that the system does not take.
        self._transport.set_write_buffer_limits(high=0)

    def data_received(self, data: bytes) -> None:
        self._received.append(data)
        self._received_bytes += len(data)
        if self._received_bytes >= _READ_AHEAD_BYTES and not self._reading_paused:
            self._reading_paused = True
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> None:
        self._ended = True
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended = True
        self._error = exc
        self._wake()

    def pause_writing(self) -> None:
        self._writing_paused = True

    def resume_writing(self) -> None:
        self._writing_paused = False
        self._wake()


def _words(error: Exception) -> str:
    """The cause in the words of the system, without asyncio's own around them."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"TLS certificate refused: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"TLS: {(error.reason or str(error)).replace('_', ' ').lower()}"
    if isinstance(error, socket.gaierror):
        return error.strerror or str(error)
    # asyncio writes "[Errno 111] Connect call failed (…)", and one such text for several addresses.
    numbers = dict.fromkeys(re.findall(r"\[Errno (\d+)\]", str(error)))
    if isinstance(error, OSError) and numbers:
        return "; ".join(os.strerror(int(number)) for number in numbers)
    return str(error)

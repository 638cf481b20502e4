"""An HTTP/1.1 transport for httpx: one kept connection for each origin, read in bulk.

Requests, errors and tests remain those of httpx. With httpx's own transport, a stream of small
chunks costs 13-16 microseconds of CPU for each event, and 4 with this one: a read takes all that
has arrived, and `http1.Chunked` decodes it in one pass.
"""

import asyncio
import os
import ssl
import time
from collections.abc import AsyncIterator, Callable, Mapping
from typing import TypeAlias, cast

import httpx

from codex_py.errors import ExitCode, ModelError
from codex_py.http.connection import Connection, os_words
from codex_py.http.encoding import (
    IDENTITY,
    DamagedBody,
    Unpacker,
    is_packed,
    unreadable,
)
from codex_py.http.http1 import Body, Head, body_of, request_head, split_head
from codex_py.http.proxy import ProxyTransport, proxies_from

_KEEP_S = 60.0
"""A connection that was idle for longer is not used again: firewalls forget it silently."""
_HAPPY_EYEBALLS_S = 0.25
"""The head start of each address over the next (RFC 8305)."""

LOCATION = "location"
"""The response extension that contains the header of this name."""
ANSWERER = "answerer"
"""The response extension that names what answered, for messages in place of the URL. A transport
that reaches no server sets it."""
SENT = "sent"
"""The request extension with a function, called when the request has been written, or answered
before that."""

_Origin: TypeAlias = tuple[str, str, int]
"""The scheme, the host and the port."""
_Timeouts: TypeAlias = Mapping[str, float | None]
"""Seconds for `connect`, `read` and `write`; None for no limit."""


def http_client(
    *, environment: Mapping[str, str], transport: httpx.AsyncBaseTransport | None = None
) -> httpx.AsyncClient:
    """Create the HTTP client of this program. It follows no redirects.

    A body is decompressed as it is read, in small pieces. An unknown compression raises an
    `httpx.DecodingError`.

    Raises:
        ConfigError: a proxy variable cannot be used.
    """
    return httpx.AsyncClient(
        transport=transport or http_transport(environment),
        # The proxies are read from `environment`; httpx would read them from the process.
        trust_env=False,
        headers=IDENTITY,
        timeout=httpx.Timeout(60.0),
        event_hooks={"response": [_set_headers_aside]},
    )


async def _set_headers_aside(response: httpx.Response) -> None:
    """Remove the headers that httpx would act on."""
    # httpx parses the location although it follows no redirect, and an invalid URL raises
    # unexpected exceptions.
    response.extensions[LOCATION] = response.headers.pop("location", "")
    encoding = response.headers.pop("content-encoding", "")
    # httpx would decompress the body without a bound.
    if is_packed(encoding):
        body = cast("httpx.AsyncByteStream", response.stream)
        response.stream = _PackedBody(body, encoding)


def http_transport(environment: Mapping[str, str]) -> httpx.AsyncBaseTransport:
    """Create the transport: direct, or through the proxies that `environment` names."""
    proxies = proxies_from(environment)
    if proxies:
        return ProxyTransport(BulkTransport(), proxies)
    return BulkTransport()


class BulkTransport(httpx.AsyncBaseTransport):
    """Direct HTTP/1.1 connections.

    Honours the extensions `SENT` and `timeout` (`connect`, `read`, `write`; seconds without any
    progress). If a kept connection closes before the first byte of the answer, the request is sent
    once more on a fresh one.

    Raises:
        httpx.TransportError: the same errors as from httpx's own transport; the message is the
            operating system's.
    """

    def __init__(self) -> None:
        self._kept: dict[_Origin, tuple[Connection, float]] = {}
        """The idle connections, and since when, on the clock of `time.monotonic`."""
        self._tls: ssl.SSLContext | None = None

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        stream = cast("httpx.AsyncByteStream", request.stream)
        content = b"".join([part async for part in stream])
        head = request_head(request, content)
        url = request.url
        host = url.raw_host.decode("ascii")
        default_port = 443 if url.scheme == "https" else 80
        origin = (url.scheme, host, url.port or default_port)
        kept = self._take_kept(origin)
        if kept is not None:
            try:
                return await self._exchange(kept, origin, request, head, content)
            except _NoAnswer:
                # The connection was closed while it was idle.
                pass
        timeouts: _Timeouts = request.extensions.get("timeout", {})
        connection = await self._connect(origin, timeouts.get("connect"))
        return await self._exchange(connection, origin, request, head, content)

    async def aclose(self) -> None:
        for connection, _ in self._kept.values():
            connection.close()
        self._kept.clear()
        # Sockets are closed in the next round of the loop.
        await asyncio.sleep(0)

    def _take_kept(self, origin: _Origin) -> Connection | None:
        """Take the idle connection to an origin; None if there is none that can be used."""
        kept = self._kept.pop(origin, None)
        if kept is None:
            return None
        connection, since_s = kept
        idle_s = time.monotonic() - since_s
        if connection.is_fresh and idle_s < _KEEP_S:
            return connection
        connection.close()
        return None

    async def _connect(self, origin: _Origin, timeout_s: float | None) -> Connection:
        scheme, host, port = origin
        tls = None
        if scheme == "https":
            tls = self._tls_context()
        try:
            async with asyncio.timeout(timeout_s):
                # asyncio sets TCP_NODELAY on every connection.
                _, connection = await asyncio.get_running_loop().create_connection(
                    Connection,
                    host,
                    port,
                    ssl=tls,
                    server_hostname=host if tls else None,
                    happy_eyeballs_delay=_HAPPY_EYEBALLS_S,
                )
        except TimeoutError as error:
            raise httpx.ConnectTimeout(
                os_words(error) or f"no answer in {timeout_s:g} s"
            ) from error
        except OSError as error:
            raise httpx.ConnectError(_connect_words(error, scheme)) from error
        return connection

    def _tls_context(self) -> ssl.SSLContext:
        """The context of all connections. Raises a `ModelError` without readable certificates."""
        if self._tls is None:
            # Reading the certificates takes some 20 ms, which plain http:// does not need.
            try:
                self._tls = httpx.create_ssl_context()
            except OSError as error:
                variables = os.environ
                source = variables.get("SSL_CERT_FILE") or variables.get("SSL_CERT_DIR")
                raise ModelError(
                    f"certificates cannot be read from {source}: {os_words(error)};"
                    " correct or unset SSL_CERT_FILE and SSL_CERT_DIR",
                    code="config",
                    exit_code=ExitCode.CONFIGURATION,
                ) from error
            self._tls.set_alpn_protocols(["http/1.1"])
        return self._tls

    async def _exchange(
        self,
        connection: Connection,
        origin: _Origin,
        request: httpx.Request,
        sent_head: bytes,
        sent_body: bytes,
    ) -> httpx.Response:
        """Send a request, and read the head of its answer.

        The body is read as it is asked for; when it is closed, the connection is kept or closed.

        Raises:
            _NoAnswer: the connection ended before any byte of the answer.
        """
        timeouts: _Timeouts = request.extensions.get("timeout", {})
        read_s = timeouts.get("read")
        try:
            await connection.write(sent_head, sent_body, timeouts.get("write"))
            sent = request.extensions.get(SENT)
            if sent is not None:
                sent()
            head, rest = await _read_head(connection, read_s)
            body = body_of(head, request.method)
            # If the body is empty, the bytes after the head are not part of this response.
            first = body.feed(rest) if body.done else rest
        except BaseException:
            connection.close()
            raise

        def release() -> None:
            is_done = body.done and not body.rest and head.keeps_connection
            if is_done and connection.is_fresh and origin not in self._kept:
                self._kept[origin] = (connection, time.monotonic())
            else:
                connection.close()

        content = _content(connection, body, first, read_s)
        stream = _ResponseStream(content, release)
        return httpx.Response(head.status, headers=head.headers, stream=stream)


async def _content(
    connection: Connection,
    body: Body,
    first: bytes,
    timeout_s: float | None,
) -> AsyncIterator[bytes]:
    """Read the content of a body, as it arrives. `first`: bytes that were read with the head.

    Raises:
        httpx.TransportError: the connection broke, nothing came for `timeout_s` seconds, or the
            body is cut short.
    """
    if first:
        piece = body.feed(first)
        if piece:
            yield piece
    while not body.done:
        data = await connection.read(timeout_s)
        if not data:
            body.end()
            return
        piece = body.feed(data)
        if piece:
            yield piece


def _connect_words(error: OSError, scheme: str) -> str:
    """Why no connection was made."""
    words = os_words(error)
    is_of_tls = isinstance(error, ssl.SSLError | ConnectionResetError)
    if scheme != "https" or not is_of_tls:
        return words
    hint = "; is it an http:// address?"
    if isinstance(error, ssl.SSLCertVerificationError):
        hint = ""
    return f"the TLS handshake failed: {words}{hint}"


async def _read_head(
    connection: Connection, timeout_s: float | None
) -> tuple[Head, bytes]:
    """Read the whole head of the answer within `timeout_s`, and the bytes after it.

    A server could send it byte by byte for hours. Answers that only announce another one, with a
    status below 200, are skipped.
    """
    data = b""
    try:
        async with asyncio.timeout(timeout_s):
            while True:
                found = split_head(data)
                if found is None:
                    data += await _more_head(connection, data)
                    continue
                head, rest = found
                if head.status == 101:
                    raise httpx.RemoteProtocolError(
                        "the server switched to another protocol"
                    )
                if head.status >= 200:
                    return found
                data = rest
    except TimeoutError as error:
        cause = "nothing came for"
        if data:
            cause = "the head of the answer was not whole after"
        raise httpx.ReadTimeout(f"{cause} {timeout_s:g} s") from error


async def _more_head(connection: Connection, data: bytes) -> bytes:
    """Read at least one more byte; `data` is the part of the head received so far."""
    try:
        more = await connection.read(None)
    except httpx.ReadError as error:
        if data:
            raise
        raise _NoAnswer(str(error)) from error
    if not more:
        if data:
            raise httpx.RemoteProtocolError(
                "connection closed inside the response head"
            )
        raise _NoAnswer("connection closed without an answer")
    return more


class _NoAnswer(httpx.RemoteProtocolError):
    """The connection ended before any byte of the answer."""


class _ResponseStream(httpx.AsyncByteStream):
    """The body of a response. `release`: called once, when the body is closed."""

    def __init__(
        self, content: AsyncIterator[bytes], release: Callable[[], None]
    ) -> None:
        self._content = content
        self._release: Callable[[], None] | None = release

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._content

    async def aclose(self) -> None:
        release = self._release
        self._release = None
        if release is not None:
            release()


class _PackedBody(httpx.AsyncByteStream):
    """Decompresses a body.

    Its errors are raised on reading, so that the response's status is known even then.
    """

    def __init__(self, body: httpx.AsyncByteStream, encoding: str) -> None:
        self._body = body
        self._encoding = encoding

    async def __aiter__(self) -> AsyncIterator[bytes]:
        reason = unreadable(self._encoding)
        if reason is not None:
            raise httpx.DecodingError(reason)
        unpacker = Unpacker(self._encoding)
        try:
            async for packed in self._body:
                for piece in unpacker.feed(packed):
                    yield piece
        except DamagedBody as error:
            raise httpx.ReadError(str(error)) from error

    async def aclose(self) -> None:
        await self._body.aclose()

"""Serves a connection of a command as an HTTP proxy.

Each request is judged by itself and written anew, so that the server gets one length and one host.
https://www.rfc-editor.org/rfc/rfc9112.html
"""

import asyncio
import json
import re
from collections.abc import Sequence
from contextlib import suppress
from http import HTTPStatus
from typing import Any, Final, NamedTuple, TypeAlias, cast

import h11

from codex_py.protocol.hosts import normal_host
from codex_py.sandbox.network.gate import (
    Blocked,
    ConnectionBlocked,
    ConnectionGate,
    Kind,
    Streams,
)
from codex_py.sandbox.network.tunnel import READ_BYTES, join

_Headers: TypeAlias = Sequence[tuple[bytes, bytes]]

_MAX_HEAD_BYTES: Final = 256 << 10
_LINGER_S: Final = 1.0
"""How long the client may send after an answer that ends the connection."""
_HTTP_PORT: Final = 80
_URL: Final = re.compile(
    r"http://(?:[^/?#@\\]*@)?(\[[0-9a-f:.]+\]|[\w.-]+)(?::(\d{1,5}))?(/[^#]*|\?[^#]*)?(?:#.*)?",
    re.ASCII | re.IGNORECASE,
)
_AUTHORITY: Final = re.compile(
    r"(\[[0-9a-f:.]+\]|[\w.-]+):(\d{1,5})", re.ASCII | re.IGNORECASE
)
_HOST: Final = re.compile(
    r"(\[[0-9a-f:.]+\]|[\w.-]+)(?::(\d{1,5}))?", re.ASCII | re.IGNORECASE
)
_OF_ONE_HOP: Final = {
    b"connection",
    b"keep-alive",
    b"proxy-connection",
    b"proxy-authorization",
    b"te",
    b"trailer",
    b"upgrade",
    b"proxy-authenticate",
    b"expect",
    b"host",
}
"""The headers that are not passed on."""
_ERROR_HEADERS: Final = {
    "denied": "blocked-by-denylist",
    "method_not_allowed": "blocked-by-method-policy",
    "mitm_required": "blocked-by-mitm-required",
}
"""The values of the header `x-proxy-error`, by reason, as in Codex's proxy."""
_MESSAGES: Final = {
    "not_allowed": "Domain not in allowlist.",
    "denied": "Domain denied by the sandbox policy.",
    "not_allowed_local": "Sandbox policy blocks local/private network addresses.",
    "method_not_allowed": "Method not allowed in limited mode.",
    "mitm_required": "Encrypted connections are not allowed in limited mode.",
}


class _BadRequest(Exception):
    """Raised for a request that is not one for a proxy. The message is for the client."""


async def serve_http(
    client: Streams,
    gate: ConnectionGate,
    first: bytes,
) -> None:
    """Serve a connection to its end.

    Args:
        first: the bytes that were already read from it.

    Raises:
        OSError, h11.ProtocolError: the connection broke.
    """
    await _Client(client, gate, first).serve()


class _Client:
    """A connection of a command to the proxy."""

    def __init__(
        self,
        streams: Streams,
        gate: ConnectionGate,
        first: bytes,
    ) -> None:
        self._streams = streams
        self._gate = gate
        self._http = h11.Connection(
            h11.SERVER, max_incomplete_event_size=_MAX_HEAD_BYTES
        )
        self._http.receive_data(first)
        self._has_body = True
        """False for an answer to a HEAD request. The answer to a refused CONNECT has a body."""

    async def serve(self) -> None:
        """Answer requests until the connection ends."""
        try:
            while True:
                request = await _next(self._http, self._streams)
                if not isinstance(request, h11.Request):
                    return
                if not await self._answer(request):
                    return
                self._http.start_next_cycle()
        except h11.RemoteProtocolError as error:
            await self._say(error.error_status_hint, str(error))

    async def _answer(self, request: h11.Request) -> bool:
        """Answer a request. False if the connection accepts no further request."""
        self._has_body = request.method != b"HEAD"
        kind: Kind = "http"
        if request.method == b"CONNECT":
            kind = "https_connect"
        try:
            target = _target(request)
            method = request.method.decode("ascii")
            upstream = await self._gate.open(target.host, target.port, kind, method)
        except (_BadRequest, ValueError) as error:
            await self._say(400, str(error))
            return False
        except ConnectionBlocked as refused:
            await self._refuse(refused.blocked, kind)
            return False
        except OSError as error:
            reason = error.strerror or error
            await self._say(502, f"the host cannot be reached: {reason}")
            return False
        _, writer = upstream
        try:
            if kind == "https_connect":
                await self._tunnel(upstream)
                return False
            return await self._exchange(request, target, upstream)
        finally:
            writer.close()

    async def _exchange(
        self, request: h11.Request, target: "_Target", upstream: Streams
    ) -> bool:
        """Pass on a request and its response. False as for `_answer`."""
        exchange = _Exchange(self._http, self._streams, upstream)
        is_whole = await exchange.run(request, target)
        if not is_whole and self._http.our_state is h11.SEND_RESPONSE:
            await self._say(502, "the host gave no answer")
        return is_whole

    async def _tunnel(self, upstream: Streams) -> None:
        """Answer a CONNECT, and pass bytes both ways until both sides have ended."""
        head = h11.Response(
            status_code=200, headers=[], reason=b"Connection established"
        )
        await _send(self._http, self._streams, head)
        # Pass on the bytes that the client sent without waiting.
        sent_early, _ = self._http.trailing_data
        _, writer = upstream
        writer.write(sent_early)
        await join(self._streams, upstream)

    async def _refuse(self, blocked: Blocked, kind: Kind) -> None:
        """Say why a connection is blocked, in the form of Codex's proxy."""
        source = "baseline_policy"
        if blocked.reason in {"method_not_allowed", "mitm_required"}:
            source = "mode_guard"
        facts = {
            "status": "blocked",
            "host": blocked.host,
            "reason": blocked.reason,
            "decision": "deny",
            "source": source,
            "protocol": kind,
            "port": blocked.port,
            "message": _MESSAGES[blocked.reason],
        }
        name = _ERROR_HEADERS.get(blocked.reason, "blocked-by-allowlist")
        more = ((b"x-proxy-error", name.encode()),)
        text = json.dumps(facts, separators=(",", ":"))
        await self._say(403, text, more, kind=b"application/json")

    async def _say(
        self,
        status: int,
        text: str,
        more: _Headers = (),
        *,
        kind: bytes = b"text/plain",
    ) -> None:
        """Answer, and end the connection once the client has read the answer.

        Does nothing if an answer has already begun.

        Args:
            more: headers that are added.
            kind: the type of the text.
        """
        if self._http.our_state not in {h11.IDLE, h11.SEND_RESPONSE}:
            return
        body = text.encode()
        headers = [
            (b"content-type", kind),
            (b"content-length", str(len(body)).encode()),
            *more,
            (b"connection", b"close"),
        ]
        phrase = HTTPStatus(status).phrase.encode()
        response = h11.Response(status_code=status, headers=headers, reason=phrase)
        if not self._has_body:
            body = b""
        for event in (response, h11.Data(data=body), h11.EndOfMessage()):
            await _send(self._http, self._streams, event)
        reader, writer = self._streams
        writer.write_eof()
        # If the connection were closed with unread bytes, the client would not see the answer.
        with suppress(TimeoutError):
            async with asyncio.timeout(_LINGER_S):
                while await reader.read(READ_BYTES):
                    pass


class _Exchange:
    """One request and its response, which may begin before the request has ended."""

    def __init__(
        self, http: h11.Connection, client: Streams, upstream: Streams
    ) -> None:
        self._http = http
        """The connection of the client, to which we are the server."""
        self._client = client
        self._upstream = upstream
        self._out = h11.Connection(
            h11.CLIENT, max_incomplete_event_size=_MAX_HEAD_BYTES
        )
        """The connection to the server, to which we are the client."""

    async def run(self, request: h11.Request, target: "_Target") -> bool:
        """Pass on both. False if the client's connection accepts no further request."""
        kept = _kept(request.headers)
        headers = [(b"host", target.authority), *kept, (b"connection", b"close")]
        is_sent = False
        try:
            head = h11.Request(
                method=request.method, target=target.path, headers=headers
            )
            await _send(self._out, self._upstream, head)
            async with asyncio.TaskGroup() as group:
                sending = group.create_task(self._send_body())
                await self._receive()
                # If the response ends first, the rest of the request stays unsent.
                is_sent = sending.done()
                sending.cancel()
        except* (OSError, h11.ProtocolError):
            is_sent = False
        is_done = self._http.our_state is self._http.their_state is h11.DONE
        return is_sent and is_done

    async def _send_body(self) -> None:
        """Pass on the body of the request, to its end."""
        if self._http.they_are_waiting_for_100_continue:
            interim = h11.InformationalResponse(status_code=100, headers=[])
            await _send(self._http, self._client, interim)
        while True:
            event = await _next(self._http, self._client)
            if isinstance(event, h11.ConnectionClosed):
                raise ConnectionAbortedError
            await self._pass_on(event)
            if isinstance(event, h11.EndOfMessage):
                return

    async def _pass_on(self, event: h11.Data | h11.EndOfMessage) -> None:
        # A server that reads no more may already have answered.
        with suppress(OSError):
            await _send(self._out, self._upstream, event)

    async def _receive(self) -> None:
        """Pass on the response, to its end."""
        while True:
            event: Any = await _next(self._out, self._upstream)
            match event:
                case h11.InformationalResponse():
                    continue
                case h11.Response():
                    headers = _kept(event.headers)
                    event = h11.Response(
                        status_code=event.status_code,
                        headers=headers,
                        reason=event.reason,
                    )
                case h11.Data() | h11.EndOfMessage():
                    pass
                case _:
                    raise ConnectionAbortedError
            await _send(self._http, self._client, event)
            if isinstance(event, h11.EndOfMessage):
                return


class _Target(NamedTuple):
    """The place that a request asks for."""

    host: str
    port: int
    path: str
    """The path with its query; empty for a tunnel."""
    authority: bytes
    """The host with its port, as they are written in the request."""


def _target(request: h11.Request) -> _Target:
    """The place that a request asks for.

    Raises:
        _BadRequest: the request is not one for a proxy, or its headers contradict each other.
    """
    names = [name for name, _ in request.headers]
    if b"transfer-encoding" in names and b"content-length" in names:
        raise _BadRequest("a request has one length")
    target = request.target.decode("ascii")
    if request.method == b"CONNECT":
        found = _AUTHORITY.fullmatch(target)
    else:
        found = _URL.fullmatch(target)
    if found is None:
        raise _BadRequest(
            "this is a proxy: ask for `http://HOST/PATH`, or `CONNECT HOST:PORT`"
        )
    host = found[1]
    written_port = found[2]
    port = int(written_port or _HTTP_PORT)
    if request.method == b"CONNECT":
        return _Target(host, port, "", target.encode())
    for name, value in request.headers:
        if name == b"host" and not _is_host(value, host, port):
            raise _BadRequest("Host header does not match request target")
    path = found[3] or "/"
    if path.startswith("?"):
        path = f"/{path}"
    authority = host
    if written_port:
        authority = f"{host}:{written_port}"
    return _Target(host, port, path, authority.encode())


def _is_host(
    value: bytes,
    host: str,
    port: int,
) -> bool:
    """True if the value of a `Host` header means this host and port."""
    found = _HOST.fullmatch(value.decode("latin-1"))
    if found is None:
        return False
    is_same_host = normal_host(found[1]) == normal_host(host)
    return is_same_host and int(found[2] or _HTTP_PORT) == port


def _kept(headers: _Headers) -> list[tuple[bytes, bytes]]:
    """The headers that are passed on.

    If there is a `transfer-encoding`, it decides the length, and a `content-length` is dropped.
    """
    dropped = set(_OF_ONE_HOP)
    for name, value in headers:
        if name == b"connection":
            dropped |= {each.strip().lower() for each in value.split(b",")}
        if name == b"transfer-encoding":
            dropped.add(b"content-length")
    # It must be passed on even if `connection` names it.
    dropped.discard(b"transfer-encoding")
    return [(name, value) for name, value in headers if name not in dropped]


async def _next(http: h11.Connection, streams: Streams) -> Any:
    """The next event of a connection, which is read for it as far as needed."""
    reader, _ = streams
    event = http.next_event()
    while event is h11.NEED_DATA:
        http.receive_data(await reader.read(READ_BYTES))
        event = http.next_event()
    return event


async def _send(
    http: h11.Connection,
    streams: Streams,
    event: Any,
) -> None:
    """Write an event to a connection, and wait until most of it was taken."""
    data = cast("bytes | None", http.send(event))
    if data:
        _, writer = streams
        writer.write(data)
        await writer.drain()

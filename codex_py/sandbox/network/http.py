"""An HTTP proxy for one connection of a command.

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
_HEADERS: Final = {
    "denied": "blocked-by-denylist",
    "method_not_allowed": "blocked-by-method-policy",
    "mitm_required": "blocked-by-mitm-required",
}
_MESSAGES: Final = {
    "not_allowed": "Domain not in allowlist.",
    "denied": "Domain denied by the sandbox policy.",
    "not_allowed_local": "Sandbox policy blocks local/private network addresses.",
    "method_not_allowed": "Method not allowed in limited mode.",
    "mitm_required": "Encrypted connections are not allowed in limited mode.",
}


class _BadRequest(Exception):
    pass


async def serve_http(
    client: Streams,
    gate: ConnectionGate,
    first: bytes,
) -> None:
    """Serve a connection to its end. `first`: the bytes that were already read from it.

    Raises:
        OSError, h11.ProtocolError: the connection broke.
    """
    await _Client(client, gate, first).serve()


class _Client:
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
        """False for an answer to a HEAD request, which has no body."""

    async def serve(self) -> None:
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
        is_tunnel = request.method == b"CONNECT"
        kind: Kind = "http"
        if is_tunnel:
            kind = "https_connect"
        self._has_body = request.method != b"HEAD"
        try:
            target = _target(request)
            method = request.method.decode("ascii")
            upstream = await self._gate.open(target.host, target.port, kind, method)
        except (_BadRequest, ValueError) as error:
            await self._say(400, str(error))
        except ConnectionBlocked as refused:
            await self._refuse(refused.blocked, kind)
        except OSError as error:
            await self._say(
                502, f"the host cannot be reached: {error.strerror or error}"
            )
        else:
            try:
                if is_tunnel:
                    await self._tunnel(upstream)
                    return False
                exchange = _Exchange(self._http, self._streams, upstream)
                is_whole = await exchange.run(request, target)
                if not is_whole and self._http.our_state is h11.SEND_RESPONSE:
                    await self._say(502, "the host gave no answer")
                return is_whole
            finally:
                upstream[1].close()
        return False

    async def _tunnel(self, upstream: Streams) -> None:
        head = h11.Response(
            status_code=200, headers=[], reason=b"Connection established"
        )
        await _send(self._http, self._streams, head)
        # Pass on the bytes that the client sent without waiting.
        upstream[1].write(self._http.trailing_data[0])
        await join(self._streams, upstream)

    async def _refuse(self, blocked: Blocked, kind: Kind) -> None:
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
        name = _HEADERS.get(blocked.reason, "blocked-by-allowlist")
        more = ((b"x-proxy-error", name.encode()),)
        await self._say(
            403,
            json.dumps(facts, separators=(",", ":")),
            more,
            kind=b"application/json",
        )

    async def _say(
        self,
        status: int,
        text: str,
        more: _Headers = (),
        *,
        kind: bytes = b"text/plain",
    ) -> None:
        """Answer, and end the connection once the client has read the answer."""
        body = text.encode()
        headers = [
            (b"content-type", kind),
            (b"content-length", b"%d" % len(body)),
            *more,
            (b"connection", b"close"),
        ]
        if self._http.our_state not in {h11.IDLE, h11.SEND_RESPONSE}:
            return
        # The answer to a refused CONNECT has a body too.
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
        self._client = client
        self._upstream = upstream
        self._out = h11.Connection(
            h11.CLIENT, max_incomplete_event_size=_MAX_HEAD_BYTES
        )

    async def run(self, request: h11.Request, target: "_Target") -> bool:
        """Exchange both. False if the client's connection accepts no further request."""
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
                is_sent = sending.done()
                sending.cancel()
        except* (OSError, h11.ProtocolError):
            is_sent = False
        return is_sent and self._http.our_state is self._http.their_state is h11.DONE

    async def _send_body(self) -> None:
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
    host: str
    port: int
    path: str
    authority: bytes


def _target(request: h11.Request) -> _Target:
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
    port = int(found[2] or _HTTP_PORT)
    if request.method == b"CONNECT":
        return _Target(host, port, "", target.encode())
    for name, value in request.headers:
        if name == b"host" and not _is_host(value, host, port):
            raise _BadRequest("Host header does not match request target")
    path = found[3] or "/"
    if path.startswith("?"):
        path = f"/{path}"
    authority = host
    if found[2]:
        authority = f"{host}:{found[2]}"
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
    """The headers that are for the other side. If there are two lengths, only the decisive one."""
    dropped = set(_OF_ONE_HOP)
    for name, value in headers:
        if name == b"connection":
            dropped |= {each.strip().lower() for each in value.split(b",")}
        if name == b"transfer-encoding":
            dropped.add(b"content-length")
    dropped.discard(b"transfer-encoding")
    return [(name, value) for name, value in headers if name not in dropped]


async def _next(http: h11.Connection, streams: Streams) -> Any:
    while (event := http.next_event()) is h11.NEED_DATA:
        http.receive_data(await streams[0].read(READ_BYTES))
    return event


async def _send(
    http: h11.Connection,
    streams: Streams,
    event: Any,
) -> None:
    data = cast("bytes | None", http.send(event))
    if data:
        streams[1].write(data)
        await streams[1].drain()

"""Makes the HTTP client for MCP servers and for their logins.

Its responses are bounded, and its errors quote no header. The SDK uses httpx2 instead of httpx.
"""

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import partial
from http import HTTPStatus

import httpx2

from codex_py.http.encoding import (
    IDENTITY,
    DamagedBody,
    Unpacker,
    is_packed,
    unreadable,
)
from codex_py.protocol.json_fields import (
    JsonObject,
    as_object,
    json_object,
    text_field,
)
from codex_py.protocol.messages import decode_json, encode_json

_SERVER_ERROR = -32000
"""The JSON-RPC code for an error without a code."""
MAX_MESSAGE_BYTES = 32 * 1024 * 1024


def bounded_client(
    timeout: httpx2.Timeout | float,
    *,
    headers: Mapping[str, str] | None = None,
    auth: httpx2.Auth | tuple[str, str] | None = None,
    on_request: Callable[[httpx2.Request], Awaitable[None]] | None = None,
    on_response: Callable[[httpx2.Response], Awaitable[None]] | None = None,
    streams_events: bool = False,
) -> httpx2.AsyncClient:
    """Create a client that refuses responses over 32 MB, or with an unknown compression.

    Args:
        on_request: gets each request before it is sent, also requests from `auth`; an exception
            stops the request.
        on_response: gets each response first.
        streams_events: True: event streams are not bounded here, but by the SDK.
    """

    async def bound(response: httpx2.Response) -> None:
        if on_response is not None:
            await on_response(response)
        encoding = response.headers.pop("content-encoding", "")
        reason = unreadable(encoding)
        if reason is not None:
            raise httpx2.DecodingError(reason)
        if is_packed(encoding):
            assert isinstance(response.stream, httpx2.AsyncByteStream)
            response.stream = _UnpackedStream(response.stream, encoding)
        kind = response.headers.get("content-type", "")
        if not (streams_events and kind.startswith("text/event-stream")):
            assert isinstance(response.stream, httpx2.AsyncByteStream)
            response.stream = _BoundedStream(response.stream, _repair(response))

    request_hooks: list[Callable[[httpx2.Request], Awaitable[None]]] = []
    if on_request is not None:
        request_hooks.append(on_request)
    request_hooks.append(_check_headers)
    return httpx2.AsyncClient(
        headers={**IDENTITY, **(headers or {})},
        timeout=timeout,
        auth=auth,
        event_hooks={"request": request_hooks, "response": [bound]},
    )


async def _check_headers(request: httpx2.Request) -> None:
    for name, value in request.headers.raw:
        if value != value.strip() or re.search(rb"[\x00-\x08\x0a-\x1f\x7f]", value):
            # The library's own error would quote the value.
            raise httpx2.LocalProtocolError(
                f"the header {name.decode()!r} cannot be sent"
            )


class _UnpackedStream(httpx2.AsyncByteStream):
    """Unpacks a compressed body."""

    def __init__(self, stream: httpx2.AsyncByteStream, encoding: str) -> None:
        self._stream = stream
        self._unpacker = Unpacker(encoding)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._stream:
                for piece in self._unpacker.feed(chunk):
                    yield piece
        except DamagedBody as error:
            raise httpx2.ReadError(str(error)) from error

    async def aclose(self) -> None:
        await self._stream.aclose()


class _BoundedStream(httpx2.AsyncByteStream):
    """Yields one message as a single chunk."""

    def __init__(
        self, stream: httpx2.AsyncByteStream, repair: Callable[[bytes], bytes]
    ) -> None:
        self._stream = stream
        self._repair = repair

    async def __aiter__(self) -> AsyncIterator[bytes]:
        message = bytearray()
        async for chunk in self._stream:
            message += chunk
            if len(message) > MAX_MESSAGE_BYTES:
                raise httpx2.ReadError(
                    f"the server sent a message of more than {MAX_MESSAGE_BYTES >> 20} MB"
                )
        yield self._repair(_in_unicode(bytes(message)))

    async def aclose(self) -> None:
        await self._stream.aclose()


def _in_unicode(message: bytes) -> bytes:
    """Remove lone surrogates from JSON, because the SDK refuses a message that has one."""
    if b"\\ud" not in message.lower():
        return message
    try:
        return encode_json(decode_json(message))
    except (ValueError, RecursionError):
        return message


def _repair(response: httpx2.Response) -> Callable[[bytes], bytes]:
    """Return a function that makes a JSON-RPC message of the body of a response.

    Servers and gateways may answer a request with a bare error, which the SDK cannot read. For a
    response that cannot be such an error, the function returns the body unchanged.
    """
    if response.status_code not in {HTTPStatus.OK, HTTPStatus.BAD_REQUEST}:
        return bytes
    request = response.request
    if request.method != "POST":
        return bytes
    asked = json_object(request.content.decode(errors="replace"))
    request_id = asked.get("id")
    if "jsonrpc" not in asked or request_id is None:
        return bytes
    return partial(_with_envelope, request_id)


def _with_envelope(request_id: object, body: bytes) -> bytes:
    """Wrap a bare error as a JSON-RPC error; return any other body unchanged."""
    fields = json_object(body.decode(errors="replace"))
    error = fields.get("error")
    is_whole = "jsonrpc" in fields and fields.get("id") is not None
    if is_whole or "result" in fields or not error:
        return body
    if isinstance(error, str):
        details: JsonObject = {"message": error}
    else:
        details = as_object(error)
    text = text_field(details, "message")
    if not text:
        return body
    code = details.get("code")
    if not isinstance(code, int) or isinstance(code, bool):
        code = _SERVER_ERROR
    answer = {"code": code, "message": text}
    return encode_json({"jsonrpc": "2.0", "id": request_id, "error": answer})

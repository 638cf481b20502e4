"""Server-sent events, as model servers really send them.

httpx-sse does the framing (https://html.spec.whatwg.org/multipage/server-sent-events.html). What it does not
take — a byte order mark, a last event without its blank line, a wrong content type, a plain JSON body — is put
right in the bytes before it sees them.
"""

import time
from collections.abc import AsyncGenerator, AsyncIterator

import httpx
from httpx_sse import EventSource

from codex_py.errors import ExitCode, ModelError, StreamError

MAX_EVENT_BYTES = 64 * 1024 * 1024
"""What one event, or a plain JSON body, may take: a server that sends no end must not fill the memory."""

MAX_RESPONSE_BYTES = 512 * 1024 * 1024
"""What one response may take in all: what it says is kept until it is complete."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


async def server_sent_events(
    response: httpx.Response, *, max_quiet_s: float = 1200.0
) -> AsyncGenerator[str, None]:
    """The `data` of each event of a successful response whose body has not been read.

    Events without data are left out. The content type is not believed: whatever is not HTML is read as
    events, and a body that is one JSON object is given as the data of one event. Closing the generator
    leaves the response open; that is its owner's to close.

    Args:
        max_quiet_s: how long a server may keep the connection alive, with comments, without an event.

    Raises:
        StreamError: the connection broke or fell silent, or an event or the response is too large.
        ModelError: the body is an HTML page: something else than a model's service answered.
    """
    if response.headers.get("content-type", "").startswith("text/html"):
        raise ModelError(
            "the server answered with a web page where a stream was due; "
            "check the base URL of the provider",
            code="not_a_stream",
            status=response.status_code,
        )
    body = _EventBytes(response, max_quiet_s)
    headers = {"content-type": "text/event-stream"}
    events = EventSource(httpx.Response(200, headers=headers, stream=body)).aiter_sse()
    try:
        async for event in events:
            body.event_read()
            if event.data:
                yield event.data
    except httpx.ReadTimeout as error:
        raise _disconnected("idle timeout waiting for SSE", code="idle_timeout") from error
    except (httpx.RequestError, httpx.StreamError) as error:
        raise _disconnected(str(error) or type(error).__name__) from error
    finally:
        await events.aclose()


class _EventBytes(httpx.AsyncByteStream):
    """The body of a response in whole lines, in the form that httpx-sse reads."""

    def __init__(self, response: httpx.Response, max_quiet_s: float) -> None:
        self._response = response
        self._max_quiet_s = max_quiet_s
        self._bytes = 0
        self.event_read()

    def event_read(self) -> None:
        """What the bounds of a single event are counted from."""
        self._bytes_before_event = self._bytes
        self._event_at = time.monotonic()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        at_start = True
        is_json = False
        async for lines in self._lines():
            block = lines
            if at_start:
                block = block.removeprefix(_BYTE_ORDER_MARK).lstrip()
                if not block:
                    continue
                at_start = False
                if block.startswith(b"{"):
                    # No field of an event begins like this: a server that did not stream.
                    is_json = True
                    yield b"data:"
            if is_json:
                # Within JSON a line break is never more than white space.
                block = block.replace(b"\r", b" ").replace(b"\n", b" ")
            elif b"error:" in block:
                block = _error_fields_as_data(block)
            yield block
        # Ends an event that the server left open; after a finished one it means nothing.
        yield b"\n\n"

    async def _lines(self) -> AsyncIterator[bytes]:
        """The body cut after line ends; only the last block can lack one."""
        unfinished: list[bytes] = []
        async for piece in self._response.aiter_bytes():
            self._bytes += len(piece)
            self._check_bounds()
            end = max(piece.rfind(b"\n"), piece.rfind(b"\r")) + 1
            if not end:
                # Joined once at the line's end: a line of many pieces must not be copied for each.
                unfinished.append(piece)
                continue
            if unfinished:
                yield b"".join((*unfinished, piece[:end]))
                unfinished.clear()
            else:
                yield piece[:end]
            if end < len(piece):
                unfinished.append(piece[end:])
        if unfinished:
            yield b"".join(unfinished)

    def _check_bounds(self) -> None:
        if self._bytes - self._bytes_before_event > MAX_EVENT_BYTES:
            raise _disconnected(
                f"an event is larger than {MAX_EVENT_BYTES} bytes", code="event_too_large"
            )
        if self._bytes > MAX_RESPONSE_BYTES:
            raise _disconnected(
                f"the response is larger than {MAX_RESPONSE_BYTES} bytes", code="response_too_large"
            )
        if time.monotonic() - self._event_at > self._max_quiet_s:
            raise _disconnected(
                f"no event for {self._max_quiet_s:.0f} s, only signs of life", code="idle_timeout"
            )


def _error_fields_as_data(lines: bytes) -> bytes:
    """Older llama.cpp servers report a failure as `error: {…}`, a field that no parser knows."""
    return b"".join(
        b"data:" + line[len(b"error:") :] if line.startswith(b"error:") else line
        for line in lines.splitlines(keepends=True)
    )


def _disconnected(cause: str, *, code: str = "disconnected") -> StreamError:
    return StreamError(
        f"stream disconnected before completion: {cause}",
        code=code,
        exit_code=ExitCode.UNAVAILABLE,
        started=True,
    )

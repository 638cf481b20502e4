"""Reads server-sent events as real model servers send them.

Specification: https://html.spec.whatwg.org/multipage/server-sent-events.html. Also accepted are a
byte order mark, a last event without its blank line, and a body that is JSON, a web page or plain
words; the content type does not matter.

Nearly all events are a name and one line of data: they are split here, at 0.6 us each. httpx-sse
reads all others, at 4 to 30 us each.
"""

import codecs
import io
import re
import time
from collections.abc import AsyncGenerator, Sequence
from functools import lru_cache
from typing import TypeAlias

import httpx

from codex_py.errors import ExitCode, ModelError, StreamError

ServerSentEvent: TypeAlias = tuple[str, str]
"""The name of an event, and its data."""

MAX_EVENT_BYTES = 64 * 1024 * 1024
"""The limit of one event, or of a plain JSON body: a server that never ends it must not fill the
memory."""

_MAX_WORDS = 2_000
"""The number of characters that are kept of a body without events."""
_DOCUMENT = ("{", "[", "<")
"""The beginnings of bodies that are one document: JSON, or a web page."""
_FIELD = re.compile(r":|(?:data|event|id|retry|error)\b")

MAX_RESPONSE_BYTES = 256 * 1024 * 1024
"""The limit of a whole response, because its content is kept until it is complete."""


async def server_sent_events(
    response: httpx.Response, *, max_quiet_s: float = 1200.0
) -> AsyncGenerator[Sequence[ServerSentEvent]]:
    """Read the events of a successful response, and yield them in batches as they arrive.

    The body of the response must not have been read. The content type is ignored. Closing the
    generator leaves the response open.

    The name of an event is `message` by default. Events without data are left out. A body that is
    JSON or a web page becomes the data of one event, and so does the beginning of any other body
    that has no events but has words.

    Args:
        max_quiet_s: the longest time without a new event, while comments, empty objects or an
            event that is sent again and again keep the connection alive.

    Raises:
        StreamError: the connection broke or fell silent.
        ModelError: an event or the response is too large. Another attempt would take as long.
        ModelError: the body is packed in an unknown way.
    """
    splitter = _Splitter()
    bounds = _Bounds(max_quiet_s)
    last = ("", "")
    try:
        async for piece in response.aiter_bytes():
            bounds.check(len(piece))
            events = splitter.feed(piece)
            if events:
                bounds.events_read(are_news=_are_news(events, last))
                last = events[-1]
                yield events
        events = splitter.feed(b"", final=True)
        if events:
            yield events
    except httpx.ReadTimeout as error:
        raise StreamError.broke_off(
            "idle timeout waiting for SSE", code="idle_timeout"
        ) from error
    except httpx.DecodingError as error:
        raise ModelError(
            str(error), code="packed", status=response.status_code
        ) from error
    except (httpx.RequestError, httpx.StreamError) as error:
        raise StreamError.broke_off(str(error) or type(error).__name__) from error


def _are_news(events: Sequence[ServerSentEvent], last: ServerSentEvent) -> bool:
    """True if an event is not an empty object, and differs from `last`, the one before the batch."""
    for event in events:
        _, data = event
        if event != last and data.strip() != "{}":
            return True
    return False


class _Splitter:
    """Splits bytes into complete events."""

    def __init__(self) -> None:
        self._decoder = io.IncrementalNewlineDecoder(
            codecs.getincrementaldecoder("utf-8-sig")("replace"), translate=True
        )
        self._unfinished: list[str] = []
        """The start of an event, in pieces, so that a large one is not copied for each piece."""
        self._line_ended = False
        """True: the text so far ends with a newline."""
        self._is_document: bool | None = None
        """True if the body is JSON or a web page: no event begins like these. None before the first
        character."""
        self._has_events = False
        self._head = ""
        """The beginning of a body without events so far."""

    def feed(self, piece: bytes, *, final: bool = False) -> Sequence[ServerSentEvent]:
        """Add bytes of the body. Returns the events that are complete now.

        `final`: the body ends here.
        """
        text = self._decoder.decode(piece, final)
        if self._is_document is None:
            text = text.lstrip()
            if text:
                self._is_document = text.startswith(_DOCUMENT)
        events = self._events(text, final=final)
        if self._has_events:
            return events
        if events:
            self._has_events = True
            return events
        self._head += text[: _MAX_WORDS - len(self._head)]
        if final and _is_words(self._head):
            return [("message", self._head)]
        return []

    def _events(self, text: str, *, final: bool) -> Sequence[ServerSentEvent]:
        # The two newlines after an event may arrive apart.
        ends_with_second_newline = self._line_ended and text.startswith("\n")
        ends_event = "\n\n" in text or ends_with_second_newline
        if text:
            self._unfinished.append(text)
            self._line_ended = text.endswith("\n")
        if not final and (self._is_document or not ends_event):
            return []
        text = "".join(self._unfinished)
        if not text:
            return []
        if self._is_document:
            return [("message", text)]
        if final:
            text += "\n\n"
        *blocks, rest = text.split("\n\n")
        self._unfinished = [rest]
        events: list[ServerSentEvent] = []
        for block in blocks:
            event = _common_event(block)
            if event is None:
                return _any_events(blocks)
            events.append(event)
        return events


def _is_words(head: str) -> bool:
    """True if a body without events has words, and does not begin with a field of an event."""
    return bool(head.strip()) and _FIELD.match(head) is None


def _common_event(block: str) -> ServerSentEvent | None:
    """The event, if it is one line of data, alone or after a line with its name; else None."""
    head, found, data = block.partition("data: ")
    if not found:
        head, _, data = block.partition("data:")
    if not data or "\n" in data:
        return None
    if not head:
        return "message", data
    # A longer line is not a name, and must not fill the cache.
    name = _event_name(head) if len(head) < 128 else None
    if name is None:
        return None
    return (name, data)


@lru_cache(maxsize=64)
def _event_name(head: str) -> str | None:
    """The name in the line before the data; None if there is something else before it."""
    line = re.fullmatch(r"event: ?([\w.]+)\n", head)
    return line and line[1]


def _any_events(blocks: Sequence[str]) -> Sequence[ServerSentEvent]:
    """Read events of any form. Blocks without data have no event."""
    # Most responses do not need this import.
    from httpx_sse import EventSource  # 1 ms

    text = "\n\n".join([*blocks, ""])
    # Older llama.cpp servers report a failure in a non-standard field, `error`.
    text = re.sub(r"(?m)^error:", "data:", text)
    response = httpx.Response(
        200,
        headers={"content-type": "text/event-stream"},
        content=text.encode(),
    )
    parsed = EventSource(response).iter_sse()
    return [(event.event, event.data) for event in parsed if event.data]


class _Bounds:
    """Enforces the size limits of events and of the response, and the time limit between events."""

    def __init__(self, max_quiet_s: float) -> None:
        self._max_quiet_s = max_quiet_s
        self._bytes = 0
        self.events_read(are_news=True)

    def events_read(self, *, are_news: bool) -> None:
        """Begin with the next event. `are_news`: false for a mere sign of life."""
        self._bytes_before_event = self._bytes
        if are_news:
            self._news_at = time.monotonic()

    def check(self, size_bytes: int) -> None:
        """Count the bytes of a read.

        Raises:
            ModelError: the event or the response is too large.
            StreamError: there was no new event for too long.
        """
        self._bytes += size_bytes
        if self._bytes - self._bytes_before_event > MAX_EVENT_BYTES:
            raise _too_large("an event", MAX_EVENT_BYTES, code="event_too_large")
        if self._bytes > MAX_RESPONSE_BYTES:
            raise _too_large(
                "the response", MAX_RESPONSE_BYTES, code="response_too_large"
            )
        if time.monotonic() - self._news_at > self._max_quiet_s:
            raise StreamError.broke_off(
                f"no event for {self._max_quiet_s:.0f} s, only signs of life",
                code="idle_timeout",
            )


def _too_large(what: str, max_bytes: int, *, code: str) -> ModelError:
    message = f"{what} is larger than {max_bytes} bytes"
    return ModelError(message, code=code, exit_code=ExitCode.UNAVAILABLE)

"""Parses HTTP/1.1 messages without I/O: heads, body framing and chunked coding.

Source: RFC 9112. Real servers send each event as a separate chunk, and a parser that handles chunks
one by one takes some 10 microseconds for each. `Chunked` decodes everything that one read returned
in a single pass, at about 1 microsecond a chunk.
"""

import re
from typing import Protocol

import httpx

from codex_py.protocol.frozen import frozen

MAX_HEAD_BYTES = 65_536
_MAX_LINE_BYTES = 8_192

_HEAD_END = re.compile(rb"\r?\n\r?\n")
_STATUS_LINE = re.compile(rb"HTTP/(1\.[01]) ([1-9][0-9]{2})(?: [^\x00\r\n]*)?")
_FIELD_LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\x00\r\n]*)")
_FOLDED_LINE = re.compile(rb"\r?\n[ \t]+")
_CHUNK_LINE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\r\n]*)?\r\n")


@frozen
class Head:
    """The status line and the headers of a response."""

    version: bytes
    """`1.1` or `1.0`."""
    status: int
    headers: list[tuple[bytes, bytes]]
    """The headers in order, with names as received and stripped values."""

    def values(self, name: bytes) -> list[bytes]:
        """The members of a list header, in lower case; empty if the header is absent."""
        values = [value for key, value in self.headers if key.lower() == name]
        parts = b",".join(values).lower().split(b",")
        members = [part.strip() for part in parts]
        return [member for member in members if member]

    @property
    def keeps_connection(self) -> bool:
        """True if the connection may carry another request after this response."""
        return self.version == b"1.1" and b"close" not in self.values(b"connection")


class Body(Protocol):
    """Decodes a body as it is read."""

    done: bool
    """True once the last byte of the body was fed."""
    rest: bytes
    """The fed bytes that follow the body; valid only when `done`."""

    def feed(self, data: bytes) -> bytes:
        """Take bytes from the connection; returns the content in them.

        Raises:
            httpx.RemoteProtocolError: the framing is broken.
        """
        ...

    def end(self) -> None:
        """Note that the server closed the connection before the body was `done`.

        Raises:
            httpx.RemoteProtocolError: the body is cut short.
        """
        ...


def request_head(request: httpx.Request, body: bytes) -> bytes:
    """The head of a request. Its body is complete, so the head states its length.

    Raises:
        httpx.LocalProtocolError: a header cannot be sent as it is. The message contains its name,
            and never its value.
    """
    lines = [
        request.method.encode("ascii") + b" " + request.url.raw_path + b" HTTP/1.1"
    ]
    for name, value in request.headers.raw:
        if not _FIELD_LINE.fullmatch(name + b": " + value):
            raise httpx.LocalProtocolError(
                f"the header {name!r} has an illegal name or value"
            )
        if name.lower() not in (b"transfer-encoding", b"content-length"):
            lines.append(name + b": " + value)
    if body or request.method in {"POST", "PUT", "PATCH"}:
        lines.append(b"content-length: %d" % len(body))
    return b"\r\n".join(lines) + b"\r\n\r\n"


def split_head(data: bytes) -> tuple[Head, bytes] | None:
    """The first head in `data` and the bytes after it; None if the head is not complete yet.

    Raises:
        httpx.RemoteProtocolError: `data` is not an HTTP/1 head, or the head exceeds
            `MAX_HEAD_BYTES`.
    """
    end = _HEAD_END.search(data, 0, MAX_HEAD_BYTES)
    if end is None:
        if not b"HTTP/1.".startswith(data[:7]):
            raise httpx.RemoteProtocolError(
                f"the answer is not HTTP/1.1: {data[:40]!r}"
            )
        if len(data) >= MAX_HEAD_BYTES:
            raise httpx.RemoteProtocolError(
                f"response head of more than {MAX_HEAD_BYTES} bytes"
            )
        return None
    # Folded lines are obsolete, and must be read as one line (RFC 9112 §5.2).
    text = _FOLDED_LINE.sub(b" ", data[: end.start()])
    lines = [line.removesuffix(b"\r") for line in text.split(b"\n")]
    status_line = lines[0]
    field_lines = lines[1:]
    status = _STATUS_LINE.fullmatch(status_line)
    if status is None:
        raise httpx.RemoteProtocolError(f"illegal status line: {status_line[:80]!r}")
    headers: list[tuple[bytes, bytes]] = []
    for line in field_lines:
        field = _FIELD_LINE.fullmatch(line)
        if field is None:
            raise httpx.RemoteProtocolError(f"illegal header line: {line[:80]!r}")
        headers.append((field[1], field[2].strip(b" \t")))
    head = Head(status[1], int(status[2]), headers)
    return head, data[end.end() :]


def body_of(head: Head, method: str) -> Body:
    """The decoder for the framing of this response's body (RFC 9112 §6.3).

    Raises:
        httpx.RemoteProtocolError: the head contradicts itself.
    """
    if method == "HEAD" or head.status in {204, 304}:
        return Sized(0)
    codings = head.values(b"transfer-encoding")
    if codings == [b"chunked"]:
        return Chunked()
    if codings:
        raise httpx.RemoteProtocolError(
            f"unsupported transfer-encoding: {b', '.join(codings)!r}"
        )
    lengths = set(head.values(b"content-length"))
    if not lengths:
        return UntilClose()
    length = lengths.pop()
    contradicts = len(lengths) > 0
    if contradicts or not re.fullmatch(rb"[0-9]{1,18}", length):
        raise httpx.RemoteProtocolError("illegal content-length")
    return Sized(int(length))


class Sized:
    """A body whose length the head states."""

    def __init__(self, length: int) -> None:
        self._length = length
        self._left = length
        self.done = length == 0
        self.rest = b""

    def feed(self, data: bytes) -> bytes:
        if len(data) < self._left:
            self._left -= len(data)
            return data
        content = data[: self._left]
        self.rest = data[self._left :]
        self._left = 0
        self.done = True
        return content

    def end(self) -> None:
        read = self._length - self._left
        raise httpx.RemoteProtocolError(
            f"connection closed after {read} of {self._length} bytes of the response"
        )


class UntilClose:
    """A body that ends with the connection."""

    done = False
    rest = b""

    def feed(self, data: bytes) -> bytes:
        return data

    def end(self) -> None:
        self.done = True


class Chunked:
    """Chunked coding (RFC 9112 §7.1); extensions and trailers are dropped.

    The received part of an incomplete chunk is returned at once: only an unfinished line is held
    back.
    """

    def __init__(self) -> None:
        self.done = False
        self.rest = b""
        self._left: int | None = None
        """The bytes of the open chunk that are still to come before its CRLF; None between
        chunks."""
        self._in_trailers = False

    def feed(self, data: bytes) -> bytes:
        buffer = self.rest + data if self.rest else data
        size = len(buffer)
        pieces: list[bytes] = []
        position = 0
        left = self._left
        match_line = _CHUNK_LINE.match
        while not self._in_trailers:
            if left is None:
                line = match_line(buffer, position)
                if line is None:
                    _check_unfinished(buffer, position)
                    break
                position = line.end()
                left = int(line[1], 16)
                if left == 0:
                    self._in_trailers = True
                    break
            end = position + left
            pieces.append(buffer[position:end])
            if end + 2 > size:
                position = min(end, size)
                left = end - position
                break
            if not buffer.startswith(b"\r\n", end):
                raise httpx.RemoteProtocolError("a chunk is longer than its size says")
            position = end + 2
            left = None
        self._left = left
        self.rest = buffer[position:]
        if self._in_trailers:
            self._skip_trailers()
        if len(pieces) == 1:
            return pieces[0]
        return b"".join(pieces)

    def _skip_trailers(self) -> None:
        """Drop the complete lines. An empty one ends the body."""
        while b"\r\n" in self.rest:
            line, _, self.rest = self.rest.partition(b"\r\n")
            if not line:
                self.done = True
                return
        if len(self.rest) > _MAX_LINE_BYTES:
            raise httpx.RemoteProtocolError("a trailer line is too long")

    def end(self) -> None:
        raise httpx.RemoteProtocolError(
            "connection closed before the last chunk of the response"
        )


def _check_unfinished(buffer: bytes, position: int) -> None:
    """Raise unless the bytes at `position` can still become a chunk-size line."""
    line = buffer[position : position + _MAX_LINE_BYTES]
    if b"\n" in line or len(line) == _MAX_LINE_BYTES:
        raise httpx.RemoteProtocolError(f"illegal chunk size: {line[:40]!r}")

"""The replies of a scripted server, and their encoding for a connection."""

import socket
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from codex_py.testing.events import sse

_PAUSE_S = 60.0
"""The longest pause: a test should fail rather than hang."""


@dataclass(frozen=True, slots=True)
class Pause:
    """A place in a reply where the server waits until a test sets `until`, at most a minute."""

    until: threading.Event = field(default_factory=threading.Event)
    reached: threading.Event = field(default_factory=threading.Event)
    """An event that the server sets when it gets here and has sent everything before."""


Part: TypeAlias = Mapping[str, Any] | bytes | Pause
"""A part of a stream: an event, bytes to send unchanged, or a place to wait."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A reply in full detail. A bare list of parts is `Reply(events=…)`.

    A stream without a terminal event imitates a server that ends it too early; with `cut`, a broken
    connection. `Reply(events=[sse(events)[:n]], cut=True)` breaks after n bytes.
    """

    events: Sequence[Part] = ()
    body: bytes | None = None
    """A body to send unchanged instead of events; the type is JSON unless the headers say
    otherwise."""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    cut: bool = False
    """Drop the connection where the body should end."""
    chunk_each: bool = False
    """True: send one HTTP chunk for each part, as live servers do, instead of one between two
    pauses."""
    write_bytes: int | None = None
    """The number of bytes for each write, head and framing included, so that a read may end
    anywhere."""
    delay_s: float = 0.0
    """The wait after every write."""

    def __post_init__(self) -> None:
        """Check the fields. Raises a `TypeError` that names the first one of a wrong type."""
        rule = "`events` of a reply is a list of parts"
        require_type(self.events, Sequence, rule, but=str | bytes)
        rule = "a part of a reply is an event, bytes or a `Pause`"
        for part in self.events:
            require_type(part, (Mapping, bytes, Pause), rule)
        rule = "`headers` of a reply is a mapping of texts"
        require_type(self.headers, Mapping, rule)
        for header in self.headers.items():
            for text in header:
                require_type(text, str, "a header of a reply is a text")
        require_type(self.body, bytes | None, "`body` of a reply is bytes or None")
        require_type(self.status, int, "`status` of a reply is a number")
        rule = "`write_bytes` of a reply is a number or None"
        require_type(self.write_bytes, int | None, rule)
        rule = "`delay_s` of a reply is a number of seconds"
        require_type(self.delay_s, int | float, rule)


def require_type(value: object, kind: Any, rule: str, *, but: Any = bool) -> None:
    """Check a value that a test gives.

    Args:
        kind: the right types, as `isinstance` takes them.
        rule: a clause that says what is right.
        but: types that are wrong although they are of the right kind.

    Raises:
        TypeError: the type is wrong. The message has the rule and the type.
    """
    if isinstance(value, kind) and not isinstance(value, but):
        return
    name = type(value).__name__
    if name[0] in "aeiou":
        raise TypeError(f"{rule}, not an {name}")
    raise TypeError(f"{rule}, not a {name}")


class RenderedReply:
    """A reply that is already encoded, so that sending it takes no other work."""

    def __init__(self, reply: Reply) -> None:
        self.reply = reply
        self._pieces = list(_pieces(reply))

    @property
    def pauses(self) -> list[Pause]:
        """The places where the server waits."""
        return [piece for piece in self._pieces if isinstance(piece, Pause)]

    def send(self, connection: socket.socket) -> bool:
        """Send the reply. Returns True if the connection can be used again.

        Raises:
            OSError: the client has left.
        """
        for piece in self._pieces:
            if isinstance(piece, Pause):
                piece.reached.set()
                piece.until.wait(_PAUSE_S)
                continue
            size = self.reply.write_bytes or len(piece) or 1
            for start in range(0, len(piece), size):
                connection.sendall(piece[start : start + size])
                if self.reply.delay_s:
                    time.sleep(self.reply.delay_s)
        return not self.reply.cut


def _pieces(reply: Reply) -> Iterator[bytes | Pause]:
    """The bytes of the head and the body, in one piece between two pauses."""
    if reply.body is not None:
        headers = {"content-type": "application/json"}
        if not reply.cut:
            headers["content-length"] = str(len(reply.body))
        yield _head(reply, headers) + reply.body
        return
    headers = {"content-type": "text/event-stream", "transfer-encoding": "chunked"}
    before = _head(reply, headers)
    data: list[bytes] = []
    for part in reply.events:
        if isinstance(part, Pause):
            yield from _writes(reply, before, data)
            yield part
            before = b""
            data = []
        elif isinstance(part, bytes):
            data.append(part)
        else:
            data.append(sse([part]))
    ending = b"" if reply.cut else b"0\r\n\r\n"
    yield from _writes(reply, before, data, ending)


def _writes(
    reply: Reply,
    before: bytes,
    data: Sequence[bytes],
    ending: bytes = b"",
) -> Iterator[bytes]:
    """The bytes between two pauses: in one piece, unless a delay has to follow each chunk."""
    if reply.chunk_each:
        chunks = [_chunk(each) for each in data]
    else:
        chunks = [_chunk(b"".join(data))]
    pieces = [before, *chunks, ending]
    if reply.chunk_each and reply.delay_s:
        yield from pieces
    else:
        yield b"".join(pieces)


def _head(reply: Reply, headers: Mapping[str, str]) -> bytes:
    """The head. `headers`: those that the reply does not set itself."""
    own = {name.lower(): value for name, value in reply.headers.items()}
    fields = {**headers, **own}
    lines = [f"HTTP/1.1 {reply.status} Scripted"]
    for name, value in fields.items():
        lines.append(f"{name}: {value}")
    lines += ["", ""]
    return "\r\n".join(lines).encode("latin-1")


def _chunk(data: bytes) -> bytes:
    """Encode a chunk. Empty without data, because an empty chunk would end the body."""
    if data:
        return b"%x\r\n%b\r\n" % (len(data), data)
    return b""

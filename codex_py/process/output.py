"""Keeps the output of a command in a fixed amount of memory."""

import codecs

_DEFAULT_BYTES = 1 << 20
_MAX_CUT = 3
"""The most bytes of a UTF-8 character that is cut."""
_CONTINUATIONS = bytes(range(0x80, 0xC0))
"""The bytes of UTF-8 that do not begin a character."""


class HeadTailBuffer:
    """Keeps the beginning and the end of output, each up to half of `limit` bytes.

    What lies between them is only counted. There are two flat buffers instead of a list of chunks:
    so a command that prints 200 MB takes only the time to read it, and the memory of one that
    prints 1 MB.
    """

    __slots__ = ("_half", "_head", "_tail", "newlines", "total_bytes")

    def __init__(self, limit: int = _DEFAULT_BYTES) -> None:
        self._half = limit // 2
        self._head = bytearray()
        self._tail = bytearray()
        self.total_bytes = 0
        self.newlines = 0

    @property
    def omitted_bytes(self) -> int:
        kept_tail = min(len(self._tail), self._half)
        return self.total_bytes - len(self._head) - kept_tail

    @property
    def lines(self) -> int:
        """The number of lines that were printed, with a last one that has no newline."""
        last = self._tail or self._head
        if last and not last.endswith(b"\n"):
            return self.newlines + 1
        return self.newlines

    def append(self, data: bytes | bytearray) -> None:
        self.total_bytes += len(data)
        self.newlines += data.count(b"\n")
        room = self._half - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        if data:
            self._tail += data
            # Cut at twice the size to keep, so that each byte is moved at most once.
            if len(self._tail) > 2 * self._half:
                del self._tail[: -self._half]

    def absorb(self, later: "HeadTailBuffer") -> None:
        """Append the contents of another buffer of the same limit, which stays unchanged."""
        total_bytes = self.total_bytes + later.total_bytes
        newlines = self.newlines + later.newlines
        self.append(later._head)
        # If bytes are missing between its two parts, its tail is full and replaces our whole tail.
        self.append(later._tail[-self._half :])
        self.total_bytes = total_bytes
        self.newlines = newlines

    def pop_incomplete(self) -> bytes:
        """Remove and return the bytes of an incomplete character at the end.

        Its other bytes have not arrived yet.
        """
        last = self._tail or self._head
        start = len(last) - _incomplete_suffix(last)
        data = bytes(last[start:])
        del last[start:]
        self.total_bytes -= len(data)
        return data

    def text(self) -> str:
        """The kept output, with a line in the middle that counts what is omitted.

        Bytes that are not UTF-8 become U+FFFD.
        """
        if not self.omitted_bytes:
            return (self._head + self._tail).decode(errors="replace")
        head = self._head[: len(self._head) - _incomplete_suffix(self._head)]
        tail = self._tail[-self._half :]
        # The rest of a character that was cut.
        tail[:_MAX_CUT] = tail[:_MAX_CUT].lstrip(_CONTINUATIONS)
        counted = f"{self.total_bytes - len(head) - len(tail)} bytes"
        lines = self.newlines - head.count(b"\n") - tail.count(b"\n")
        if lines:
            counted += f" ({lines} lines)"
        before = head.decode(errors="replace")
        after = tail.decode(errors="replace")
        return f"{before}\n... {counted} omitted ...\n{after}"


def _incomplete_suffix(data: bytearray) -> int:
    """The number of bytes at the end that begin an incomplete UTF-8 character."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    decoder.decode(data[-_MAX_CUT:])
    return len(decoder.getstate()[0])

"""One TCP or TLS connection with awaitable reads and writes. A read takes all that has arrived."""

import asyncio
import errno
import os
import re
import socket
import ssl
from typing import cast

import httpx

READ_AHEAD_BYTES = 1_048_576
"""The limit of unread bytes; beyond it, the socket is not read."""
_PIECE_BYTES = 1_048_576

_PACE_S = 0.01
"""The pause between two reads of a stream of many small pieces: waking up for each costs more than
reading it."""
_SMALL_BYTES = 8_192
"""A read of fewer bytes is small."""
_SOON_S = 0.1
_SMALL_READS = 32
"""After so many small reads, each within `_SOON_S` of the one before, reads are paced."""


class Connection(asyncio.Protocol):
    """A connection. It buffers at most `READ_AHEAD_BYTES` and one read."""

    def __init__(self) -> None:
        self._transport = cast("asyncio.Transport", None)
        """Set by `connection_made`."""
        self._received: list[bytes] = []
        """What has arrived and was not read."""
        self._received_bytes = 0
        self._ended = False
        self._error: Exception | None = None
        """The error that ended the connection; None for an ordinary end."""
        self._writing_paused = False
        """True: the transport still holds bytes that the system has not taken."""
        self._reading_paused = False
        self._changed: asyncio.Future[None] | None = None
        """What the reader or the writer waits for."""
        self._small_reads = 0
        """The number of small reads in a row."""
        self._read_at_s = 0.0
        """The time of the last read, on the clock of the loop."""

    @property
    def is_fresh(self) -> bool:
        """True if it can take another request: open, all written, and nothing left to read."""
        return not (self._ended or self._received or self._writing_paused)

    async def write(
        self,
        head: bytes,
        body: bytes,
        timeout_s: float | None,
    ) -> None:
        """Write a request.

        Returns when the system has taken all of it, or an answer or the end came first.

        The transport copies what it cannot write at once, so it gets a large body in pieces.

        Raises:
            httpx.WriteTimeout: the system took nothing for `timeout_s` seconds.
        """
        self._small_reads = 0
        self._transport.write(head + body[:_PIECE_BYTES])
        rest = memoryview(body)[_PIECE_BYTES:]
        if self._writing_paused:
            await self._taken(timeout_s)
        while rest:
            # After an early answer, buffer the rest without waiting: the server may still read it,
            # and then accept another request.
            if self._received or self._ended:
                size = len(rest)
            else:
                size = _PIECE_BYTES
            self._transport.write(rest[:size])
            rest = rest[size:]
            await self._taken(timeout_s)

    async def _taken(self, timeout_s: float | None) -> None:
        """Wait until the system has taken all that was written, or an answer or the end comes."""
        while self._writing_paused and not self._received and not self._ended:
            waiting_bytes = self._transport.get_write_buffer_size()
            try:
                await self._wait(timeout_s)
            except TimeoutError as error:
                if self._transport.get_write_buffer_size() >= waiting_bytes:
                    raise httpx.WriteTimeout(
                        f"nothing was taken for {timeout_s:g} s"
                    ) from error

    async def read(self, timeout_s: float | None) -> bytes:
        """Read all that has arrived, at least a byte; empty at the end of the connection.

        After many small reads, a read may wait for `_PACE_S` first, so that it takes more.

        Raises:
            httpx.ReadTimeout: nothing came for `timeout_s` seconds.
            httpx.ReadError: the connection broke.
        """
        if self._small_reads >= _SMALL_READS:
            await self._let_more_come()
        # `_wait` also returns when there is room to write again, which TLS reports whenever reading
        # resumes.
        while not self._received and not self._ended:
            try:
                await self._wait(timeout_s)
            except TimeoutError as error:
                raise httpx.ReadTimeout(f"nothing came for {timeout_s:g} s") from error
        if not self._received and self._error is not None:
            raise httpx.ReadError(os_words(self._error))
        if len(self._received) == 1:
            data = self._received[0]
        else:
            data = b"".join(self._received)
        read_at_s = asyncio.get_running_loop().time()
        since_s = read_at_s - self._read_at_s
        if len(data) < _SMALL_BYTES and since_s < _SOON_S:
            self._small_reads += 1
        else:
            self._small_reads = 0
        self._read_at_s = read_at_s
        self._received.clear()
        self._received_bytes = 0
        if self._reading_paused:
            self._reading_paused = False
            self._transport.resume_reading()
        return data

    async def _let_more_come(self) -> None:
        """Pause once, unless there is something to read already."""
        if not self._received and not self._ended:
            self._transport.pause_reading()
            try:
                await asyncio.sleep(_PACE_S)
            finally:
                self._transport.resume_reading()

    def close(self) -> None:
        self._transport.abort()

    async def _wait(self, timeout_s: float | None) -> None:
        """Wait until anything changes. Raises a `TimeoutError` after `timeout_s` seconds."""
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
        # Pause writing from the first byte that the system does not take. Over TLS, asyncio
        # compares with >=, and with 0 would pause although nothing is left to write.
        is_tls = transport.get_extra_info("sslcontext") is not None
        self._transport.set_write_buffer_limits(high=int(is_tls))

    def data_received(self, data: bytes) -> None:
        self._received.append(data)
        self._received_bytes += len(data)
        if self._received_bytes >= READ_AHEAD_BYTES and not self._reading_paused:
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


def os_words(error: Exception) -> str:
    """The operating system's message for an error, without asyncio's text around it."""
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
    if isinstance(error, ConnectionResetError) and not error.args:
        # asyncio gives no text for a connection that ends during the TLS handshake.
        return os.strerror(errno.ECONNRESET)
    return str(error)

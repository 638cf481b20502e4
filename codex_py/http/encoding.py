"""Decompresses responses that some gateways compress without being asked to. It works piece by
piece, so that a reader can stop long before a few KB become gigabytes.

Every HTTP client of this program, with any library, sends `IDENTITY`, asks `unreadable` before it
reads a body, and reads it through an `Unpacker` if it `is_packed`.
"""

import zlib
from collections.abc import Iterator
from typing import Final

IDENTITY: Final = {"accept-encoding": "identity"}
"""The header that asks for a body without compression."""
_SHOWN_CHARS = 80
_PIECE_BYTES = 65_536
_GZIP = {"gzip", "x-gzip"}
_DEFLATE = {"deflate"}
_ANY_HEADER = zlib.MAX_WBITS | 32
"""Makes zlib accept its own format and gzip."""
_NO_HEADER = -zlib.MAX_WBITS
"""Makes zlib accept a bare stream: some servers send that as `deflate`."""
_GZIP_MAGIC = b"\x1f\x8b"


class DamagedBody(ValueError):
    """A compressed body is damaged."""


def is_packed(encoding: str | None) -> bool:
    """True if a body with this `content-encoding` has to be decompressed."""
    return bool(_codings(encoding))


def unreadable(encoding: str | None) -> str | None:
    """The reason for the user why a body with this `content-encoding` cannot be read, or None."""
    codings = _codings(encoding)
    if encoding is None or not codings:
        return None
    if len(codings) == 1 and codings[0] in _GZIP | _DEFLATE:
        return None
    shown = encoding[:_SHOWN_CHARS]
    return (
        f"the server packed its answer ({shown!r}), which nobody asked it to do;"
        " gzip or deflate alone can be read"
    )


def _codings(encoding: str | None) -> list[str]:
    """The names in a `content-encoding`, in lower case and without those that change nothing."""
    if encoding is None:
        return []
    names = [part.strip().lower() for part in encoding.split(",")]
    return [name for name in names if name not in {"", "identity"}]


class Unpacker:
    """Decompresses one body.

    The start of the body shows the format; a body that is not compressed is unchanged.
    """

    def __init__(self, encoding: str | None) -> None:
        self._is_gzip = _codings(encoding)[0] in _GZIP
        self._start = b""
        self._stream = None
        self._is_plain = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Decompress the next bytes of the body; yields pieces of at most 64 KB.

        Bytes after the last gzip member are dropped. A body that is cut short raises no error here.

        Raises:
            DamagedBody: the body cannot be decompressed.
        """
        if self._stream is None and not self._is_plain:
            self._start += data
            if len(self._start) < len(_GZIP_MAGIC):
                return
            data = self._start
            self._start = b""
            self._begin(data)
        if self._stream is None:
            yield data
            return
        try:
            yield from self._unpacked(data)
        except zlib.error as error:
            raise DamagedBody("the packed answer of the server is damaged") from error

    def _begin(self, start: bytes) -> None:
        if start.startswith(_GZIP_MAGIC) or _is_zlib(start):
            self._stream = zlib.decompressobj(_ANY_HEADER)
        elif self._is_gzip:
            # A proxy may decompress a body and leave the header.
            self._is_plain = True
        else:
            self._stream = zlib.decompressobj(_NO_HEADER)

    def _unpacked(self, data: bytes) -> Iterator[bytes]:
        stream = self._stream
        assert stream is not None
        while True:
            piece = stream.decompress(data, _PIECE_BYTES)
            data = stream.unconsumed_tail
            if piece:
                yield piece
            if stream.eof:
                data = stream.unused_data
                if not data.startswith(_GZIP_MAGIC):
                    return
                # A gzip file may have several members.
                stream = zlib.decompressobj(_ANY_HEADER)
                self._stream = stream
            elif not data and len(piece) < _PIECE_BYTES:
                return


def _is_zlib(start: bytes) -> bool:
    """True for the header of RFC 1950."""
    is_deflate = start[0] & 0x0F == 8
    checksum = int.from_bytes(start[:2], "big")
    return is_deflate and checksum % 31 == 0

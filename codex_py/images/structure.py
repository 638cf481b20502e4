"""Reads the size of an image, and checks that it is whole, without decoding its pixels.

Specifications: PNG https://www.w3.org/TR/png-3, JPEG ITU-T T.81,
GIF https://www.w3.org/Graphics/GIF/spec-gif89a.txt,
WebP https://developers.google.com/speed/webp/docs/riff_container.
"""

import re
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from math import ceil
from typing import Final, TypeAlias

from codex_py.images.kinds import BEGINNINGS, NOT_AN_IMAGE, Kind
from codex_py.protocol.frozen import frozen
from codex_py.protocol.image_rule import MAX_PIXELS

_PNG_CHANNELS: Final = {
    0: 1,
    2: 3,
    3: 1,
    4: 2,
    6: 4,
}
"""The number of values of a pixel, by the type of colour."""
_PNG_DEPTHS: Final = frozenset({1, 2, 4, 8, 16})
"""The numbers of bits that a value can have."""
_INTERLACED: Final = (
    (0, 0, 8, 8),
    (4, 0, 8, 8),
    (0, 4, 4, 8),
    (2, 0, 4, 4),
    (0, 2, 2, 4),
    (1, 0, 2, 2),
    (0, 1, 1, 2),
)
"""The passes of an interlaced PNG: the first column and row of each, and the steps from one column
or row to the next."""
_WHOLE: Final = ((0, 0, 1, 1),)
"""The only pass of another PNG."""
_PIECE: Final = 1 << 20
"""The number of bytes that are unpacked at once."""
_FRAME_MARKERS: Final = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})
"""The markers of JPEG that begin a frame, whose size follows."""
_BARE_MARKERS: Final = frozenset({0x01, *range(0xD0, 0xD9)})
"""The markers of JPEG that no length follows."""
_END_OF_IMAGE: Final = 0xD9
_START_OF_SCAN: Final = 0xDA
_NEXT_MARKER: Final = rb"\xff+([^\x00\xd0-\xd7\xff])"


class DamagedImage(ValueError):
    """The bytes are no whole image of a kind that models read. The message is a clause."""


@frozen
class ImageInfo:
    """The kind of an image, and its size in pixels. Both sides have at least one."""

    kind: Kind
    width: int
    height: int


def image_info(data: bytes) -> ImageInfo:
    """Read the kind and the size of a PNG, JPEG, GIF or WebP image.

    Raises:
        DamagedImage: the data is not such an image, it is cut, or its parts contradict each other.
    """
    for kind, beginning in BEGINNINGS.items():
        if re.match(beginning, data):
            try:
                width, height = _READERS[kind](data)
            except (IndexError, struct.error) as error:
                raise DamagedImage("it is cut") from error
            if width < 1 or height < 1:
                raise DamagedImage("it has no pixels")
            return ImageInfo(kind, width, height)
    raise DamagedImage(NOT_AN_IMAGE)


def _png(data: bytes) -> tuple[int, int]:
    header = b""
    pixels: list[bytes] = []
    for name, body in _png_chunks(data):
        if name == b"IHDR":
            header = body
        elif name == b"IDAT":
            pixels.append(body)
    width, height, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", header)
    if colour not in _PNG_CHANNELS or depth not in _PNG_DEPTHS:
        raise DamagedImage("its colours are of no known kind")
    bits = depth * _PNG_CHANNELS[colour]
    passes = _INTERLACED if interlaced else _WHOLE
    wanted = sum(_pass_bytes(width, height, bits, *each) for each in passes)
    if width * height <= MAX_PIXELS and _inflated_bytes(pixels, wanted) < wanted:
        raise DamagedImage("pixels are missing")
    return width, height


def _png_chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The names and the bodies of the chunks before the last one, which has no body."""
    place = 8
    while True:
        length, name = struct.unpack_from(">I4s", data, place)
        start = place + 8
        end = start + length
        body = data[start:end]
        (checksum,) = struct.unpack_from(">I", data, end)
        if zlib.crc32(name + body) != checksum:
            raise DamagedImage("a checksum is wrong")
        if name == b"IEND":
            return
        yield name, body
        place = end + 4


def _pass_bytes(
    width: int,
    height: int,
    bits: int,
    x: int,
    y: int,
    dx: int,
    dy: int,
) -> int:
    """The unpacked bytes of a pass of a PNG: one before each row, and those of its pixels.

    Args:
        bits: of a pixel.
        x, y, dx, dy: see `_INTERLACED`.
    """
    columns = len(range(x, width, dx))
    rows = len(range(y, height, dy))
    if columns == 0:
        return 0
    return rows * (1 + ceil(columns * bits / 8))


def _inflated_bytes(pieces: list[bytes], enough: int) -> int:
    """Count the bytes that come out of the packed pieces, up to `enough`. They are not kept."""
    inflater = zlib.decompressobj()
    total = 0
    try:
        for piece in pieces:
            rest = piece
            while rest and total < enough:
                total += len(inflater.decompress(rest, _PIECE))
                rest = inflater.unconsumed_tail
        # Some of it may still be inside.
        if total < enough:
            total += len(inflater.flush(_PIECE))
    except zlib.error as error:
        raise DamagedImage("its pixels cannot be unpacked") from error
    return total


def _jpeg(data: bytes) -> tuple[int, int]:
    size: tuple[int, int] | None = None
    has_scan = False
    place = 2
    next_marker = re.compile(_NEXT_MARKER)
    while True:
        found = next_marker.search(data, place)
        if found is None:
            raise DamagedImage("it is cut")
        marker = found[1][0]
        place = found.end()
        if marker == _END_OF_IMAGE:
            break
        if marker in _BARE_MARKERS:
            continue
        (length,) = struct.unpack_from(">H", data, place)
        if marker in _FRAME_MARKERS and size is None:
            height, width = struct.unpack_from(">HH", data, place + 3)
            size = (width, height)
        if marker == _START_OF_SCAN:
            has_scan = True
        place += length
        if place > len(data):
            raise DamagedImage("it is cut")
    if size is None or not has_scan:
        raise DamagedImage("it has no pixels")
    return size


def _gif(data: bytes) -> tuple[int, int]:
    width, height, flags = struct.unpack_from("<HHB", data, 6)
    place = 13 + _colour_table_bytes(flags)
    has_image = False
    while data[place] != 0x3B:
        introducer = data[place]
        if introducer == 0x2C:
            frame = struct.unpack_from("<HHB", data, place + 5)
            frame_width, frame_height, flags = frame
            if frame_width and frame_height:
                has_image = True
            place += 11 + _colour_table_bytes(flags)
        elif introducer == 0x21:
            place += 2
        else:
            raise DamagedImage("a block is of no known kind")
        # Each part of a block begins with its length. The last part is empty.
        while data[place] > 0:
            place += 1 + data[place]
        place += 1
    if not has_image:
        raise DamagedImage("it has no pixels")
    return width, height


def _colour_table_bytes(flags: int) -> int:
    """The length of the table of colours that follows these flags, if there is one."""
    if flags & 0x80:
        return 3 << ((flags & 7) + 1)
    return 0


def _webp(data: bytes) -> tuple[int, int]:
    (length,) = struct.unpack_from("<I", data, 4)
    end = 8 + length
    if end > len(data):
        raise DamagedImage("it is cut")
    canvas: tuple[int, int] | None = None
    frame: tuple[int, int] | None = None
    place = 12
    while place + 8 <= end and frame is None:
        name, size = struct.unpack_from("<4sI", data, place)
        start = place + 8
        body = data[start : start + size]
        if start + size > end:
            raise DamagedImage("it is cut")
        match name:
            case b"VP8X":
                width = 1 + int.from_bytes(body[4:7], "little")
                height = 1 + int.from_bytes(body[7:10], "little")
                canvas = (width, height)
            case b"VP8 " | b"VP8L":
                frame = _webp_frame(name, body)
            case b"ANMF":
                frame = _webp_frame_of_animation(body)
            case _:
                pass
        # A byte is added to chunks of odd size.
        place = start + size + size % 2
    if frame is None:
        raise DamagedImage("it has no pixels")
    return canvas or frame


def _webp_frame_of_animation(body: bytes) -> tuple[int, int]:
    """Read the size of a frame's picture.

    It is in a chunk of its own behind 16 bytes about the frame, and perhaps behind the
    transparency.
    """
    place = 16
    while True:
        name, size = struct.unpack_from("<4sI", body, place)
        start = place + 8
        if name in {b"VP8 ", b"VP8L"}:
            return _webp_frame(name, body[start : start + size])
        place = start + size + size % 2


def _webp_frame(name: bytes, body: bytes) -> tuple[int, int]:
    """Read the size of a picture. `name`: of its chunk, which tells how it is packed."""
    if name == b"VP8 ":
        if body[3:6] != b"\x9d\x01\x2a":
            raise DamagedImage("its picture has no beginning")
        width, height = struct.unpack_from("<HH", body, 6)
        return width & 0x3FFF, height & 0x3FFF
    if body[0] != 0x2F:
        raise DamagedImage("its picture has no beginning")
    bits = int.from_bytes(body[1:5], "little")
    return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)


_Reader: TypeAlias = Callable[[bytes], tuple[int, int]]
_READERS: Final[Mapping[Kind, _Reader]] = {
    "png": _png,
    "jpeg": _jpeg,
    "gif": _gif,
    "webp": _webp,
}
"""The functions that check an image of a kind, and return its width and height."""

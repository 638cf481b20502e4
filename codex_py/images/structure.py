"""Looks into the bytes of an image without decoding its pixels: is it whole, and how large is it?

Specifications: PNG https://www.w3.org/TR/png-3, JPEG ITU-T T.81, GIF https://www.w3.org/Graphics/GIF/spec-gif89a.txt,
WebP https://developers.google.com/speed/webp/docs/riff_container.
"""

import re
import struct
import zlib
from collections.abc import Callable, Mapping
from typing import Final

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
"""By the type of colour."""
_PNG_DEPTHS: Final = frozenset({1, 2, 4, 8, 16})
_INTERLACED: Final = (
    (0, 0, 8, 8),
    (4, 0, 8, 8),
    (0, 4, 4, 8),
    (2, 0, 4, 4),
    (0, 2, 2, 4),
    (1, 0, 2, 2),
    (0, 1, 1, 2),
)
"""The passes of an interlaced PNG: where each begins, and its steps."""
_PIECE: Final = 1 << 20
_FRAME_MARKERS: Final = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})
"""Those of JPEG that begin a frame, and have its size."""
_BARE_MARKERS: Final = frozenset({0x01, *range(0xD0, 0xD9)})
"""Those without a length."""
_END_OF_IMAGE: Final = 0xD9
_START_OF_SCAN: Final = 0xDA
_NEXT_MARKER: Final = rb"\xff+([^\x00\xd0-\xd7\xff])"


class DamagedImage(ValueError):
    """The bytes are no whole image of a kind that models read."""


@frozen
class ImageInfo:
    kind: Kind
    width: int
    """In pixels, at least 1."""
    height: int


def image_info(data: bytes) -> ImageInfo:
    """The kind and the size of a PNG, JPEG, GIF or WebP image.

    Raises:
        DamagedImage: it is another file, it is cut, or its parts contradict each other.
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
    place = 8
    while True:
        length, name = struct.unpack_from(">I4s", data, place)
        body = data[place + 8 : place + 8 + length]
        (checksum,) = struct.unpack_from(">I", data, place + 8 + length)
        if zlib.crc32(name + body) != checksum:
            raise DamagedImage("a checksum is wrong")
        place += 12 + length
        match name:
            case b"IHDR":
                header = body
            case b"IDAT":
                pixels.append(body)
            case b"IEND":
                break
            case _:
                pass
    width, height, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", header)
    if colour not in _PNG_CHANNELS or depth not in _PNG_DEPTHS:
        raise DamagedImage("its colours are of no known kind")
    bits = depth * _PNG_CHANNELS[colour]
    passes = _INTERLACED if interlaced else ((0, 0, 1, 1),)
    wanted = sum(_pass_bytes(width, height, bits, *each) for each in passes)
    if width * height <= MAX_PIXELS and _inflated_bytes(pixels, wanted) < wanted:
        raise DamagedImage("pixels are missing")
    return width, height


def _pass_bytes(
    width: int, height: int, bits: int, x: int, y: int, dx: int, dy: int
) -> int:
    columns = max(0, -(-(width - x) // dx))
    rows = max(0, -(-(height - y) // dy))
    if columns:
        return rows * (1 + -(-columns * bits // 8))
    return 0


def _inflated_bytes(pieces: list[bytes], enough: int) -> int:
    """How many bytes come out of the packed pieces, up to `enough`; they are not kept."""
    inflater = zlib.decompressobj()
    total = 0
    try:
        for piece in pieces:
            rest = piece
            while rest and total < enough:
                total += len(inflater.decompress(rest, _PIECE))
                rest = inflater.unconsumed_tail
        # What is still inside when all has been put in.
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
        if marker in _FRAME_MARKERS:
            height, width = struct.unpack_from(">HH", data, place + 3)
            size = size or (width, height)
        has_scan = has_scan or marker == _START_OF_SCAN
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
            frame_width, frame_height, flags = struct.unpack_from(
                "<HHB", data, place + 5
            )
            has_image = has_image or bool(frame_width and frame_height)
            place += 11 + _colour_table_bytes(flags)
        elif introducer == 0x21:
            place += 2
        else:
            raise DamagedImage("a block is of no known kind")
        while (length := data[place]) > 0:
            place += 1 + length
        place += 1
    if not has_image:
        raise DamagedImage("it has no pixels")
    return width, height


def _colour_table_bytes(flags: int) -> int:
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
        body = data[place + 8 : place + 8 + size]
        if place + 8 + size > end:
            raise DamagedImage("it is cut")
        match name:
            case b"VP8X":
                canvas = (
                    1 + int.from_bytes(body[4:7], "little"),
                    1 + int.from_bytes(body[7:10], "little"),
                )
            case b"VP8 " | b"VP8L":
                frame = _webp_frame(name, body)
            case b"ANMF":
                # The picture is in a chunk of its own behind 16 bytes about the frame, perhaps behind its transparency.
                frame = _webp_frame_of_animation(body)
            case _:
                pass
        place += 8 + size + size % 2
    if frame is None:
        raise DamagedImage("it has no pixels")
    return canvas or frame


def _webp_frame_of_animation(body: bytes) -> tuple[int, int]:
    place = 16
    while True:
        name, size = struct.unpack_from("<4sI", body, place)
        if name in {b"VP8 ", b"VP8L"}:
            return _webp_frame(name, body[place + 8 : place + 8 + size])
        place += 8 + size + size % 2


def _webp_frame(name: bytes, body: bytes) -> tuple[int, int]:
    if name == b"VP8 ":
        if body[3:6] != b"\x9d\x01\x2a":
            raise DamagedImage("its picture has no beginning")
        width, height = struct.unpack_from("<HH", body, 6)
        return width & 0x3FFF, height & 0x3FFF
    if body[0] != 0x2F:
        raise DamagedImage("its picture has no beginning")
    bits = int.from_bytes(body[1:5], "little")
    return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)


_READERS: Final[Mapping[Kind, Callable[[bytes], tuple[int, int]]]] = {
    "png": _png,
    "jpeg": _jpeg,
    "gif": _gif,
    "webp": _webp,
}
"""Each reads the size out of a whole image."""

"""Small images that are whole, and damaged ones."""

import base64
import struct
import zlib
from collections.abc import Mapping

GIF = base64.b64decode("R0lGODdhAgABAIEAAMgKCgAAAAAAAAAAACwAAAAAAgABAAAIBQABAAgIADs=")
JPEG = base64.b64decode(
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAFA3PEY8MlBGQUZaVVBfeMiCeG5uePWvuZHI////////////////////////////////"
    "////////////////////2wBDAVVaWnhpeOuCguv/////////////////////////////////////////////////////////////"
    "////////////wAARCAABAAIDASIAAhEBAxEB/8QAFQABAQAAAAAAAAAAAAAAAAAAAAP/xAAUEAEAAAAAAAAAAAAAAAAAAAAA/8QA"
    "FQEBAQAAAAAAAAAAAAAAAAAAAgT/xAAUEQEAAAAAAAAAAAAAAAAAAAAA/9oADAMBAAIRAxEAPwCIAKX/2Q=="
)
WEBP = base64.b64decode(
    "UklGRjIAAABXRUJQVlA4ICYAAABwAQCdASoCAAEAB0CWJaACdAFAAAD+6DixhNJbd/uD9QfxA2AAAA=="
)
LOSSLESS_WEBP = base64.b64decode("UklGRh4AAABXRUJQVlA4TBEAAAAvAQAAAAdQhSJXof+BiOh/AAA=")


def chunk(name: bytes, body: bytes) -> bytes:
    """A chunk of a PNG, with its checksum."""
    checksum = zlib.crc32(name + body)
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", checksum)


def png(width: int, height: int, *, rows: int | None = None) -> bytes:
    """A black PNG. `rows`: it has the pixels of so many rows; None: of all."""
    row = bytes(1 + -(-width // 8))
    pixels = zlib.compress(row * (height if rows is None else rows))
    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    parts = chunk(b"IHDR", header), chunk(b"IDAT", pixels), chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def gif_with_comment(comment: bytes) -> bytes:
    """A GIF that has a text of at most 255 bytes in it, as it is."""
    return GIF[:-1] + b"!\xfe" + bytes([len(comment)]) + comment + b"\0;"


PNG = png(2, 1)

DAMAGED: Mapping[str, bytes] = {
    "PNG cut in its header": PNG[:20],
    "PNG cut after 40 bytes": PNG[:40],
    "PNG without its end": PNG[:-12],
    "PNG with a wrong checksum": PNG[:20] + b"\x01" + PNG[21:],
    "PNG without a width": png(0, 1),
    "PNG without a height": png(1, 0),
    "PNG without its last rows": png(10, 10, rows=5),
    "PNG without pixels": PNG[:33] + chunk(b"IEND", b""),
    "PNG whose pixels are none": PNG[:33]
    + chunk(b"IDAT", b"nonsense")
    + chunk(b"IEND", b""),
    "PNG of a signature alone": PNG[:8],
    "JPEG cut in its head": JPEG[:100],
    "JPEG cut in its pixels": JPEG[:-4],
    "JPEG without a size": JPEG.replace(b"\x08\0\1\0\2", b"\x08\0\0\0\2"),
    "JPEG of a head alone": b"\xff\xd8\xff\xd9",
    "JPEG of four bytes": b"\xff\xd8\xff\xe0",
    "GIF without its end": GIF[:-1],
    "GIF cut in its pixels": GIF[:-5],
    "GIF without a size": GIF[:6] + bytes(4) + GIF[10:],
    "GIF without an image": GIF[:25] + b";",
    "GIF of a signature alone": b"GIF89a",
    "WebP that is cut": WEBP[:-10],
    "WebP without a picture": b"RIFF\x04\0\0\0WEBP",
    "WebP with a broken picture": WEBP.replace(b"\x9d\x01\x2a", b"\0\0\0"),
    "lossless WebP that is cut": LOSSLESS_WEBP[:-10],
}

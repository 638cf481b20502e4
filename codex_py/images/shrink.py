"""Shrinks images, with Pillow, which the extra `images` installs."""

import io
import warnings
from typing import Final

from PIL import Image, ImageOps

from codex_py.images.structure import ImageInfo
from codex_py.protocol.image_rule import ImageRule

_QUALITY: Final = 85
_SMALLER: Final = 0.75
_MAX_TRIES: Final = 12
_PLAIN_MODES: Final = frozenset({"RGB", "RGBA", "L"})
_WITH_ALPHA: Final = frozenset({"P", "PA", "LA", "La", "RGBa"})


def shrunk(
    data: bytes,
    info: ImageInfo,
    rule: ImageRule,
) -> tuple[str, bytes]:
    """Make an image smaller. Returns the kind and the bytes of the result.

    The kind stays the same, except that a GIF becomes a PNG. If only a JPEG is small enough, the
    result is a JPEG.

    Raises:
        OSError, ValueError, SyntaxError: its pixels cannot be read.
    """
    size = rule.size(info.width, info.height)
    with warnings.catch_warnings():
        # Pillow warns of images with many pixels. `info` is that of an image with few enough.
        warnings.simplefilter("ignore")
        with Image.open(io.BytesIO(data), formats=(info.kind,)) as opened:
            opened.draft("RGB", size)
            image = _plain(ImageOps.exif_transpose(opened))
    kind = "png" if info.kind == "gif" else info.kind
    for _ in range(_MAX_TRIES):
        if image.size != size:
            image = image.resize(  # pyright: ignore[reportUnknownMemberType] - of NumPy
                _turned(size, image), Image.Resampling.LANCZOS
            )
        for each in dict.fromkeys((kind, "jpeg")):
            packed = _packed(image, each)
            if _base64_size(len(packed)) <= rule.max_encoded_bytes:
                return each, packed
        width = int(image.width * _SMALLER)
        height = int(image.height * _SMALLER)
        size = (max(1, width), max(1, height))
    raise ValueError("it cannot be made small enough")


def _base64_size(size: int) -> int:
    """The bytes that base64 makes of `size` bytes: four of each three, and of a rest."""
    groups = (size + 2) // 3
    return groups * 4


def _turned(size: tuple[int, int], image: Image.Image) -> tuple[int, int]:
    """The size for an image, with the sides swapped if its Exif data has turned the image."""
    width, height = size
    is_turned = (width > height) != (image.width > image.height)
    if is_turned and width != height:
        return (height, width)
    return size


def _plain(image: Image.Image) -> Image.Image:
    """The image in a mode that every format has."""
    if image.mode in _PLAIN_MODES:
        image.load()
        return image
    return image.convert("RGBA" if image.mode in _WITH_ALPHA else "RGB")


def _packed(image: Image.Image, kind: str) -> bytes:
    stream = io.BytesIO()
    if kind == "jpeg" and image.mode == "RGBA":
        opaque = Image.new("RGB", image.size, "white")
        opaque.paste(image, mask=image.getchannel("A"))
        image = opaque
    image.save(stream, kind, quality=_QUALITY)
    return stream.getvalue()

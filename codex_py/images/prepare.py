"""The one place that every image passes on its way into the history. LIGHT: Pillow is loaded when it is needed."""

import base64
from typing import Any, Final

from codex_py.images.structure import DamagedImage, ImageInfo, image_info
from codex_py.protocol.image_rule import MAX_PIXELS, ImageRule
from codex_py.protocol.messages import input_image

_NO_IMAGE: Final = "invalid or unsupported image data"
_INSTALL: Final = (
    "`pip install 'codex-py-agent[images]'` lets this program shrink such images;"
    " until then, make it smaller"
)


class UnusableImage(Exception):
    """An image that no model is sent. The text says why, as a clause, in the words of Codex where it has some."""

    def __init__(self, text: str, reason: str | None = None) -> None:
        """`reason`: what exactly is wrong, for the user."""
        super().__init__(text)
        self.reason = reason or text


def image_part(data: bytes, rule: ImageRule) -> dict[str, Any]:
    """The content part of an image, shrunk if it is larger than the rule wants. It blocks for as long as that takes.

    Raises:
        UnusableImage: it is damaged or no image, or it is too large and cannot be shrunk.
    """
    try:
        info = image_info(data)
    except DamagedImage as error:
        raise UnusableImage(_NO_IMAGE, str(error)) from error
    if info.width * info.height > MAX_PIXELS:
        raise UnusableImage(
            f"it has {info.width} x {info.height} pixels, and no image of more than {MAX_PIXELS:,} is opened"
        )
    kind, data = _within(data, info, rule)
    encoded = base64.b64encode(data).decode("ascii")
    return input_image(f"data:image/{kind};base64,{encoded}", rule.detail)


def damage(data: bytes) -> str | None:
    """Say, in a clause, what is wrong with the bytes of an image; None if nothing is."""
    try:
        image_info(data)
    except DamagedImage as error:
        return str(error)
    return None


def _within(
    data: bytes,
    info: ImageInfo,
    rule: ImageRule,
) -> tuple[str, bytes]:
    """The kind and the bytes of the image as the rule wants it."""
    size = (info.width, info.height)
    is_small = rule.size(*size) == size
    if is_small and _encoded_bytes(data) <= rule.max_encoded_bytes:
        return info.kind, data
    try:
        from codex_py.images.shrink import (
            shrunk,
        )  # 40 ms with Pillow, which need not be installed
    except ImportError:
        return info.kind, _taken_as_it_is(data, info, rule)
    try:
        return shrunk(data, info, rule)
    except (OSError, ValueError, SyntaxError) as error:
        # What Pillow raises for pixels that it cannot read.
        raise UnusableImage(_NO_IMAGE) from error


def _taken_as_it_is(
    data: bytes,
    info: ImageInfo,
    rule: ImageRule,
) -> bytes:
    side = max(info.width, info.height)
    if rule.refused_side_px is not None and side > rule.refused_side_px:
        raise UnusableImage(
            f"it has {info.width} x {info.height} pixels, and the provider takes {rule.refused_side_px} a side;"
            f" {_INSTALL}"
        )
    if _encoded_bytes(data) > rule.max_encoded_bytes:
        raise UnusableImage(
            f"it has {_encoded_bytes(data):,} bytes in Base64, and the provider takes {rule.max_encoded_bytes:,};"
            f" {_INSTALL}"
        )
    return data


def _encoded_bytes(data: bytes) -> int:
    return -(-len(data) // 3) * 4

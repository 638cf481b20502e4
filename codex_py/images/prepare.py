"""Prepares every image on its way into the history. LIGHT: Pillow is loaded when it is needed."""

import base64
from math import ceil
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
    """An image that cannot be sent to a model.

    The text says why in a clause, which has the words of Codex where Codex has some.
    """

    def __init__(self, text: str, reason: str | None = None) -> None:
        """`reason`: a more exact clause, for the user; by default the text."""
        super().__init__(text)
        self.reason = reason or text


def image_part(data: bytes, rule: ImageRule) -> dict[str, Any]:
    """Make the content part of an image. It is shrunk if the rule demands it, and this call blocks
    for that time.

    Raises:
        UnusableImage: the data is damaged or no image, or the image is too large and cannot be
            shrunk.
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
    """Shrink an image if it is larger than the rule allows. Returns its kind and its bytes."""
    size = rule.size(info.width, info.height)
    is_small = size == (info.width, info.height)
    if is_small and _encoded_bytes(data) <= rule.max_encoded_bytes:
        return info.kind, data
    try:
        from codex_py.images.shrink import shrunk  # 40 ms with Pillow
    except ImportError:
        # Pillow need not be installed.
        _refuse_too_large(data, info, rule)
        return info.kind, data
    try:
        return shrunk(data, info, rule)
    except (OSError, ValueError, SyntaxError) as error:
        # Pillow raises these for pixels that it cannot read.
        raise UnusableImage(_NO_IMAGE) from error


def _refuse_too_large(
    data: bytes,
    info: ImageInfo,
    rule: ImageRule,
) -> None:
    """Raise an `UnusableImage` if the provider would refuse an image that was not shrunk."""
    side = max(info.width, info.height)
    if rule.refused_side_px is not None and side > rule.refused_side_px:
        raise UnusableImage(
            f"it has {info.width} x {info.height} pixels, and the provider takes"
            f" {rule.refused_side_px} a side; {_INSTALL}"
        )
    encoded_bytes = _encoded_bytes(data)
    if encoded_bytes > rule.max_encoded_bytes:
        raise UnusableImage(
            f"it has {encoded_bytes:,} bytes in Base64, and the provider takes"
            f" {rule.max_encoded_bytes:,}; {_INSTALL}"
        )


def _encoded_bytes(data: bytes) -> int:
    """The length of the data in Base64: four bytes for every three, and for the rest."""
    return ceil(len(data) / 3) * 4

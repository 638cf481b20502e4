"""Limits the size of images that are sent to a model. LIGHT.

The sizes for each `detail` are those to which Codex 0.171 shrinks, measured with images of many
sizes. The Messages API has limits of its own:
https://docs.anthropic.com/en/docs/build-with-claude/vision.
"""

from dataclasses import replace
from math import ceil, floor
from typing import Final

from codex_py.protocol.frozen import frozen

PATCH_PX: Final = 32
"""Models see an image in squares of this side."""
MAX_PIXELS: Final = 100_000_000
"""No image with more pixels is opened: each takes four bytes of memory."""
_MEGABYTE: Final = 1024 * 1024


@frozen
class ImageRule:
    """The limits for an image, and the resolution in which the model sees it."""

    detail: str = "high"
    """The resolution for the model: `original`, `high`, `low` or `auto`."""
    max_side_px: int = 2048
    max_patches: int = 2500
    """Number of squares of `PATCH_PX`, including those that the image fills only in part."""
    refused_side_px: int | None = None
    """The provider refuses an image with a longer side; None: no such limit is known."""
    max_encoded_bytes: int = 20 * _MEGABYTE
    """The provider refuses an image that is longer in Base64."""

    def size(self, width: int, height: int) -> tuple[int, int]:
        """The size to which to shrink an image; its own size if it is small enough."""
        scale = min(1.0, self.max_side_px / max(width, height))
        columns = width * scale / PATCH_PX
        rows = height * scale / PATCH_PX
        if ceil(columns) * ceil(rows) > self.max_patches:
            fitting = (self.max_patches / (columns * rows)) ** 0.5
            # The squares at the edges count in full. There are no partial ones along one of the
            # edges if the image is shrunk a little more.
            whole = min(_whole_part(columns * fitting), _whole_part(rows * fitting))
            scale *= fitting * whole
        width = max(1, round(width * scale))
        height = max(1, round(height * scale))
        return width, height


def _whole_part(count: float) -> float:
    """The share of whole squares in a number of squares; 1 if there is not even one."""
    if count >= 1:
        return floor(count) / count
    return 1.0


_ORIGINAL: Final = ImageRule("original", max_side_px=6000, max_patches=10_000)


def image_rule(detail: str, wire_api: str) -> ImageRule:
    """The rule for images of a `detail` that are sent to a provider with this API."""
    if detail == "original":
        rule = _ORIGINAL
    else:
        rule = ImageRule(detail)
    if wire_api != "anthropic":
        return rule
    # Requests with more than 20 images may only have sides of 2000 pixels, and a thread may come to
    # have so many.
    return replace(
        rule,
        max_side_px=min(rule.max_side_px, 2000),
        refused_side_px=8000,
        max_encoded_bytes=5 * _MEGABYTE,
    )

"""The kinds of images that models read, known by their first bytes. LIGHT."""

import re
from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

Kind: TypeAlias = Literal["png", "jpeg", "gif", "webp"]

BEGINNINGS: Final[Mapping[Kind, bytes]] = {
    "png": rb"\x89PNG\r\n\x1a\n",
    "jpeg": rb"\xff\xd8\xff",
    "gif": rb"GIF8[79]a",
    "webp": rb"(?s)RIFF....WEBP",
}
"""The patterns of the first bytes."""
MAX_BEGINNING_BYTES: Final = 12
"""No pattern looks at more."""
NOT_AN_IMAGE: Final = "it is not a PNG, JPEG, GIF or WebP image"


def is_image(beginning: bytes) -> bool:
    """True if a file with these first bytes claims to be an image; it may be damaged all the same."""
    return any(re.match(pattern, beginning) for pattern in BEGINNINGS.values())

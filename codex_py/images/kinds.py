"""Recognizes the kinds of images that models read by their first bytes. LIGHT."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal, TypeAlias

Kind: TypeAlias = Literal["png", "jpeg", "gif", "webp"]

BEGINNINGS: Final[Mapping[Kind, bytes]] = {
    "png": rb"\x89PNG\r\n\x1a\n",
    "jpeg": rb"\xff\xd8\xff",
    "gif": rb"GIF8[79]a",
    "webp": rb"(?s)RIFF....WEBP",
}
"""A regular expression for the first bytes of each kind."""
MAX_BEGINNING_BYTES: Final = 12
"""The bytes at the beginning of a file that the expressions need."""
NOT_AN_IMAGE: Final = "it is not a PNG, JPEG, GIF or WebP image"


def is_image(beginning: bytes) -> bool:
    """True if a file with these first bytes claims to be an image. It may still be damaged."""
    return any(re.match(pattern, beginning) for pattern in BEGINNINGS.values())


def file_problem(path: Path) -> str | None:
    """Return why a file cannot be sent as an image, as a clause: `it is not a regular file`.

    Returns None if the file begins like an image. Damage is found only when the image is sent.
    """
    if not path.is_file():
        return "it is not a regular file"
    try:
        with path.open("rb") as file:
            beginning = file.read(MAX_BEGINNING_BYTES)
    except OSError as error:
        return error.strerror
    if is_image(beginning):
        return None
    return NOT_AN_IMAGE

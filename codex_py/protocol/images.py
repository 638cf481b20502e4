"""Images as content parts of a message."""

import base64
from typing import Any

MAX_IMAGE_BYTES = 20 * 1024 * 1024
"""Of the file. Providers refuse larger ones, and requests must stay bounded."""


def image_url(data: bytes) -> str | None:
    """A data URL of a PNG, JPEG, GIF or WebP file, recognised by its first bytes; None for anything else."""
    media_type = _media_type(data)
    if media_type is None:
        return None
    return f"data:{media_type};base64,{base64.b64encode(data).decode('ascii')}"


def input_image(url: str, detail: str) -> dict[str, Any]:
    """`detail`: the resolution for the model: `original`, `high`, `low` or `auto`."""
    return {"type": "input_image", "image_url": url, "detail": detail}


def _media_type(data: bytes) -> str | None:
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return None

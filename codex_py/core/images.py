"""The images of a prompt, as content for the model."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from codex_py.filesystem.reading import read_whole
from codex_py.protocol.messages import MAX_IMAGE_BYTES, image_url, input_image, input_text


def image_parts(
    path: Path, number: int, detail: str, warn: Callable[[str], None]
) -> list[dict[str, Any]]:
    """The content parts of one image, which go before the text of the prompt.

    A file that cannot be read does not fail the turn: a text part says so instead.

    Args:
        path: absolute.
        number: from 1, counted over the images of the prompt.
        detail: see `input_image`.
        warn: gets the same text.
    """
    label = f"[Image #{number}]"
    try:
        url = image_url(read_whole(path, MAX_IMAGE_BYTES))
    except (OSError, ValueError) as error:
        url, reason = None, getattr(error, "strerror", None) or str(error)
    else:
        reason = "it is not a PNG, JPEG, GIF or WebP image"
    if url is None:
        unreadable = f"the image at `{path}` could not be read: {reason}"
        warn(unreadable)
        return [input_text(f"{label}: {unreadable}")]
    return [
        input_text(f'<image name={label} path="{path}">'),
        input_image(url, detail),
        input_text("</image>"),
    ]

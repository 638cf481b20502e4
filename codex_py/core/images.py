"""Makes content for the model of the images of a prompt."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from codex_py.filesystem.reading import read_whole
from codex_py.images.prepare import UnusableImage, image_part
from codex_py.protocol.image_rule import ImageRule
from codex_py.protocol.messages import MAX_IMAGE_BYTES, input_text


def image_parts(
    path: Path, number: int, rule: ImageRule, warn: Callable[[str], None]
) -> list[dict[str, Any]]:
    """Return the content parts of one image, which go before the text of the prompt.

    If the file cannot be read or is damaged, the only part is a text that gives the reason.

    Args:
        path: absolute.
        number: the image's number in the prompt, from 1.
        warn: reports the same reason to the user.
    """
    label = f"[Image #{number}]"
    try:
        image = image_part(read_whole(path, MAX_IMAGE_BYTES), rule)
    except UnusableImage as error:
        reason = error.reason
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
    else:
        return _labelled(image, label, path)
    unreadable = f"the image at `{path}` could not be read: {reason}"
    warn(unreadable)
    return [input_text(f"{label}: {unreadable}")]


def _labelled(
    image: dict[str, Any],
    label: str,
    path: Path,
) -> list[dict[str, Any]]:
    return [
        input_text(f'<image name={label} path="{path}">'),
        image,
        input_text("</image>"),
    ]

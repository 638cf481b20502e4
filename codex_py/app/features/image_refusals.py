"""Images that a server refuses: from then on, notes are sent in their places.

Any wording that mentions images counts as a refusal of images. First, damaged images and those
beyond a limit that the server names are left out, then the newest image, then all. So a request is
sent again three times at most.
"""

import base64
import json
import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final, cast

from codex_py.errors import ModelError
from codex_py.images.structure import DamagedImage, ImageInfo, image_info
from codex_py.model.wordings import means
from codex_py.protocol.json_fields import JsonObject, as_object, text_field
from codex_py.protocol.messages import EncodedItem, encode_json, input_text

Replaced = dict[EncodedItem, EncodedItem | None]
"""Items, and the items that are sent in their places; None: nothing is sent."""

_NOTE: Final = input_text("(an image was left out: the provider does not accept it)")
_HAS_IMAGE: Final = b'"input_image"'
_FINAL: Final = frozenset(
    {
        HTTPStatus.UNAUTHORIZED,
        HTTPStatus.PAYMENT_REQUIRED,
        HTTPStatus.FORBIDDEN,
        HTTPStatus.REQUEST_TIMEOUT,
        HTTPStatus.CONFLICT,
        HTTPStatus.TOO_MANY_REQUESTS,
        HTTPStatus.BAD_GATEWAY,
        HTTPStatus.SERVICE_UNAVAILABLE,
        HTTPStatus.GATEWAY_TIMEOUT,
        529,
    }
)
"""Statuses that are not about the request, whatever their words are."""
_MAX_SIDE: Final = r"(?i)(\d{3,5}) ?(?:px|pixels?)|(?:dimensions?|width|height|side)[^.\d]{0,60}(\d{3,5})"
"""The longest side of an image, in pixels, in the words of a server."""
_MAX_COUNT: Final = r"(?i)at most (\d{1,4}) images?|(?:maximum|max|limit) (?:number )?(?:of )?(\d{1,4}) images?"
"""The largest number of images in a request, in the words of a server."""


def takes_no_images(error: ModelError) -> bool:
    """True if the server says that its model takes no images at all."""
    return _may_be_about_images(error) and means("no_images", _words(error))


def refused_images(
    error: ModelError, items: Sequence[EncodedItem], known: Replaced
) -> Replaced:
    """Choose the items whose images to leave out next, with their replacements.

    The replacement of an item has notes in the places of its images. The result is empty if no
    image is refused, or no image is left.

    Args:
        items: the items of the request, as in the history.
        known: the replacements so far.
    """
    words = _words(error)
    if not _may_be_about_images(error) or not means("image", words):
        return {}
    with_images = [item for item in items if _HAS_IMAGE in item]
    left = [item for item in with_images if item not in known]
    # Once the newest image is left out, all others follow.
    newest = with_images[-1:]
    is_newest_left = newest == left[-1:]
    chosen = _beyond_count(left, words)
    if not chosen:
        chosen = [item for item in left if _is_unfit(item, words)]
    if not chosen and is_newest_left:
        chosen = newest
    if not chosen:
        chosen = left
    return {item: without_images(item) for item in chosen}


def without_images(item: EncodedItem) -> EncodedItem:
    """Return the item with a note in the place of each image."""
    data: JsonObject = json.loads(item)
    for name in ("content", "output"):
        parts: Any = data.get(name)
        if isinstance(parts, list):
            data[name] = [_without_image(part) for part in cast("list[Any]", parts)]
    return EncodedItem(encode_json(data))


def _without_image(part: Any) -> Any:
    if _is_image(part):
        return _NOTE
    return part


def _words(error: ModelError) -> str:
    """Return the server's own words, or ours if it said nothing."""
    return error.words or str(error)


def _may_be_about_images(error: ModelError) -> bool:
    return error.status not in _FINAL and error.code != "context_length_exceeded"


def _beyond_count(items: Sequence[EncodedItem], words: str) -> Sequence[EncodedItem]:
    """Return the oldest items, as many as exceed the number of images that the server takes."""
    found = re.search(_MAX_COUNT, words)
    if found is None:
        return []
    max_count = int(found[1] or found[2])
    excess = max(0, len(items) - max_count)
    return items[:excess]


def _is_unfit(item: EncodedItem, words: str) -> bool:
    """True if an image of the item is damaged, or has a side beyond a limit that the words name."""
    named = re.finditer(_MAX_SIDE, words)
    max_sides = [int(found[1] or found[2]) for found in named]
    for url in _image_urls(json.loads(item)):
        info = _info(url)
        if info is None:
            return True
        if max_sides and max(info.width, info.height) > min(max_sides):
            return True
    return False


def _image_urls(data: Mapping[str, Any]) -> Sequence[str]:
    """Return the URLs of the images of an item."""
    parts: list[Any] = []
    for name in ("content", "output"):
        if isinstance(data.get(name), list):
            parts += data[name]
    return [text_field(part, "image_url") for part in parts if _is_image(part)]


def _is_image(part: Any) -> bool:
    return as_object(part).get("type") == "input_image"


def _info(url: str) -> ImageInfo | None:
    """Read the format and the size of an image in a `data:` URL; None for a damaged image."""
    _, _, encoded = url.partition(";base64,")
    try:
        return image_info(base64.b64decode(encoded))
    except (DamagedImage, ValueError):
        return None

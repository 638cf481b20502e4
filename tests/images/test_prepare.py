"""Also tests `images/shrink.py`."""

import base64
import builtins
import io
import sys
from typing import Any

import pytest
from PIL import Image

from codex_py.images.prepare import UnusableImage, image_part
from codex_py.protocol.image_rule import ImageRule, image_rule
from tests.support.images import DAMAGED, GIF, JPEG, PNG, WEBP, png

HIGH = image_rule("high", "responses")
ORIGINAL = image_rule("original", "responses")


def prepared(data: bytes, rule: ImageRule = HIGH) -> tuple[str, bytes]:
    """The media type and the bytes of the part."""
    part = image_part(data, rule)
    assert part["detail"] == rule.detail
    head, _, encoded = part["image_url"].partition(";base64,")
    return head.removeprefix("data:"), base64.b64decode(encoded)


def opened(data: bytes) -> Image.Image:
    return Image.open(io.BytesIO(data))


def saved(image: Image.Image, kind: str, **options: Any) -> bytes:
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("kind", "data"), [("png", PNG), ("gif", GIF), ("jpeg", JPEG), ("webp", WEBP)]
)
def test_a_small_image_goes_as_it_is(kind: str, data: bytes) -> None:
    assert prepared(data) == (f"image/{kind}", data)


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_image_is_refused_in_the_words_of_codex(name: str) -> None:
    with pytest.raises(UnusableImage, match=r"^invalid or unsupported image data$"):
        image_part(DAMAGED[name], HIGH)


# As Codex 0.171 sends them: measured with its program.
@pytest.mark.parametrize(
    ("rule", "size", "shrunk"),
    [
        (HIGH, (2048, 768), (2048, 768)),
        (HIGH, (2048, 2048), (1600, 1600)),
        (HIGH, (2049, 100), (2048, 100)),
        (HIGH, (4000, 1000), (2048, 512)),
        (HIGH, (9000, 2000), (2048, 455)),
        (HIGH, (1000, 9000), (228, 2048)),
        (HIGH, (4000, 3000), (1824, 1368)),
        (HIGH, (20_000, 10), (2048, 1)),
        (ORIGINAL, (6000, 1000), (6000, 1000)),
        (ORIGINAL, (7000, 100), (6000, 86)),
        (ORIGINAL, (9000, 9000), (3200, 3200)),
        (ORIGINAL, (9000, 2000), (6000, 1333)),
        (ORIGINAL, (1000, 9000), (667, 6000)),
        (ORIGINAL, (4000, 3000), (3669, 2752)),
        (ORIGINAL, (3200, 3200), (3200, 3200)),
        (ORIGINAL, (3201, 3201), (3200, 3200)),
    ],
)
def test_large_images_are_shrunk_as_codex_does(
    rule: ImageRule, size: tuple[int, int], shrunk: tuple[int, int]
) -> None:
    assert rule.size(*size) == shrunk


@pytest.mark.parametrize(
    ("kind", "becomes"),
    [("png", "png"), ("jpeg", "jpeg"), ("gif", "png"), ("webp", "webp")],
)
def test_a_shrunk_image_keeps_its_kind(kind: str, becomes: str) -> None:
    media_type, data = prepared(saved(Image.new("RGB", (3000, 900), "red"), kind))
    assert media_type == f"image/{becomes}"
    assert opened(data).size == (2048, 614)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGBA", "I;16"])
def test_every_colour_can_be_shrunk(mode: str) -> None:
    _, data = prepared(saved(Image.new(mode, (2100, 100)), "png"))
    assert opened(data).size == (2048, 98)


def test_a_photograph_that_lies_on_its_side_is_shrunk_upright() -> None:
    image = Image.new("RGB", (3000, 900), "red")
    exif = image.getexif()
    exif[0x0112] = 6
    _, data = prepared(saved(image, "jpeg", exif=exif))
    assert opened(data).size == (614, 2048)


def test_messages_get_images_within_their_limits() -> None:
    rule = image_rule("original", "anthropic")
    _, data = prepared(png(9000, 9000), rule)
    assert max(opened(data).size) <= 2000
    noise = saved(Image.effect_noise((2000, 2000), 200).convert("RGB"), "png")
    media_type, data = prepared(noise, rule)
    assert media_type == "image/jpeg"
    assert len(base64.b64encode(data)) <= 5 * 1024 * 1024


@pytest.mark.timeout(30)
def test_a_bomb_is_not_opened() -> None:
    with pytest.raises(UnusableImage, match="of more than 100,000,000 is opened"):
        image_part(png(20_000, 20_000, rows=1), HIGH)


def test_without_pillow_an_image_goes_as_it_is_as_far_as_the_provider_takes_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(sys.modules, "codex_py.images.shrink", raising=False)
    real = builtins.__import__

    def absent(name: str, *rest: Any) -> Any:
        if name.startswith("PIL"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", absent)
    data = png(7000, 100)
    assert prepared(data) == ("image/png", data)
    assert prepared(data, image_rule("high", "anthropic")) == ("image/png", data)
    with pytest.raises(
        UnusableImage, match=r"takes 8000 a side; `pip install 'codex-py-agent\[i"
    ):
        image_part(png(9000, 100), image_rule("high", "anthropic"))
    with pytest.raises(UnusableImage, match="bytes in Base64"):
        image_part(data, ImageRule(max_encoded_bytes=10))

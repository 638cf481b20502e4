import io
from typing import Any

import pytest
from PIL import Image

from codex_py.images.structure import DamagedImage, image_info
from tests.support.images import DAMAGED, GIF, JPEG, LOSSLESS_WEBP, PNG, WEBP, png

KINDS: list[tuple[str, str, dict[str, Any]]] = [
    ("png", "1 L LA P RGB RGBA I;16", {}),
    ("png", "1 L LA P RGB RGBA I;16", {"optimize": True}),
    ("jpeg", "1 L RGB CMYK", {}),
    ("jpeg", "L RGB CMYK", {"progressive": True}),
    ("gif", "1 L LA P RGB RGBA", {}),
    ("webp", "L LA P RGB RGBA", {}),
    ("webp", "L LA P RGB RGBA", {"lossless": True}),
]
"""The format, the colours that it has, and how it is written."""


@pytest.mark.parametrize("data", [PNG, GIF, JPEG, WEBP, LOSSLESS_WEBP])
def test_a_whole_image_has_a_size(data: bytes) -> None:
    info = image_info(data)
    assert (info.width, info.height) == (2, 1)


@pytest.mark.parametrize(("kind", "modes", "options"), KINDS)
def test_images_of_every_kind_are_whole(
    kind: str, modes: str, options: dict[str, Any]
) -> None:
    for mode in modes.split():
        stream = io.BytesIO()
        Image.new(mode, (37, 23)).save(stream, kind, **options)
        info = image_info(stream.getvalue())
        assert (info.kind, info.width, info.height) == (kind, 37, 23)


@pytest.mark.parametrize("kind", ["gif", "webp"])
def test_a_moving_image_is_whole(kind: str) -> None:
    stream = io.BytesIO()
    frames = [Image.new("RGB", (30, 20), (n * 40, 0, 0)) for n in range(4)]
    frames[0].save(stream, kind, save_all=True, append_images=frames[1:])
    info = image_info(stream.getvalue())
    assert (info.width, info.height) == (30, 20)


@pytest.mark.parametrize("tail", [b"\0", b"trailing bytes of a camera"])
@pytest.mark.parametrize("data", [PNG, GIF, JPEG, WEBP])
def test_bytes_after_an_image_do_not_matter(data: bytes, tail: bytes) -> None:
    assert image_info(data + tail) == image_info(data)


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_image_is_none(name: str) -> None:
    with pytest.raises(DamagedImage):
        image_info(DAMAGED[name])


@pytest.mark.parametrize("data", [PNG, GIF, JPEG, WEBP, LOSSLESS_WEBP, png(40, 30)])
def test_an_image_that_is_cut_anywhere_is_damaged(data: bytes) -> None:
    for length in range(len(data)):
        with pytest.raises(DamagedImage):
            image_info(data[:length])


def test_any_changed_byte_is_read_to_an_end() -> None:
    for data in (PNG, GIF, JPEG, WEBP, LOSSLESS_WEBP):
        for place in range(len(data)):
            for byte in (0, 0x7F, 0xFF):
                changed = data[:place] + bytes([byte]) + data[place + 1 :]
                try:
                    info = image_info(changed)
                except DamagedImage:
                    continue
                assert info.width >= 1
                assert info.height >= 1

"""Also tests `protocol/image_rule.py`."""

import base64
import os
from pathlib import Path

import pytest

from codex_py.core.images import image_parts
from codex_py.protocol.image_rule import ImageRule, image_rule
from tests.support.images import GIF, PNG


def test_an_image_stands_between_tags(tmp_path: Path):
    path = tmp_path / "f.gif"
    path.write_bytes(GIF)
    assert image_parts(path, 2, image_rule("original", "responses"), pytest.fail) == [
        {"type": "input_text", "text": f'<image name=[Image #2] path="{path}">'},
        {
            "type": "input_image",
            "image_url": f"data:image/gif;base64,{base64.b64encode(GIF).decode()}",
            "detail": "original",
        },
        {"type": "input_text", "text": "</image>"},
    ]


def test_an_unreadable_image_is_told_in_its_place(tmp_path: Path):
    (tmp_path / "text").write_text("x", encoding="utf-8")
    (tmp_path / "cut.png").write_bytes(PNG[:40])
    reasons = {
        "cut.png": "it is cut",
        "missing": "No such file or directory",
        "text": "it is not a PNG, JPEG, GIF or WebP image",
        ".": "it is a folder",
        "\0": "embedded null byte",
    }
    for name, reason in reasons.items():
        warnings: list[str] = []
        parts = image_parts(tmp_path / name, 1, ImageRule(), warnings.append)
        text = f"the image at `{tmp_path / name}` could not be read: {reason}"
        assert parts == [{"type": "input_text", "text": f"[Image #1]: {text}"}]
        assert warnings == [text]


@pytest.mark.timeout(10)
def test_an_image_is_neither_waited_for_nor_asked_of_the_kernel(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe.png")
    (tmp_path / "link.png").symlink_to("/dev/zero")
    for name, reason in (
        ("pipe.png", "it is a named pipe"),
        ("link.png", "it is a device"),
    ):
        warnings: list[str] = []
        image_parts(tmp_path / name, 1, ImageRule(), warnings.append)
        assert warnings == [
            f"the image at `{tmp_path / name}` could not be read: {reason}"
        ]

import asyncio
import base64
import os
from pathlib import Path

import pytest

from codex_py.errors import ToolError
from codex_py.protocol.events import Event, ItemCompleted, ItemStarted
from codex_py.protocol.image_rule import ImageRule
from codex_py.protocol.messages import MAX_IMAGE_BYTES
from codex_py.protocol.tools import ToolOutput
from codex_py.tools.view_image import ViewImage
from tests.support.images import DAMAGED, GIF, JPEG, PNG, WEBP
from tests.support.tool_context import tool_context


def view(cwd: Path, path: str) -> ToolOutput:
    events: list[Event] = []
    context = tool_context(cwd, events.append)
    try:
        return asyncio.run(
            ViewImage(ImageRule()).run(ViewImage.params(path=path), context)
        )
    finally:
        started, completed = events
        assert isinstance(started, ItemStarted)
        assert isinstance(completed, ItemCompleted)


@pytest.mark.parametrize(
    ("kind", "data"), [("png", PNG), ("jpeg", JPEG), ("gif", GIF), ("webp", WEBP)]
)
def test_an_image_is_told_by_its_bytes(tmp_path: Path, kind: str, data: bytes):
    (tmp_path / "picture").write_bytes(data)
    url = f"data:image/{kind};base64,{base64.b64encode(data).decode()}"
    part = {"type": "input_image", "image_url": url, "detail": "high"}
    assert view(tmp_path, "picture") == ToolOutput("", content=(part,))
    assert view(Path("/"), str(tmp_path / "picture")) == ToolOutput("", content=(part,))


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_image_is_not_shown(tmp_path: Path, name: str):
    (tmp_path / "picture").write_bytes(DAMAGED[name])
    with pytest.raises(ToolError) as caught:
        view(tmp_path, "picture")
    assert (
        str(caught.value)
        == "unable to process image: invalid or unsupported image data"
    )


def test_a_file_that_cannot_be_shown_is_an_error(tmp_path: Path):
    (tmp_path / "text").write_text("RIFF but no picture", encoding="utf-8")
    (tmp_path / "dir").mkdir()
    os.mkfifo(tmp_path / "pipe")
    with (tmp_path / "large").open("wb") as stream:
        stream.truncate(MAX_IMAGE_BYTES + 1)
    errors: dict[str, tuple[str, str]] = {}
    for name in ("missing", "text", "dir", "pipe", "large", "a\0b"):
        with pytest.raises(ToolError) as caught:
            view(tmp_path, name)
        errors[name] = caught.value.code, str(caught.value)
    assert errors == {
        "missing": (
            "ENOENT",
            f"unable to locate image at `{tmp_path}/missing`: No such file or directory (os error 2)",
        ),
        "text": (
            "InvalidImage",
            "unable to process image: invalid or unsupported image data",
        ),
        "dir": ("EISDIR", f"image path `{tmp_path}/dir` is not a file: it is a folder"),
        "pipe": (
            "EISDIR",
            f"image path `{tmp_path}/pipe` is not a file: it is a named pipe",
        ),
        "large": ("EFBIG", "unable to process image: it is larger than 20 MB"),
        "a\0b": (
            "InvalidArgs",
            f"unable to locate image at `{tmp_path}/a\0b`: no file can have this name",
        ),
    }


def test_an_image_of_the_project_does_not_lead_out_of_it(tmp_path: Path):
    (tmp_path / "repo" / "sub").mkdir(parents=True)
    (tmp_path / "repo" / ".git").write_text("gitdir: elsewhere\n", encoding="utf-8")
    (tmp_path / "private").write_bytes(GIF)
    (tmp_path / "repo" / "picture").symlink_to("../private")
    for path in ("../picture", str(tmp_path / "repo" / "picture")):
        with pytest.raises(ToolError, match=r"it is a link that leads out of .*/repo$"):
            view(tmp_path / "repo" / "sub", path)
    # What the model names itself is its own to see, as by a command.
    assert view(tmp_path / "repo", str(tmp_path / "private")).content

"""Tests `frontends/tui/compose/attachments.py`."""

from pathlib import Path

import pytest

from codex_py.errors import CodexError
from codex_py.frontends.tui.compose.attachments import clipboard_image, image_paths
from codex_py.programs import programs_outside


def test_paths_of_images_are_read_as_terminals_write_them(tmp_path: Path) -> None:
    one, two = tmp_path / "one.png", tmp_path / "my shot (2).JPG"
    one.touch()
    two.touch()
    escaped = str(two).replace(" ", "\\ ").replace("(", "\\(").replace(")", "\\)")
    address = f"file://{tmp_path}/my%20shot%20(2).JPG"
    for pasted in (
        f"{two}",
        f"'{two}'",
        f'"{two}"',
        escaped,
        address,
        "my shot (2).JPG",
    ):
        assert image_paths(f"{pasted}\n", tmp_path) == [two]
    assert image_paths(f"{one} {escaped}", tmp_path) == [one, two]


@pytest.mark.parametrize(
    "pasted",
    [
        "",
        "see one.png",
        "missing.png",
        "one.txt",
        "'one.png",
        "\x00.png",
        "x" * 9999 + ".png",
    ],
)
def test_any_other_text_stays_a_text(tmp_path: Path, pasted: str) -> None:
    (tmp_path / "one.png").touch()
    assert image_paths(pasted, tmp_path) == []


def test_the_clipboard_is_read_by_a_program_from_outside_of_the_repository(
    tmp_path: Path,
) -> None:
    tools, repository = tmp_path / "tools", tmp_path / "repository"
    for folder in (tools, repository):
        folder.mkdir()
        program = folder / "wl-paste"
        program.write_text("#!/bin/sh\nprintf image\n", encoding="utf-8")
        program.chmod(0o755)
    environment = {
        "WAYLAND_DISPLAY": "x",
        "PATH": str(repository),
        "HOME": str(tmp_path),
    }
    programs = programs_outside(tmp_path, environment, repository)
    with pytest.raises(CodexError, match="wl-paste, xclip or pngpaste"):
        clipboard_image(programs, environment)
    image = clipboard_image(programs, environment | {"PATH": f"{repository}:{tools}"})
    assert image.read_bytes() == b"image"
    image.unlink()


def test_a_clipboard_without_an_image_is_told(tmp_path: Path) -> None:
    program = tmp_path / "pngpaste"
    program.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    program.chmod(0o755)
    environment = {"PATH": str(tmp_path), "HOME": str(tmp_path)}
    with pytest.raises(CodexError, match="no image in the clipboard"):
        clipboard_image(programs_outside(tmp_path, environment), environment)

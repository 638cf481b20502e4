import os
from pathlib import Path

import pytest

from codex_py.command_line.parser import working_folder
from codex_py.errors import CodexError


def test_a_folder_is_absolute_and_without_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    monkeypatch.chdir(tmp_path)
    assert working_folder("link") == tmp_path / "real"
    assert working_folder(".") == tmp_path


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("missing", "No such file or directory"),
        ("file", "Not a directory"),
        ("circle", "Too many levels of symbolic links"),
        ("x" * 256, "File name too long"),
    ],
)
def test_a_working_folder_that_is_no_folder_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, reason: str
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    (tmp_path / "circle").symlink_to("circle")
    with pytest.raises(CodexError) as caught:
        working_folder(name)
    assert str(caught.value) == f"cannot work in {name!r}: {reason}"


def test_a_folder_that_is_gone_or_too_deep_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(
        CodexError, match=r"cannot work in '\.': No such file or directory"
    ):
        working_folder(".")
    monkeypatch.chdir(tmp_path)
    for _ in range(25):
        Path("d" * 200).mkdir()
        os.chdir("d" * 200)
    with pytest.raises(CodexError, match=r"cannot work in '\.': File name too long"):
        working_folder(".")

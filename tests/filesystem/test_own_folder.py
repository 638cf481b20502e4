import os
import time
from pathlib import Path

import pytest

from codex_py.errors import CodexError
from codex_py.filesystem.own_folder import own_folder
from codex_py.filesystem.private import locked


def test_a_folder_is_private_below_the_home_and_goes_at_the_end(tmp_path: Path) -> None:
    with own_folder(tmp_path, "images") as folder:
        assert folder.parent == tmp_path / "codex-py/tmp"
        assert folder.name.startswith("images.")
        assert folder.stat().st_mode & 0o777 == 0o700
        (folder / "1.png").write_bytes(b"x")
    assert not folder.exists()


def test_another_place_is_used_if_the_home_cannot_be_written(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.write_text("", encoding="utf-8")
    other = tmp_path / "other"
    other.mkdir()
    with own_folder(home, "git", tmp_path / "missing", other) as folder:
        assert folder.parent == other
    assert not list(other.iterdir())


def test_it_is_told_if_there_is_no_place(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.write_text("", encoding="utf-8")
    with (
        pytest.raises(
            CodexError, match=r"home/codex-py/tmp cannot be written: .*missing"
        ),
        own_folder(home, "git", tmp_path / "missing"),
    ):
        pass


def test_the_folders_of_killed_programs_are_removed_and_no_others(
    tmp_path: Path,
) -> None:
    place = tmp_path / "codex-py/tmp"
    for name in ("git.old", "git.used", "git.new"):
        (place / name).mkdir(parents=True)
        (place / name / "index").write_bytes(b"x")
    days_ago = time.time() - 2 * 24 * 3600
    for name in ("git.old", "git.used"):
        os.utime(place / name, (days_ago, days_ago))
    with locked(place / "git.used", 0), own_folder(tmp_path, "git") as folder:
        left = {path.name for path in place.iterdir()}
    assert left == {"git.used", "git.new", folder.name}

"""What a process that was killed has left of a renewal, and how a login is removed."""

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from codex_py.model.chatgpt.login_file import LoginFile

OLD = {"tokens": {"access_token": "old"}}
NEW = {"tokens": {"access_token": "new"}, "kept": True}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "auth.json"
    path.write_text(json.dumps(OLD), "utf-8")
    os.utime(path, ns=(1, 1_000_000_000))
    return path


def part(path: Path, text: str, *, at_s: int = 2, name: str = "1") -> Path:
    """New contents that a killed process has left."""
    left = path.with_name(f".auth.json.part-{name}")
    left.write_text(text, "utf-8")
    os.utime(left, ns=(1, at_s * 1_000_000_000))
    return left


def after_lock(path: Path) -> dict[str, Any]:
    with LoginFile(path).locked():
        return json.loads(path.read_text("utf-8"))


@pytest.mark.parametrize("end", ["", " " * 40_000])
def test_contents_that_were_complete_replace_the_file(path: Path, end: str) -> None:
    left = part(path, json.dumps(NEW) + end)
    assert after_lock(path) == NEW
    assert not left.exists()


def test_the_newest_contents_replace_the_file(path: Path) -> None:
    part(path, json.dumps(NEW), at_s=9, name="1")
    part(path, json.dumps({"other": 1}), at_s=5, name="2")
    assert after_lock(path) == NEW


@pytest.mark.parametrize(
    "text", ["", " " * 40_000, json.dumps(NEW)[:-1], "{}", "[1]", "\0" * 100]
)
def test_contents_that_were_not_complete_replace_nothing(path: Path, text: str) -> None:
    part(path, text)
    assert after_lock(path) == OLD


def test_a_file_that_was_written_later_stays(path: Path) -> None:
    part(path, json.dumps(NEW), at_s=0)
    assert after_lock(path) == OLD


def test_a_link_replaces_nothing(path: Path) -> None:
    target = path.with_name("target")
    target.write_text(json.dumps(NEW), "utf-8")
    path.with_name(".auth.json.part-1").symlink_to(target)
    assert after_lock(path) == OLD


def test_a_login_that_was_removed_does_not_come_back(path: Path) -> None:
    file = LoginFile(path)
    left = part(path, " ")
    with file.locked():
        file.remove()
    assert not path.exists()
    assert not left.exists()
    part(path, json.dumps(NEW))
    with file.locked():
        assert not path.exists()


def test_a_link_is_removed_with_its_file(path: Path, tmp_path: Path) -> None:
    target = tmp_path / "elsewhere.json"
    path.rename(target)
    path.symlink_to(target)
    file = LoginFile(path)
    with file.locked():
        file.remove()
    assert not path.is_symlink()
    assert not target.exists()


def test_a_umask_without_rights_leaves_the_file_readable(path: Path) -> None:
    before = os.umask(0o777)
    try:
        with LoginFile(path).reserved() as reserved:
            reserved.write(NEW)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600

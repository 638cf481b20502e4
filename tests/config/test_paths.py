from pathlib import Path

import pytest

from codex_py.config.paths import codex_home, folders_between, project_root
from codex_py.errors import ConfigError
from tests.support.repository import make_repository


def test_home_is_codex_home_or_the_folder_in_the_users_home(tmp_path: Path):
    assert codex_home({"HOME": "/home/u"}) == Path("/home/u/.codex")
    assert codex_home({"HOME": "/home/u", "CODEX_HOME": ""}) == Path("/home/u/.codex")
    assert codex_home({"HOME": "/home/u", "CODEX_HOME": str(tmp_path)}) == tmp_path


def test_codex_home_must_be_a_folder(tmp_path: Path):
    with pytest.raises(ConfigError, match="does not exist"):
        codex_home({"CODEX_HOME": str(tmp_path / "none")})
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(ConfigError, match="is not a folder"):
        codex_home({"CODEX_HOME": str(file)})
    with pytest.raises(ConfigError):
        codex_home({"CODEX_HOME": "a\0b"})


def test_project_root_is_the_nearest_folder_with_a_marker(tmp_path: Path):
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    assert project_root(inner, (".root-marker",)) is None
    (tmp_path / ".root-marker").touch()
    assert project_root(inner, (".root-marker",)) == tmp_path
    (tmp_path / "a" / "pom.xml").touch()
    assert project_root(inner, (".root-marker", "pom.xml")) == tmp_path / "a"
    assert project_root(inner, ()) is None


def test_an_empty_git_folder_is_no_repository(tmp_path: Path):
    outer, inner = tmp_path / "outer", tmp_path / "outer" / "inner"
    inner.mkdir(parents=True)
    make_repository(outer)
    (inner / ".git").mkdir()
    assert project_root(inner, (".git",)) == outer
    (inner / ".git" / "HEAD").touch()
    assert project_root(inner, (".git",)) == inner


def test_a_git_file_counts_as_a_repository(tmp_path: Path):
    (tmp_path / ".git").write_text("gitdir: elsewhere\n", encoding="utf-8")
    (tmp_path / "sub").mkdir()
    assert project_root(tmp_path / "sub", (".git",)) == tmp_path


def test_folders_lead_from_the_root_to_the_working_directory():
    assert folders_between(Path("/r"), Path("/r/a/b")) == (
        Path("/r"),
        Path("/r/a"),
        Path("/r/a/b"),
    )
    assert folders_between(None, Path("/r/a")) == (Path("/r/a"),)

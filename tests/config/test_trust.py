"""How the trust in a folder is written to `config.toml`.

Tests `config/edit.py`.
"""

import threading
import tomllib
from pathlib import Path

import pytest

from codex_py.config.edit import set_in_config
from codex_py.errors import ConfigError

ROOT = Path("/some where/repo")
ENTRY = '[projects."/some where/repo"]\ntrust_level = "trusted"\n'


def write_trust(home: Path, root: Path) -> None:
    set_in_config(home, ("projects", str(root), "trust_level"), "trusted")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, ENTRY),
        ("", ENTRY),
        ("model = 'm' # why\n", f"model = 'm' # why\n\n{ENTRY}"),
        ("[tui]\ntheme = 'x'", f"[tui]\ntheme = 'x'\n\n{ENTRY}"),
        ("a = 1\r\n", "a = 1\r\n\r\n" + ENTRY.replace("\n", "\r\n")),
        (ENTRY, ENTRY),
        (ENTRY.replace('"trusted"', "'untrusted' # no"), ENTRY.rstrip() + " # no\n"),
        (
            '[projects."/some where/repo"] # here\n[tui]\n',
            '[projects."/some where/repo"] # here\ntrust_level = "trusted"\n[tui]\n',
        ),
        (
            'projects."/some where/repo".trust_level = "untrusted"\n',
            'projects."/some where/repo".trust_level = "trusted"\n',
        ),
        (
            "projects = { '/a' = { trust_level = 'trusted' } } # mine\n",
            "projects = { '/a' = { trust_level = 'trusted' },"
            ' "/some where/repo" = {trust_level = "trusted"}} # mine\n',
        ),
        (
            '[projects."/some where/repo"]\r\n[tui]\r\n',
            '[projects."/some where/repo"]\r\ntrust_level = "trusted"\r\n[tui]\r\n',
        ),
        (
            '[projects."/a"]\ntrust_level = "trusted"\n\n# mine\n[tui]\n',
            f'[projects."/a"]\ntrust_level = "trusted"\n\n# mine\n[tui]\n\n{ENTRY}',
        ),
    ],
)
def test_the_entry_is_added_and_all_else_stays(
    tmp_path: Path, before: str | None, after: str
):
    path = tmp_path / "config.toml"
    if before is not None:
        path.write_bytes(before.encode())
        path.chmod(0o640)
    write_trust(tmp_path, ROOT)
    assert path.read_bytes().decode() == after
    assert path.stat().st_mode & 0o777 == (0o600 if before is None else 0o640)
    assert [entry.name for entry in tmp_path.iterdir()] == ["config.toml"]


@pytest.mark.parametrize(
    ("before", "message"),
    [
        ("a = ", "config.toml:1:5"),
        ("projects = 3\n", "cannot be changed automatically"),
        ('projects."/some where/repo" = 3\n', "cannot be changed automatically"),
    ],
)
def test_a_file_that_cannot_be_changed_safely_is_unchanged(
    tmp_path: Path, before: str, message: str
):
    path = tmp_path / "config.toml"
    path.write_text(before, encoding="utf-8")
    with pytest.raises(ConfigError, match=message):
        write_trust(tmp_path, ROOT)
    assert path.read_text(encoding="utf-8") == before


def test_a_path_that_is_no_text_is_refused(tmp_path: Path):
    with pytest.raises(ConfigError, match="not UTF-8"):
        write_trust(tmp_path, Path("/a\udcff"))
    assert list(tmp_path.iterdir()) == []


def test_a_linked_file_stays_linked(tmp_path: Path):
    target = tmp_path / "dotfiles.toml"
    target.write_text("model = 'm'\n", encoding="utf-8")
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.toml").symlink_to(target)
    write_trust(home, ROOT)
    assert (home / "config.toml").is_symlink()
    assert target.read_text(encoding="utf-8") == f"model = 'm'\n\n{ENTRY}"


def test_a_missing_home_is_made(tmp_path: Path):
    write_trust(tmp_path / "new" / "home", ROOT)
    assert (tmp_path / "new" / "home" / "config.toml").read_text(
        encoding="utf-8"
    ) == ENTRY


def test_writers_at_the_same_time_lose_nothing(tmp_path: Path):
    roots = [Path(f"/repo-{number}") for number in range(12)]
    threads = [
        threading.Thread(target=write_trust, args=(tmp_path, root)) for root in roots
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    values = tomllib.loads((tmp_path / "config.toml").read_text(encoding="utf-8"))
    assert values["projects"] == {
        str(root): {"trust_level": "trusted"} for root in roots
    }

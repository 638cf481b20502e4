import fcntl
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from codex_py.config.edit import edit_config
from codex_py.config.mcp_logins import StoredLogins
from codex_py.config.project_trust import trust_project
from codex_py.errors import ConfigError, PatchError
from codex_py.execpolicy.added_rule import allow_prefix
from codex_py.filesystem.private import lock, locked, open_emptied
from codex_py.patch.files.journal import Journal
from codex_py.rollout.writer import ThreadLock


@pytest.fixture
def open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("open_umask")
def test_folders_of_the_home_are_the_users_alone(tmp_path: Path) -> None:
    home = tmp_path / "user" / ".codex"
    edit_config(home, lambda _text, _path: "model = 'm'\n")
    trust_project(home, [tmp_path])
    StoredLogins(home, "file", "docs", "https://docs.example").write("{}")
    allow_prefix(home / "rules", ["ls"])
    with Journal(home, tmp_path).locked():
        pass
    ThreadLock(home, "id").release()
    modes = {
        str(path.relative_to(home)): stat.S_IMODE(path.stat().st_mode)
        for path in (home, *home.rglob("*"))
    }
    assert len(modes) > 10
    assert {name: mode for name, mode in modes.items() if mode & 0o077} == {}


def held(path: Path) -> int:
    """A descriptor that has the lock of a file or folder."""
    descriptor = os.open(path, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    return descriptor


@pytest.mark.timeout(20)
def test_a_lock_that_is_not_let_go_of_is_given_up(tmp_path: Path) -> None:
    descriptor = held(tmp_path)
    with (
        pytest.raises(TimeoutError, match="another process has locked it"),
        locked(tmp_path, 0.1),
    ):
        pass
    with pytest.raises(
        ConfigError, match=r"config\.toml cannot be written: another process has"
    ):
        edit_config(tmp_path, lambda text, _path: text)
    os.close(descriptor)
    with locked(tmp_path, 0.1):
        pass


def test_a_journal_says_who_is_waited_for(tmp_path: Path) -> None:
    journal = Journal(tmp_path, tmp_path)
    with journal.locked():
        pass
    descriptor = held(tmp_path / "codex-py" / "journal" / "lock")
    waits = pytest.raises(PatchError, match="Another process is writing a patch")
    with waits, journal.locked(patience_s=0.1):
        pass
    os.close(descriptor)


def test_shared_locks_go_together(tmp_path: Path) -> None:
    first, second = (os.open(tmp_path, os.O_RDONLY) for _ in range(2))
    lock(first, 0, shared=True)
    lock(second, 0, shared=True)
    with pytest.raises(TimeoutError):
        lock(second, 0)
    os.close(first)
    os.close(second)


def test_a_file_that_is_emptied_is_closed_to_others(tmp_path: Path) -> None:
    path = tmp_path / "tape"
    path.write_text("old", encoding="ascii")
    path.chmod(0o666)
    os.close(open_emptied(path))
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"", 0o600)


def test_a_link_and_a_pipe_are_not_written(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("kept", encoding="ascii")
    (tmp_path / "link").symlink_to("victim")
    with pytest.raises(OSError, match="it is a symbolic link; name the file itself"):
        open_emptied(tmp_path / "link")
    assert (tmp_path / "victim").read_bytes() == b"kept"
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    with pytest.raises(OSError, match="it is not a file"):
        open_emptied(tmp_path / "pipe")
    os.close(reader)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_somebody_else_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "tape"
    path.write_text("kept", encoding="ascii")
    os.chown(path, 12345, -1)
    with pytest.raises(OSError, match="it belongs to another user"):
        open_emptied(path)
    assert path.read_bytes() == b"kept"

import sys
import threading
from pathlib import Path

import pytest

from codex_py.config.mcp_logins import StoredLogins
from codex_py.errors import ConfigError

KEYRING = """
import json, pathlib
PATH = pathlib.Path(__file__).with_name("ring.json")
LOCKED = {locked}
def _all():
    if LOCKED:
        raise RuntimeError("the keyring is locked")
    return json.loads(PATH.read_text(encoding="utf-8")) if PATH.exists() else {{}}
def get_password(service, name):
    return _all().get(service + name)
def set_password(service, name, value):
    PATH.write_text(json.dumps(_all() | {{service + name: value}}), encoding="utf-8")
def delete_password(service, name):
    entries = _all()
    del entries[service + name]
    PATH.write_text(json.dumps(entries), encoding="utf-8")
"""


@pytest.fixture
def no_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "keyring", raising=False)


def keyring(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, locked: bool = False
) -> None:
    (tmp_path / "keyring.py").write_text(
        KEYRING.format(locked=locked), encoding="utf-8"
    )
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])


def files(home: Path) -> list[Path]:
    return [path for path in home.rglob("*") if path.is_file()]


@pytest.mark.usefixtures("no_keyring")
def test_a_login_is_kept_where_only_the_user_can_read_it(tmp_path: Path) -> None:
    store = StoredLogins(tmp_path / "home", "file", "web", "http://a/mcp")
    assert store.read() is None
    assert not store.remove()
    with store.locked():
        store.write("secret")
    assert store.read() == "secret"
    (file,) = files(tmp_path)
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700
    assert store.remove()
    assert store.read() is None


@pytest.mark.usefixtures("no_keyring")
def test_a_login_is_for_one_name_at_one_address(tmp_path: Path) -> None:
    StoredLogins(tmp_path, "auto", "web", "http://a/mcp").write("secret")
    assert StoredLogins(tmp_path, "auto", "web", "http://b/mcp").read() is None
    assert StoredLogins(tmp_path, "auto", "../web", "http://a/mcp").read() is None


@pytest.mark.usefixtures("no_keyring")
def test_processes_that_renew_a_login_take_turns(tmp_path: Path) -> None:
    store = StoredLogins(tmp_path, "file", "web", "http://a/mcp")
    inside = threading.Lock()

    def renew() -> None:
        with store.locked():
            assert inside.acquire(blocking=False)
            store.write(f"{store.read() or ''}x")
            inside.release()

    threads = [threading.Thread(target=renew) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.read() == "x" * 8


@pytest.mark.usefixtures("no_keyring")
def test_a_keyring_is_used_where_there_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    StoredLogins(home, "file", "web", "http://a/mcp").write("old")
    keyring(tmp_path, monkeypatch)
    store = StoredLogins(home, "auto", "web", "http://a/mcp")
    assert store.read() == "old"
    store.write("secret")
    assert store.read() == "secret"
    assert files(home) == []
    assert store.remove()
    assert not store.remove()


@pytest.mark.usefixtures("no_keyring")
def test_a_keyring_that_is_locked_is_told_where_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    strict = StoredLogins(home, "keyring", "web", "http://a/mcp")
    with pytest.raises(ConfigError, match="needs the Python package `keyring`"):
        strict.read()
    keyring(tmp_path, monkeypatch, locked=True)
    with pytest.raises(
        ConfigError, match="the keyring cannot be used: the keyring is locked"
    ):
        strict.write("secret")
    store = StoredLogins(home, "auto", "web", "http://a/mcp")
    store.write("secret")
    assert store.read() == "secret"
    assert len(files(home)) == 1

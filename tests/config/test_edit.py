import threading
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from codex_py.config.edit import set_in_config
from codex_py.config.mcp import put_server, remove_server
from codex_py.errors import ConfigError

DOCS: Mapping[str, Any] = {"command": "npx", "args": ["-y", "docs"]}
DOCS_TEXT = '[mcp_servers.docs]\ncommand = "npx"\nargs = ["-y", "docs"]\n'
WITH_ENV: Mapping[str, Any] = {"command": "npx", "env": {"KEY": "a=b"}}
WITH_ENV_TEXT = (
    '[mcp_servers.docs]\ncommand = "npx"\n\n[mcp_servers.docs.env]\nKEY = "a=b"\n'
)


@pytest.mark.parametrize(
    ("before", "table", "after"),
    [
        (None, DOCS, DOCS_TEXT),
        ("", WITH_ENV, WITH_ENV_TEXT),
        ("model = 'm' # why\n", DOCS, f"model = 'm' # why\n\n{DOCS_TEXT}"),
        ("a = 1\r\n", DOCS, "a = 1\r\n\r\n" + DOCS_TEXT.replace("\n", "\r\n")),
        (
            f"[mcp_servers.a]\nurl = 'http://a' # a\n\n{WITH_ENV_TEXT}\n# about tui\n[tui]\nx = 1\n",
            DOCS,
            f"[mcp_servers.a]\nurl = 'http://a' # a\n\n{DOCS_TEXT}\n# about tui\n[tui]\nx = 1\n",
        ),
        (
            "[mcp_servers.docs]\ncommand = 'x'\n[tui]\n[mcp_servers.docs.tools.t]\n\n",
            DOCS,
            f"{DOCS_TEXT}[tui]\n",
        ),
        (
            '[mcp_servers]\na = {command = "y"} # mine\ndocs = {command = "x"}\n',
            {"command": "q"},
            '[mcp_servers]\na = {command = "y"} # mine\ndocs = {command = "q"}\n',
        ),
        (
            'mcp_servers = {a = {command = "y"}} # mine\n',
            {"command": "q"},
            'mcp_servers = {a = {command = "y"},docs = {command = "q"}} # mine\n',
        ),
    ],
)
def test_a_server_is_written_and_all_else_stays(
    tmp_path: Path, before: str | None, table: Mapping[str, Any], after: str
) -> None:
    path = tmp_path / "config.toml"
    if before is not None:
        path.write_bytes(before.encode())
        path.chmod(0o640)
    put_server(tmp_path, "docs", table)
    assert path.read_bytes().decode() == after
    assert path.stat().st_mode & 0o777 == (0o600 if before is None else 0o640)
    assert [entry.name for entry in tmp_path.iterdir()] == ["config.toml"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f"# top\nmodel = 'm'\n\n{WITH_ENV_TEXT}", "# top\nmodel = 'm'\n"),
        (f"{WITH_ENV_TEXT}\n# about a\n[mcp_servers.a]\ncommand = 'x'\n", None),
        (f"{DOCS_TEXT}\n[tui]\r\n", "[tui]\r\n"),
        ("[mcp_servers]\ndocs = {command = 'x'}\n# end\n", "[mcp_servers]\n# end\n"),
        ("mcp_servers.docs.command = 3\nmodel = 'm'\n", "model = 'm'\n"),
        ("[mcp_servers.docs]\ncommand = 3 # wrong\n", ""),
        (
            '[mcp_servers.docs]\ncommand = """\n[x]\n"""\n[mcp_servers.a]\ncommand = "a"\n',
            '[mcp_servers.a]\ncommand = "a"\n',
        ),
    ],
)
def test_a_server_is_removed_and_all_else_stays(
    tmp_path: Path, before: str, after: str | None
) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(before.encode())
    assert remove_server(tmp_path, "docs")
    if after is None:
        after = "\n# about a\n[mcp_servers.a]\ncommand = 'x'\n"
    assert path.read_bytes().decode() == after
    assert not remove_server(tmp_path, "docs")
    assert path.read_bytes().decode() == after


@pytest.mark.parametrize(
    ("before", "message"),
    [
        (
            "mcp_servers = \n",
            r"Error loading config.toml: .*config.toml:1:15: Invalid value",
        ),
        ("mcp_servers = 3\n", "`mcp_servers` must be a table"),
    ],
)
def test_a_file_that_is_broken_stays_as_it_is(
    tmp_path: Path, before: str, message: str
) -> None:
    path = tmp_path / "config.toml"
    path.write_text(before, encoding="utf-8")
    with pytest.raises(ConfigError, match=message):
        put_server(tmp_path, "docs", DOCS)
    assert path.read_text(encoding="utf-8") == before


def test_a_table_that_is_no_mcp_server_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="must begin with http"):
        put_server(tmp_path, "docs", {"url": "docs"})
    with pytest.raises(ConfigError, match="must be an array"):
        put_server(tmp_path, "docs", {"command": "x", "args": "y"})
    assert list(tmp_path.iterdir()) == []


def test_a_link_stays_one_and_writers_take_turns(tmp_path: Path) -> None:
    home, real = tmp_path / "home", tmp_path / "dotfiles.toml"
    home.mkdir()
    real.write_text("# mine\n", encoding="utf-8")
    (home / "config.toml").symlink_to(real)
    names = [f"s{n}" for n in range(8)]
    threads = [
        threading.Thread(target=put_server, args=(home, name, DOCS)) for name in names
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (home / "config.toml").is_symlink()
    text = real.read_text(encoding="utf-8")
    assert text.startswith("# mine\n")
    assert sorted(tomllib.loads(text)["mcp_servers"]) == names


@pytest.mark.parametrize(
    ("before", "key", "value", "after"),
    [
        ("model = 'm' # why\n", "model", "n", 'model = "n" # why\n'),
        ("model = 'm' # why\n[tui]\n", "model", None, "[tui]\n"),
        ("n = 1\n", "n", True, "n = true\n"),
        ("n = true\n", "n", 1.5, "n = 1.5\n"),
        (
            "# mine\n\n# about tui\n[tui]\n",
            "a",
            1,
            "# mine\na = 1\n\n# about tui\n[tui]\n",
        ),
        ("[tui]\nx = 1", "a", [], "a = []\n\n[tui]\nx = 1"),
        ("[tui]\nx = 1", "tui.y", ["a"], '[tui]\nx = 1\ny = ["a"]\n'),
        (
            "[tui]\nx = 1 # x\n\n# about a\n[a]\n",
            "tui.y",
            2,
            "[tui]\nx = 1 # x\ny = 2\n\n# about a\n[a]\n",
        ),
        ("[tui]\r\n# x\r\n[a]\r\n", "tui.y", 2, "[tui]\r\ny = 2\r\n# x\r\n[a]\r\n"),
        ("[[a]]\nx = 1\n[b]\n", "a", [{"x": 2}], "[[a]]\nx = 2\n[b]\n"),
        (
            "[[a]]\nx = 1 # x\n",
            "a",
            [{"x": 1}, {"y": [2]}],
            "[[a]]\nx = 1 # x\n\n[[a]]\ny = [2]\n",
        ),
        ("[a.b]\n", "a.b", {}, "[a.b]\n"),
    ],
)
def test_a_key_is_set_where_its_table_is(
    tmp_path: Path, before: str, key: str, value: Any, after: str
) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(before.encode())
    set_in_config(tmp_path, tuple(key.split(".")), value)
    assert path.read_bytes().decode() == after


def test_a_file_that_could_not_be_read_again_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("a = 1\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="bytes are more than"):
        set_in_config(tmp_path, ("b",), "x" * 4_200_000)
    assert path.read_text("utf-8") == "a = 1\n"

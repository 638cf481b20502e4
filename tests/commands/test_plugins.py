"""`codex-py plugin`, with plugins of friends and of others.

Tests `commands/plugins/plugin_command.py` and `commands/plugins/store.py`.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from codex_py.config.plugin_files import RECORD, read_files
from tests.support.git import git
from tests.support.plugins import MANIFEST, installed, write_plugin
from tests.support.program import environment, run_codex_py

HOOKS = {
    "PreToolUse": [
        {
            "matcher": "Bash",
            "hooks": [{"type": "command", "command": "check # \x1b[2J\nmore"}],
        }
    ]
}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home" / ".codex"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_plugin(tmp_path / "source")


def plugin(home: Path, *args: str | Path, **env: str) -> tuple[int, str, str]:
    done = run_codex_py(["plugin", *map(str, args)], home, home.parent, env)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def added(home: Path) -> list[str]:
    """The names in the folder of the plugins, unfinished ones included."""
    return sorted(each.name for each in (home / "codex-py" / "plugins").iterdir())


def refused(home: Path, *args: str | Path, **env: str) -> str:
    """The error of an `add` that leaves nothing."""
    code, out, err = plugin(home, "add", *args, "--yes", **env)
    assert (code, out, added(home)) == (1, "", [])
    return err


def test_the_programs_of_a_plugin_are_shown_before_it_is_added(
    home: Path, tmp_path: Path
) -> None:
    files = {
        "hooks/hooks.json": {"hooks": HOOKS},
        ".mcp.json": {
            "docs": {
                "command": "docs",
                "args": ["a b"],
                "env": {"A": "b"},
                "env_vars": ["KEY"],
            },
            "else": {"command": "python3", "args": ["serve.py"], "cwd": "/tmp"},
            "web": {"url": "https://example.com/mcp", "bearer_token_env_var": "TOKEN"},
        },
        "agents/judge.md": "---\nname: judge\ndescription: It judges\ntools: WebSearch\n---\nJudge.",
        "agents/bad.md": "bad",
        "commands/git/tidy.md": "Tidy up.",
        "commands/bad.md": "---\n",
        "skills/hello/SKILL.md": "---\ndescription: Say hello\n---\nHello.",
    }
    folder = write_plugin(
        tmp_path / "p", files, version="1.0", description="Tools", author="Ada"
    )
    code, out, err = plugin(home, "add", "../p", "--yes")
    assert (code, out) == (0, "Added the plugin tools. New sessions use it.\n")
    root = home / "codex-py" / "plugins" / "tools"
    shown = [
        "tools 1.0, by Ada: Tools",
        f"from {folder}",
        "It runs with your rights, outside of the sandbox:",
        "  hook PreToolUse (Bash): check # \u241b[2J \u23ce more",
        "  MCP server docs: A=b docs 'a b', which gets KEY of your environment",
        "  MCP server else: python3 serve.py, in /tmp",
        "  MCP server web: https://example.com/mcp, which gets TOKEN of your environment",
        "It tells the model:",
        "  agent tools:judge, with web_search: It judges",
        "  skill $tools:hello: Say hello",
        "  command /tools:bad",
        "  command /tools:git:tidy",
        f"Mistake in it: Ignoring malformed agent role definition: {root}/agents/bad.md:1: it has no front matter.",
        f"Mistake in it: The command /tools:bad cannot be used: {root}/commands/bad.md:1: the front matter has no end.",
    ]
    assert err.splitlines() == shown
    assert plugin(home, "show", "tools") == (
        0,
        "".join(f"{line}\n" for line in shown),
        "",
    )
    assert read_files(root) == read_files(folder)


def test_plugins_are_listed_and_removed(home: Path, source: Path) -> None:
    assert plugin(home, "list") == (
        *(0, "There are no plugins. Try `codex-py plugin add FOLDER`.\n", ""),
    )
    assert plugin(home, "add", source, "--yes")[2].startswith("tools: no description\n")
    changed = installed(home, name="other", version="2")
    (changed / "new").touch()
    code, out, err = plugin(home, "list")
    assert (code, [line.split(maxsplit=3) for line in out.splitlines()]) == (
        0,
        [
            ["NAME", "VERSION", "FROM", "STATE"],
            ["other", "-", "-", "not used: new changed since it was added"],
            ["tools", "-", str(source), "ok"],
        ],
    )
    code, out, _ = plugin(home, "list", "--json")
    assert [(entry["name"], entry["error"]) for entry in json.loads(out)] == [
        ("other", "new changed since it was added"),
        ("tools", None),
    ]
    code, out, err = plugin(home, "show", "other")
    assert (code, err.splitlines()[-1]) == (
        *(1, "Error: the plugin other is not used: new changed since it was added"),
    )
    for name in ("other", "tools"):
        assert plugin(home, "remove", name)[:2] == (0, f"Removed the plugin {name}.\n")
    assert added(home) == []
    for name in ("tools", "../../..", ""):
        code, out, err = plugin(home, "remove", name)
        assert (code, err) == (
            1,
            f"Error: there is no plugin {name!r}; see `codex-py plugin list`\n",
        )


def test_the_user_is_asked(home: Path, source: Path) -> None:
    code, out, err = plugin(home, "add", source)
    assert (code, out) == (2, "")
    assert "It runs with your rights" in err
    assert (
        "nobody can be asked here whether to trust the plugin; to add it, pass --yes"
        in err
    )
    for answer, code, names in ((b"\n", 1, []), (b"y\n", 0, ["tools"])):
        main, end = os.openpty()
        with subprocess.Popen(
            [sys.executable, "-m", "codex_py", "plugin", "add", source],
            env=environment(home),
            stdin=end,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        ) as program:
            assert program.stderr is not None
            while not program.stderr.readline().startswith(b"Trust it"):
                pass
            os.write(main, answer)
            assert program.wait(120) == code
        os.close(main)
        os.close(end)
        assert added(home) == names


def test_a_hook_that_was_shown_is_trusted(home: Path, tmp_path: Path) -> None:
    folder = write_plugin(tmp_path / "p", {"hooks.json": {"hooks": HOOKS}})
    plugin(home, "add", folder, "--yes", "--disable", "hooks")
    path = home / "codex-py" / "plugins" / "tools" / "hooks.json"
    assert f'[hooks.state."{path}:pre_tool_use:0:0"]' in (
        home / "config.toml"
    ).read_text(encoding="utf-8")


def test_a_plugin_is_not_replaced(home: Path, source: Path) -> None:
    plugin(home, "add", source, "--yes")
    code, _, err = plugin(home, "add", source, "--yes")
    assert (code, added(home)) == (1, ["tools"])
    assert err.endswith(
        "to add another one, run `codex-py plugin remove tools` first\n"
    )


def test_the_largest_plugin_can_be_used(home: Path, source: Path) -> None:
    folder = source / ("ä" * 90)
    folder.mkdir()
    for number in range(996):
        (folder / str(number)).touch()
    (source / RECORD).write_text("{}", encoding="utf-8")
    (source / "big").write_bytes(b"x" * (10 * 1024 * 1024 - 100))
    assert plugin(home, "add", source, "--yes")[0] == 0
    assert json.loads(plugin(home, "list", "--json")[1])[0]["error"] is None


def _link(folder: Path) -> None:
    (folder / "key").symlink_to("/etc/passwd")


def _inner_link(folder: Path) -> None:
    (folder / "commands").symlink_to(folder)


def _pipe(folder: Path) -> None:
    os.mkfifo(folder / "pipe")


def _socket(folder: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(folder / "socket"))


def _much(folder: Path) -> None:
    with (folder / "big").open("wb") as file:
        file.truncate(1 << 40)


def _many(folder: Path) -> None:
    for number in range(1001):
        (folder / str(number)).touch()


def _deep(folder: Path) -> None:
    Path(folder, *"abcdefghijk").mkdir(parents=True)


def _long(folder: Path) -> None:
    (folder / ("a" * 201)).touch()


def _case(folder: Path) -> None:
    (folder / "Straße").mkdir()
    (folder / "STRASSE").mkdir()


def _composed(folder: Path) -> None:
    (folder / "\u00e9").touch()
    (folder / "e\u0301").touch()


def _control(folder: Path) -> None:
    (folder / "a\x1b[2Jb").touch()


def _bytes(folder: Path) -> None:
    Path(os.fsdecode(os.fsencode(folder) + b"/\xff")).touch()


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (_link, "'key' cannot be read: it is a link where a file should be"),
        (_inner_link, "'commands' cannot be read: it is a link where a file should be"),
        (_pipe, "'pipe' cannot be read: it is a named pipe"),
        (_socket, "'socket' cannot be read: it is a socket"),
        (_much, "it has more than 10 MB"),
        (_many, "it has more than 1000 files and folders"),
        (_deep, "'a/b/c/d/e/f/g/h/i/j/k'… is longer than 200 bytes or 10 folders deep"),
        (_long, "… is longer than 200 bytes or 10 folders deep"),
        (_case, "name one file on some systems"),
        (_composed, "name one file on some systems"),
        (_control, "'a\\x1b[2Jb' is no name for a file of a plugin"),
        (_bytes, "'\\udcff' is no name for a file of a plugin"),
    ],
)
def test_a_tree_with_unusual_entries_is_refused(
    home: Path, source: Path, spoil: Callable[[Path], None], reason: str
) -> None:
    spoil(source)
    err = refused(home, source)
    assert err.startswith(f"Error: {source} cannot be added: ")
    assert err.endswith(f"{reason}\n")


def test_a_plugin_is_not_killed_into_place(
    home: Path, source: Path, tmp_path: Path
) -> None:
    """Whatever a kill leaves behind is not used, and is removed by the next command."""
    main, end = os.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "codex_py", "plugin", "add", source],
        env=environment(home),
        stdin=end,
        stderr=subprocess.PIPE,
    ) as program:
        assert program.stderr is not None
        while not program.stderr.readline().startswith(b"Trust it"):
            pass
        (left,) = added(home)
        # Another command leaves it alone as long as it is in use.
        other = write_plugin(tmp_path / "other", name="other")
        assert plugin(home, "add", other, "--yes")[0] == 0
        assert added(home) == [left, "other"]
        program.send_signal(signal.SIGKILL)
    os.close(main)
    os.close(end)
    assert plugin(home, "list")[1].count("\n") == 2
    assert plugin(home, "remove", "other")[0] == 0
    assert added(home) == []


def test_a_signal_leaves_nothing(home: Path, source: Path) -> None:
    main, end = os.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "codex_py", "plugin", "add", source],
        env=environment(home),
        stdin=end,
        stderr=subprocess.PIPE,
    ) as program:
        assert program.stderr is not None
        while not program.stderr.readline().startswith(b"Trust it"):
            pass
        program.send_signal(signal.SIGTERM)
        assert program.wait(120) == 128 + signal.SIGTERM
        assert b"Traceback" not in program.stderr.read()
    os.close(main)
    os.close(end)
    assert added(home) == []


def test_only_the_link_to_a_plugin_is_removed(home: Path, source: Path) -> None:
    folder = home / "codex-py" / "plugins"
    folder.mkdir(parents=True)
    (folder / "tools").symlink_to(source)
    (folder / "gone").symlink_to("nowhere")
    source.chmod(0o500)
    for name in added(home):
        assert plugin(home, "remove", name)[0] == 0
    assert (added(home), source.stat().st_mode & 0o777) == ([], 0o500)
    assert (source / MANIFEST).exists()
    source.chmod(0o700)


def test_of_two_plugins_added_at_once_one_wins(home: Path, source: Path) -> None:
    command = [sys.executable, "-m", "codex_py", "plugin", "add", source, "--yes"]
    programs = [
        subprocess.Popen(
            command,
            env=environment(home),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for _ in range(4)
    ]
    assert sorted(program.wait(120) for program in programs) == [0, 1, 1, 1]
    assert added(home) == ["tools"]
    assert json.loads(plugin(home, "list", "--json")[1])[0]["error"] is None


def test_a_full_disk_leaves_nothing(home: Path, source: Path) -> None:
    (source / "big").write_bytes(b"x" * 200_000)
    # A file of the plugin is larger than any file may become.
    done = subprocess.run(
        [
            *("/bin/sh", "-c", 'ulimit -f 100; exec "$@"', "sh"),
            *(sys.executable, "-m", "codex_py", "plugin", "add", source, "--yes"),
        ],
        env=environment(home),
        capture_output=True,
        check=False,
    )
    assert (done.returncode, added(home)) == (1, [])
    assert (
        done.stderr.decode()
        .splitlines()[-1]
        .endswith("cannot be changed: File too large")
    )


@pytest.fixture
def bare(source: Path, tmp_path: Path) -> Path:
    """A bare repository with two commits; `v1` is the first, which has no `new`."""
    git(source, "init", "-q")
    git(source, "add", "-A")
    git(source, "commit", "-qm", "one")
    git(source, "tag", "v1")
    (source / "new").touch()
    git(source, "add", "-A")
    git(source, "commit", "-qm", "two")
    git(tmp_path, "clone", "-q", "--bare", str(source), "bare.git")
    return tmp_path / "bare.git"


def test_a_plugin_comes_from_a_git_repository(home: Path, bare: Path) -> None:
    root = home / "codex-py" / "plugins" / "tools"
    first, last = git(bare, "rev-parse", "v1", "main").split()
    for args, commit in (
        ([f"file://{bare}"], last),
        ([f"file://{bare}", "--ref", "v1"], first),
        ([str(bare), "--ref", first], first),
        ([str(bare)], last),
        ([str(bare.parent / "source"), "--ref", "v1"], first),
    ):
        assert plugin(home, "add", *args, "--yes")[0] == 0
        assert (
            json.loads((root / RECORD).read_text(encoding="utf-8"))["commit"] == commit
        )
        assert (root / "new").exists() == (commit == last)
        assert plugin(home, "list", "--json")[1].count('"error": null') == 1
        plugin(home, "remove", "tools")


def test_git_runs_nothing_of_the_user_or_of_the_repository(
    home: Path, bare: Path, tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    script = tmp_path / "script"
    script.write_text(f"#!/bin/sh\ntouch {ran}\ncat\n", encoding="utf-8")
    script.chmod(0o755)
    template = tmp_path / "template" / "hooks"
    template.mkdir(parents=True)
    for name in ("post-checkout", "reference-transaction", "post-index-change"):
        (template / name).write_text(f"#!/bin/sh\ntouch {ran}\n", encoding="utf-8")
        (template / name).chmod(0o755)
    (home.parent / ".gitconfig").write_text(
        f'[init]\ntemplateDir = {template.parent}\n[core]\nhooksPath = {template}\n[filter "x"]\nsmudge = {script}\n'
        f"[tar]\n[credential]\nhelper = {script}\n[core]\nfsmonitor = {script}\n",
        encoding="utf-8",
    )
    work = tmp_path / "source"
    (work / ".gitattributes").write_text("* filter=x\n", encoding="utf-8")
    (work / ".gitmodules").write_text(
        f'[submodule "sub"]\npath = sub\nurl = {bare}\nupdate = !touch {ran}\n',
        encoding="utf-8",
    )
    (work / ".gitmodules").unlink()
    git(work, "add", "-A")
    git(work, "commit", "-qm", "three")
    env = {"GIT_TEMPLATE_DIR": str(template.parent), "GIT_SSH": str(script)}
    assert plugin(home, "add", f"file://{work}", "--yes", **env)[0] == 0
    assert not ran.exists()


def test_links_and_submodules_of_a_repository_do_not_come_in(
    home: Path, bare: Path
) -> None:
    work = bare.parent / "source"
    git(
        work,
        "update-index",
        "--add",
        "--cacheinfo",
        f"160000,{git(work, 'rev-parse', 'v1')},sub",
    )
    git(work, "commit", "-qm", "a submodule")
    assert plugin(home, "add", f"file://{work}", "--yes")[0] == 0
    plugin(home, "remove", "tools")
    (work / "key").symlink_to("/etc/passwd")
    git(work, "add", "key")
    git(work, "commit", "-qm", "a link")
    assert refused(home, f"file://{work}").endswith("'key' is a link\n")


def test_a_repository_with_too_many_files_is_refused(home: Path, bare: Path) -> None:
    work = bare.parent / "source"
    blob = git(work, "hash-object", "-w", MANIFEST)
    listed = "".join(f"100644 blob {blob}\tf{n}\n" for n in range(20_000))
    tree = git(work, "mktree", given=listed)
    git(
        work,
        "update-ref",
        "refs/heads/many",
        git(work, "commit-tree", "-m", "many", tree),
    )
    err = refused(home, f"file://{work}", "--ref", "many")
    assert err.endswith("it has more than 1000 files and folders\n")


def test_a_repository_that_unpacks_to_too_much_is_refused(
    home: Path, bare: Path
) -> None:
    """Ten trees, each with ten times the one below: ten billion files in 11 objects."""
    work = bare.parent / "source"
    blob = git(work, "hash-object", "-w", MANIFEST)
    entries = "".join(f"100644 blob {blob}\tf{n}\n" for n in range(10))
    tree = ""
    for _ in range(10):
        tree = git(work, "mktree", given=entries)
        entries = "".join(f"040000 tree {tree}\td{n}\n" for n in range(10))
    commit = git(work, "commit-tree", "-m", "bomb", tree)
    git(work, "update-ref", "refs/heads/bomb", commit)
    err = refused(home, f"file://{work}", "--ref", "bomb")
    assert "git failed: " in err or "cannot be added: " in err


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("http://127.0.0.1:1/x", "is neither a folder nor an address"),
        ("ext::sh -c 'touch ran'", "is neither a folder nor an address"),
        ("--upload-pack=touch", "unknown option --upload-pack"),
        ("ssh://-oProxyCommand=x/y", "is neither a folder nor an address"),
        ("git@-oProxyCommand=x:y", "is neither a folder nor an address"),
        ("nowhere", "is neither a folder nor an address"),
        ("file:///nowhere", "git failed: "),
    ],
)
def test_other_addresses_are_refused(home: Path, address: str, reason: str) -> None:
    code, _, err = plugin(home, "add", "--yes", address)
    assert code in {1, 2}
    assert reason in err
    assert "Traceback" not in err


def test_a_reference_is_no_option(home: Path, bare: Path) -> None:
    err = refused(home, f"file://{bare}", "--ref=--upload-pack=touch ran")
    assert err == "Error: '--upload-pack=touch ran' is no branch, tag or commit\n"


def test_git_asks_for_no_password(home: Path, tmp_path: Path) -> None:
    """The server is not one that git trusts, so this shows only that nothing waits; see `_VARIABLES` for the rest."""

    class Closed(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(401)

    with ThreadingHTTPServer(("127.0.0.1", 0), Closed) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        err = refused(home, f"https://127.0.0.1:{server.server_port}/x.git")
        server.shutdown()
    assert "git failed: " in err

"""Also tests `config/plugin_files.py` and `config/plugin_servers.py`."""

import json
from pathlib import Path
from typing import Any

import pytest

from codex_py.config.hooks import find_hooks
from codex_py.config.plugin_files import RECORD, find_plugins, read_files, read_plugin
from codex_py.config.plugins import Plugin
from codex_py.config.roles import find_roles
from codex_py.config.skills import find_skills, read_skill
from tests.config.conftest import Place
from tests.support.plugins import MANIFEST, installed, write_plugin

SERVER: dict[str, Any] = {"mcpServers": {"docs": {"command": "docs", "args": ["-v"]}}}


def only(home: Path) -> Plugin:
    found = find_plugins(home)
    assert found.warnings == []
    (plugin,) = found.found
    return plugin


def refusal(folder: Path) -> str:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 -- its text is compared
        read_plugin(folder, read_files(folder), {})
    return str(caught.value)


def test_a_plugin_has_the_parts_that_are_in_its_folders(tmp_path: Path) -> None:
    hooks = json.dumps({"hooks": {"Stop": []}})
    root = installed(
        tmp_path,
        {
            "skills/hello/SKILL.md": "skill",
            "skills/hello/more.md": "not a part",
            "agents/judge.md": "judge",
            "agents/judge.toml": "toml",
            "commands/run.md": "run",
            "commands/git/tidy.md": "tidy",
            "hooks.json": hooks,
            "hooks/hooks.json": hooks,
            ".mcp.json": SERVER,
            "README.md": "not a part",
        },
        version="1.2.0",
        description="Many\ntools",
        author={"name": "Ada", "email": "ada@example.com"},
    )
    plugin = only(tmp_path)
    assert (
        plugin.name,
        plugin.version,
        plugin.description,
        plugin.author,
        plugin.root,
    ) == (
        *("tools", "1.2.0", "Many tools", "Ada"),
        root,
    )
    assert plugin.skills == {root / "skills/hello/SKILL.md": "skill"}
    assert plugin.agents == {
        root / "agents/judge.md": "judge",
        root / "agents/judge.toml": "toml",
    }
    assert plugin.commands == {
        "git:tidy": (root / "commands/git/tidy.md", "tidy"),
        "run": (root / "commands/run.md", "run"),
    }
    assert plugin.hooks == {
        root / "hooks.json": hooks,
        root / "hooks/hooks.json": hooks,
    }
    assert list(plugin.servers) == ["docs"]


def test_the_manifest_may_name_the_parts(tmp_path: Path) -> None:
    manifest: dict[str, Any] = {
        "name": "tools",
        "skills": "./lib/skills/",
        "commands": ["./more/run.md", "extra"],
        "hooks": {"Stop": []},
        "mcpServers": SERVER["mcpServers"],
    }
    files: dict[str, Any] = {
        ".codex-plugin/plugin.json": manifest,
        "lib/skills/a/SKILL.md": "a",
        "more/run.md": "run",
        "extra/b/c.md": "c",
    }
    root = installed(tmp_path, files, name="tools", skills="nowhere")
    plugin = only(tmp_path)
    assert list(plugin.skills) == [root / "lib/skills/a/SKILL.md"]
    assert sorted(plugin.commands) == ["b:c", "run"]
    assert plugin.hooks == {
        root / ".codex-plugin/plugin.json": '{"hooks": {"Stop": []}}'
    }
    assert list(plugin.servers) == ["docs"]


def test_the_manifest_may_name_its_own_folder(tmp_path: Path) -> None:
    files = {"hello/SKILL.md": "skill", "skills/other/SKILL.md": "other"}
    root = installed(tmp_path, files, skills="./")
    assert sorted(only(tmp_path).skills) == [root / name for name in files]


def test_a_plugin_that_changed_is_not_used(tmp_path: Path) -> None:
    files = {"commands/run.md": "run", "bin/tool": "tool", "a": "a", "b": "b"}
    root = installed(tmp_path, files)
    again = "changed since it was added; to use it as it is now, remove it and add it again."
    (root / "bin" / "tool").chmod(0o700)
    assert find_plugins(tmp_path).warnings == [
        f"The plugin tools is not used: bin/tool {again}"
    ]
    (root / "commands" / "run.md").write_text("other", encoding="utf-8")
    (root / "a").unlink()
    (root / "new").touch()
    assert find_plugins(tmp_path).warnings == [
        f"The plugin tools is not used: a, bin/tool, commands/run.md and 1 more {again}"
    ]
    (root / "new").unlink()
    (root / "new").symlink_to("/etc/passwd")
    assert (
        find_plugins(tmp_path)
        .warnings[0]
        .startswith(
            "The plugin tools is not used: 'new' cannot be read: it is a link where a file should be;"
        )
    )


def test_a_plugin_that_was_not_added_is_not_used(tmp_path: Path) -> None:
    root = installed(tmp_path)
    root.rename(other := root.with_name("other"))
    (unfinished := root.with_name(".new-x")).mkdir()
    assert [w.partition(";")[0] for w in find_plugins(tmp_path).warnings] == [
        "The plugin other is not used: its name is tools"
    ]
    (other / RECORD).write_text("[]", encoding="utf-8")
    unfinished.rmdir()
    (warning,) = find_plugins(tmp_path).warnings
    assert warning.startswith(
        f"The plugin other is not used: {RECORD} must be a table, not an arr"
    )
    (other / RECORD).unlink()
    (warning,) = find_plugins(tmp_path).warnings
    assert warning.startswith(
        f"The plugin other is not used: {RECORD} cannot be read: No such file"
    )


@pytest.mark.parametrize(
    ("manifest", "reason"),
    [
        ("{", "plugin.json:1: Expecting property name enclosed in double quotes"),
        ("[]", "plugin.json must be a table, not an array"),
        ("[" * 100_000, "plugin.json is nested too deeply"),
        ('{"name": {}}', "plugin.json: `name` must be a string, not a table"),
        ("{}", "plugin.json: '' is no name for a plugin: use a-z, 0-9 and -"),
        (
            '{"name": "../up"}',
            "plugin.json: '../up' is no name for a plugin: use a-z, 0-9 and -",
        ),
        (
            '{"name": "user"}',
            "plugin.json: 'user' is no name for a plugin: use a-z, 0-9 and -",
        ),
        (
            '{"name": "a", "skills": "../up"}',
            "`skills` of its manifest names '../up', which is",
        ),
        (
            '{"name": "a", "skills": ["/etc"]}',
            "`skills` of its manifest names '/etc', which is",
        ),
        (
            '{"name": "a", "mcpServers": {"b": 1}}',
            "plugin.json: `mcpServers.b` must be",
        ),
        (
            '{"name": "a", "mcpServers": {"b": {"url": "x", "command": "y"}}}',
            "mcp_servers.b: ",
        ),
        (
            '{"name": "a", "mcpServers": {"b": {"args": "x", "command": "y"}}}',
            "it: `mcp_serv",
        ),
        (
            '{"name": "a", "mcpServers": {"b": {"command": ["y"]}}}',
            "it: `mcp_servers.b.comm",
        ),
    ],
)
def test_a_wrong_manifest_is_refused(
    tmp_path: Path, manifest: str, reason: str
) -> None:
    write_plugin(tmp_path, {MANIFEST: manifest})
    assert refusal(tmp_path).removeprefix(".claude-plugin/").startswith(reason)


def test_a_folder_that_is_no_plugin_is_refused(tmp_path: Path) -> None:
    assert (
        refusal(tmp_path)
        == "it has no .codex-plugin/plugin.json or .claude-plugin/plugin.json"
    )
    (tmp_path / ".claude-plugin").mkdir()
    (tmp_path / ".claude-plugin" / "marketplace.json").touch()
    assert (
        refusal(tmp_path)
        == "it is a marketplace; name the folder of one of its plugins"
    )


def test_its_servers_get_its_path_and_approve_nothing(tmp_path: Path) -> None:
    server = {
        "type": "stdio",
        "command": "./bin/docs",
        "args": ["${CLAUDE_PLUGIN_ROOT}/data", "${CODEX_PLUGIN_ROOT}", "$HOME"],
        "env": {"DATA": "${PLUGIN_ROOT}/data", "PLUGIN_ROOT": "/elsewhere"},
        "cwd": "data",
        "default_tools_approval_mode": "approve",
        "tools": {"x": {"approval_mode": "approve"}},
    }
    remote = {"type": "http", "url": "https://example.com/mcp", "headers": {"X-A": "b"}}
    root = installed(tmp_path, {".mcp.json": {"docs": server, "remote": remote}})
    servers = only(tmp_path).servers
    assert servers["docs"] == {
        "command": f"{root}/bin/docs",
        "args": [f"{root}/data", f"{root}", "$HOME"],
        "env": {
            "DATA": f"{root}/data",
            "CLAUDE_PLUGIN_ROOT": f"{root}",
            "CODEX_PLUGIN_ROOT": f"{root}",
            "PLUGIN_ROOT": f"{root}",
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        "cwd": f"{root}/data",
    }
    assert servers["remote"] == {"url": remote["url"], "http_headers": {"X-A": "b"}}


def test_the_servers_of_plugins_are_the_weakest_layer(place: Place) -> None:
    installed(place.home, {".mcp.json": SERVER})
    place.trusted()
    config = place.load()
    assert (config.mcp_servers["docs"].command, config.warnings) == ("docs", ())
    assert [plugin.name for plugin in config.plugins] == ["tools"]
    assert "plugins/tools" in place.explain("mcp_servers.docs.command")
    place.trusted("[mcp_servers.docs]\nenabled = false")
    assert (place.load().mcp_servers["docs"].enabled, place.load().warnings) == (
        False,
        (),
    )
    place.trusted('[mcp_servers.docs]\nurl = "https://example.com"')
    config = place.load()
    assert (config.mcp_servers["docs"].command, config.mcp_servers["docs"].args) == (
        None,
        (),
    )
    assert config.warnings == (
        "The MCP server docs of the plugin tools is not used: another one has its name.",
    )


def test_plugins_can_be_turned_off(place: Place) -> None:
    installed(place.home, {".mcp.json": SERVER})
    assert place.load(ignore_user_config=True).plugins == ()
    config = place.load(overrides=["features.plugins=false"])
    assert (config.plugins, config.mcp_servers, config.warnings) == ((), {}, ())


def test_a_plugin_that_changes_after_the_check_is_not_used(place: Place) -> None:
    hook = {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "good"}]}]}}
    files = {
        "hooks.json": hook,
        "skills/hello/SKILL.md": "---\ndescription: good\n---\ngood",
        "agents/judge.md": "---\nname: judge\ndescription: good\n---\ngood",
    }
    root = installed(place.home, files)
    config = place.load()
    for name in files:
        (root / name).write_text("evil", encoding="utf-8")
    (skill,) = find_skills(config, place.environment).found
    assert (skill.name, read_skill(skill.path, skill.folder)[-4:]) == (
        "tools:hello",
        "good",
    )
    assert (
        find_roles(config, place.environment).found["tools:judge"].instructions
        == "good"
    )
    (found,) = find_hooks(config, place.environment).found
    assert (found.command, found.state) == ("good", "new")
    assert found.environment == {
        "CLAUDE_PROJECT_DIR": str(place.root),
        "CLAUDE_PLUGIN_ROOT": str(root),
        "CODEX_PLUGIN_ROOT": str(root),
        "PLUGIN_ROOT": str(root),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    assert place.load().plugins == ()


def test_of_two_servers_with_the_same_name_one_is_used(place: Place) -> None:
    installed(place.home, {".mcp.json": {"docs": {"command": "first"}}}, name="a")
    installed(place.home, {".mcp.json": {"docs": {"command": "second"}}}, name="b")
    config = place.load()
    assert config.mcp_servers["docs"].command == "first"
    assert config.warnings == (
        "The MCP server docs of the plugin b is not used: another one has its name.",
    )


def test_variables_of_the_environment_are_passed_by_name(tmp_path: Path) -> None:
    stdio = {
        "command": "docs",
        "env": {"KEY": "${KEY}", "OTHER": "${KEY}"},
        "env_vars": ["A"],
    }
    headers = {
        "Authorization": "Bearer ${TOKEN}",
        "X-Key": "${KEY}",
        "X-A": "Bearer ${B}",
    }
    servers = {"docs": stdio, "web": {"url": "https://example.com", "headers": headers}}
    installed(tmp_path, {".mcp.json": servers})
    found = only(tmp_path).servers
    assert found["docs"]["env_vars"] == ["A", "KEY"]
    assert (found["docs"]["env"]["OTHER"], "KEY" in found["docs"]["env"]) == (
        "${KEY}",
        False,
    )
    assert found["web"] == {
        "url": "https://example.com",
        "http_headers": {"X-A": "Bearer ${B}"},
        "env_http_headers": {"X-Key": "KEY"},
        "bearer_token_env_var": "TOKEN",
    }

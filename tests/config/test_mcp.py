"""`[mcp_servers.*]`. Keys and meanings: Codex 0.169."""

import pytest

from codex_py.config.mcp import McpServerConfig
from codex_py.errors import ConfigError
from tests.config.conftest import Place


def test_every_key_of_a_program_is_read(place: Place):
    place.user(
        """
        [mcp_servers.s]
        command = "x"
        args = ["a"]
        env = { A = "1" }
        env_vars = ["B", { name = "C", source = "local" }]
        cwd = "sub"
        enabled = false
        required = true
        startup_timeout_sec = 2.5
        startup_timeout_ms = 1
        tool_timeout_sec = 60
        enabled_tools = ["t", "u"]
        disabled_tools = ["u"]
        supports_parallel_tool_calls = true
        default_tools_approval_mode = "writes"
        tools.t.approval_mode = "approve"
        """
    )
    server = place.load(strict=True).mcp_servers["s"]
    assert server == McpServerConfig(
        command="x",
        args=("a",),
        env={"A": "1"},
        env_vars=("B", "C"),
        cwd="sub",
        enabled=False,
        required=True,
        startup_timeout_s=2.5,
        tool_timeout_s=60,
        enabled_tools=("t", "u"),
        disabled_tools=("u",),
        supports_parallel_tool_calls=True,
        default_tools_approval_mode="writes",
        tools_approval_modes={"t": "approve"},
    )
    assert (server.approval_mode("t"), server.approval_mode("u")) == (
        "approve",
        "writes",
    )


def test_every_key_of_an_address_is_read(place: Place):
    place.user(
        """
        [mcp_servers."my:server"]
        url = "https://example.com/mcp"
        bearer_token_env_var = "TOKEN"
        http_headers = { X-A = "1" }
        env_http_headers = { X-B = "B" }
        auth = "oauth"
        scopes = ["read"]
        oauth = { client_id = "me" }
        oauth_resource = "https://example.com"
        startup_timeout_ms = 1500
        """
    )
    assert place.load(strict=True).mcp_servers == {
        "my:server": McpServerConfig(
            url="https://example.com/mcp",
            bearer_token_env_var="TOKEN",
            http_headers={"X-A": "1"},
            env_http_headers={"X-B": "B"},
            auth="oauth",
            scopes=("read",),
            oauth_client_id="me",
            oauth_resource="https://example.com",
            startup_timeout_s=1.5,
        )
    }


def test_settings_of_a_server_without_effect_are_reported(place: Place):
    place.user("[mcp_servers.s]\nurl = 'http://h'\nhttp_headers_helper = 'e'\n")
    assert place.load().warnings == (
        "This setting has no effect in this version: mcp_servers.s.http_headers_helper.",
    )


def test_a_server_of_another_machine_is_not_started_here(place: Place):
    place.user(
        "[mcp_servers.s]\ncommand = 'x'\nenvironment_id = 'e'\n"
        "[mcp_servers.here]\ncommand = 'x'\nenvironment_id = 'local'\n"
    )
    config = place.load()
    assert {name: server.enabled for name, server in config.mcp_servers.items()} == {
        "s": False,
        "here": True,
    }
    assert config.warnings == (
        "MCP server `s` is not started: its `environment_id` names another machine",
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "enabled = true",
            "mcp_servers.s: `command` or `url`, one of them is required",
        ),
        (
            "command = 'x'\nurl = 'http://h'",
            "mcp_servers.s: `command` or `url`, not both",
        ),
        (
            "url = 'http://h'\nbearer_token = 't'",
            "mcp_servers.s: `bearer_token` is not supported",
        ),
        ("command = ''", "mcp_servers.s.command is empty"),
        (
            "command = 'x'\nscopes = []",
            "mcp_servers.s.scopes is not supported for stdio",
        ),
        (
            "url = 'http://h'\nargs = []",
            "mcp_servers.s.args is not supported for streamable_http",
        ),
        ("url = 'h'", "mcp_servers.s.url must begin with http:// or https://, not 'h'"),
        (
            "command = 'x'\nenv_vars = [{ source = 'a' }]",
            "mcp_servers.s.env_vars: a table needs a",
        ),
        (
            "command = 'x'\nstartup_timeout_ms = 0",
            "`mcp_servers.s.startup_timeout_ms` must be an integer of more than 0, not `0`",
        ),
        (
            "command = 'x'\ntool_timeout_sec = inf",
            "`mcp_servers.s.tool_timeout_sec` must be a finite number of more than 0, not `inf`",
        ),
        (
            "command = 'x'\ntools.t.approval_mode = 'never'",
            "mcp_servers.s.tools.t.approval_mode",
        ),
    ],
)
def test_a_mistake_names_its_key(place: Place, text: str, message: str):
    place.user(f"[mcp_servers.s]\n{text}\n")
    with pytest.raises(ConfigError, match=message):
        place.load()


@pytest.mark.parametrize("name", ["a b", "Salesforce DX", "näme", "a$b", ""])
def test_a_server_with_a_name_that_codex_does_not_take_is_left_out(
    place: Place, name: str
):
    path = place.user(
        f"[mcp_servers.'{name}']\ncommand = 'x'\n[mcp_servers.good]\ncommand = 'y'\n"
    )
    config = place.load()
    assert [*config.mcp_servers] == ["good"]
    assert config.warnings == (
        f"{path}:1: MCP server {name!r} is not started: a name has letters, digits and `-_:@/.` alone",
    )


def test_a_server_with_such_a_name_that_is_off_is_not_spoken_of(place: Place):
    place.user("[mcp_servers.'a b']\ncommand = 'x'\nenabled = false\nrequired = true\n")
    config = place.load()
    assert (config.mcp_servers, config.warnings) == ({}, ())


def test_a_server_with_such_a_name_that_is_required_stops_the_start(place: Place):
    place.user("[mcp_servers.'a b']\ncommand = 'x'\nrequired = true\n")
    with pytest.raises(
        ConfigError, match=r'mcp_servers\."a b": a name has letters, digits'
    ):
        place.load()

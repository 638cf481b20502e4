"""What is printed on standard output is what Codex 0.169 prints, but for the name of the program.

Tests `app/login_screen.py`, `commands/mcp/listing.py`, `commands/mcp/login.py` and
`commands/mcp/mcp_command.py`.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.mcp.servers.oauth import OAuthMcpServer, oauth_mcp_server
from tests.support.mcp import odd_command
from tests.support.program import environment, run_codex_py

CONFIG = """\
mcp_oauth_credentials_store = "file"

[mcp_servers.full]
command = "npx"
args = ["-y", "a b"]
env_vars = ["FOO", {name = "BAR", source = "local"}]
cwd = "/srv/q"
startup_timeout_sec = 12.5
tool_timeout_sec = 30
enabled_tools = ["a", "b"]
disabled_tools = ["c"]
env = { K = "v" }
default_tools_approval_mode = "approve"

[mcp_servers.off]
command = "x"
enabled = false

[mcp_servers.web]
url = "http://127.0.0.1:1/mcp"
http_headers = { H = "v" }
env_http_headers = { X = "Y" }
startup_timeout_ms = 1500

[mcp_servers.key]
url = "http://127.0.0.1:1/mcp"
bearer_token_env_var = "TOK"
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home" / ".codex"
    folder.mkdir(parents=True)
    return folder


def mcp(home: Path, *args: str, **env: str) -> tuple[int, str, str]:
    done = run_codex_py(["mcp", *args], home, home.parent, env)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def configure(home: Path, **servers: Any) -> None:
    patient = {
        name: {"startup_timeout_sec": 40, **table} for name, table in servers.items()
    }
    text = "".join(
        f"[mcp_servers.{name}]\n"
        + "".join(f"{k} = {json.dumps(v)}\n" for k, v in table.items())
        for name, table in patient.items()
    )
    text = f'mcp_oauth_credentials_store = "file"\n{text}'
    (home / "config.toml").write_text(text, encoding="utf-8")


def test_servers_are_added_listed_and_removed(home: Path) -> None:
    hint = (
        "No MCP servers configured yet. Try `codex-py mcp add my-tool -- my-command`.\n"
    )
    assert mcp(home, "list") == (0, hint, "")
    assert mcp(home, "list", "--json") == (0, "[]\n", "")
    added = "Added global MCP server 'z'.\n"
    words = ("--env", "A=B", "--", "python", "-m", "x", "--flag")
    assert mcp(home, "add", "z", *words) == (0, added, "")
    assert (home / "config.toml").read_text(encoding="utf-8") == (
        '[mcp_servers.z]\ncommand = "python"\nargs = ["-m", "x", "--flag"]\n\n'
        '[mcp_servers.z.env]\nA = "B"\n'
    )
    assert mcp(home, "list") == (
        0,
        "Name  Command  Args         Env      Cwd  Status   Auth       \n"
        "z     python   -m x --flag  A=*****  -    enabled  Unsupported\n",
        "",
    )
    assert mcp(home, "get", "z") == (
        0,
        "z\n  enabled: true\n  transport: stdio\n  command: python\n  args: -m x --flag\n"
        "  cwd: -\n  env: A=*****\n  remove: codex-py mcp remove z\n",
        "",
    )
    assert mcp(home, "remove", "z") == (0, "Removed global MCP server 'z'.\n", "")
    assert mcp(home, "remove", "z") == (0, "No MCP server named 'z' found.\n", "")
    assert mcp(home, "get", "z") == (1, "", "Error: No MCP server named 'z' found.\n")


def test_options_of_the_command_are_its_own(home: Path) -> None:
    assert mcp(home, "add", "x", "echo", "hi", "-y", "--env")[0] == 0
    assert mcp(home, "add", "--env", "A=1", "y", "--", "echo", "a", "--", "b")[0] == 0
    listed = json.loads(mcp(home, "list", "--json")[1])
    assert [(s["transport"]["args"], s["transport"]["env"]) for s in listed] == [
        (["hi", "-y", "--env"], None),
        (["a", "--", "b"], {"A": "1"}),
    ]


def test_a_server_at_an_address_is_added(home: Path) -> None:
    url = "http://127.0.0.1:1/mcp"
    assert mcp(home, "add", "u", "--url", url, "--bearer-token-env-var", "TOK")[:2] == (
        0,
        "Added global MCP server 'u'.\n",
    )
    more = ("--oauth-client-id", "abc", "--oauth-resource", "http://r")
    assert mcp(home, "add", "q", "--url", url, *more)[:2] == (
        0,
        "Added global MCP server 'q'.\n"
        "MCP server may or may not require login. Run `codex-py mcp login q` to login.\n",
    )
    assert (home / "config.toml").read_text(encoding="utf-8") == (
        f'[mcp_servers.u]\nurl = "{url}"\nbearer_token_env_var = "TOK"\n\n'
        f'[mcp_servers.q]\nurl = "{url}"\noauth_resource = "http://r"\n\n'
        '[mcp_servers.q.oauth]\nclient_id = "abc"\n'
    )


def test_all_settings_are_shown_as_codex_shows_them(home: Path) -> None:
    (home / "config.toml").write_text(CONFIG, encoding="utf-8")
    assert mcp(home, "list")[1] == (
        "Name  Command  Args    Env                            Cwd     Status    Auth       \n"
        "full  npx      -y a b  K=*****, FOO=*****, BAR=*****  /srv/q  enabled   Unsupported\n"
        "off   x        -       -                              -       disabled  Unsupported\n"
        "\n"
        "Name  Url                     Bearer Token Env Var  Status   Auth        \n"
        "key   http://127.0.0.1:1/mcp  TOK                   enabled  Bearer token\n"
        "web   http://127.0.0.1:1/mcp  -                     enabled  Unknown     \n"
    )
    assert mcp(home, "get", "full")[1] == (
        "full\n  enabled: true\n  enabled_tools: a, b\n  disabled_tools: c\n  transport: stdio\n"
        "  command: npx\n  args: -y a b\n  cwd: /srv/q\n  env: K=*****, FOO=*****, BAR=*****\n"
        "  startup_timeout_sec: 12.5\n  tool_timeout_sec: 30\n"
        "  default_tools_approval_mode: approve\n  remove: codex-py mcp remove full\n"
    )
    assert mcp(home, "get", "off")[1] == "off (disabled)\n"
    assert mcp(home, "get", "web")[1] == (
        "web\n  enabled: true\n  transport: streamable_http\n  url: http://127.0.0.1:1/mcp\n"
        "  bearer_token_env_var: -\n  http_headers: H=*****\n  env_http_headers: X=Y\n"
        "  http_headers_helper: -\n  startup_timeout_sec: 1.5\n  remove: codex-py mcp remove web\n"
    )
    assert json.loads(mcp(home, "get", "full", "--json")[1]) == {
        "name": "full",
        "enabled": True,
        "disabled_reason": None,
        "transport": {
            "type": "stdio",
            "command": "npx",
            "args": ["-y", "a b"],
            "env": {"K": "v"},
            "env_vars": ["FOO", {"name": "BAR", "source": "local"}],
            "cwd": "/srv/q",
        },
        "enabled_tools": ["a", "b"],
        "disabled_tools": ["c"],
        "startup_timeout_sec": 12.5,
        "tool_timeout_sec": 30.0,
    }
    assert json.loads(mcp(home, "list", "--json")[1])[-1] == {
        "name": "web",
        "enabled": True,
        "disabled_reason": None,
        "transport": {
            "type": "streamable_http",
            "url": "http://127.0.0.1:1/mcp",
            "bearer_token_env_var": None,
            "http_headers": {"H": "v"},
            "env_http_headers": {"X": "Y"},
            "http_headers_helper": None,
        },
        "startup_timeout_sec": 1.5,
        "tool_timeout_sec": None,
        "auth_status": "unknown",
    }


def test_overrides_count_before_and_behind_the_word(home: Path) -> None:
    override = ("-c", 'mcp_servers.c.command="o"')
    behind = mcp(home, *override, "list")
    before = run_codex_py([*override, "mcp", "list"], home, home.parent)
    assert behind[1] == before.stdout.decode() != ""


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (
            [],
            2,
            "say what to do: codex-py mcp COMMAND, one of add, list, get, remove, test,",
        ),
        (["ad"], 2, "unknown command `mcp ad`. Did you mean add?"),
        (
            ["add"],
            2,
            "say what to call it: codex-py mcp add NAME (--url URL | -- COMMAND",
        ),
        (["add", "x", "--"], 2, "say how to reach it: codex-py mcp add NAME"),
        (
            ["add", "a b", "--", "echo"],
            1,
            "invalid server name 'a b' (use letters, numbers,",
        ),
        (
            ["add", "x", "--env", "A", "--", "y"],
            2,
            "--env: 'A' is not of the form KEY=VALUE",
        ),
        (["add", "x", "--url", "foo"], 2, "--url must begin with http:// or https://"),
        (
            ["add", "x", "--url", "http://a\n/b"],
            2,
            "--url is no URL of a server: 'http://a\\n/b'",
        ),
        (
            ["add", "x", "--url", "http://[a"],
            2,
            "--url is no URL of a server: 'http://[a'",
        ),
        (
            ["add", "x", "--url", "http://a", "--", "y"],
            2,
            "--url and a command exclude each",
        ),
        (
            ["add", "x", "--env", "A=1", "--url", "http://a"],
            2,
            "--env is for a server that is",
        ),
        (
            ["add", "x", "--bearer-token-env-var", "T", "--", "y"],
            2,
            "--bearer-token-env-var is",
        ),
        (
            ["add", "x", "https://mcp.example/mcp"],
            2,
            "an address needs --url: codex-py mcp add x --url https://mcp.example/mcp",
        ),
        (
            ["add", "--transport", "http", "x", "https://mcp.example/mcp"],
            2,
            "unknown option --transport. Use `--url URL` for a server at an address.",
        ),
        (
            ["add", "x", "-e", "A=1", "--", "y"],
            2,
            "unknown option -e. Use `--env KEY=VALUE`.",
        ),
        (
            ["add", "x", "--env", "A=1", "-y", "z"],
            2,
            "unknown option -y. The program of a server and its arguments follow `--`.",
        ),
        (["get"], 2, "say which server: codex-py mcp get NAME"),
        (["login", "nope"], 1, "No MCP server named 'nope' found."),
        (
            ["login", "full"],
            1,
            "OAuth login is only supported for streamable HTTP servers.",
        ),
        (
            ["logout", "full"],
            1,
            "OAuth logout is only supported for streamable_http transports.",
        ),
        (
            ["login", "key"],
            1,
            "MCP server `key` has a token in its configuration, and needs no",
        ),
        (["test", "nope"], 1, "No MCP server named 'nope' found."),
    ],
)
def test_an_impossible_command_is_refused_in_one_sentence(
    home: Path, args: list[str], code: int, message: str
) -> None:
    (home / "config.toml").write_text(CONFIG, encoding="utf-8")
    got, out, err = mcp(home, *args)
    assert (got, out, len(err.splitlines())) == (code, "", 1)
    assert err.startswith(f"Error: {message}")
    assert (home / "config.toml").read_text(encoding="utf-8") == CONFIG


def test_a_url_with_a_control_character_is_told(home: Path) -> None:
    configure(home, bad={"url": "http://127.0.0.1:1/\x07"})
    code, out, err = mcp(home, "login", "bad")
    assert (code, out, len(err.splitlines())) == (78, "", 1)
    assert (
        "mcp_servers.bad.url is no URL of a server: 'http://127.0.0.1:1/\\x07'" in err
    )


@pytest.mark.parametrize("text", ["mcp_servers = \n", "model = 3\n"])
def test_a_broken_configuration_is_left_alone(home: Path, text: str) -> None:
    (home / "config.toml").write_text(text, encoding="utf-8")
    for args in (["add", "n", "--", "q"], ["list"], ["get", "n"]):
        code, out, err = mcp(home, *args)
        assert (code, out) == (78, "")
        assert err.startswith("Error loading config.toml: ")
        assert len(err.splitlines()) == 1
    assert (home / "config.toml").read_text(encoding="utf-8") == text


def odd(behaviour: str, home: Path, **more: Any) -> dict[str, Any]:
    command, *args = odd_command(behaviour, home / "log")
    return {"command": command, "args": args, **more}


def test_a_server_that_works_is_shown_with_its_tools(home: Path) -> None:
    configure(
        home, docs=odd("many", home, enabled_tools=["tool-1", "tool-20"], enabled=False)
    )
    code, out, err = mcp(home, "test", "docs")
    lines = out.splitlines()
    assert (code, err) == (0, "")
    assert lines[:3] == [
        "docs: ready, 2 tools",
        "  server: odd 1",
        "  protocol: 2025-11-25",
    ]
    assert lines[3].startswith("  started in 0.") or lines[3].startswith(
        "  started in "
    )
    assert lines[4:] == [
        "  tool-1   does the thing with the number1",
        "  tool-20  does the thing with the number20",
    ]
    report = json.loads(mcp(home, "test", "docs", "--json")[1])
    assert (report["ready"], report["server"], len(report["tools"])) == (
        True,
        "odd 1",
        2,
    )


@pytest.mark.parametrize(
    ("server", "failure", "error", "advice"),
    [
        (
            {"command": "no-such-program"},
            "not_started",
            "could not be started",
            "Install it",
        ),
        (
            {"command": "/usr/bin/env sh"},
            "not_started",
            "in the list of its arguments",
            "Install it",
        ),
        ({"behaviour": "dies-at-start"}, "exited", "no configuration found", "Run `"),
        (
            {"behaviour": "mute", "startup_timeout_sec": 0.5},
            "timed_out",
            "did not come up within 0.5 s",
            "If it only needs longer",
        ),
        (
            {
                "command": "sh",
                "args": ["-c", "echo Hello; exec sleep 600"],
                "startup_timeout_sec": 2,
            },
            "timed_out",
            "did not come up within 2 s",
            "On stdout it may write nothing but messages",
        ),
        (
            {"url": "http://127.0.0.1:1/mcp"},
            "unreachable",
            "could not be reached",
            "Look at `url`",
        ),
    ],
)
def test_a_server_that_fails_is_shown_with_advice(
    home: Path, server: dict[str, Any], failure: str, error: str, advice: str
) -> None:
    behaviour = server.pop("behaviour", None)
    configure(home, bad={**odd(behaviour, home), **server} if behaviour else server)
    code, out, err = mcp(home, "test", "bad")
    assert (code, out) == (1, "")
    assert "Error: MCP server `bad` " in err
    assert error in err
    assert err.splitlines()[-1].startswith(advice)
    code, out, err = mcp(home, "test", "bad", "--json")
    report = json.loads(out)
    assert (code, err, report["ready"], report["failure"]) == (1, "", False, failure)
    assert report["advice"].startswith(advice)


def test_a_token_that_is_not_there_is_named(home: Path) -> None:
    with oauth_mcp_server() as http:
        configure(home, web={"url": http.url, "bearer_token_env_var": "WEB_TOKEN"})
        code, _, err = mcp(home, "test", "web")
        assert code == 1
        assert err == (
            "Warning: MCP server `web`: its `bearer_token_env_var` 'WEB_TOKEN' is not set\n"
            "Error: MCP server `web` answered with HTTP 401 Unauthorized\n"
            "Look at the token in the variable `WEB_TOKEN`.\n"
        )


def login(
    home: Path, http: OAuthMcpServer, *, paste: bool = False
) -> tuple[int, str, str]:
    """`mcp login`, and a user who goes where it says."""
    program = subprocess.Popen(
        [sys.executable, "-m", "codex_py", "mcp", "login", "web", "--no-browser"],
        env=environment(home),
        cwd=home.parent,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )
    with program:
        assert program.stdin is not None
        assert program.stdout is not None
        assert program.stdout.readline() == (
            "Authorize `web` by opening this URL in your browser:\n"
        )
        back = httpx.get(program.stdout.readline().strip()).headers["location"]
        if paste:
            program.stdin.write(f"{back}\n")
            program.stdin.flush()
        else:
            httpx.get(back)
        out, err = program.communicate(timeout=120)
    return program.returncode, out, err


@pytest.mark.parametrize("paste", [False, True])
def test_a_login_is_made_used_and_forgotten(home: Path, paste: bool) -> None:
    with oauth_mcp_server() as http:
        configure(home, web={"url": http.url})
        (server,) = json.loads(mcp(home, "list", "--json")[1])
        assert server["auth_status"] == "not_logged_in"
        assert mcp(home, "test", "web")[2] == (
            "Error: MCP server `web` answered with HTTP 401 Unauthorized;"
            " log in with `codex-py mcp login web`\n"
        )
        code, out, err = login(home, http, paste=paste)
        assert (code, out.lstrip()) == (
            0,
            "Successfully logged in to MCP server 'web'.\n",
        )
        assert [secret for secret in http.issued if secret in out + err] == []
        (server,) = json.loads(mcp(home, "list", "--json")[1])
        assert server["auth_status"] == "o_auth"
        code, out, err = mcp(home, "test", "web")
        assert (code, out.splitlines()[0], err) == (0, "web: ready, 1 tool", "")
        assert mcp(home, "logout", "web")[1] == "Removed OAuth credentials for 'web'.\n"
        assert (
            mcp(home, "logout", "web")[1] == "No OAuth credentials stored for 'web'.\n"
        )
        assert mcp(home, "test", "web")[0] == 1


def test_a_login_that_is_refused_is_told(home: Path) -> None:
    with oauth_mcp_server(denies=True) as http:
        configure(home, web={"url": http.url})
        assert login(home, http)[::2] == (
            1,
            "If your browser runs on another machine, paste here the address that it shows in the end.\n"
            "Error: could not log in to `web`: it was refused: access_denied: The user said no\n",
        )

"""The methods about MCP servers. Shapes and most words are those of `codex app-server` 0.171.

Tests `app/mcp_requests.py`, `frontends/app_server/client_screen.py`,
`frontends/app_server/mcp/mcp_logins.py`, `frontends/app_server/mcp/mcp_params.py`,
`frontends/app_server/mcp/mcp_servers.py`, `frontends/app_server/mcp/mcp_status.py` and
`mcp/resources.py`.
"""

import asyncio
import json
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, cast

import httpx
import pytest

from codex_py import load_config
from codex_py.app.json_rpc import JsonRpc, RpcError
from codex_py.command_line.arguments import Arguments
from codex_py.config.config import Config
from codex_py.config.mcp import McpServerConfig
from codex_py.frontends.app_server import params
from codex_py.frontends.app_server.mcp import mcp_params
from codex_py.frontends.app_server.mcp.mcp_servers import McpMethods
from codex_py.frontends.app_server.mcp.mcp_status import (
    resources_data,
    server_data,
    templates_data,
)
from codex_py.frontends.app_server.server import Server
from codex_py.frontends.app_server.threads.open_threads import OpenThreads
from codex_py.mcp.tools import ServerTool
from codex_py.protocol.mcp import McpServerStatus, ServerAbout
from codex_py.testing import (
    Pause,
    ev_completed,
    ev_created,
    ev_function_call,
    ev_message,
)
from tests.mcp.servers.oauth import OAuthMcpServer, oauth_mcp_server
from tests.support.app_server import AppServer, Message
from tests.support.codex import ask_app_server, needs_codex
from tests.support.mcp import odd_command
from tests.support.program import Workplace, environment
from tests.support.server import ScriptedServer

LIST = "mcpServerStatus/list"
CALL = "mcpServer/tool/call"
READ = "mcpServer/resource/read"
LOGIN = "mcpServer/oauth/login"
RELOAD = "config/mcpServer/reload"
STARTUP = "mcpServer/startupStatus/updated"
COMPLETED = "mcpServer/oauthLogin/completed"
NOBODY = "0199aaaa-aaaa-7aaa-8aaa-aaaaaaaaaaaa"

ECHO = {
    "name": "echo",
    "description": "",
    "inputSchema": {"type": "object"},
    "annotations": {"readOnlyHint": True},
}
FAILS = {
    "name": "fails",
    "description": "",
    "inputSchema": {"type": "object"},
    "annotations": {},
}
READY = {
    "name": "fails",
    "environmentId": None,
    "runtimeStatus": "connected",
    "pluginId": None,
    "httpOrigin": None,
    "serverInfo": {
        "name": "odd",
        "title": None,
        "version": "1",
        "description": None,
        "icons": None,
        "websiteUrl": None,
    },
    "serverCapabilities": {"tools": {"listChanged": True}, "resources": {}},
    "toolListMeta": None,
    "tools": {"echo": ECHO, "fails": FAILS},
    "toolsError": None,
    "resources": [
        {"uri": "odd://1", "name": "a", "mimeType": "text/plain"},
        {"uri": "odd://2", "name": "a", "mimeType": "text/plain"},
    ],
    "resourceTemplates": [{"uriTemplate": "odd://{n}", "name": "t"}],
    "authStatus": "unsupported",
}
"""What Codex 0.171 says of this server."""


def odd(place: Workplace, behaviour: str, **settings: Any) -> Mapping[str, Any]:
    """The settings of a server; the log of its messages is in the home."""
    program, *arguments = odd_command(behaviour, place.home / f"log-{behaviour}")
    return {"command": program, "args": arguments, **settings}


def tables(servers: Mapping[str, Mapping[str, Any]]) -> str:
    """The tables of the servers, as TOML: the values of their keys have the same form in JSON."""
    text = ""
    for name, settings in servers.items():
        text += f"[mcp_servers.{name}]\n"
        for key, value in settings.items():
            text += f"{key} = {json.dumps(value)}\n"
    return text


def configure(
    place: Workplace,
    servers: Mapping[str, Mapping[str, Any]],
    model: ScriptedServer | None = None,
) -> None:
    if model is not None:
        place.configure(model)
    file = place.home / "config.toml"
    kept = ""
    if file.exists():
        kept, _, _ = file.read_text("utf-8").partition("# servers\n")
    file.write_text(f"{kept}# servers\n{tables(servers)}", encoding="utf-8")


def sent(place: Workplace, behaviour: str, method: str) -> Sequence[Mapping[str, Any]]:
    """The params of the messages of a method that odd servers have got."""
    lines = (place.home / f"log-{behaviour}").read_text("utf-8").splitlines()
    messages = [json.loads(line) for line in lines]
    return [each.get("params", {}) for each in messages if each["method"] == method]


@contextmanager
def client(
    place: Workplace, servers: Mapping[str, Mapping[str, Any]]
) -> Generator[AppServer]:
    configure(place, servers)
    with AppServer(place.home, place.cwd) as server:
        yield server


def call(thread: str, server: str, tool: str, **more: Any) -> Message:
    return {"threadId": thread, "server": server, "tool": tool, **more}


def until_ready(server: AppServer, thread: str, *names: str) -> None:
    """Wait until the client was told that these servers are ready."""

    def ready() -> set[str]:
        told = [each["params"] for each in server.seen if each.get("method") == STARTUP]
        return {
            each["name"]
            for each in told
            if (each["threadId"], each["status"]) == (thread, "ready")
        }

    while not ready().issuperset(names):
        server.until(lambda _: True)


def test_servers_are_listed_page_by_page(place: Workplace) -> None:
    servers = {
        "fails": odd(place, "fails"),
        "off": odd(place, "fails", enabled=False),
        "extra": odd(place, "progress", enabled_tools=["echo"]),
        "dead": odd(place, "dies-at-start"),
    }
    with client(place, servers) as server:
        whole = server.ask(LIST, {"serverName": "fails"})
        assert whole == {"data": [{**READY, "runtimeStatus": None}], "nextCursor": None}
        first = server.ask(LIST, {"limit": 2, "detail": "toolsAndAuthOnly"})
        dead, extra = first["data"]
        assert (dead["name"], extra["name"]) == ("dead", "extra")
        assert first["nextCursor"] == "2"
        assert dead["serverInfo"] is None
        assert dead["tools"] == {}
        assert "exited with code 1" in dead["toolsError"]
        assert extra["tools"] == {"echo": ECHO}
        assert extra["resources"] == extra["resourceTemplates"] == []
        last = server.ask(LIST, {"limit": 0, "cursor": "3"})
        (off,) = last["data"]
        assert last["nextCursor"] is None
        assert (off["name"], off["tools"], off["toolsError"]) == ("off", {}, None)
        assert server.ask(LIST, {"serverName": "nope"})["data"] == []
        assert server.ask(LIST, {"cursor": "4"})["data"] == []
    # No server is left when the list is answered: each list starts its own.
    assert len(sent(place, "fails", "initialize")) == 1


@pytest.mark.parametrize(
    ("method", "asked", "code", "text"),
    [
        (LIST, {"cursor": "9"}, -32600, "cursor 9 exceeds total MCP servers 1"),
        (LIST, {"cursor": "x"}, -32600, "invalid cursor: x"),
        (LIST, {"cursor": "²"}, -32600, "invalid cursor: ²"),
        (LIST, {"threadId": NOBODY}, -32600, f"thread not found: {NOBODY}"),
        (LIST, {"environmentId": "x"}, -32600, "`environmentId`"),
        (CALL, call(NOBODY, "a", "b"), -32600, f"thread not found: {NOBODY}"),
        (CALL, {"server": "a", "tool": "b"}, -32600, "`threadId`"),
        (READ, {"server": "x", "uri": "a"}, -32603, "unknown MCP server 'x'"),
        (READ, {"server": "fails", "uri": "a"}, -32002, "Resource not found"),
        (
            READ,
            {"server": "fails", "uri": "a", "originCallId": "c"},
            -32600,
            "originCallId requires threadId",
        ),
        (READ, {"server": "a", "uri": "b", "threadId": NOBODY}, -32600, NOBODY),
        (LOGIN, {"name": "x"}, -32600, "No MCP server named 'x' found."),
        (LOGIN, {"name": "x", "threadId": NOBODY}, -32600, NOBODY),
        (
            LOGIN,
            {"name": "fails"},
            -32600,
            "OAuth login is only supported for streamable HTTP servers.",
        ),
        (LOGIN, {"name": "a", "clientRegistration": "cimd"}, -32600, "`dcr`"),
        (RELOAD, {"x": 1}, -32600, "`x`"),
    ],
)
def test_bad_requests_are_refused(
    place: Workplace, method: str, asked: Message, code: int, text: str
) -> None:
    with client(place, {"fails": odd(place, "fails")}) as server:
        error = server.refused(method, asked)
        assert (error["code"], text in error["message"]) == (code, True), error


def test_the_servers_of_a_thread_are_used_again(place: Workplace) -> None:
    servers = {
        "fails": odd(place, "fails"),
        "off": odd(place, "fails", enabled=False),
        "dead": odd(place, "dies-at-start"),
    }
    with client(place, servers) as server:
        thread = server.thread()
        server.told("thread/started")
        starting = server.told(STARTUP, name="fails")
        assert starting == {
            "threadId": thread,
            "name": "fails",
            "environmentId": None,
            "status": "starting",
            "error": None,
            "failureReason": None,
        }
        until_ready(server, thread, "fails")
        listed = server.ask(LIST, {"threadId": thread})["data"]
        assert [each["runtimeStatus"] for each in listed] == [
            "failed",
            "connected",
            "disabled",
        ]
        assert listed[1] == READY
        read = server.ask(
            READ, {"threadId": thread, "server": "fails", "uri": "odd://1"}
        )
        assert read == {
            "contents": [{"uri": "odd://1", "text": "one"}],
            "originCallId": None,
        }
        error = server.refused(READ, {"threadId": thread, "server": "off", "uri": "x"})
        assert error["message"] == "unknown MCP server 'off'"
    (failed,) = [
        message["params"]
        for message in server.seen
        if message.get("method") == STARTUP and message["params"]["status"] == "failed"
    ]
    assert failed["name"] == "dead"
    assert "exited with code 1" in failed["error"]
    assert len(sent(place, "fails", "initialize")) == 1


def test_the_client_calls_tools_and_nobody_is_asked(place: Workplace) -> None:
    strict = {"default_tools_approval_mode": "prompt", "disabled_tools": ["hidden"]}
    servers = {
        "fails": odd(place, "fails", **strict),
        "dead": odd(place, "mute", startup_timeout_sec=1),
    }
    with client(place, servers) as server:
        thread = server.thread(approvalPolicy="untrusted", sandbox="read-only")
        meta = {"progressToken": 5, "mine": 1}
        echoed = server.ask(
            CALL, call(thread, "fails", "echo", arguments={"a": 1}, _meta=meta)
        )
        assert echoed == {"content": [{"type": "text", "text": '{"a": 1}'}]}
        assert "isError" not in echoed
        failed = server.ask(CALL, call(thread, "fails", "fails"))
        assert failed == {
            "content": [{"type": "text", "text": "no"}],
            "isError": True,
        }
        assert server.refused(CALL, call(thread, "fails", "none")) == {
            "code": -32602,
            "message": "no tool none",
        }
        for asked, text in [
            (
                call(thread, "fails", "hidden"),
                "tool 'hidden' is disabled for MCP server 'fails'",
            ),
            (call(thread, "x", "echo"), "unknown MCP server 'x'"),
            (
                call(thread, "fails", "echo", arguments=[1]),
                "tool call failed for `fails/echo`: MCP tool arguments must be a JSON object",
            ),
            (call(thread, "dead", "echo"), "did not come up within 1 s"),
        ]:
            error = server.refused(CALL, asked)
            assert error["code"] == -32603
            assert text in error["message"]
    first, second, *_ = sent(place, "fails", "tools/call")
    assert first == {
        "name": "echo",
        "arguments": {"a": 1},
        "_meta": {"mine": 1, "threadId": thread},
    }
    assert "arguments" not in second
    assert server.items("mcpToolCall", thread) == []


def test_a_call_of_the_client_may_ask_and_has_a_time_limit(place: Workplace) -> None:
    servers = {
        "asks": odd(place, "asks", tool_timeout_sec=30),
        "silent": odd(place, "silent", tool_timeout_sec=1),
    }
    with client(place, servers) as server:
        server.answer = lambda _: {"action": "accept", "content": {"name": "me"}}
        thread = server.thread()
        number = server.send(CALL, call(thread, "asks", "asks"))
        asked = server.told("mcpServer/elicitation/request", threadId=thread)
        assert (asked["turnId"], asked["serverName"]) == (None, "asks")
        server.told("serverRequest/resolved", threadId=thread)
        status = server.told("thread/status/changed", threadId=thread)["status"]
        assert status == {"type": "idle"}
        answer = server.answered(number)["result"]
        assert '"name": "me"' in answer["content"][0]["text"]
        late = server.refused(CALL, call(thread, "silent", "silent"))
        assert "timed out awaiting tools/call after 1s" in late["message"]


def test_a_client_that_leaves_ends_its_call(place: Workplace) -> None:
    with client(place, {"silent": odd(place, "silent")}) as server:
        thread = server.thread()
        until_ready(server, thread, "silent")
        server.send(CALL, call(thread, "silent", "silent"))
        server.send(LIST, {"threadId": thread})


def test_a_reload_replaces_the_servers_of_open_threads(place: Workplace) -> None:
    with ScriptedServer([[ev_created(), *ev_message("ok"), ev_completed()]]) as model:
        configure(place, {}, model)
        with AppServer(place.home, place.cwd) as server:
            thread = server.thread()
            servers = {"kept": odd(place, "fails"), "gone": odd(place, "progress")}
            configure(place, servers)
            assert server.ask(RELOAD) == {}
            until_ready(server, thread, "kept", "gone")
            del servers["gone"]
            servers["new"] = odd(place, "environment")
            configure(place, servers)
            server.ask(RELOAD)
            until_ready(server, thread, "new")
            for name in ("kept", "new"):
                assert server.ask(CALL, call(thread, name, "echo", arguments={}))
            error = server.refused(CALL, call(thread, "gone", "echo"))
            assert error["message"] == "unknown MCP server 'gone'"
            (place.home / "config.toml").write_text("x = [", encoding="utf-8")
            error = server.refused(RELOAD)
            assert error["code"] == -32603
            assert error["message"].startswith("failed to refresh MCP servers: ")
            configure(place, servers, model)
            server.turn(thread)
            server.ended(thread)
    offered = [tool.get("name", "") for tool in model.requests[0].fields["tools"]]
    assert [name for name in offered if name.startswith("mcp__")] == [
        "mcp__kept__echo",
        "mcp__kept__fails",
        "mcp__new__echo",
        "mcp__new__environment",
    ]
    assert len(sent(place, "fails", "initialize")) == 1


def test_a_server_that_is_left_out_answers_its_calls_first(place: Workplace) -> None:
    with client(place, {"asks": odd(place, "asks")}) as server:
        server.answer = None
        thread = server.thread()
        until_ready(server, thread, "asks")
        asked = call(thread, "asks", "asks")
        first = server.send(CALL, asked)
        server.told("mcpServer/elicitation/request")
        question = server.seen[-1]["id"]
        configure(place, {"asks": odd(place, "asks", tool_timeout_sec=9)})
        assert server.ask(RELOAD) == {}
        until_ready(server, thread, "asks")
        server.write({"id": question, "result": {"action": "decline"}})
        content = server.answered(first)["result"]["content"]
        assert content == [{"type": "text", "text": '{"action": "decline"}'}]
        # One more, whose answer the client does not wait for.
        server.send(CALL, asked)
        server.told("mcpServer/elicitation/request")
        configure(place, {})
        server.ask(RELOAD)


def test_a_reload_waits_for_the_turn_that_runs(place: Workplace) -> None:
    pause = Pause()
    turns: list[Any] = [
        [ev_created(), *ev_message("ok", pieces=2)[:3], pause],
        [ev_created(), *ev_function_call("m1", "mcp__a__echo", {}), ev_completed()],
        [ev_created(), *ev_message("ok"), ev_completed()],
    ]
    with ScriptedServer(turns) as model:
        configure(place, {}, model)
        with AppServer(place.home, place.cwd) as server:
            thread = server.thread()
            turn = server.turn(thread)
            server.told("item/agentMessage/delta", threadId=thread)
            configure(place, {"a": odd(place, "fails")})
            server.ask(RELOAD)
            server.ask(RELOAD)
            started = [each for each in server.seen if each.get("method") == STARTUP]
            assert started == []
            server.ask("turn/interrupt", {"threadId": thread, "turnId": turn})
            server.ended(thread)
            until_ready(server, thread, "a")
            server.turn(thread)
            server.ended(thread)
            (item,) = server.items("mcpToolCall", thread)
        pause.until.set()
    assert (item["server"], item["status"]) == ("a", "completed")
    assert len(sent(place, "fails", "initialize")) == 1


@pytest.fixture
def oauth() -> Generator[OAuthMcpServer]:
    with oauth_mcp_server() as server:
        yield server


@contextmanager
def oauth_client(place: Workplace, **urls: str) -> Generator[AppServer]:
    file = place.home / "config.toml"
    file.write_text('mcp_oauth_credentials_store = "file"\n', encoding="utf-8")
    servers = {name: {"url": url} for name, url in urls.items()}
    with client(place, servers) as server:
        yield server


def visit(address: str) -> httpx.Response:
    """Consent in a browser. Returns the last page."""
    return httpx.get(address, follow_redirects=True)


def status_of(server: AppServer, name: str, thread: str | None = None) -> Message:
    asked = {"serverName": name, "threadId": thread}
    (found,) = server.ask(LIST, asked)["data"]
    return found


def test_a_login_lets_open_threads_use_the_server(
    place: Workplace, oauth: OAuthMcpServer
) -> None:
    with oauth_client(place, o=f"{oauth.url}?key=hidden") as server:
        thread = server.thread()
        failed = server.told(STARTUP, name="o", status="failed")
        assert "log in with `codex-py mcp login o`" in failed["error"]
        assert failed["failureReason"] is None
        before = status_of(server, "o", thread)
        assert before["authStatus"] == "notLoggedIn"
        assert before["runtimeStatus"] == "authenticationRequired"
        assert before["httpOrigin"] == oauth.origin
        asked = {"name": "o", "scopes": ["a", "b"], "threadId": thread}
        started = server.ask(LOGIN, asked)
        assert list(started) == ["authorizationUrl", "loginId"]
        assert "scope=a+b" in started["authorizationUrl"]
        assert "complete" in visit(started["authorizationUrl"]).text
        assert server.told(COMPLETED) == {
            "name": "o",
            "threadId": thread,
            "loginId": started["loginId"],
            "success": True,
        }
        until_ready(server, thread, "o")
        after = status_of(server, "o", thread)
        assert after["authStatus"] == "oAuth"
        assert after["runtimeStatus"] == "connected"
        assert server.ask(CALL, call(thread, "o", "echo", arguments={}))
        assert status_of(server, "o")["authStatus"] == "oAuth"
        # The login is taken away at the server.
        oauth.expire()
        oauth.refresh_status = 400
        other = server.thread()
        failed = server.told(STARTUP, threadId=other, name="o", status="failed")
        assert failed["failureReason"] == "reauthenticationRequired"
    shown = json.dumps(server.seen)
    assert not any(secret in shown for secret in oauth.issued)
    assert "hidden" not in shown.replace(started["authorizationUrl"], "")


def test_logins_that_fail_say_why(place: Workplace) -> None:
    with (
        oauth_mcp_server(denies=True) as denies,
        oauth_mcp_server(asks=False) as free,
        oauth_client(place, denies=denies.url, free=free.url) as server,
    ):
        error = server.refused(LOGIN, {"name": "free"})
        assert error == {
            "code": -32603,
            "message": "failed to login to MCP server 'free': MCP server `free` does not ask for a login",
        }
        started = server.ask(LOGIN, {"name": "denies"})
        visit(started["authorizationUrl"])
        ended = server.told(COMPLETED)
        assert (ended["loginId"], ended["success"]) == (started["loginId"], False)
        assert "access_denied" in ended["error"]
        # Any number is a time limit, as in Codex.
        started = server.ask(LOGIN, {"name": "denies", "timeoutSecs": -5})
        ended = server.told(COMPLETED)
        assert ended["loginId"] == started["loginId"]
        assert ended["error"] == "nobody logged in to `denies` within 1 s"
        first = server.ask(LOGIN, {"name": "denies"})
        second = server.ask(LOGIN, {"name": "denies"})
        ended = server.seen[-2]["params"]
        assert ended["loginId"] == first["loginId"] != second["loginId"]
        assert ended["error"] == "the login was not completed"
    # The client has left in the middle of the second one.


def test_a_client_that_is_configured_is_not_registered_again(
    place: Workplace, oauth: OAuthMcpServer
) -> None:
    servers = {"o": {"url": oauth.url, "oauth.client_id": "mine"}}
    with client(place, servers) as server:
        asked = {"name": "o", "clientRegistration": "dcr"}
        error = server.refused(LOGIN, asked)
        assert error["message"] == "the client of `o` is registered: `oauth.client_id`"


class HeldServer(Server):
    """A server whose administrator allows no MCP servers. Nobody reads its notifications."""

    def __init__(self, place: Workplace) -> None:
        self._place = place
        self._system = place.home.parent / "etc"
        self._system.mkdir()
        file = self._system / "requirements.toml"
        file.write_text("[mcp_servers]\n", encoding="utf-8")
        rpc = cast("JsonRpc", self)
        super().__init__(rpc, Arguments(), environment(place.home))

    def notify(self, *_: Any, **__: Any) -> None:
        pass

    async def drained(self) -> None:
        pass

    def configuration(
        self,
        cwd: str | None = None,
        table: Mapping[str, Any] | None = None,
    ) -> Config:
        return load_config(
            cwd=cwd or self._place.cwd,
            environment=self.environment,
            system=self._system,
        )


def test_servers_that_an_administrator_forbids_are_not_started(
    place: Workplace, oauth: OAuthMcpServer
) -> None:
    configure(place, {"fails": odd(place, "fails"), "o": {"url": oauth.url}})

    async def run() -> None:
        server = HeldServer(place)
        threads = OpenThreads(server)
        methods = McpMethods(server, threads)
        listed = (await methods.list(mcp_params.StatusList()))["data"]
        assert [each["serverInfo"] for each in listed] == [None, None]
        with pytest.raises(RpcError, match="unknown MCP server 'fails'"):
            await methods.read(mcp_params.ResourceRead(server="fails", uri="odd://1"))
        thread = await threads.open(server.options, ".", {}, {})
        threads.keep(thread)
        await methods.reload(params.Nothing())
        with pytest.raises(RpcError, match="unknown MCP server 'fails'"):
            await methods.call(
                mcp_params.ToolCall(
                    thread_id=thread.thread_id, server="fails", tool="echo"
                )
            )
        with pytest.raises(RpcError, match="is disabled by requirements"):
            await methods.login(mcp_params.OAuthLogin(name="o"))
        await threads.aclose()
        await methods.aclose()

    asyncio.run(run())
    assert not (place.home / "log-fails").exists()


def test_servers_of_a_folder_that_is_not_trusted_are_not_there(
    place: Workplace,
) -> None:
    folder = place.cwd / ".codex"
    folder.mkdir()
    text = tables({"theirs": odd(place, "fails")})
    (folder / "config.toml").write_text(text, encoding="utf-8")
    with client(place, {}) as server:
        assert server.ask(LIST, {})["data"] == []
        thread = server.thread()
        assert server.ask(LIST, {"threadId": thread})["data"] == []
        error = server.refused(CALL, call(thread, "theirs", "echo"))
        assert error["message"] == "unknown MCP server 'theirs'"


def test_entries_of_other_types_are_left_out() -> None:
    good = {"uri": "a://b", "name": "b", "size": 3}
    bad = [{"uri": 3, "name": "x"}, {"uri": "a://c"}, {}]
    odd_size = {"uri": "a://d", "name": "d", "size": True, "title": 5, "icons": "x"}
    assert resources_data([good, *bad, odd_size]) == [
        good,
        {"uri": "a://d", "name": "d"},
    ]
    template = {"uriTemplate": "a://{b}", "name": "b", "more": 1}
    assert templates_data([template, {"name": "x"}]) == [
        {"uriTemplate": "a://{b}", "name": "b"}
    ]
    entry: Message = {
        "title": "T",
        "icons": [],
        "execution": {},
        "outputSchema": {"a": 1},
    }
    about = ServerAbout({"name": "n", "version": "1", "extra": 2}, {})
    status = McpServerStatus("s", "ready", about=about)
    config = McpServerConfig(url="https://me:secret@Example.org:443/a?b#c")
    tool = ServerTool("t", input_schema={"type": "object"}, entry=entry)
    described = server_data("s", config, "bearer_token", status, [tool])
    assert described["httpOrigin"] == "https://example.org"
    assert described["authStatus"] == "bearerToken"
    assert "extra" not in described["serverInfo"]
    assert described["tools"] == {
        "t": {
            "name": "t",
            "inputSchema": {"type": "object"},
            "title": "T",
            "icons": [],
            "outputSchema": {"a": 1},
        }
    }
    local = McpServerConfig(url="http://[::1]:8080/mcp")
    told = server_data("s", local, "unknown", status, ())
    assert told["httpOrigin"] == "http://[::1]:8080"


@needs_codex
def test_both_programs_answer_the_same(place: Workplace) -> None:
    servers = {
        "fails": odd(place, "fails"),
        "few": odd(place, "progress", disabled_tools=["progress"]),
        "off": odd(place, "fails", enabled=False),
    }
    questions: list[tuple[str, Message]] = [
        (LIST, {}),
        (LIST, {"limit": 1}),
        (LIST, {"limit": 0, "cursor": "1", "detail": "toolsAndAuthOnly"}),
        (LIST, {"serverName": "off"}),
        (READ, {"server": "fails", "uri": "odd://1"}),
    ]
    with ScriptedServer([]) as model:
        configure(place, servers, model)
        theirs = ask_app_server(environment(place.home), place.cwd, *questions)
        with AppServer(place.home, place.cwd) as server:
            ours = [server.ask(method, asked) for method, asked in questions]
    assert ours == theirs

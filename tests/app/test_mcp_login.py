"""Also tests `app/features/mcp.py`, `mcp/login.py` and `mcp/oauth.py`."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
import tomlkit

from codex_py.app.features.mcp import McpFeature
from codex_py.app.mcp_login import auth_statuses, log_in, login_store
from codex_py.app.options import SessionOptions, SessionSetup
from codex_py.config.config import Config, load_config
from codex_py.errors import CodexError
from codex_py.mcp import login
from codex_py.mcp.server import McpServer
from codex_py.protocol.mcp import DecliningElicitor, RequestFailed
from tests.mcp.servers.oauth import OAuthMcpServer, oauth_mcp_server

NO_HEADERS: Mapping[str, str] = {}


def config(tmp_path: Path, url: str, **more: Any) -> Config:
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    keys = {"url": url, "startup_timeout_sec": 5, **more}
    values = {"mcp_oauth_credentials_store": "file", "mcp_servers": {"web": keys}}
    text = tomlkit.dumps(values)
    (home / "config.toml").write_text(text, encoding="utf-8")
    return load_config(
        cwd=tmp_path, environment={"CODEX_HOME": str(home), "HOME": str(tmp_path)}
    )


@dataclass
class ScriptedScreen:
    """A user who goes where they are sent, with a browser on this machine or on another."""

    pastes: bool = False
    """The browser is on another machine, and the user copies what it shows."""
    follows: bool = True
    visited: list[str] = field(default_factory=list[str])
    refused: list[str] = field(default_factory=list[str])
    lines: asyncio.Queue[str] = field(default_factory=asyncio.Queue[str])
    browsing: list[asyncio.Task[None]] = field(default_factory=list[asyncio.Task[None]])
    page: str = ""
    was_visited: asyncio.Event = field(default_factory=asyncio.Event)

    def visit(self, address: str) -> None:
        self.visited.append(address)
        self.was_visited.set()
        if self.follows:
            self.browsing.append(asyncio.create_task(self._browse(address)))

    async def pasted(self) -> str:
        return await self.lines.get()

    def refuse(self, reason: str) -> None:
        self.refused.append(reason)

    async def _browse(self, address: str) -> None:
        async with httpx.AsyncClient() as browser:
            back = (await browser.get(address)).headers["location"]
            if self.pastes:
                self.lines.put_nowait("what?")
                self.lines.put_nowait(f"  {back}\n")
            else:
                self.page = (await browser.get(back)).text


@asynccontextmanager
async def session(config: Config) -> AsyncGenerator[tuple[McpServer, list[str]]]:
    """The server `web`, as a session starts it, and what the user is warned of."""
    warnings: list[str] = []
    setup = SessionSetup(
        config, SessionOptions(), {}, None, DecliningElicitor(), warnings.append
    )
    servers = McpFeature(setup)
    servers.start()
    try:
        (server,) = servers.by_name.values()
        await server.settled()
        yield server, warnings
    finally:
        await servers.aclose()


async def call(server: McpServer) -> str:
    params: dict[str, Any] = {"name": "echo", "arguments": {"a": 1}}
    return (await server.request("tools/call", params))["content"][0]["text"]


def stored(config: Config) -> dict[str, Any]:
    store = login_store(config, "web")
    assert store is not None
    return json.loads(store.read() or "{}")


def age(config: Config) -> None:
    """Let the kept access token be too old."""
    store = login_store(config, "web")
    assert store is not None
    store.write(json.dumps({**stored(config), "expires_at": 1.0}))


async def logged_in(tmp_path: Path, http: OAuthMcpServer) -> Config:
    made = config(tmp_path, http.url)
    await log_in(made, "web", ScriptedScreen(), headers=NO_HEADERS)
    return made


@pytest.mark.parametrize("pastes", [False, True])
def test_a_login_is_made_and_a_session_uses_it(tmp_path: Path, pastes: bool) -> None:
    async def main(http: OAuthMcpServer) -> None:
        made = config(tmp_path, http.url)
        screen = ScriptedScreen(pastes=pastes)
        await log_in(made, "web", screen, headers=NO_HEADERS)
        await asyncio.gather(*screen.browsing)
        assert screen.page == (
            "" if pastes else "Authentication complete. You may close this window."
        )
        assert screen.refused == (
            ["that is not an address that ends a login"] if pastes else []
        )
        (query,) = http.sent("/authorize")
        assert query["scope"] == "read write"
        assert query["resource"] == http.url
        assert query["code_challenge_method"] == "S256"
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/callback", query["redirect_uri"])
        async with session(made) as (server, warnings):
            assert await call(server) == '{"a": 1}'
            assert warnings == []

    with oauth_mcp_server() as http:
        asyncio.run(main(http))


def test_scopes_client_and_resource_are_the_users(tmp_path: Path) -> None:
    async def main(http: OAuthMcpServer) -> None:
        resource = f"{http.origin}/all"
        own: Any = {"oauth": {"client_id": "mine"}, "oauth_resource": resource}
        made = config(tmp_path, http.url, scopes=["read"], **own)
        await log_in(made, "web", ScriptedScreen(), headers=NO_HEADERS)
        await log_in(
            made, "web", ScriptedScreen(), headers=NO_HEADERS, scopes=["write"]
        )
        first, second = http.sent("/authorize")
        assert (first["scope"], second["scope"]) == ("read", "write")
        assert (first["client_id"], first["resource"]) == ("mine", resource)
        assert http.sent("/register") == []
        assert http.sent("/token")[0]["resource"] == resource

    with oauth_mcp_server() as http:
        asyncio.run(main(http))


def test_a_token_that_is_too_old_is_renewed_before_it_is_sent(tmp_path: Path) -> None:
    async def main(http: OAuthMcpServer) -> None:
        made = await logged_in(tmp_path, http)
        before = stored(made)
        age(made)
        async with session(made) as (server, warnings):
            assert await call(server) == '{"a": 1}'
            assert warnings == []
        after = stored(made)
        assert after["refresh_token"] != before["refresh_token"]
        (asked,) = [
            form
            for form in http.sent("/token")
            if form["grant_type"] == "refresh_token"
        ]
        assert asked == {
            "grant_type": "refresh_token",
            "refresh_token": before["refresh_token"],
            "client_id": "client-1",
            "resource": http.url,
        }

    with oauth_mcp_server() as http:
        asyncio.run(main(http))


@pytest.mark.parametrize(
    "field", [None, {"access_token": ["x"]}, {"expires_in": 10**400}]
)
def test_a_renewed_token_that_cannot_be_used_is_not_quoted(
    tmp_path: Path, field: dict[str, Any] | None
) -> None:
    async def main(http: OAuthMcpServer) -> None:
        made = await logged_in(tmp_path, http)
        age(made)
        http.expire()
        if field is None:
            http.token_suffix = "\r\nX-Evil: 1"
        else:
            http.token_fields = field
        async with session(made) as (_, warnings):
            assert warnings == [
                "MCP server `web` answered with HTTP 401 Unauthorized; its login could not be"
                " renewed: the answer holds no token that we can use"
                "\n`codex-py mcp test web` says more."
            ]

    with oauth_mcp_server(rotates=False) as http:
        asyncio.run(main(http))


def test_a_token_that_is_refused_is_renewed_once_for_all_requests(
    tmp_path: Path,
) -> None:
    async def main(http: OAuthMcpServer) -> None:
        made = await logged_in(tmp_path, http)
        async with session(made) as (server, warnings):
            http.expire()
            calls = [call(server) for _ in range(8)]
            assert await asyncio.gather(*calls) == ['{"a": 1}'] * 8
            assert warnings == []
        assert len(http.sent("/token")) == 2

    with oauth_mcp_server() as http:
        asyncio.run(main(http))


def test_sessions_share_what_one_of_them_has_renewed(tmp_path: Path) -> None:
    async def main(http: OAuthMcpServer) -> None:
        made = await logged_in(tmp_path, http)
        async with session(made) as (one, _), session(made) as (other, _):
            http.expire()
            assert await asyncio.gather(call(one), call(other)) == ['{"a": 1}'] * 2
        assert len(http.sent("/token")) == 2

    with oauth_mcp_server() as http:
        asyncio.run(main(http))


def test_a_login_that_was_revoked_is_said_to_be_needed_again(tmp_path: Path) -> None:
    async def main(http: OAuthMcpServer) -> None:
        made = await logged_in(tmp_path, http)
        http.refresh_status = 400
        http.expire()
        async with session(made) as (_, warnings):
            pass
        assert warnings == [
            "MCP server `web` answered with HTTP 401 Unauthorized; its login was revoked or has"
            " expired; log in with `codex-py mcp login web`"
            "\n`codex-py mcp test web` says more."
        ]
        assert stored(made) == {}
        assert await auth_statuses(made, lambda _: {}) == {"web": "not_logged_in"}

    with oauth_mcp_server() as http:
        asyncio.run(main(http))


def test_a_login_outlives_a_server_that_is_down(tmp_path: Path) -> None:
    async def main(http: OAuthMcpServer) -> None:
        made = await logged_in(tmp_path, http)
        http.refresh_status = 503
        async with session(made) as (server, _):
            http.expire()
            with pytest.raises(
                RequestFailed, match=r"could not be renewed: HTTP 503\)"
            ):
                await call(server)
            http.refresh_status = 200
            assert await call(server) == '{"a": 1}'

    with oauth_mcp_server() as http:
        asyncio.run(main(http))


def test_an_authorization_server_may_not_draw_its_answer_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main(http: OAuthMcpServer) -> None:
        made = await logged_in(tmp_path, http)
        async with session(made) as (server, _):
            http.expire()
            http.pause_s = 0.2
            monkeypatch.setattr(login, "_RENEW_TIMEOUT_S", 0.5)
            with pytest.raises(
                RequestFailed, match=r"could not be renewed: no answer within"
            ):
                await call(server)

    with oauth_mcp_server() as http:
        asyncio.run(main(http))


def test_a_login_made_during_a_session_counts_at_once(tmp_path: Path) -> None:
    async def main(http: OAuthMcpServer) -> None:
        made = await logged_in(tmp_path, http)
        async with session(made) as (server, _):
            http.expire()
            http.refresh.clear()
            with pytest.raises(
                RequestFailed, match="log in with `codex-py mcp login web`"
            ):
                await call(server)
            await log_in(made, "web", ScriptedScreen(), headers=NO_HEADERS)
            assert await call(server) == '{"a": 1}'

    with oauth_mcp_server() as http:
        asyncio.run(main(http))


def test_a_server_that_asks_for_a_login_says_how(tmp_path: Path) -> None:
    async def main(http: OAuthMcpServer) -> None:
        made = config(tmp_path, http.url)
        async with session(made) as (_, warnings):
            pass
        assert warnings == [
            "MCP server `web` answered with HTTP 401 Unauthorized;"
            " log in with `codex-py mcp login web`"
            "\n`codex-py mcp test web` says more."
        ]

    with oauth_mcp_server() as http:
        asyncio.run(main(http))


_NO_PKCE = "could not log in to `web`: its authorization server does not support PKCE with S256"

_WRONG = "could not log in to `web`: the answer of its authorization server is wrong"

_NOT_HTTPS = "could not log in to `web`: its authorization server is at http://{}, which is not https"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"denies": True},
            "could not log in to `web`: it was refused: access_denied: The user said no",
        ),
        ({"asks": False}, "MCP server `web` does not ask for a login"),
        ({"pkce": None}, _NO_PKCE),
        ({"pkce": ["plain"]}, _NO_PKCE),
        (
            {"resource_metadata": "http://127.0.0.1:9/metadata"},
            "could not log in to `web`: it names metadata of another server: http://127.0.0.1:9/metadata",
        ),
        (
            {"token_error": {"error": "invalid_grant", "secret": "x"}},
            "could not log in to `web`: Token exchange failed (400): invalid_grant",
        ),
        (
            {"endpoints": {"token_endpoint": "http://192.0.2.1:8/token?key=secret"}},
            _NOT_HTTPS.format("192.0.2.1:8"),
        ),
        (
            {"endpoints": {"authorization_endpoint": "http://u:secret@example.org/a"}},
            _NOT_HTTPS.format("example.org"),
        ),
        (
            {"token_suffix": "\r\nX-Evil: 1"},
            "could not log in to `web`: it gave a token that cannot be sent",
        ),
        ({"token_fields": {"access_token": ["secret"]}}, _WRONG),
        ({"token_fields": {"expires_in": 10**400}}, _WRONG),
        (
            {"encoding": "br"},
            "MCP server `web` could not be reached: the server packed its answer ('br'), which"
            " nobody asked it to do; gzip or deflate alone can be read",
        ),
    ],
)
def test_a_login_that_fails_says_why(
    tmp_path: Path, settings: dict[str, Any], message: str
) -> None:
    async def main(http: OAuthMcpServer) -> None:
        with pytest.raises(CodexError) as failed:
            await logged_in(tmp_path, http)
        assert str(failed.value) == message
        assert stored(config(tmp_path, http.url)) == {}
        if str(failed.value) == _NO_PKCE or "https" in str(failed.value):
            # Not even registered there.
            assert http.asked == []

    with oauth_mcp_server(**settings) as http:
        asyncio.run(main(http))


def test_a_user_with_a_client_is_not_sent_to_a_server_without_pkce(
    tmp_path: Path,
) -> None:
    async def main(http: OAuthMcpServer) -> None:
        made, screen = (
            config(tmp_path, http.url, oauth={"client_id": "mine"}),
            ScriptedScreen(),
        )
        with pytest.raises(CodexError, match="does not support PKCE with S256"):
            await log_in(made, "web", screen, headers=NO_HEADERS)
        assert screen.visited == []

    with oauth_mcp_server(pkce=None) as http:
        asyncio.run(main(http))


def test_an_answer_to_another_login_is_not_taken(tmp_path: Path) -> None:
    async def main(http: OAuthMcpServer) -> None:
        made = config(tmp_path, http.url)
        screen = ScriptedScreen()
        with pytest.raises(CodexError, match="nobody logged in to `web` within 4 s"):
            await log_in(made, "web", screen, headers=NO_HEADERS, timeout_s=4)
        assert screen.refused == ["that is the answer to another login"]
        assert screen.page.startswith("This answer belongs to another login.")
        assert http.sent("/token") == []

    with oauth_mcp_server(wrong_state=True) as http:
        asyncio.run(main(http))


def test_a_login_that_is_given_up_leaves_nothing(tmp_path: Path) -> None:
    async def main(http: OAuthMcpServer) -> None:
        made = config(tmp_path, http.url)
        screen = ScriptedScreen(follows=False)
        task = asyncio.create_task(log_in(made, "web", screen, headers=NO_HEADERS))
        await screen.was_visited.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        (back,) = parse_qs(urlsplit(screen.visited[0]).query)["redirect_uri"]
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", urlsplit(back).port)
        assert stored(made) == {}

    with oauth_mcp_server() as http:
        asyncio.run(main(http))


def test_a_port_that_is_in_use_is_told(tmp_path: Path) -> None:
    async def main(http: OAuthMcpServer) -> None:
        made = config(tmp_path, http.url)
        path = made.home / "config.toml"
        port = urlsplit(http.origin).port
        text = f"mcp_oauth_callback_port = {port}\n" + path.read_text(encoding="utf-8")
        path.write_text(text, encoding="utf-8")
        made = load_config(cwd=tmp_path, environment={"CODEX_HOME": str(made.home)})
        with pytest.raises(
            CodexError, match=rf"cannot listen on port {port} of 127\.0\.0\.1"
        ):
            await log_in(made, "web", ScriptedScreen(), headers=NO_HEADERS)

    with oauth_mcp_server() as http:
        asyncio.run(main(http))


def test_a_token_of_the_users_own_needs_no_login(tmp_path: Path) -> None:
    async def main() -> None:
        made = config(tmp_path, "http://127.0.0.1:1/mcp", bearer_token_env_var="TOKEN")
        with pytest.raises(CodexError, match="has a token in its configuration"):
            await log_in(made, "web", ScriptedScreen(), headers=NO_HEADERS)
        assert await auth_statuses(made, lambda _: {}) == {"web": "bearer_token"}
        made = config(tmp_path, "http://127.0.0.1:1/mcp")
        assert await auth_statuses(made, lambda _: {}) == {"web": "unknown"}
        made = config(tmp_path, "http://127.0.0.1:1/mcp", enabled=False)
        assert await auth_statuses(made, lambda _: {}) == {"web": "unsupported"}

    asyncio.run(main())


def test_the_status_of_a_login_is_known(tmp_path: Path) -> None:
    async def main(http: OAuthMcpServer) -> None:
        made = config(tmp_path, http.url)
        assert await auth_statuses(made, lambda _: {}) == {"web": "not_logged_in"}
        await logged_in(tmp_path, http)
        assert await auth_statuses(made, lambda _: {}) == {"web": "o_auth"}
        http.asks = False
        store = login_store(made, "web")
        assert store is not None
        assert store.remove()
        assert await auth_statuses(made, lambda _: {}) == {"web": "unsupported"}

    with oauth_mcp_server() as http:
        asyncio.run(main(http))

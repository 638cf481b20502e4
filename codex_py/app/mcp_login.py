"""Logins to MCP servers: log in, log out, show the status, and log in for sessions. LIGHT.

Part of the composition root.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from http import HTTPStatus
from typing import Final, Literal, TypeAlias
from urllib.parse import urlsplit

import httpx

from codex_py.config.config import Config
from codex_py.config.mcp import McpServerConfig
from codex_py.config.mcp_logins import StoredLogins
from codex_py.errors import CodexError
from codex_py.http.login_answers import LoginAnswers, LoginScreen
from codex_py.mcp.settings import MakeAuth

AuthStatus: TypeAlias = Literal[
    "unsupported", "not_logged_in", "bearer_token", "o_auth", "unknown"
]
"""The values of `mcp list --json` in Codex 0.169. `unsupported` includes servers that need no
login."""

_PROBE_TIMEOUT_S = 5.0
_PATH: Final = "/callback"


def login_store(config: Config, name: str) -> StoredLogins | None:
    """Return the place where the login to a server is stored.

    Returns None if the server does not use a login.
    """
    server = config.mcp_servers[name]
    uses_login = server.auth in {None, "oauth"} and not _has_token(server)
    if server.url is None or not uses_login:
        return None
    where = config.settings.mcp_oauth_credentials_store
    return StoredLogins(config.home, where, name, server.url)


def session_auth(config: Config, name: str) -> MakeAuth | None:
    """Return a function that makes the `Auth` for requests to a server.

    Returns None if the server does not use a login.
    """
    store = login_store(config, name)
    if store is None:
        return None

    def make(on_problem: Callable[[str | None, bool], None]):
        from codex_py.mcp.login import StoredLogin  # 500 ms unless the SDK is loaded

        advice = f"log in with `codex-py mcp login {name}`"
        return StoredLogin(store, advice, on_problem)

    return make


def log_out(config: Config, name: str) -> bool:
    """Delete the login to a server. Returns True if there was one.

    Raises:
        CodexError: the login cannot be deleted, or the server has no URL.
    """
    if config.mcp_servers[name].url is None:
        raise CodexError(
            "OAuth logout is only supported for streamable_http transports."
        )
    store = login_store(config, name)
    if store is None:
        return False
    return store.remove()


async def log_in(
    config: Config,
    name: str,
    screen: LoginScreen,
    *,
    headers: Mapping[str, str],
    scopes: Sequence[str] = (),
    timeout_s: float = 300.0,
) -> None:
    """Let the user log in to a server, and store the login.

    Args:
        headers: the headers of requests to the server.
        scopes: these replace the configured scopes.

    Raises:
        CodexError: the login failed.
    """
    server = config.mcp_servers[name]
    store = login_store(config, name)
    if server.url is None:
        raise CodexError("OAuth login is only supported for streamable HTTP servers.")
    if store is None:
        raise CodexError(
            f"MCP server `{name}` has a token in its configuration, and needs no login"
        )
    from codex_py.mcp.oauth import LoginFlow  # 500 ms

    configured_port = config.settings.mcp_oauth_callback_port
    configured_url = config.settings.mcp_oauth_callback_url
    # What leads from the configured address to this machine may pass its name on.
    answers = LoginAnswers(screen, _PATH, _hosts(configured_url))
    try:
        async with (
            asyncio.timeout(timeout_s),
            answers.listening(configured_port or 0) as port,
        ):
            flow = LoginFlow(
                server=name,
                url=server.url,
                headers=headers,
                redirect_uri=configured_url or f"http://127.0.0.1:{port}{_PATH}",
                client_id=server.oauth_client_id,
                scopes=tuple(scopes) or server.scopes,
                resource=server.oauth_resource,
                consent=answers.wait,
            )
            login = await flow.log_in()
    except TimeoutError as error:
        raise CodexError(
            f"nobody logged in to `{name}` within {timeout_s:g} s"
        ) from error
    except OSError as error:
        raise CodexError(
            f"cannot listen on port {configured_port} of 127.0.0.1"
            f" (`mcp_oauth_callback_port`): {error.strerror}"
        ) from error
    with store.locked():
        store.write(login.model_dump_json())


def _hosts(url: str | None) -> list[str]:
    """The host of an address; none if there is no address, or it is none."""
    with suppress(ValueError):
        host = urlsplit(url or "").hostname
        if host:
            return [host]
    return []


async def auth_statuses(
    config: Config,
    headers: Callable[[str], Mapping[str, str]],
) -> dict[str, AuthStatus]:
    """Return the login status of each server.

    The servers that may need a login are asked concurrently, for up to 5 s.

    Args:
        headers: returns the headers of requests to the server with this name.

    Raises:
        ConfigError: the stored logins cannot be read.
    """
    servers = config.mcp_servers
    statuses: dict[str, AuthStatus] = {}
    for name in servers:
        statuses[name] = _known_status(config, name)
    asked = [name for name, status in statuses.items() if status == "unknown"]
    if not asked:
        return statuses
    async with httpx.AsyncClient(timeout=_PROBE_TIMEOUT_S) as client:
        probes = [
            _probed(client, servers[name].url or "", headers(name)) for name in asked
        ]
        answers = await asyncio.gather(*probes)
    statuses.update(zip(asked, answers, strict=True))
    return statuses


def _known_status(config: Config, name: str) -> AuthStatus:
    """Return the known login status; `unknown` if the server has to be asked."""
    server = config.mcp_servers[name]
    store = login_store(config, name)
    if server.url is None or not server.enabled:
        return "unsupported"
    if store is None:
        if _has_token(server):
            return "bearer_token"
        return "unsupported"
    if store.read() is None:
        return "unknown"
    return "o_auth"


async def _probed(
    client: httpx.AsyncClient, url: str, headers: Mapping[str, str]
) -> AuthStatus:
    """Ask a server for its login status; `unknown` if it does not answer."""
    # A ping starts no session and changes nothing.
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    headers = {"accept": "application/json, text/event-stream", **headers}
    try:
        async with (
            asyncio.timeout(_PROBE_TIMEOUT_S),
            client.stream("POST", url, json=ping, headers=headers) as got,
        ):
            needs_login = got.status_code == HTTPStatus.UNAUTHORIZED
    except (httpx.HTTPError, httpx.InvalidURL, TimeoutError):
        return "unknown"
    if needs_login:
        return "not_logged_in"
    return "unsupported"


def _has_token(server: McpServerConfig) -> bool:
    """True if the configuration has a token for the server, as its own setting or as a header."""
    if server.bearer_token_env_var is not None:
        return True
    headers = {*server.http_headers, *server.env_http_headers}
    return "authorization" in map(str.lower, headers)

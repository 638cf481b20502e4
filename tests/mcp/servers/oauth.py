"""An MCP server that asks for a login, and the authorization server that gives it, at one address.

Source: MCP specification 2025-11-25, Authorization; RFC 8414, 7591, 7636, 9728.
"""

import base64
import hashlib
import json
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from tests.support.mcp_http import HttpMcpServer, result


@dataclass
class OAuthMcpServer:
    origin: str = ""
    denies: bool = False
    """The user says no."""
    wrong_state: bool = False
    """What is sent back belongs to another login."""
    expires_in_s: int | None = 3600
    refresh_status: int = 200
    """Other than 200: refresh tokens are revoked (400), or the server is down (503)."""
    rotates: bool = True
    """Each refresh token works once."""
    asks: bool = True
    """MCP requests need a login at all."""
    token_error: dict[str, str] | None = None
    """What the exchange of a code is answered with, instead of tokens."""
    pkce: list[str] | None = field(default_factory=lambda: ["S256"])
    """What the authorization server says it checks; None for not a word."""
    resource_metadata: str | None = None
    """Where the server says that its metadata are."""
    endpoints: dict[str, str] = field(default_factory=dict[str, str])
    """Replace those of the authorization server's metadata."""
    token_suffix: str = ""
    """What every access token ends with."""
    token_fields: dict[str, Any] = field(default_factory=dict[str, Any])
    """Replace those of every answer with tokens."""
    pause_s: float = 0
    """Between two bytes of an answer of the authorization server."""
    encoding: str | None = None
    """The `content-encoding` of the answers of the authorization server."""
    access: set[str] = field(default_factory=set[str])
    """The tokens that are good now."""
    refresh: set[str] = field(default_factory=set[str])
    issued: list[str] = field(default_factory=list[str])
    """All tokens that were ever given out, and secrets such as codes."""
    asked: list[tuple[str, dict[str, str]]] = field(
        default_factory=list[tuple[str, dict[str, str]]]
    )
    """Paths of the authorization server, with their parameters."""
    mcp: HttpMcpServer = field(default_factory=HttpMcpServer)

    @property
    def url(self) -> str:
        return f"{self.origin}/mcp"

    def sent(self, path: str) -> list[dict[str, str]]:
        return [parameters for asked, parameters in self.asked if asked == path]

    def new_token(self, kind: str) -> str:
        token = f"{kind}-secret-{len(self.issued)}"
        self.issued.append(token)
        return token

    def expire(self) -> None:
        """Let no access token be good any more."""
        self.access.clear()


@contextmanager
def oauth_mcp_server(**settings: Any) -> Generator[OAuthMcpServer]:
    state = OAuthMcpServer(**settings)
    with _Server(state) as server:
        state.origin = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield state
        finally:
            server.shutdown()
            thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, state: OAuthMcpServer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.state = state
        self.challenges: dict[str, str] = {}
        """Of PKCE, by code."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def _server(self) -> "_Server":
        assert isinstance(self.server, _Server)
        return self.server

    def do_GET(self) -> None:
        state = self._server.state
        address = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(address.query).items()}
        match address.path:
            case "/.well-known/oauth-protected-resource/mcp" if state.asks:
                self._send(
                    200,
                    {
                        "resource": state.url,
                        "authorization_servers": [state.origin],
                        "scopes_supported": ["read", "write"],
                    },
                )
            case "/.well-known/oauth-authorization-server" if state.asks:
                self._send(200, _metadata(state))
            case "/authorize":
                state.asked.append(("/authorize", query))
                self._send(302, None, location=self._consent(query))
            case "/mcp":
                self._send(405, None)
            case _:
                self._send(404, None)

    def do_DELETE(self) -> None:
        self._send(200, None)

    def do_POST(self) -> None:
        state = self._server.state
        body = self.rfile.read(int(self.headers["content-length"]))
        match self.path:
            case "/register":
                wanted = json.loads(body)
                state.asked.append(("/register", wanted))
                self._send(201, {**wanted, "client_id": "client-1"})
            case "/token":
                form = {k: v[0] for k, v in parse_qs(body.decode()).items()}
                state.asked.append(("/token", form))
                self._send(*self._tokens(form))
            case _:
                self._mcp(json.loads(body))

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def _consent(self, query: dict[str, str]) -> str:
        state = self._server.state
        answer = {"state": "another" if state.wrong_state else query["state"]}
        if state.denies:
            answer |= {
                "error": "access_denied",
                "error_description": "The user said no",
            }
        else:
            answer["code"] = state.new_token("code")
            self._server.challenges[answer["code"]] = query["code_challenge"]
        return f"{query['redirect_uri']}?{urlencode(answer)}"

    def _tokens(self, form: dict[str, str]) -> tuple[int, dict[str, Any]]:
        state = self._server.state
        if form["grant_type"] == "authorization_code":
            if state.token_error is not None:
                return 400, state.token_error
            digest = hashlib.sha256(form["code_verifier"].encode()).digest()
            challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
            if self._server.challenges.pop(form["code"], None) != challenge:
                return 400, {"error": "invalid_grant"}
        elif state.refresh_status >= 500:
            return state.refresh_status, {}
        elif form["refresh_token"] not in state.refresh or state.refresh_status != 200:
            return 400, {
                "error": "invalid_grant",
                "error_description": "It was revoked",
            }
        answer: dict[str, Any] = {"token_type": "bearer"}
        answer["access_token"] = state.new_token("access") + state.token_suffix
        state.access.add(answer["access_token"])
        if state.expires_in_s is not None:
            answer["expires_in"] = state.expires_in_s
        if state.rotates or "refresh_token" not in form:
            state.refresh.discard(form.get("refresh_token", ""))
            answer["refresh_token"] = state.new_token("refresh")
            state.refresh.add(answer["refresh_token"])
        return 200, answer | state.token_fields

    def _mcp(self, message: dict[str, Any]) -> None:
        state = self._server.state
        headers = {name.lower(): value for name, value in self.headers.items()}
        state.mcp.requests.append((self.command, headers, message.get("method", "")))
        token = headers.get("authorization", "").removeprefix("Bearer ")
        if state.asks and token not in state.access:
            named = state.resource_metadata
            where = "" if named is None else f' resource_metadata="{named}"'
            self._send(401, None, challenge=f"Bearer{where}")
        elif "id" not in message:
            self._send(202, None)
        else:
            answer = result(state.mcp, message)
            self._send(200, {"jsonrpc": "2.0", "id": message["id"], "result": answer})

    def _send(
        self,
        status: int,
        value: dict[str, Any] | None,
        *,
        location: str | None = None,
        challenge: str | None = None,
    ) -> None:
        data = b"" if value is None else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        if location is not None:
            self.send_header("location", location)
        if (encoding := self._server.state.encoding) is not None:
            self.send_header("content-encoding", encoding)
        if challenge is not None:
            self.send_header("www-authenticate", challenge)
        self.end_headers()
        if pause_s := self._server.state.pause_s:
            with suppress(OSError):
                for byte in data:
                    self.wfile.write(bytes([byte]))
                    threading.Event().wait(pause_s)
        else:
            self.wfile.write(data)


def _metadata(state: OAuthMcpServer) -> dict[str, Any]:
    origin = state.origin
    pkce = (
        {} if state.pkce is None else {"code_challenge_methods_supported": state.pkce}
    )
    return {
        **pkce,
        "issuer": origin,
        "authorization_endpoint": f"{origin}/authorize",
        "token_endpoint": f"{origin}/token",
        "registration_endpoint": f"{origin}/register",
        "response_types_supported": ["code"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "token_endpoint_auth_methods_supported": ["none"],
        **state.endpoints,
    }

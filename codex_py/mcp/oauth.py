"""Logs in to a server with OAuth: authorization code and PKCE, implemented by the SDK.

Source: MCP specification 2025-11-25, Authorization.
"""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from ipaddress import ip_address
from typing import Any
from urllib.parse import urljoin

import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError
from mcp.client.auth.utils import extract_resource_metadata_from_www_auth
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)
from pydantic import AnyUrl, ValidationError

from codex_py.errors import CodexError
from codex_py.mcp.bounded import bounded_client
from codex_py.mcp.login import SENDABLE, McpLogin
from codex_py.mcp.sdk import silence_sdk
from codex_py.protocol.json_fields import json_object
from codex_py.version import __version__

_REQUEST_TIMEOUT_S = 30.0
_SHOWN_CHARS = 300
_ERROR_KEYS = ("error", "error_description")
"""The fields of an error: RFC 6749, 4.1.2.1 and 5.2."""
_WRONG = "the answer of its authorization server is wrong"
"""Replaces the message of a `ValidationError`, which would quote the answer."""


class LoginError(CodexError):
    """The login failed."""

    code = "mcp_login"


@dataclass(kw_only=True, eq=False)
class LoginFlow:
    """One login.

    For the SDK, this is also the storage of tokens. It is empty: each login begins anew.
    """

    server: str
    url: str
    headers: Mapping[str, str]
    """Headers for requests to this server only."""
    redirect_uri: str
    client_id: str | None = None
    """The client of an existing registration; None to register a new client."""
    scopes: Sequence[str] = ()
    """The scopes to request; if empty, the ones that the server asks for."""
    resource: str | None = None
    consent: Callable[[str], Awaitable[Mapping[str, str]]]
    """Let the user visit an address.

    Returns the parameters of the address to which the browser was redirected. Both addresses have
    the `state` of this login.
    """

    def __post_init__(self) -> None:
        silence_sdk()
        self._address = ""
        """The address that the user has to visit, once it is known."""
        metadata = _Metadata(
            redirect_uris=[AnyUrl(self.redirect_uri)],
            token_endpoint_auth_method="none",
            client_name="codex-py",
            software_version=__version__,
            scope=" ".join(self.scopes) or None,
        )
        self._provider = OAuthClientProvider(
            self.url,
            metadata,
            self,
            redirect_handler=self._remember,
            callback_handler=self._answer,
        )
        self._context = self._provider.context
        resource = self.resource
        if resource is not None:
            # The given resource replaces the server's.
            self._context.get_resource_url = lambda: resource
            self._context.should_include_resource_param = _always

    async def log_in(self) -> McpLogin:
        """Let the user log in, and return the login to store.

        Raises:
            LoginError: the server needs no login, or the login failed.
        """
        status = await self._ping()
        name = f"MCP server `{self.server}`"
        login = self._login()
        if login is None and status < HTTPStatus.BAD_REQUEST:
            raise LoginError(f"{name} does not ask for a login")
        if login is None:
            raise LoginError(f"{name} answered with HTTP {status}")
        if status == HTTPStatus.UNAUTHORIZED:
            raise LoginError(f"{name} does not take the login that it gave")
        return login

    async def _ping(self) -> int:
        """Send a request, for which the SDK logs in if the server demands it.

        Returns the status of the last response. Raises a `LoginError` if the login failed.
        """
        http = bounded_client(
            _REQUEST_TIMEOUT_S,
            on_request=self._check_server,
            on_response=self._check_challenge,
        )
        headers = {"accept": "application/json, text/event-stream", **self.headers}
        # A ping is harmless, starts no session, and every server knows it.
        ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        exchange = http.stream(
            "POST", self.url, json=ping, headers=headers, auth=self._provider
        )
        failure = f"could not log in to `{self.server}`"
        try:
            async with http, exchange as response:
                return response.status_code
        except OAuthFlowError as error:
            raise LoginError(f"{failure}: {_brief(error)}") from error
        except (ValidationError, OverflowError) as error:
            raise LoginError(f"{failure}: {_WRONG}") from error
        except httpx2.HTTPError as error:
            reason = str(error) or type(error).__name__
            raise LoginError(
                f"MCP server `{self.server}` could not be reached: {reason}"
            ) from error

    async def _check_server(self, _: httpx2.Request | None = None) -> None:
        """Check the authorization server and its token. Runs before each request, because the flow
        learns the address, the metadata and the token one after another.

        Without PKCE, anyone who sees the code could use the login.

        Raises:
            OAuthFlowError: it is not.
        """
        context = self._context
        if context.auth_server_url is not None:
            self._check_address(context.auth_server_url)
        metadata = context.oauth_metadata
        if metadata is not None:
            if "S256" not in (metadata.code_challenge_methods_supported or ()):
                raise OAuthFlowError(
                    "its authorization server does not support PKCE with S256"
                )
            for endpoint in ("authorization", "token", "registration"):
                address = getattr(metadata, f"{endpoint}_endpoint")
                if address is not None:
                    self._check_address(str(address))
        tokens = context.current_tokens
        if tokens is not None and not re.fullmatch(SENDABLE, tokens.access_token):
            # The HTTP client's error would quote the token.
            raise OAuthFlowError("it gave a token that cannot be sent")

    def _check_address(self, address: str) -> None:
        """Refuse an authorization server without https, unless both servers are on this machine.

        Without https, others could read codes and tokens on their way. And an MCP server elsewhere must
        not have them sent to a program on this machine.
        """
        url = httpx2.URL(address)
        own_url = httpx2.URL(self.url)
        is_local = _is_loopback(url.host) and _is_loopback(own_url.host)
        if url.scheme != "https" and not is_local:
            where = f"{url.scheme}://{url.netloc.decode()}"
            raise OAuthFlowError(
                f"its authorization server is at {where}, which is not https"
            )

    async def _check_challenge(self, response: httpx2.Response) -> None:
        """Refuse a challenge that names metadata on another host.

        With it, the server could make us send requests to a program on this machine.
        """
        if response.status_code not in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
            return
        address = extract_resource_metadata_from_www_auth(response)
        if address is not None and _origin(address) != _origin(self.url):
            raise OAuthFlowError(f"it names metadata of another server: {address}")

    def _login(self) -> McpLogin | None:
        """The login that the flow has led to; None if it got no tokens."""
        context = self._context
        if context.current_tokens is None or context.client_info is None:
            return None
        metadata = context.oauth_metadata
        if metadata is not None:
            endpoint = str(metadata.token_endpoint)
        else:
            endpoint = urljoin(context.get_authorization_base_url(self.url), "/token")
        resource = None
        if context.should_include_resource_param():
            resource = context.get_resource_url()
        login = McpLogin(
            access_token="",
            token_endpoint=endpoint,
            resource=resource,
            client=context.client_info.model_dump(mode="json", exclude_none=True),
        )
        return login.with_tokens(context.current_tokens)

    async def get_tokens(self) -> OAuthToken | None:
        return None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Do nothing: the SDK's context keeps the tokens."""

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        if self.client_id is None:
            return None
        return OAuthClientInformationFull(
            client_id=self.client_id,
            redirect_uris=[AnyUrl(self.redirect_uri)],
            token_endpoint_auth_method="none",
        )

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Do nothing: the SDK's context keeps the registration."""

    async def _remember(self, address: str) -> None:
        """Keep the address that the user has to visit, for `_answer`."""
        await self._check_server()
        self._check_address(address)
        self._address = address

    async def _answer(self) -> AuthorizationCodeResult:
        """Let the user consent, and return the code that the browser brought back."""
        answer = await self.consent(self._address)
        if "error" in answer:
            reason = ": ".join(answer[key] for key in _ERROR_KEYS if key in answer)
            raise OAuthFlowError(f"it was refused: {reason}")
        return AuthorizationCodeResult(
            code=answer.get("code", ""),
            state=answer.get("state"),
            iss=answer.get("iss"),
        )


class _Metadata(OAuthClientMetadata):
    """Keeps the scopes that the user has chosen; the SDK would replace them by the server's."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "scope" and self.scope:
            return
        super().__setattr__(name, value)


def _always(protocol_version: str | None = None) -> bool:  # noqa: ARG001 - the SDK's type
    return True


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _origin(url: str) -> tuple[str, str, int | None]:
    try:
        parts = httpx2.URL(url)
    except httpx2.InvalidURL as error:
        raise OAuthFlowError(
            f"it names metadata at {url!r}, which is no URL"
        ) from error
    return parts.scheme, parts.host, parts.port


def _brief(error: OAuthFlowError) -> str:
    """The SDK's message, with only the error from the body of an answer.

    The body may contain anything.
    """
    if isinstance(error.__context__, ValidationError):
        return _WRONG
    # The SDK writes what failed, the status in brackets, and the body of the answer.
    text, separator, body = str(error).partition("): ")
    if separator:
        fields = json_object(body)
        named = [str(fields[key]) for key in _ERROR_KEYS if key in fields]
        text = ": ".join([f"{text})", *named])
    text = " ".join(text.split()) or type(error).__name__
    if len(text) <= _SHOWN_CHARS:
        return text
    return f"{text[:_SHOWN_CHARS]}…"

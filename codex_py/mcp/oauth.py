"""Log in to a server with OAuth: authorization code and PKCE, as the SDK does it.

Source: MCP specification 2025-11-25, Authorization.
"""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, cast
from urllib.parse import parse_qs, urljoin, urlsplit

import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError
from mcp.client.auth.oauth2 import OAuthContext
from mcp.client.auth.utils import extract_resource_metadata_from_www_auth
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
)
from pydantic import AnyUrl, ValidationError

from codex_py import __version__
from codex_py.errors import CodexError
from codex_py.mcp.login import Login
from codex_py.mcp.sdk import silence_sdk
from codex_py.mcp.session_auth import with_tokens

_REQUEST_TIMEOUT_S = 30.0
_SHOWN_CHARS = 300
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginRequest:
    """To whom, and as whom."""

    server: str
    url: str
    headers: Mapping[str, str]
    """Go with the requests to the server, and to nobody else."""
    redirect_uri: str
    client_id: str | None = None
    """Of a client that is registered already; None to register one."""
    scopes: Sequence[str] = ()
    """None of them: what the server says it needs."""
    resource: str | None = None


class LoginError(CodexError):
    code = "mcp_login"


async def log_in(request: LoginRequest, consent: Callable[[str], Awaitable[str]]) -> Login:
    """Have the user log in, and give what is to be kept.

    Args:
        consent: takes the address that the user has to visit, whose `state` tells one login from another;
            gives the address to which the user was sent back, with the `state` of this login.

    Raises:
        LoginError: there is no login, for whatever reason.
    """
    silence_sdk()
    flow = _Flow(request, consent)
    try:
        hooks = {"response": [flow.check_challenge]}
        async with httpx2.AsyncClient(timeout=_REQUEST_TIMEOUT_S, event_hooks=hooks) as client:
            status = await flow.run(client)
    except OAuthFlowError as error:
        raise LoginError(f"could not log in to `{request.server}`: {_brief(error)}") from error
    except ValidationError as error:
        # Its own text quotes what the server sent.
        text = f"could not log in to `{request.server}`: the answer of its authorization server is wrong"
        raise LoginError(text) from error
    except httpx2.HTTPError as error:
        reason = str(error) or type(error).__name__
        raise LoginError(f"MCP server `{request.server}` could not be reached: {reason}") from error
    login = flow.login()
    if login is None:
        if status < HTTPStatus.BAD_REQUEST:
            raise LoginError(f"MCP server `{request.server}` does not ask for a login")
        raise LoginError(f"MCP server `{request.server}` answered with HTTP {status}")
    if status == HTTPStatus.UNAUTHORIZED:
        raise LoginError(f"MCP server `{request.server}` does not take the login that it gave")
    return login


class _Flow:
    """One login. The storage of the SDK, whose other half keeps nothing: each login begins anew."""

    def __init__(self, request: LoginRequest, consent: Callable[[str], Awaitable[str]]) -> None:
        self._request = request
        self._consent = consent
        self._address = ""
        metadata = _Metadata(
            redirect_uris=[AnyUrl(request.redirect_uri)],
            token_endpoint_auth_method="none",
            client_name="codex-py",
            software_version=__version__,
            scope=" ".join(request.scopes) or None,
        )
        self._provider = OAuthClientProvider(
            request.url,
            metadata,
            self,
            redirect_handler=self._remember,
            callback_handler=self._answer,
        )
        context = _Context(**vars(self._provider.context))
        context.configured_resource = request.resource
        self._context = self._provider.context = context

    async def run(self, client: httpx2.AsyncClient) -> int:
        """The status of a request that needs the login."""
        headers = {"accept": "application/json, text/event-stream", **self._request.headers}
        # Harmless, begins no session, and known to every server.
        ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        async with client.stream(
            "POST", self._request.url, json=ping, headers=headers, auth=self._provider
        ) as response:
            return response.status_code

    async def check_challenge(self, response: httpx2.Response) -> None:
        """Follow no server to metadata elsewhere: it could have us ask a program on this machine.

        Raises:
            OAuthFlowError: the metadata are not the server's own.
        """
        if response.status_code not in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
            return
        named = extract_resource_metadata_from_www_auth(response)
        if named is not None and _origin(named) != _origin(self._request.url):
            raise OAuthFlowError(f"it names metadata of another server: {named}")

    def login(self) -> Login | None:
        context = self._context
        if context.current_tokens is None or context.client_info is None:
            return None
        metadata = context.oauth_metadata
        endpoint = (
            urljoin(context.get_authorization_base_url(self._request.url), "/token")
            if metadata is None
            else str(metadata.token_endpoint)
        )
        resource = context.get_resource_url() if context.should_include_resource_param() else None
        login = Login(
            access_token="",
            token_endpoint=endpoint,
            resource=resource,
            client=context.client_info.model_dump(mode="json", exclude_none=True),
        )
        return with_tokens(login, context.current_tokens)

    async def get_tokens(self) -> OAuthToken | None:
        return None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """They are in the context."""

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        if self._request.client_id is None:
            return None
        return OAuthClientInformationFull(
            client_id=self._request.client_id,
            redirect_uris=[AnyUrl(self._request.redirect_uri)],
            token_endpoint_auth_method="none",
        )

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """It is in the context."""

    async def _remember(self, address: str) -> None:
        self._address = address

    async def _answer(self) -> AuthorizationCodeResult:
        answer = parameters(await self._consent(self._address))
        if "error" in answer:
            why = ": ".join(answer[key] for key in ("error", "error_description") if key in answer)
            raise OAuthFlowError(f"it was refused: {why}")
        return AuthorizationCodeResult(
            code=answer.get("code", ""), state=answer.get("state"), iss=answer.get("iss")
        )


class _Metadata(OAuthClientMetadata):
    """Scopes that the user has chosen stay; the SDK puts those in their place that the server names."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name != "scope" or not self.scope:
            super().__setattr__(name, value)


@dataclass
class _Context(OAuthContext):
    """`oauth_resource` says what the tokens are for, whatever the server says of itself.

    An authorization server has to say that it checks PKCE: without it, whoever sees a code has the login.
    """

    configured_resource: str | None = None

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "oauth_metadata" and value is not None:
            methods = cast("OAuthMetadata", value).code_challenge_methods_supported
            if "S256" not in (methods or ()):
                raise OAuthFlowError("its authorization server does not support PKCE with S256")
        super().__setattr__(name, value)

    def get_resource_url(self) -> str:
        return self.configured_resource or super().get_resource_url()

    def should_include_resource_param(self, protocol_version: str | None = None) -> bool:
        return self.configured_resource is not None or super().should_include_resource_param(
            protocol_version
        )


def parameters(address: str) -> dict[str, str]:
    """Those of an address, decoded; the first of each name."""
    return {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}


def _origin(url: str) -> tuple[str, str | None, int | None]:
    try:
        parts = urlsplit(url)
        return parts.scheme, parts.hostname, parts.port or _PORTS.get(parts.scheme)
    except ValueError as error:
        raise OAuthFlowError(f"it names metadata at {url!r}, which is no URL") from error


def _brief(error: OAuthFlowError) -> str:
    """What the SDK says, without the body of an answer, which may hold anything: only what it calls its error."""
    text, colon, body = str(error).partition("): ")
    if colon:
        text = f"{text})"
        try:
            said: Any = json.loads(body)
            text = ": ".join(
                [text, *(said[k] for k in ("error", "error_description") if k in said)]
            )
        except (ValueError, TypeError, RecursionError):
            pass
    text = " ".join(text.split()) or type(error).__name__
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"

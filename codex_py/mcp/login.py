"""Stored logins to servers: they sign the requests of a session, and are renewed when they expire.

The SDK's `OAuthClientProvider` is used only to log in (see `oauth`). Here it would send one request
at a time, not know when stored tokens expire, and start a login that nobody sees.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractContextManager
from http import HTTPStatus
from typing import Any, Final, Protocol, TypeAlias
from urllib.parse import quote

import httpx2
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from codex_py.errors import ConfigError
from codex_py.mcp.bounded import bounded_client
from codex_py.protocol.json_fields import json_object, text_field

_RENEW_TIMEOUT_S = 30.0
_EARLY_S = 30.0
"""The time before its expiry at which a token is renewed, because clocks differ and requests take
time."""

_FINAL_ERRORS: Final = frozenset(
    {"invalid_grant", "invalid_client", "unauthorized_client"}
)
"""The errors after which another attempt would fail too: RFC 6749, 5.2."""
_Renewal: TypeAlias = "tuple[McpLogin | None, str | None]"
"""The login to use from now on, and the problem with it; None where there is none."""
SENDABLE: Final = r"^[\x20-\x7e]*$"
"""Matches an access token: RFC 6749, A.12. Any other text could contain a second header."""


class McpLogin(BaseModel):
    """Tokens, and the data to renew them. Secrets are left out of `repr`."""

    model_config = ConfigDict(frozen=True)

    access_token: str = Field(repr=False, pattern=SENDABLE)
    refresh_token: str | None = Field(default=None, repr=False)
    expires_at: float | None = None
    """Seconds since 1970; None if the server did not say."""
    scope: str | None = None
    token_endpoint: str
    resource: str | None = None
    """The resource that the tokens are for; RFC 8707."""
    client: dict[str, Any] = Field(repr=False)
    """Our registration at the authorization server: `OAuthClientInformationFull` of the SDK."""

    def with_tokens(self, tokens: OAuthToken) -> "McpLogin":
        """Return this login with new tokens. The server may leave out fields that have not changed.

        Source: RFC 6749, 5.1 and 6.

        Raises:
            ValidationError: the access token cannot be sent. The message quotes the token.
            OverflowError: the lifetime of the token is too large.
        """
        expires_at = None
        if tokens.expires_in is not None:
            expires_at = time.time() + tokens.expires_in
        changed = {
            "access_token": tokens.access_token,
            "refresh_token": tokens.refresh_token or self.refresh_token,
            "scope": tokens.scope or self.scope,
            "expires_at": expires_at,
        }
        return McpLogin.model_validate({**dict(self), **changed})

    @property
    def is_old(self) -> bool:
        """True if the login has expired, or will soon."""
        if self.expires_at is None:
            return False
        return time.time() > self.expires_at - _EARLY_S


class LoginStore(Protocol):
    """Stores the login to one server at one address.

    Its methods may block and raise `ConfigError`.
    """

    def read(self) -> str | None:
        """The stored text, or None."""
        ...

    def write(self, text: str) -> None:
        """Replace the stored text atomically."""
        ...

    def remove(self) -> bool:
        """Remove the stored text. True if there was one."""
        ...

    def locked(self) -> AbstractContextManager[None]:
        """Hold a lock while the login is renewed, because a refresh token works only once."""
        ...


class StoredLogin(httpx2.Auth):
    """Signs requests if there is a login.

    Without a login they are sent unsigned, because some servers need none.

    Args:
        how_to_log_in: advice for the user.
        on_problem: is called before each answer is returned, with the reason of an authentication
            failure, or with None after a success; and with True if a login was refused.
    """

    def __init__(
        self,
        store: LoginStore,
        how_to_log_in: str,
        on_problem: Callable[[str | None, bool], None],
    ) -> None:
        self._store = store
        self._how_to_log_in = how_to_log_in
        self._on_problem = on_problem
        self._problem: str | None = None
        """The reason why the latest renewal failed."""
        self._login: McpLogin | None = None
        """The login in use; None before the first request, or if there is none."""
        self._lock = asyncio.Lock()

    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Sign a request. If the server refuses it, renew the login and send it once more."""
        if self._login is None or self._login.is_old:
            await self._renew(self._login)
        used = self._login
        _sign(request, used)
        response = yield request
        if response.status_code == HTTPStatus.UNAUTHORIZED:
            await self._renew(used)
            if self._login is not None and self._login != used:
                _sign(request, self._login)
                response = yield request
        if response.status_code == HTTPStatus.UNAUTHORIZED:
            had_login = self._problem is not None or self._login is not None
            self._on_problem(self._problem or self._how_to_log_in, had_login)
        else:
            self._on_problem(None, False)

    async def _renew(self, used: McpLogin | None) -> None:
        """Replace the login, unless another request has replaced `used` meanwhile."""
        async with self._lock:
            if self._login == used:
                # A thread finishes even if this is cancelled: losing a new token would lose the
                # login.
                renewed = await asyncio.to_thread(self._renewed, used)
                self._login, self._problem = renewed

    def _renewed(self, used: McpLogin | None) -> _Renewal:
        """Replace `used`: with the stored login, or by renewing that one."""
        try:
            login = self._stored()
            if login is None or _can_replace(login, used):
                return login, None
            with self._store.locked():
                # Another process may have renewed the login meanwhile.
                login = self._stored()
                if login is None or _can_replace(login, used):
                    return login, None
                return self._renew_stored(login)
        except ConfigError as error:
            return used, str(error)

    def _stored(self) -> McpLogin | None:
        try:
            return McpLogin.model_validate_json(self._store.read() or "")
        except ValidationError:
            # No login is stored, or it cannot be parsed: the user has to log in.
            return None

    def _renew_stored(self, login: McpLogin) -> _Renewal:
        """Renew the stored login, and store the new one."""
        if login.refresh_token is None:
            return login, f"its login has expired; {self._how_to_log_in}"
        failure = "its login could not be renewed"
        try:
            response = asyncio.run(_refresh(login))
            if _is_final(response):
                self._store.remove()
                problem = "its login was revoked or has expired"
                return None, f"{problem}; {self._how_to_log_in}"
            if response.status_code != HTTPStatus.OK:
                return login, f"{failure}: HTTP {response.status_code}"
            tokens = OAuthToken.model_validate_json(response.content)
            renewed = login.with_tokens(tokens)
        except httpx2.HTTPError as error:
            return login, f"{failure}: {str(error) or type(error).__name__}"
        except TimeoutError:
            return login, f"{failure}: no answer within {_RENEW_TIMEOUT_S:g} s"
        except (ValidationError, OverflowError):
            # The error would quote the token.
            return login, f"{failure}: the answer holds no token that we can use"
        self._store.write(renewed.model_dump_json())
        return renewed, None


def _can_replace(stored: McpLogin, used: McpLogin | None) -> bool:
    """True if a stored login differs from the one that was used, and has not expired."""
    return stored != used and not stored.is_old


def _is_final(response: httpx2.Response) -> bool:
    """True if the stored login can never work again."""
    if not response.is_client_error:
        return False
    return text_field(json_object(response.text), "error") in _FINAL_ERRORS


async def _refresh(login: McpLogin) -> httpx2.Response:
    """Exchange the refresh token for new tokens: RFC 6749, 6.

    Raises:
        TimeoutError: there is no answer within 30 s.
        HTTPError: the request failed.
    """
    client = OAuthClientInformationFull.model_validate(login.client)
    data = {
        "grant_type": "refresh_token",
        "refresh_token": login.refresh_token or "",
        "client_id": client.client_id,
    }
    if login.resource:
        data["resource"] = login.resource
    credentials: tuple[str, str] | None = None
    if client.client_secret is not None:
        if client.token_endpoint_auth_method == "client_secret_basic":
            name = quote(client.client_id, safe="")
            secret = quote(client.client_secret, safe="")
            credentials = (name, secret)
        else:
            data["client_secret"] = client.client_secret
    # The program cannot exit before this thread ends, so the time for the answer is limited.
    async with (
        asyncio.timeout(_RENEW_TIMEOUT_S),
        bounded_client(_RENEW_TIMEOUT_S, auth=credentials) as http,
    ):
        return await http.post(login.token_endpoint, data=data)


def _sign(request: httpx2.Request, login: McpLogin | None) -> None:
    if login is not None:
        request.headers["Authorization"] = f"Bearer {login.access_token}"

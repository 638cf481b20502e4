"""Signs the requests of a session with the tokens of a stored login, and renews them.

The SDK's own `OAuthClientProvider` is for logging in. It is not used here: it sends one request at a time, does
not know when stored tokens expire, and would start a login that nobody sees.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from http import HTTPStatus
from typing import Any, Final, cast
from urllib.parse import quote

import httpx2
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import ValidationError

from codex_py.errors import ConfigError
from codex_py.mcp.login import Login, LoginStore, stored_login

_RENEW_TIMEOUT_S = 10.0
_EARLY_S = 30.0
"""Renew a token so long before it expires, because clocks differ and requests take time."""

_FINAL_ERRORS: Final = frozenset({"invalid_grant", "invalid_client", "unauthorized_client"})
"""RFC 6749, 5.2: another attempt would fail too."""


class StoredLogin(httpx2.Auth):
    """Signs requests if there is a login. Without one they are sent unsigned, as not every server needs one.

    Args:
        how_to_log_in: advice for the user.
        on_problem: gets the reason of each authentication failure before the answer, and None after a success.
    """

    def __init__(
        self, store: LoginStore, how_to_log_in: str, on_problem: Callable[[str | None], None]
    ) -> None:
        self._store = store
        self._how_to_log_in = how_to_log_in
        self._on_problem = on_problem
        self._problem: str | None = None
        self._login: Login | None = None
        self._lock = asyncio.Lock()

    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        if self._login is None or _is_old(self._login):
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
            self._on_problem(self._problem or self._how_to_log_in)
        else:
            self._on_problem(None)

    async def _renew(self, used: Login | None) -> None:
        async with self._lock:
            if self._login == used:
                # A thread finishes even if this is cancelled: losing a new token would lose the login.
                self._login, self._problem = await asyncio.to_thread(self._renewed, used)

    def _renewed(self, used: Login | None) -> tuple[Login | None, str | None]:
        """The login to use after `used`, and the problem with it or None."""
        try:
            login = stored_login(self._store)
            if login is None or (login != used and not _is_old(login)):
                return login, None
            with self._store.locked():
                # Another program may have renewed it meanwhile.
                login = stored_login(self._store)
                if login is None or (login != used and not _is_old(login)):
                    return login, None
                return self._renew_stored(login)
        except ConfigError as error:
            return used, str(error)

    def _renew_stored(self, login: Login) -> tuple[Login | None, str | None]:
        if login.refresh_token is None:
            return login, f"its login has expired; {self._how_to_log_in}"
        try:
            renewed = renewed_login(login)
        except LoginRevokedError:
            # The stored login is of no more use.
            self._store.remove()
            return None, f"its login was revoked or has expired; {self._how_to_log_in}"
        except RenewalError as error:
            return login, f"its login could not be renewed: {error}"
        self._store.write(renewed.model_dump_json())
        return renewed, None


class RenewalError(Exception):
    """The token could not be renewed; the message says why. Another attempt may succeed."""


class LoginRevokedError(RenewalError):
    """The login is no longer valid; a new one is needed."""


def renewed_login(login: Login) -> Login:
    """Exchange the refresh token for new tokens; blocks for up to 10 s at each step. RFC 6749, 6.

    Raises:
        RenewalError
    """
    client = OAuthClientInformationFull.model_validate(login.client)
    data = {
        "grant_type": "refresh_token",
        "refresh_token": login.refresh_token or "",
        "client_id": client.client_id,
        **({"resource": login.resource} if login.resource else {}),
    }
    credentials: tuple[str, str] | None = None
    if client.client_secret is not None:
        if client.token_endpoint_auth_method == "client_secret_basic":
            credentials = (quote(client.client_id, safe=""), quote(client.client_secret, safe=""))
        else:
            data["client_secret"] = client.client_secret
    try:
        response = httpx2.post(
            login.token_endpoint, data=data, auth=credentials, timeout=_RENEW_TIMEOUT_S
        )
    except httpx2.HTTPError as error:
        raise RenewalError(str(error) or type(error).__name__) from error
    if response.status_code == HTTPStatus.OK:
        try:
            return with_tokens(login, OAuthToken.model_validate_json(response.content))
        except ValidationError:
            # The original error would quote the token.
            raise RenewalError("the answer holds no token that we can use") from None
    if response.is_client_error and _error_code(response) in _FINAL_ERRORS:
        raise LoginRevokedError
    raise RenewalError(f"HTTP {response.status_code}")


def with_tokens(login: Login, tokens: OAuthToken) -> Login:
    """The login with new tokens; fields that the server left out are unchanged: RFC 6749, 5.1 and 6."""
    expires_in = tokens.expires_in
    return login.model_copy(
        update={
            "access_token": tokens.access_token,
            "refresh_token": tokens.refresh_token or login.refresh_token,
            "scope": tokens.scope or login.scope,
            "expires_at": None if expires_in is None else time.time() + expires_in,
        }
    )


def _sign(request: httpx2.Request, login: Login | None) -> None:
    if login is not None:
        request.headers["Authorization"] = f"Bearer {login.access_token}"


def _is_old(login: Login) -> bool:
    return login.expires_at is not None and time.time() > login.expires_at - _EARLY_S


def _error_code(response: httpx2.Response) -> object:
    try:
        body: Any = response.json()
    except ValueError:
        return None
    return cast("dict[str, Any]", body).get("error") if isinstance(body, dict) else None

"""Speaks with the issuer of ChatGPT logins: OAuth 2.0 with PKCE (RFC 6749, 7636, 7009), as Codex 0.150
does."""

import asyncio
import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

import httpx

from codex_py.errors import ExitCode, ModelError, StreamError
from codex_py.http.transport import http_client
from codex_py.model.chatgpt.tokens import tokens_of
from codex_py.model.program_names import own_names
from codex_py.protocol.addresses import shown_url, url_problem
from codex_py.protocol.json_fields import JsonObject, json_object, text_field

CLIENT_ID: Final = "app_EMoamEEZ73f0CkXaXp7hrann"
"""The registration that every program with this login uses."""
ISSUER: Final = "https://auth.openai.com"
_TOKEN_VARIABLE: Final = "CODEX_REFRESH_TOKEN_URL_OVERRIDE"
_ACCOUNTS_VARIABLE: Final = "CODEX_AUTHAPI_BASE_URL"
_TIMEOUT_S: Final = 30.0
_LATE_S: Final = 1.0
"""The time to read an answer that has arrived behind the timeout."""
_MAX_BYTES: Final = 1 << 20
REUSED: Final = "refresh_token_reused"
_CODE: Final = re.compile(r"[a-z]+(_[a-z]+)*")
_OVER: Final = frozenset(
    {
        REUSED,
        "refresh_token_expired",
        "refresh_token_invalidated",
        "invalid_grant",
    }
)
"""The codes after which no other attempt can succeed."""
SIGN_IN_AGAIN: Final = "sign in again with `codex-py login`"


class LoginOver(ModelError):
    """The issuer renews a login no more. `reason`: its code, or a clause."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(
            f"The login with ChatGPT is over ({reason}): {SIGN_IN_AGAIN}",
            code="login_over",
            exit_code=ExitCode.AUTHENTICATION,
        )


class NoAnswer(StreamError):
    """The issuer could not be asked.

    Attributes:
        reason: its address and a clause.
        is_late: True if it took too long.
    """

    def __init__(self, reason: str, *, is_late: bool = False) -> None:
        self.reason = reason
        self.is_late = is_late
        super().__init__(
            f"ChatGPT could not be asked: {reason}",
            code="issuer_unavailable",
            exit_code=ExitCode.UNAVAILABLE,
        )


class Issuer:
    """Sends requests to one issuer. Each method takes 30 s at most."""

    def __init__(
        self, environment: Mapping[str, str], address: str | None = None
    ) -> None:
        """
        Args:
            address: the issuer's address, without a slash at its end; None for OpenAI's, which
                `CODEX_REFRESH_TOKEN_URL_OVERRIDE` of `environment` moves.
        """
        self._environment = environment
        self.address = address or ISSUER
        self._token_url = f"{self.address}/oauth/token"
        override = environment.get(_TOKEN_VARIABLE, "").strip()
        if address is None and override:
            self._token_url = override

    def has_name(self, name: str) -> bool:
        """True if a token with this claim `iss` may be sent here. A token may have no such claim."""
        own = {_origin(self.address), _origin(self._token_url)}
        return not name or _origin(name) in own

    async def renew(self, refresh_token: str) -> JsonObject:
        """Exchange a refresh token. Returns the new tokens by their names; some may be missing.

        The refresh token counts no more, even if the answer is lost.

        Raises:
            LoginOver: the issuer renews this login no more.
            StreamError: there was no usable answer; another attempt may succeed.
        """
        fields = {
            "client_id": CLIENT_ID,
            "grant_type": "refresh_token",
            "refresh_token": refresh_token,
        }
        try:
            status, answer = await self.post(self._token_url, json=fields)
        except NoAnswer as error:
            raise _not_renewed(error.reason, few_retries=error.is_late) from error
        if status == HTTPStatus.OK and tokens_of(answer):
            return answer
        code = code_in(answer)
        if code in _OVER or status == HTTPStatus.UNAUTHORIZED:
            raise LoginOver(code or f"HTTP status {status}")
        if status == HTTPStatus.OK:
            problem = "its answer holds no token"
        else:
            problem = f"HTTP status {status}"
        raise _not_renewed(f"{shown_url(self._token_url)}: {problem}")

    async def exchange(
        self, code: str, verifier: str, redirect_uri: str
    ) -> tuple[int, JsonObject]:
        """Exchange the code of a login. Returns the HTTP status, and the tokens or the error.

        Raises:
            NoAnswer: there was no answer.
        """
        fields = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "client_id": CLIENT_ID,
            "code_verifier": verifier,
        }
        return await self.post(self._token_url, data=fields)

    async def revoke(self, token: str, kind: str) -> None:
        """Tell the issuer that a login is over: RFC 7009.

        Args:
            kind: `refresh_token` or `access_token`.

        Raises:
            ModelError: the issuer did not confirm it.
            NoAnswer: there was no answer.
        """
        fields = {"token": token, "token_type_hint": kind}
        if kind == "refresh_token":
            fields["client_id"] = CLIENT_ID
        problem = url_problem(shown_url(self._token_url))
        if problem is not None:
            raise NoAnswer(f"the issuer's address {problem}")
        parts = urlsplit(self._token_url)
        url = urlunsplit((parts.scheme, parts.netloc, "/oauth/revoke", "", ""))
        status, _ = await self.post(url, json=fields)
        if status != HTTPStatus.OK:
            raise ModelError(f"{shown_url(url)}: HTTP status {status}", code="revoke")

    async def owner(self, token: str) -> tuple[int, JsonObject]:
        """Ask whose a personal access token is. Returns the HTTP status, and the facts.

        Raises:
            NoAnswer: there was no answer.
        """
        override = self._environment.get(_ACCOUNTS_VARIABLE, "").strip().rstrip("/")
        accounts = override or f"{self.address}/api/accounts"
        url = f"{accounts}/v1/user-auth-credential/whoami"
        headers = {**own_names(), "authorization": f"Bearer {token}"}
        return await json_answer("GET", url, self._environment, headers=headers)

    async def post(self, url: str, **sent: Any) -> tuple[int, JsonObject]:
        """Send a POST. Returns the HTTP status and the JSON of the answer, empty for any other.

        Raises:
            NoAnswer: there was no answer.
        """
        return await json_answer(
            "POST", url, self._environment, headers=own_names(), **sent
        )


async def json_answer(
    method: str, url: str, environment: Mapping[str, str], **sent: Any
) -> tuple[int, JsonObject]:
    """Send a request to ChatGPT. Takes 30 s at most.

    Returns the HTTP status and the JSON of the answer, empty for any other.

    Args:
        environment: has the proxies.
        sent: the arguments of `httpx.AsyncClient.stream`.

    Raises:
        NoAnswer: there was no answer.
    """
    asking = asyncio.create_task(_exchange(method, url, environment, sent))
    try:
        await asyncio.wait({asking}, timeout=_TIMEOUT_S)
        # A process that was stopped for long may have the answer, and has not read it.
        await asyncio.wait({asking}, timeout=_LATE_S)
    finally:
        asking.cancel()
    await asyncio.wait({asking})
    if asking.cancelled():
        raise NoAnswer(f"{shown_url(url)}: no answer in {_TIMEOUT_S:g} s", is_late=True)
    try:
        status, body = asking.result()
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        # An address that is no URL may give any of the last two; a name that cannot be encoded too.
        cause = str(error) or type(error).__name__
        raise NoAnswer(f"{shown_url(url)}: {cause}") from error
    return status, json_object(body.decode(errors="replace"))


async def _exchange(
    method: str, url: str, environment: Mapping[str, str], sent: Mapping[str, Any]
) -> tuple[int, bytes]:
    """Send a request. Returns the HTTP status and the body, cut off if it is too long."""
    body = b""
    async with (
        http_client(environment=environment) as http,
        # The caller ends it in time.
        http.stream(method, url, timeout=None, **sent) as response,
    ):
        async for piece in response.aiter_bytes():
            body += piece
            if len(body) > _MAX_BYTES:
                break
    return response.status_code, body


def _origin(address: str) -> str:
    """The scheme, the host and the port of an address; the text itself if it is no address."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return address
    return f"{parts.scheme}://{parts.netloc}".lower()


def code_in(answer: JsonObject) -> str:
    """Return the code in the answer of an issuer that refuses; empty if there is none.

    Any other text is no code. It may quote the request, with its secrets.
    """
    error = answer.get("error")
    if isinstance(error, str):
        code = error
    elif isinstance(error, dict):
        code = text_field(answer["error"], "code")
    else:
        code = text_field(answer, "code")
    if _CODE.fullmatch(code):
        return code
    return ""


def _not_renewed(reason: str, *, few_retries: bool = False) -> StreamError:
    return StreamError(
        f"the login with ChatGPT could not be renewed: {reason}",
        code="login_not_renewed",
        exit_code=ExitCode.UNAVAILABLE,
        few_retries=few_retries,
    )

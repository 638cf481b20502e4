"""Signs in with ChatGPT: in a browser, or with a code that the user types on any device. Both give the
tokens of a new login.

Sources: RFC 6749, 4.1, RFC 7636, RFC 8252, and for the code the login of Codex 0.171.
"""

import asyncio
import base64
import hashlib
import math
import secrets
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Final, TypeAlias
from urllib.parse import urlencode

from codex_py.errors import CodexError, StreamError
from codex_py.http.login_answers import LoginAnswers, LoginScreen
from codex_py.model.chatgpt.issuer import CLIENT_ID, Issuer, code_in
from codex_py.model.chatgpt.tokens import NAMES, Tokens, is_sendable, tokens_of
from codex_py.protocol.json_fields import JsonObject, text_field

Store: TypeAlias = Callable[[JsonObject], None]
"""Stores the tokens of a new login."""

PORTS: Final = (1455, 1457)
"""The ports to which the issuer sends a browser back, by preference."""
_PATH: Final = "/auth/callback"
_SCOPES: Final = "openid profile email offline_access"
_BROWSER_TIMEOUT_S: Final = 1800.0
_CODE_TIMEOUT_S: Final = 900.0
"""The lifetime of a code for another device."""
_MIN_INTERVAL_S: Final = 1.0
_MAX_INTERVAL_S: Final = 30.0
_MAX_FAILURES: Final = 5
"""The polls in a row that may fail for want of a network."""
_MAX_REASON: Final = 300
"""The characters of the issuer's reason that are shown."""


async def sign_in_with_browser(
    issuer: Issuer,
    screen: LoginScreen,
    store: Store,
    *,
    originator: str,
    workspaces: Sequence[str] = (),
) -> None:
    """Send the user to the issuer's page, and store the tokens of the new login.

    The browser is told that the login is complete once the tokens are stored.

    Args:
        originator: the name of this program, which the issuer wants to know.
        workspaces: the ids of the workspaces that the user may choose from; empty: of all.

    Raises:
        CodexError: the login failed. Nothing was stored.
    """
    verifier = secrets.token_urlsafe(64)
    answers = LoginAnswers(screen, _PATH)
    try:
        async with (
            asyncio.timeout(_BROWSER_TIMEOUT_S),
            answers.listening(*PORTS) as port,
        ):
            redirect_uri = f"http://127.0.0.1:{port}{_PATH}"
            query = {
                "response_type": "code",
                "client_id": CLIENT_ID,
                "redirect_uri": redirect_uri,
                "scope": _SCOPES,
                "code_challenge": challenge(verifier),
                "code_challenge_method": "S256",
                "id_token_add_organizations": "true",
                "codex_cli_simplified_flow": "true",
                "state": secrets.token_urlsafe(32),
                "originator": originator,
            }
            if workspaces:
                query["allowed_workspace_id"] = ",".join(workspaces)
            address = f"{issuer.address}/oauth/authorize?{urlencode(query)}"
            answer = await answers.wait(address)
            if "code" not in answer:
                reason = answer.get("error_description") or answer["error"]
                raise _failed(reason)
            tokens = await _exchange(issuer, answer["code"], verifier, redirect_uri)
            _store(tokens, workspaces, store)
    except TimeoutError as error:
        minutes = _BROWSER_TIMEOUT_S / 60
        raise _failed(f"nobody signed in within {minutes:g} minutes") from error
    except OSError as error:
        ports = " and ".join(map(str, PORTS))
        raise _failed(
            f"the ports {ports} of 127.0.0.1, where a browser would come back, cannot be used:"
            f" {error.strerror}. Is another login waiting? `codex-py login --device-auth` needs no"
            " port"
        ) from error


async def sign_in_with_code(
    issuer: Issuer,
    show: Callable[[str, str], None],
    store: Store,
    *,
    workspaces: Sequence[str] = (),
) -> None:
    """Wait until the user has typed a code on the issuer's page, and store the tokens.

    Args:
        show: shows the user the address of the page and the code.
        workspaces: the ids of the workspaces that the login may belong to; empty: to all.

    Raises:
        CodexError: the login failed. Nothing was stored.
    """
    accounts = f"{issuer.address}/api/accounts/deviceauth"
    status, begun = await _post(
        issuer, f"{accounts}/usercode", {"client_id": CLIENT_ID}
    )
    if status == HTTPStatus.NOT_FOUND:
        raise _failed(
            "the issuer offers no login with a code: use `codex-py login`, or pipe an API key into"
            " `codex-py login --with-api-key`"
        )
    device = text_field(begun, "device_auth_id")
    user_code = text_field(begun, "user_code") or text_field(begun, "usercode")
    if status != HTTPStatus.OK or not device or not user_code.isprintable():
        raise _failed(f"the issuer gave no code (HTTP status {status})")
    show(f"{issuer.address}/codex/device", user_code)
    fields = {"device_auth_id": device, "user_code": user_code}
    try:
        async with asyncio.timeout(_CODE_TIMEOUT_S):
            interval_s = _interval_s(begun)
            typed = await _typed(issuer, f"{accounts}/token", fields, interval_s)
    except TimeoutError as error:
        minutes = _CODE_TIMEOUT_S / 60
        raise _failed(f"the code was not typed within {minutes:g} minutes") from error
    tokens = await _exchange(
        issuer,
        text_field(typed, "authorization_code"),
        text_field(typed, "code_verifier"),
        f"{issuer.address}/deviceauth/callback",
    )
    _store(tokens, workspaces, store)


def check_workspace(account_id: str | None, workspaces: Sequence[str]) -> None:
    """Raise a `CodexError` unless an account is one of the workspaces, of which none allow all."""
    if workspaces and account_id not in workspaces:
        # The words are Codex's.
        allowed = ", ".join(workspaces)
        raise CodexError(
            f"Login is restricted to workspace id(s) {allowed}.", code="login"
        )


def challenge(verifier: str) -> str:
    """RFC 7636, 4.2: `S256`."""
    digest = hashlib.sha256(verifier.encode()).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def _interval_s(begun: JsonObject) -> float:
    """The time between two polls, which the issuer gives as a text or a number."""
    try:
        wanted = float(begun.get("interval", _MIN_INTERVAL_S))
    except (TypeError, ValueError, OverflowError):
        wanted = _MIN_INTERVAL_S
    if math.isnan(wanted):
        wanted = _MIN_INTERVAL_S
    return min(max(wanted, _MIN_INTERVAL_S), _MAX_INTERVAL_S)


async def _typed(
    issuer: Issuer, url: str, fields: dict[str, str], interval_s: float
) -> JsonObject:
    """Poll until the user has typed the code."""
    failures = 0
    while True:
        await asyncio.sleep(interval_s)
        try:
            status, answer = await issuer.post(url, json=fields)
        except StreamError as error:
            failures += 1
            if failures >= _MAX_FAILURES:
                raise _failed(str(error)) from error
            continue
        failures = 0
        if status == HTTPStatus.OK:
            return answer
        # Codex waits after both.
        if status not in {HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND}:
            raise _failed(code_in(answer) or f"HTTP status {status}")


async def _exchange(
    issuer: Issuer, code: str, verifier: str, redirect_uri: str
) -> JsonObject:
    """Exchange the code of a login for its tokens."""
    try:
        status, answer = await issuer.exchange(code, verifier, redirect_uri)
    except StreamError as error:
        raise _failed(str(error)) from error
    if status != HTTPStatus.OK:
        reason = code_in(answer)
        raise _failed(f"the issuer gave no tokens (HTTP status {status}) {reason}")
    tokens = tokens_of(answer)
    missing = [name for name in NAMES if name not in tokens]
    if missing:
        raise _failed(f"the issuer's answer has no usable {', '.join(missing)}")
    return answer


async def _post(
    issuer: Issuer, url: str, fields: dict[str, str]
) -> tuple[int, JsonObject]:
    try:
        return await issuer.post(url, json=fields)
    except StreamError as error:
        raise _failed(str(error)) from error


def _store(tokens: JsonObject, workspaces: Sequence[str], store: Store) -> None:
    of_login = Tokens(tokens["access_token"], id_token=tokens["id_token"])
    account_id = of_login.account_id
    if account_id is not None and not is_sendable(account_id):
        raise _failed("the issuer names an account whose id cannot be sent")
    check_workspace(account_id, workspaces)
    store(tokens)


def _failed(reason: str) -> CodexError:
    """The error with a reason, which may come from outside and hold any characters."""
    shown = "".join(filter(str.isprintable, reason))[:_MAX_REASON].strip()
    return CodexError(f"Sign-in failed: {shown}", code="login")

"""A stand-in for the issuer of ChatGPT logins and for the endpoint of a plan, on 127.0.0.1.

It refuses what the real ones are known to refuse: a refresh token that was used before, a login without PKCE or state,
a request without the account's id. Whoever calls itself Codex breaks a rule.
"""

import base64
import fcntl
import hashlib
import json
import os
import re
import tempfile
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any, Final, NoReturn
from urllib.parse import parse_qs, urlencode, urlsplit

from codex_py import testing
from codex_py.testing.reply import RenderedReply
from codex_py.testing.server import Script
from tests.support.server import ScriptedServer

CLIENT_ID: Final = "app_EMoamEEZ73f0CkXaXp7hrann"
ACCOUNT: Final = "acc-123"
EMAIL: Final = "ada@example.com"
CLAIM: Final = "https://api.openai.com/auth"
RESETS_AT: Final = 1_999_999_999
PAGE: Final = (
    "<!DOCTYPE html><html><head><title>Just a moment...</title></head>"
    "<body>Enable JavaScript and cookies to continue</body></html>"
)
_SCOPES: Final = {"openid", "profile", "email", "offline_access"}
_REDIRECT: Final = r"http://(localhost|127\.0\.0\.1):(1455|1457)/auth/callback"
_OF_CODEX: Final = r"(?i)codex(_exec|_cli_rs|-tui|_vscode)?(/.*)?"
_LIMITS: Final = {
    "x-codex-primary-used-percent": "12.5",
    "x-codex-primary-window-minutes": "300",
    "x-codex-primary-reset-at": str(RESETS_AT),
    "x-codex-secondary-used-percent": "3",
    "x-codex-secondary-window-minutes": "10080",
    "x-codex-secondary-reset-at": str(RESETS_AT),
}


USAGE: Final[Mapping[str, Any]] = {
    "user_id": "user-1",
    "account_id": ACCOUNT,
    "email": EMAIL,
    "plan_type": "plus",
    "rate_limit": {
        "allowed": True,
        "limit_reached": False,
        "primary_window": {
            "used_percent": 12,
            "limit_window_seconds": 18_000,
            "reset_after_seconds": 100,
            "reset_at": RESETS_AT,
        },
        "secondary_window": {
            "used_percent": 3,
            "limit_window_seconds": 604_800,
            "reset_after_seconds": 100,
            "reset_at": RESETS_AT,
        },
    },
    "credits": {"has_credits": True, "unlimited": False, "balance": "9.5"},
    "additional_rate_limits": [
        {
            "limit_name": "other",
            "metered_feature": "codex_other",
            "rate_limit": {
                "allowed": True,
                "limit_reached": True,
                "primary_window": {
                    "used_percent": 100,
                    "limit_window_seconds": 18_001,
                    "reset_after_seconds": 100,
                    "reset_at": RESETS_AT,
                },
                "secondary_window": None,
            },
        }
    ],
    "spend_control": {"reached": False},
    "rate_limit_reached_type": {"type": "rate_limit_reached"},
}
"""An answer that Codex 0.171 understands."""


@contextmanager
def login_ports() -> Generator[None]:
    """Hold the fixed ports of the login, which one test of a user may use at a time."""
    name = f"codex-py-tests-of-login-ports-{os.getuid()}"
    path = Path(tempfile.gettempdir()) / name
    with path.open("w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def jwt(claims: Mapping[str, Any]) -> str:
    """A token with these claims, whose signature nobody can check."""

    def part(value: object) -> str:
        encoded = base64.urlsafe_b64encode(json.dumps(value).encode())
        return encoded.decode().rstrip("=")

    return f"{part({'alg': 'RS256', 'typ': 'JWT'})}.{part(claims)}.c2lnbmF0dXJl"


@dataclass
class _Login:
    """The tokens that come from one login. They end together."""

    account: str = ACCOUNT
    refresh_token: str | None = None
    """The only one that is accepted; None if the login is over."""
    over: str = "refresh_token_invalidated"
    """The reason why a refresh token is refused once the login is over."""


@dataclass
class _Code:
    """A code of an authorization, which is good for one exchange."""

    challenge: str
    redirect_uri: str


class _Refused(Exception):
    """An answer other than a success."""

    def __init__(self, status: int, body: object, **headers: str) -> None:
        super().__init__(status, body)
        self.reply = _json(body, status, headers)


class ChatGPT(ScriptedServer):
    """Plays the script for the requests to the model that it accepts.

    Attributes:
        requests: the requests to the model that were accepted.
        refused: the status of each request to the model that was refused.
        renewals: the number of renewals that succeeded.
        refused_renewals: the code of each renewal that was refused.
        revoked: the bodies of revocations.
        lifetime_s: the lifetime of the access tokens from now on.
        renewal_s: the time that each renewal takes.
        left_out: names of tokens that the answer to a renewal leaves out.
        used_up: a 429 for every request to the model.
        usage: the answer about the usage of a plan.
        reset_credits: the answer about the credits that reset limits; None for none.
        listings: the number of lists of models that were given.
        plan_models: the entries of these lists.
        on_renewal: called within each renewal that succeeds, before it is answered.
    """

    def __init__(self, script: Iterable[Script] = (), **options: Any) -> None:
        super().__init__(script, **options)
        self.refused: list[int] = []
        self.renewals = 0
        self.refused_renewals: list[str] = []
        self.revoked: list[dict[str, Any]] = []
        self.lifetime_s = 3600.0
        self.renewal_s = 0.0
        self.left_out: set[str] = set()
        self.used_up = False
        self.bot_check = False
        self.renewal_status = 200
        self.usage: object = USAGE
        self.reset_credits: object = None
        self.on_renewal: Callable[[], object] = lambda: None
        self.listings = 0
        self.plan_models: list[Any] = [{"slug": "gpt-5.5"}]
        self.polls = 0
        self.device_is_known = True
        self.authorizations: list[dict[str, str]] = []
        self._numbers = count(1)
        self._access: dict[str, tuple[_Login, float]] = {}
        self._refresh: dict[str, _Login] = {}
        self._codes: dict[str, _Code] = {}
        self._devices: dict[str, str | None] = {}
        """The code of each device that has begun a login, once the user has typed the user code."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        """The variables that send renewals here."""
        return {"CODEX_REFRESH_TOKEN_URL_OVERRIDE": f"{self.url}/oauth/token"}

    @property
    def login_environment(self) -> dict[str, str]:
        """The variables that send logins and renewals here."""
        return {**self.environment, "CODEX_APP_SERVER_LOGIN_ISSUER": self.url}

    def configure(self, home: Path, **settings: str) -> None:
        """Send the provider `openai` here. `settings`: further keys with a text."""
        keys = {"chatgpt_base_url": f"{self.url}/backend-api/", **settings}
        lines = ['model = "gpt-5.5"']
        lines += [f"{key} = {json.dumps(value)}" for key, value in keys.items()]
        (home / "config.toml").write_text("\n".join([*lines, ""]), "utf-8")

    def sign_in(
        self,
        home: Path,
        *,
        expires_in_s: float = 3600.0,
        issuer: str | None = None,
        **changes: Any,
    ) -> dict[str, Any]:
        """Store a login in `auth.json`, as Codex does. Returns the contents.

        Args:
            issuer: the name of another issuer in the tokens.
            changes: fields of the file that replace those of Codex.
        """
        tokens = self._tokens(_Login(), expires_in_s, issuer)
        fields: dict[str, Any] = {
            "auth_mode": "chatgpt",
            "OPENAI_API_KEY": None,
            "tokens": {**tokens, "account_id": ACCOUNT},
            "last_refresh": "2026-11-28T13:58:53.934986313Z",
            **changes,
        }
        path = home / "auth.json"
        path.write_text(json.dumps(fields, indent=2), "utf-8")
        path.chmod(0o600)
        return fields

    def personal_token(self) -> str:
        """A token as `CODEX_ACCESS_TOKEN` holds one."""
        tokens = self._tokens(_Login(), 3600.0)
        return tokens["access_token"]

    def handed_out_token(self) -> str:
        """A personal access token, which says nothing about its account."""
        with self._lock:
            token = f"at-{next(self._numbers)}-of-{self.port}"
            self._access[token] = (_Login(), time.time() + 3600.0)
        return token

    def withdraw(self, access_token: str) -> None:
        """Refuse an access token from now on, although it has not expired."""
        with self._lock:
            del self._access[access_token]

    def end_login(self, refresh_token: str, reason: str) -> None:
        """Refuse all renewals of a login, for one of the reasons of the issuer."""
        with self._lock:
            self._end(self._refresh[refresh_token], reason)

    def type_code(self, user_code: str) -> None:
        """Do what the user does at `/codex/device`."""
        with self._lock:
            device = user_code.replace("CODE", "device")
            assert device in self._devices, "no such code"
            self._devices[device] = self._code(
                _Code("", f"{self.url}/deviceauth/callback")
            )

    def _reply(self, request: testing.RecordedRequest) -> RenderedReply:
        path = urlsplit(request.path).path
        route = f"{request.method} {path}"
        answers = {
            "GET /oauth/authorize": self._authorize,
            "POST /oauth/token": self._token,
            "POST /oauth/revoke": self._revoke,
            "POST /api/accounts/deviceauth/usercode": self._user_code,
            "POST /api/accounts/deviceauth/token": self._device_token,
            "GET /v1/user-auth-credential/whoami": self._owner,
            "GET /backend-api/wham/usage": self._tell_usage,
            "GET /backend-api/wham/rate-limit-reset-credits": self._tell_credits,
            "GET /backend-api/codex/models": self._list_models,
            "POST /backend-api/codex/responses": self._respond,
        }
        answer = answers.get(route)
        if answer is None:
            return super()._reply(request)
        try:
            return answer(request)
        except _Refused as refused:
            return refused.reply

    def _authorize(self, request: testing.RecordedRequest) -> RenderedReply:
        """The user consents at once."""
        asked = _first_values(urlsplit(request.path).query)
        wanted = {
            "response_type": "code",
            "client_id": CLIENT_ID,
            "code_challenge_method": "S256",
            "id_token_add_organizations": "true",
            "codex_cli_simplified_flow": "true",
        }
        wrong = [name for name, value in wanted.items() if asked.get(name) != value]
        patterns = {
            "redirect_uri": _REDIRECT,
            "code_challenge": r"[\w-]{43}",
            "state": r"[\w-]{32,}",
            "originator": r".+",
        }
        wrong += [
            name
            for name, pattern in patterns.items()
            if not re.fullmatch(pattern, asked.get(name, ""))
        ]
        if not set(asked.get("scope", "").split()) >= _SCOPES:
            wrong.append("scope")
        if wrong:
            raise _Refused(400, {"error": f"invalid_request: {', '.join(wrong)}"})
        self._check_name(asked["originator"])
        with self._lock:
            self.authorizations.append(asked)
            code = self._code(_Code(asked["code_challenge"], asked["redirect_uri"]))
        query = urlencode({"code": code, "state": asked["state"]})
        headers = {"location": f"{asked['redirect_uri']}?{query}"}
        return _json({}, 302, headers)

    def _token(self, request: testing.RecordedRequest) -> RenderedReply:
        kind = request.headers.get("content-type", "").partition(";")[0]
        if kind == "application/json":
            return self._renew(request.fields)
        if kind != "application/x-www-form-urlencoded":
            raise _Refused(415, {"error": "unsupported media type"})
        asked = _first_values(request.raw.decode())
        if asked.get("grant_type") != "authorization_code":
            raise _Refused(400, {"error": "unsupported_grant_type"})
        if asked.get("client_id") != CLIENT_ID:
            raise _Refused(401, {"error": "invalid_client"})
        with self._lock:
            code = self._codes.pop(asked.get("code", ""), None)
        if code is None or asked.get("redirect_uri") != code.redirect_uri:
            raise _Refused(400, {"error": "invalid_grant"})
        if _challenge(asked.get("code_verifier", "")) != code.challenge:
            raise _Refused(400, {"error": "invalid_grant", "error_description": "PKCE"})
        return _json(self._tokens(_Login(), self.lifetime_s))

    def _renew(self, asked: Mapping[str, Any]) -> RenderedReply:
        time.sleep(self.renewal_s)
        if self.renewal_status != 200:
            raise _Refused(self.renewal_status, {"error": "the issuer is down"})
        names = {"client_id", "grant_type", "refresh_token"}
        if set(asked) != names or asked["client_id"] != CLIENT_ID:
            raise _Refused(400, {"error": "invalid_request"})
        token = asked["refresh_token"]
        with self._lock:
            login = self._refresh.get(token)
            if login is None:
                self._refuse_renewal("refresh_token_invalidated")
            if login.refresh_token is None:
                self._refuse_renewal(login.over)
            if token != login.refresh_token:
                self._end(login, "refresh_token_reused")
                self._refuse_renewal("refresh_token_reused")
            self.renewals += 1
        tokens = self._tokens(login, self.lifetime_s)
        self.on_renewal()
        kept = {name: tokens[name] for name in tokens if name not in self.left_out}
        if "refresh_token" in self.left_out:
            with self._lock:
                login.refresh_token = token
        return _json(kept)

    def _refuse_renewal(self, code: str) -> NoReturn:
        self.refused_renewals.append(code)
        raise _Refused(401, {"error": {"message": "no", "code": code}})

    def _revoke(self, request: testing.RecordedRequest) -> RenderedReply:
        fields = request.fields
        hint = fields.get("token_type_hint")
        if hint == "refresh_token" and fields.get("client_id") != CLIENT_ID:
            raise _Refused(401, {"error": "invalid_client"})
        with self._lock:
            self.revoked.append(fields)
            login = self._refresh.get(fields.get("token", ""))
            if login is not None:
                self._end(login, "refresh_token_invalidated")
        return _json({})

    def _owner(self, request: testing.RecordedRequest) -> RenderedReply:
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        with self._lock:
            login, _ = self._access.get(token, (None, 0.0))
        if login is None or not token.startswith("at-"):
            raise _Refused(401, {"error": {"code": "invalid_token"}})
        about = {
            "email": EMAIL,
            "chatgpt_user_id": "user-1",
            "chatgpt_account_id": login.account,
            "chatgpt_plan_type": "plus",
            "chatgpt_account_is_fedramp": False,
        }
        return _json(about)

    def _user_code(self, request: testing.RecordedRequest) -> RenderedReply:
        if not self.device_is_known:
            raise _Refused(404, {"error": "not enabled"})
        if request.fields != {"client_id": CLIENT_ID}:
            raise _Refused(400, {"error": "invalid_request"})
        with self._lock:
            number = next(self._numbers)
            self._devices[f"device-{number}"] = None
        return _json(
            {
                "device_auth_id": f"device-{number}",
                "user_code": f"CODE-{number}",
                "interval": "1",
            }
        )

    def _device_token(self, request: testing.RecordedRequest) -> RenderedReply:
        fields = request.fields
        device = fields.get("device_auth_id", "")
        with self._lock:
            self.polls += 1
            is_known = fields.get("user_code") == device.replace("device", "CODE")
            code = self._devices.get(device)
            if not is_known or code is None:
                raise _Refused(403, {"error": "authorization_pending"})
            verifier = f"verifier-of-{device}".ljust(43, "x")
            self._codes[code].challenge = _challenge(verifier)
        return _json(
            {
                "authorization_code": code,
                "code_challenge": _challenge(verifier),
                "code_verifier": verifier,
            }
        )

    def _list_models(self, request: testing.RecordedRequest) -> RenderedReply:
        self._check_request(request)
        if not _first_values(urlsplit(request.path).query).get("client_version"):
            raise _Refused(400, {"detail": "client_version is missing"})
        self.listings += 1
        return _json({"models": self.plan_models}, headers=_LIMITS)

    def _tell_usage(self, request: testing.RecordedRequest) -> RenderedReply:
        self._check_request(request)
        return _json(self.usage)

    def _tell_credits(self, request: testing.RecordedRequest) -> RenderedReply:
        self._check_request(request)
        if self.reset_credits is None:
            raise _Refused(404, {"detail": "Not Found"})
        return _json(self.reset_credits)

    def _respond(self, request: testing.RecordedRequest) -> RenderedReply:
        try:
            self._check_request(request)
            if self.used_up:
                error = {
                    "type": "usage_limit_reached",
                    "message": "The usage limit has been reached",
                    "plan_type": "plus",
                    "resets_at": RESETS_AT,
                    "resets_in_seconds": 3600,
                }
                raise _Refused(429, {"error": error})
            self._check_body(request.fields)
        except _Refused as refused:
            self.refused.append(refused.reply.reply.status)
            raise
        rendered = super()._reply(request)
        reply = rendered.reply
        return RenderedReply(replace(reply, headers={**_LIMITS, **reply.headers}))

    def _check_request(self, request: testing.RecordedRequest) -> None:
        """Check the headers of a request to the endpoint."""
        headers = request.headers
        account = headers.get("chatgpt-account-id")
        agent = headers.get("user-agent", "")
        if self.bot_check or not account or not agent or "httpx" in agent:
            refused = _Refused(403, None)
            page = {"content-type": "text/html; charset=utf-8"}
            refused.reply = RenderedReply(
                testing.Reply(body=PAGE.encode(), status=403, headers=page)
            )
            raise refused
        self._check_name(headers.get("originator", ""))
        self._check_name(agent)
        token = headers.get("authorization", "").removeprefix("Bearer ")
        with self._lock:
            login, expires_at = self._access.get(token, (None, 0.0))
        if login is None or expires_at < time.time():
            detail = (
                "Provided authentication token is expired. Please try signing in again."
            )
            error = {"message": detail, "code": "token_expired"}
            raise _Refused(401, {"error": error})
        if account != login.account:
            raise _Refused(403, {"detail": "the account is another one"})

    def _check_body(self, body: Mapping[str, Any]) -> None:
        if body.get("store") is not False:
            raise _Refused(400, {"detail": "Store must be set to false"})
        if body.get("stream") is not True:
            raise _Refused(400, {"detail": "Stream must be set to true"})
        if not body.get("instructions"):
            raise _Refused(400, {"detail": "Instructions are required"})
        if "max_output_tokens" in body:
            problem = "Unsupported parameter: max_output_tokens"
            raise _Refused(400, {"detail": problem})

    def _check_name(self, name: str) -> None:
        if not name or re.fullmatch(_OF_CODEX, name):
            self.violations.append(f"the program calls itself {name!r}")

    def _tokens(
        self, login: _Login, lifetime_s: float, issuer: str | None = None
    ) -> dict[str, str]:
        """New tokens of a login; its earlier refresh token is no longer accepted."""
        with self._lock:
            number = next(self._numbers)
            expires_at = time.time() + lifetime_s
            about = {
                "chatgpt_account_id": login.account,
                "chatgpt_plan_type": "plus",
                "chatgpt_user_id": "user-1",
            }
            claims = {
                "iss": issuer or self.url,
                "exp": int(expires_at),
                "jti": str(number),
                CLAIM: about,
            }
            access = jwt({"aud": ["https://api.openai.com/v1"], **claims})
            refresh = f"rt-{number}-of-a-login-{self.port}"
            self._access[access] = (login, expires_at)
            self._refresh[refresh] = login
            login.refresh_token = refresh
        return {
            "id_token": jwt({"email": EMAIL, **claims}),
            "access_token": access,
            "refresh_token": refresh,
        }

    def _end(self, login: _Login, reason: str) -> None:
        """End a login, its access tokens included. Called with the lock."""
        login.refresh_token = None
        login.over = reason
        self._access = {
            token: entry
            for token, entry in self._access.items()
            if entry[0] is not login
        }

    def _code(self, code: _Code) -> str:
        """Called with the lock."""
        name = f"code-{next(self._numbers)}"
        self._codes[name] = code
        return name


def _challenge(verifier: str) -> str:
    """RFC 7636, 4.2."""
    digest = hashlib.sha256(verifier.encode()).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def _first_values(query: str) -> dict[str, str]:
    return {name: first for name, (first, *_) in parse_qs(query).items()}


def _json(
    body: object, status: int = 200, headers: Mapping[str, str] | None = None
) -> RenderedReply:
    encoded = json.dumps(body).encode()
    return RenderedReply(
        testing.Reply(body=encoded, status=status, headers=headers or {})
    )

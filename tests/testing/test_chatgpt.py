"""The stand-in for ChatGPT, `tests/support/chatgpt.py`, refuses what the issuer and the endpoint refuse."""

import base64
import hashlib
import json
from collections.abc import Generator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from codex_py.testing import ev_completed, ev_message
from tests.support.chatgpt import ACCOUNT, CLIENT_ID, EMAIL, ChatGPT

VERIFIER = "v" * 43
CHALLENGE = (
    base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest())
    .decode()
    .rstrip("=")
)
REDIRECT = "http://localhost:1455/auth/callback"
AUTHORIZE = {
    "response_type": "code",
    "client_id": CLIENT_ID,
    "redirect_uri": REDIRECT,
    "scope": "openid profile email offline_access",
    "code_challenge": CHALLENGE,
    "code_challenge_method": "S256",
    "id_token_add_organizations": "true",
    "codex_cli_simplified_flow": "true",
    "state": "s" * 32,
    "originator": "codex_py",
}
BODY: dict[str, Any] = {
    "store": False,
    "stream": True,
    "instructions": "Be brief.",
    "input": [],
}


@pytest.fixture
def chatgpt() -> Generator[ChatGPT]:
    with ChatGPT([[*ev_message("hi"), ev_completed()]]) as server:
        yield server


def post(chatgpt: ChatGPT, path: str, **sent: Any) -> httpx.Response:
    return httpx.post(chatgpt.url + path, trust_env=False, **sent)


def renew(chatgpt: ChatGPT, refresh_token: str) -> httpx.Response:
    asked = {
        "client_id": CLIENT_ID,
        "grant_type": "refresh_token",
        "refresh_token": refresh_token,
    }
    return post(chatgpt, "/oauth/token", json=asked)


def respond(
    chatgpt: ChatGPT, token: str, body: object = BODY, **headers: str
) -> httpx.Response:
    all_headers = {
        "authorization": f"Bearer {token}",
        "chatgpt-account-id": ACCOUNT,
        "user-agent": "codex_py/1.0 (Linux; x86_64)",
        "originator": "codex_py",
        **headers,
    }
    kept = {name: value for name, value in all_headers.items() if value}
    path = "/backend-api/codex/responses"
    return post(chatgpt, path, json=body, headers=kept)


def exchange(chatgpt: ChatGPT, **changes: str) -> httpx.Response:
    address = f"{chatgpt.url}/oauth/authorize"
    answer = httpx.get(address, params=AUTHORIZE, trust_env=False)
    assert answer.status_code == 302
    query = parse_qs(urlsplit(answer.headers["location"]).query)
    assert query["state"] == ["s" * 32]
    fields = {
        "grant_type": "authorization_code",
        "code": query["code"][0],
        "redirect_uri": REDIRECT,
        "client_id": CLIENT_ID,
        "code_verifier": VERIFIER,
        **changes,
    }
    return post(chatgpt, "/oauth/token", data=fields)


def test_a_login_gives_tokens_that_are_accepted(chatgpt: ChatGPT) -> None:
    tokens = exchange(chatgpt).json()
    answer = respond(chatgpt, tokens["access_token"])
    assert answer.status_code == 200
    assert answer.headers["x-codex-primary-used-percent"] == "12.5"
    payload = tokens["id_token"].split(".")[1]
    claims = json.loads(base64.urlsafe_b64decode(payload + "=="))
    assert claims["email"] == EMAIL


@pytest.mark.parametrize("name", AUTHORIZE)
def test_an_authorization_needs_every_parameter(chatgpt: ChatGPT, name: str) -> None:
    asked = {key: value for key, value in AUTHORIZE.items() if key != name}
    address = f"{chatgpt.url}/oauth/authorize"
    answer = httpx.get(address, params=asked, trust_env=False)
    assert (answer.status_code, name in answer.text) == (400, True)


@pytest.mark.parametrize(
    "changes",
    [
        {"code_verifier": "w" * 43},
        {"redirect_uri": "http://localhost:1457/auth/callback"},
        {"code": "another"},
    ],
)
def test_a_code_is_exchanged_with_its_verifier_alone(
    chatgpt: ChatGPT, changes: dict[str, str]
) -> None:
    assert exchange(chatgpt, **changes).status_code == 400


def test_a_refresh_token_counts_once(chatgpt: ChatGPT, tmp_path: Path) -> None:
    first = chatgpt.sign_in(tmp_path)["tokens"]["refresh_token"]
    second = renew(chatgpt, first).json()["refresh_token"]
    assert renew(chatgpt, second).status_code == 200
    reused = renew(chatgpt, second)
    assert (reused.status_code, reused.json()["error"]["code"]) == (
        401,
        "refresh_token_reused",
    )
    assert chatgpt.renewals == 2
    assert chatgpt.refused_renewals == ["refresh_token_reused"]


def test_a_login_that_was_reused_or_revoked_is_over(
    chatgpt: ChatGPT, tmp_path: Path
) -> None:
    tokens = chatgpt.sign_in(tmp_path)["tokens"]
    fields = {
        "token": tokens["refresh_token"],
        "token_type_hint": "refresh_token",
        "client_id": CLIENT_ID,
    }
    assert post(chatgpt, "/oauth/revoke", json=fields).status_code == 200
    assert renew(chatgpt, tokens["refresh_token"]).status_code == 401
    assert respond(chatgpt, tokens["access_token"]).status_code == 401


def test_a_device_gets_its_code_once_the_user_has_typed_it(chatgpt: ChatGPT) -> None:
    path = "/api/accounts/deviceauth"
    device = post(chatgpt, f"{path}/usercode", json={"client_id": CLIENT_ID}).json()
    asked = {name: device[name] for name in ("device_auth_id", "user_code")}
    assert post(chatgpt, f"{path}/token", json=asked).status_code == 403
    chatgpt.type_code(device["user_code"])
    done = post(chatgpt, f"{path}/token", json=asked).json()
    fields = {
        "grant_type": "authorization_code",
        "code": done["authorization_code"],
        "redirect_uri": f"{chatgpt.url}/deviceauth/callback",
        "client_id": CLIENT_ID,
        "code_verifier": done["code_verifier"],
    }
    assert post(chatgpt, "/oauth/token", data=fields).json()["access_token"]


@pytest.mark.parametrize("header", ["chatgpt-account-id", "user-agent"])
def test_a_request_without_its_headers_gets_a_page(
    chatgpt: ChatGPT, tmp_path: Path, header: str
) -> None:
    token = chatgpt.sign_in(tmp_path)["tokens"]["access_token"]
    answer = respond(chatgpt, token, **{header: ""})
    assert answer.status_code == 403
    assert answer.headers["content-type"].startswith("text/html")


@pytest.mark.parametrize(
    "change",
    [
        {"store": True},
        {"stream": False},
        {"instructions": ""},
        {"max_output_tokens": 5},
    ],
)
def test_a_body_that_the_endpoint_does_not_take_is_refused(
    chatgpt: ChatGPT, tmp_path: Path, change: dict[str, Any]
) -> None:
    token = chatgpt.sign_in(tmp_path)["tokens"]["access_token"]
    assert respond(chatgpt, token, {**BODY, **change}).status_code == 400
    assert chatgpt.refused == [400]


def test_an_expired_token_is_refused(chatgpt: ChatGPT, tmp_path: Path) -> None:
    token = chatgpt.sign_in(tmp_path, expires_in_s=-5)["tokens"]["access_token"]
    assert respond(chatgpt, token).status_code == 401


def test_a_used_up_plan_says_when_it_is_over(chatgpt: ChatGPT, tmp_path: Path) -> None:
    token = chatgpt.sign_in(tmp_path)["tokens"]["access_token"]
    chatgpt.used_up = True
    answer = respond(chatgpt, token)
    assert answer.status_code == 429
    assert answer.json()["error"]["resets_in_seconds"] == 3600


@pytest.mark.parametrize("name", ["codex_exec", "codex-tui", "codex_cli_rs"])
def test_whoever_calls_itself_codex_breaks_a_rule(tmp_path: Path, name: str) -> None:
    chatgpt = ChatGPT([[ev_completed()]])
    chatgpt.start()
    token = chatgpt.sign_in(tmp_path)["tokens"]["access_token"]
    assert respond(chatgpt, token, originator=name).status_code == 200
    with pytest.raises(AssertionError, match="calls itself"):
        chatgpt.close()

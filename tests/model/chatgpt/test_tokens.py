import json
import time
from typing import Any

import pytest

from codex_py.model.chatgpt.tokens import (
    Tokens,
    claims,
    tokens_in,
    tokens_of,
    with_tokens,
)
from tests.support.chatgpt import CLAIM, jwt

ABOUT = {"chatgpt_account_id": "acc-9", "chatgpt_plan_type": "pro"}


def stored(**tokens: Any) -> dict[str, Any]:
    return {"auth_mode": "chatgpt", "tokens": tokens}


@pytest.mark.parametrize(
    "text", ["", "a.b", "a.b.c", "a.b.c.d", "a.W10.c", "a.ÿ.c", "a.eyJ.c", "a.gA.c"]
)
def test_a_text_that_is_no_jwt_has_no_claims(text: str) -> None:
    assert claims(text) == {}
    tokens = Tokens(text)
    assert (tokens.expires_at, tokens.is_old, tokens.account_id) == (None, False, None)


def test_the_claims_of_the_id_token_are_read() -> None:
    id_token = jwt({"email": "a@b.c", CLAIM: ABOUT})
    tokens = Tokens(jwt({"exp": 1}), id_token=id_token)
    assert (tokens.email, tokens.plan, tokens.account_id) == ("a@b.c", "pro", "acc-9")
    profile = {"https://api.openai.com/profile": {"email": "x@y.z"}}
    assert Tokens("", id_token=jwt(profile)).email == "x@y.z"


def test_the_account_beside_the_tokens_counts_more_than_the_claim() -> None:
    id_token = jwt({CLAIM: ABOUT})
    tokens = tokens_in(stored(access_token="t", id_token=id_token, account_id="acc-1"))
    assert tokens is not None
    assert tokens.account_id == "acc-1"
    assert Tokens("t", id_token=id_token).account_id == "acc-9"
    assert Tokens(jwt({CLAIM: ABOUT})).account_id == "acc-9"


@pytest.mark.parametrize(
    ("seconds", "is_old", "has_expired"),
    [(3600, False, False), (20, True, False), (-1, True, True)],
)
def test_a_token_is_old_before_it_expires(
    seconds: float, is_old: bool, has_expired: bool
) -> None:
    tokens = Tokens(jwt({"exp": time.time() + seconds}))
    assert (tokens.is_old, tokens.has_expired) == (is_old, has_expired)


@pytest.mark.parametrize(
    "end", [None, "soon", True, [1], 10**400, 1e300, float("nan"), float("inf")]
)
def test_an_end_that_is_no_number_is_none(end: object) -> None:
    assert Tokens(jwt({"exp": end})).expires_at is None


@pytest.mark.parametrize("tokens", [None, [], {}, {"access_token": 5}, "text"])
def test_a_file_without_an_access_token_has_no_tokens(tokens: object) -> None:
    assert tokens_in({"tokens": tokens}) is None


def test_tokens_are_not_shown() -> None:
    shown = repr(Tokens("secret-a", "secret-r", "secret-i", "acc-1"))
    assert "secret" not in shown


def test_an_answer_replaces_what_it_has_and_keeps_the_rest() -> None:
    fields = stored(access_token="a", refresh_token="r", account_id="acc-1", new=1)
    fields["of_others"] = {"kept": True}
    changed = with_tokens(fields, {"access_token": "b", "id_token": "", "scope": "s"})
    last_refresh = changed.pop("last_refresh")
    assert changed == {
        "auth_mode": "chatgpt",
        "tokens": {
            "access_token": "b",
            "refresh_token": "r",
            "account_id": "acc-1",
            "new": 1,
        },
        "of_others": {"kept": True},
    }
    assert last_refresh.endswith("Z")
    assert json.loads(json.dumps(fields))["tokens"]["access_token"] == "a"


@pytest.mark.parametrize(
    "token", ["", " ", "a b", "a\nb", "a\0", "\x1b[2J", "é", "\ud800", "a" * 100_000]
)
def test_a_token_that_no_header_carries_takes_the_place_of_none(token: str) -> None:
    answer = {"access_token": token, "refresh_token": "good", "other": "x"}
    assert tokens_of(answer) == {"refresh_token": "good"}
    fields = with_tokens(stored(access_token="before"), answer)
    assert fields["tokens"] == {"access_token": "before", "refresh_token": "good"}

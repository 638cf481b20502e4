"""Tests `model/chatgpt/issuer.py`."""

import asyncio
import socket

import pytest

from codex_py.errors import StreamError
from codex_py.model.chatgpt import issuer
from codex_py.model.chatgpt.issuer import Issuer


@pytest.mark.parametrize(
    "address", ["http://[::1", "http://[zz]/", "http://xn--a/", "http://h:abc/"]
)
def test_an_address_that_is_no_url_is_an_error_of_its_own(address: str) -> None:
    issuer = Issuer({"CODEX_REFRESH_TOKEN_URL_OVERRIDE": address})
    with pytest.raises(StreamError, match="could not be renewed"):
        asyncio.run(issuer.renew("a"))
    with pytest.raises(StreamError, match="could not be asked"):
        asyncio.run(issuer.revoke("a", "refresh_token"))


def test_the_secrets_of_an_address_are_not_shown() -> None:
    address = "ftp://me:secret@localhost/"
    issuer = Issuer({"CODEX_REFRESH_TOKEN_URL_OVERRIDE": address})
    with pytest.raises(StreamError) as caught:
        asyncio.run(issuer.revoke("a", "refresh_token"))
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "is_own"),
    [
        ("", True),
        ("https://auth.openai.com", True),
        ("https://AUTH.openai.com/", True),
        ("https://proxy.test", True),
        ("http://auth.openai.com", False),
        ("https://auth.openai.com.evil.test", False),
        ("https://auth.openai.com@evil.test", False),
        ("https://[", False),
        ("auth.openai.com", False),
    ],
)
def test_only_an_issuer_gets_what_it_issued(name: str, is_own: bool) -> None:
    override = {"CODEX_REFRESH_TOKEN_URL_OVERRIDE": "https://proxy.test/oauth/token"}
    assert Issuer(override).has_name(name) == is_own


def test_an_issuer_that_is_too_slow_is_not_asked_for_minutes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(issuer, "_TIMEOUT_S", 0.01)
    monkeypatch.setattr(issuer, "_LATE_S", 0.01)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(StreamError, match="no answer in") as caught:
            asyncio.run(Issuer({}, address).renew("a"))
    assert caught.value.few_retries

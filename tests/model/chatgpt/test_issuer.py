"""Tests `model/chatgpt/issuer.py`."""

import asyncio

import pytest

from codex_py.errors import StreamError
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

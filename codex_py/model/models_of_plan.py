"""Asks for the models of a ChatGPT plan."""

from collections.abc import Sequence
from http import HTTPStatus
from typing import Final

import httpx

from codex_py.model.catalog import ModelInfo, listed_by_server
from codex_py.protocol.json_fields import json_object

_CLIENT_VERSION: Final = "0.171.0"
"""The version of Codex whose catalogue this program reads. The endpoint leaves out models that
clients of a version do not know how to ask."""
_MAX_BYTES: Final = 16 << 20


async def models_of_plan(
    http: httpx.AsyncClient, base_url: str, headers: Sequence[tuple[bytes, bytes]]
) -> Sequence[ModelInfo]:
    """Return the models that users can choose; empty if the answer has none or is a refusal.

    Args:
        base_url: that of the endpoint for the tokens of a plan.
        headers: those of every request, with the token.

    Raises:
        httpx.HTTPError: there was no answer.
    """
    body = b""
    parameters = {"client_version": _CLIENT_VERSION}
    async with http.stream(
        "GET", f"{base_url}/models", params=parameters, headers=headers
    ) as response:
        if response.status_code != HTTPStatus.OK:
            return []
        async for piece in response.aiter_bytes():
            body += piece
            if len(body) > _MAX_BYTES:
                return []
    return listed_by_server(json_object(body.decode(errors="replace")))

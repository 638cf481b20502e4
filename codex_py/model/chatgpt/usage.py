"""Asks ChatGPT how much of a plan is used up. Source: measured on Codex 0.171."""

from collections.abc import Mapping
from http import HTTPStatus

from codex_py.errors import ModelError, StreamError
from codex_py.model.auth import ProviderKey, TokenSource
from codex_py.model.chatgpt.issuer import json_answer
from codex_py.protocol.addresses import shown_url
from codex_py.protocol.json_fields import JsonObject


async def plan_usage(
    address: str,
    source: TokenSource,
    names: Mapping[str, str],
    environment: Mapping[str, str],
) -> JsonObject:
    """Return what ChatGPT tells about the usage of a plan.

    As for requests to the model, a refused token is replaced once.

    Args:
        address: that of ChatGPT, without a slash at its end.
        names: the headers that name this program.
        environment: has the proxies.

    Raises:
        ModelError: there was no usable answer, or the login is over.
        ConfigError: `auth.json` cannot be read or written.
    """
    url = f"{address}/wham/usage"
    status, answer = await _answer(url, source, names, environment)
    if status != HTTPStatus.OK or not answer:
        raise ModelError(
            f"ChatGPT did not tell the usage of the plan: {shown_url(url)}: no usable answer"
            f" (HTTP status {status})",
            code="plan_usage",
        )
    return answer


async def plan_reset_credits(
    address: str,
    source: TokenSource,
    names: Mapping[str, str],
    environment: Mapping[str, str],
) -> JsonObject | None:
    """Return what ChatGPT tells about the credits that reset limits; None if it does not.

    The arguments and the errors are those of `plan_usage`, except that no answer is no error.
    """
    url = f"{address}/wham/rate-limit-reset-credits"
    try:
        status, answer = await _answer(url, source, names, environment)
    except StreamError:
        return None
    if status != HTTPStatus.OK or not answer:
        return None
    return answer


async def _answer(
    url: str,
    source: TokenSource,
    names: Mapping[str, str],
    environment: Mapping[str, str],
) -> tuple[int, JsonObject]:
    """Ask with a good token. Returns the HTTP status and the JSON of the answer."""
    key = await source.key()
    status, answer = await _asked(url, key, names, environment)
    if status == HTTPStatus.UNAUTHORIZED:
        key = await source.after_refusal(key)
        status, answer = await _asked(url, key, names, environment)
    return status, answer


async def _asked(
    url: str,
    key: ProviderKey,
    names: Mapping[str, str],
    environment: Mapping[str, str],
) -> tuple[int, JsonObject]:
    headers = {"authorization": f"Bearer {key.value}", **names}
    if key.account_id is not None:
        headers["chatgpt-account-id"] = key.account_id
    return await json_answer("GET", url, environment, headers=headers)

"""Makes the errors of requests that fail: no connection, another status than 200, no stream."""

import asyncio
from http import HTTPStatus

import httpx

from codex_py.errors import ExitCode, ModelError, StreamError
from codex_py.http.transport import ANSWERER, LOCATION
from codex_py.model.auth import ProviderKey
from codex_py.model.error_body import plain_line
from codex_py.model.failures import http_failure
from codex_py.model.refused_tools import refused_tool
from codex_py.model.reported import no_answer
from codex_py.protocol.addresses import shown_url

_MAX_ERROR_BYTES = 65_536
_ERROR_BODY_S = 10.0
_SECRET_CHARACTERS = 8
"""The least length of a key to hide in messages: a shorter one is a placeholder, and may be an
ordinary word."""
_THIS_MACHINE = {"localhost", "127.0.0.1", "::1"}


class RequestFailures:
    """The errors of the requests to one address."""

    def __init__(self, url: httpx.URL, *, wire_api: str) -> None:
        self._url = url
        self._shown_url = _shown(str(url))
        self._advice = f"; look at `base_url` and `wire_api`, which is {wire_api!r}"

    def not_answered(
        self, error: httpx.TransportError, *, answered_before: bool
    ) -> StreamError:
        """The error for a request that got no answer.

        Args:
            answered_before: the server has answered an earlier request. It may be restarting now,
                or its tunnel may be down.
        """
        cause = str(error) or type(error).__name__
        match error:
            case httpx.ConnectTimeout() | httpx.ConnectError() | httpx.ProxyError():
                message = f"cannot connect to {self._shown_url}: {cause}"
            case httpx.TimeoutException():
                message = f"no answer from {self._shown_url}: {cause}"
            case _:
                message = f"the connection to {self._shown_url} broke before an answer: {cause}"
        is_timeout = isinstance(error, httpx.TimeoutException)
        is_refused_here = self._url.host in _THIS_MACHINE and isinstance(
            error, httpx.ConnectError
        )
        return StreamError(
            message,
            code="timeout" if is_timeout else "connection",
            exit_code=ExitCode.UNAVAILABLE,
            few_retries=is_refused_here and not answered_before,
        )

    async def of_response(
        self, response: httpx.Response, key: ProviderKey | None
    ) -> ModelError:
        """The error for an answer with another status than 200. `key`: what was sent."""
        status = response.status_code
        address = self._address(response)
        if 300 <= status < 400:
            # Do not follow a redirect: the key must not go to an address that is not configured.
            target = plain_line(_shown(response.extensions[LOCATION])) or "nowhere"
            return ModelError(
                f"{address} is redirected to {target} (status {status}); "
                "set the base_url of the provider to where it is served",
                code="redirect",
                status=status,
            )
        if response.is_success:
            return ModelError(
                f"{address} answered with status {status} where 200 was due",
                code="unexpected_status",
                status=status,
            )
        body = await _error_body(response)
        failure = http_failure(status, response.headers, body, address)
        message = _without_key(str(failure), key)
        if key is not None and key.is_token:
            return _with_token(failure, message, body, key)
        if status in {401, 403}:
            sent = f"key from {key.source}" if key else "no key was sent"
            message = f"{message} ({sent})"
        elif failure.code == "not_found" and "model" not in message.lower():
            message += self._advice
        failure.args = (message,)
        return failure

    def no_answer(
        self, error: StreamError, unread: str, response: httpx.Response
    ) -> ModelError:
        """The error for a stream without events of its wire.

        Args:
            error: the decoder's error at the end of the stream.
            unread: the last data in the stream.
        """
        content_type = response.headers.get("content-type", "no content type")
        return no_answer(
            error,
            unread,
            content_type=content_type,
            address=self._address(response),
            advice=self._advice,
        )

    def _address(self, response: httpx.Response) -> str:
        """Return the URL of the request, or the name of what answered in place of a server."""
        return response.extensions.get(ANSWERER, self._shown_url)

    def complete(self, error: ModelError, body: bytes, key: ProviderKey | None) -> None:
        """Hide the key in an error, and name the tool that the server refuses.

        Some servers repeat a key that they refuse. `body`: the request that failed.
        """
        error.args = (_without_key(str(error), key),)
        error.refused_tool = refused_tool(error.words, body)


def _with_token(
    failure: ModelError, message: str, body: bytes, key: ProviderKey
) -> ModelError:
    """The error for a request with a token of a ChatGPT plan, which was refused.

    Args:
        message: the words of `failure`, without the token.
        body: the body of the answer.
    """
    if failure.status == HTTPStatus.UNAUTHORIZED:
        message = f"{message} ({key.source}); sign in again with `codex-py login`"
    elif body.lstrip()[:1] == b"<":
        # The bot check of the endpoint answers with a page, whatever the request was.
        message = (
            f"{message}: the endpoint of ChatGPT answered with a web page instead of an answer of the"
            " model, which may be a bot check or a network that wants a login; try again later, or"
            " use an API key"
        )
    failure.args = (message,)
    return failure


def _without_key(message: str, key: ProviderKey | None) -> str:
    if key is None or len(key.value) < _SECRET_CHARACTERS:
        return message
    return message.replace(key.value, "[the key]")


def _shown(url: str) -> str:
    """The address without what may be secret in it."""
    try:
        return shown_url(str(httpx.URL(url)))
    except (httpx.InvalidURL, UnicodeError):
        return "an address that is no URL"


async def _error_body(response: httpx.Response) -> bytes:
    """Read the body as far as limits of size and time allow.

    It only explains a failure that is already certain.
    """
    body = b""
    try:
        async with asyncio.timeout(_ERROR_BODY_S):
            async for piece in response.aiter_bytes():
                body += piece
                if len(body) >= _MAX_ERROR_BYTES:
                    break
    except httpx.DecodingError as error:
        return str(error).encode()
    except (TimeoutError, httpx.RequestError):
        pass
    return body[:_MAX_ERROR_BYTES]

"""The model client over HTTP: it sends the requests of a wire, and the wire's decoder reads the
answers."""

import asyncio
import os
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import replace

import httpx

from codex_py.errors import ConfigError, ExitCode, ModelError, StreamError
from codex_py.http.sse import server_sent_events
from codex_py.http.transport import LOCATION, SENT
from codex_py.model.auth import ProviderKey
from codex_py.model.error_body import plain_line
from codex_py.model.failures import http_failure
from codex_py.model.providers import Provider
from codex_py.model.reported import no_answer
from codex_py.protocol.addresses import shown_url
from codex_py.protocol.items import ResponseItem
from codex_py.protocol.messages import estimated_tokens
from codex_py.protocol.stream import (
    Completed,
    OutputItemDone,
    Prompt,
    ResponseEvent,
    Usage,
    Wire,
)

_CONNECT_S = 10.0
"""The time limit for name lookup, connection and TLS handshake together."""
_WRITE_S = 60.0
"""The time limit for writing without any progress."""
_QUIET_IDLE_TIMEOUTS = 4
"""The number of idle time-outs for which a server may send only comments: some queue a request for
minutes."""
_MAX_ERROR_BYTES = 65_536
_ERROR_BODY_S = 10.0
_HEADER_NAME = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_SECRET_CHARACTERS = 8
"""The least length of a key to hide in messages: a shorter one is a placeholder, and may be an
ordinary word."""
# The header for the key, and the text before the key in it.
_KEY_HEADERS = {
    "bearer": ("authorization", "Bearer "),
    "x-api-key": ("x-api-key", ""),
    "api-key": ("api-key", ""),
}
_SECRET_HEADERS = {name for name, _ in _KEY_HEADERS.values()}
_THIS_MACHINE = {"localhost", "127.0.0.1", "::1"}
_WITHOUT_WORDS = {"{}", "[DONE]"}
"""The data of events that explain nothing."""
_LINGER_S = 0.25
"""The time to wait for the end of the body after the last event, so that the connection can be
kept."""


class HttpModelClient:
    """A `ModelClient` for one provider. Its requests may run side by side."""

    def __init__(
        self,
        *,
        provider: Provider,
        wire: Wire,
        http: httpx.AsyncClient,
        key: ProviderKey | None,
        headers: Mapping[str, str],
        environment: Mapping[str, str] = os.environ,
        sent: Callable[[], None] = lambda: None,
        answered: set[bytes] | None = None,
    ) -> None:
        """
        Args:
            http: closed by `aclose`.
            headers: sent with every request; the provider's headers override them.
            environment: the source of the provider's `env_http_headers`.
            sent: called when a request has been written, and again when the head of its answer has
                come, because not every transport of `http` reports the first.
            answered: hosts and ports that have answered before; the client adds its own.

        Raises:
            ConfigError: a header cannot be sent as it is, or the base URL is invalid.
        """
        self._wire = wire
        self._advice = (
            f"; look at `base_url` and `wire_api`, which is {provider.wire_api!r}"
        )
        self._http = http
        self._key = key
        self._sent = sent
        self._answered = set[bytes]() if answered is None else answered
        self._url = _url(provider, wire)
        all_headers = {**wire.headers, **headers}
        self._headers = _headers(provider, key, all_headers, environment)
        idle_s = provider.stream_idle_timeout_ms / 1000
        self._timeout = httpx.Timeout(
            None, connect=_CONNECT_S, write=_WRITE_S, read=idle_s
        )
        self._max_quiet_s = _QUIET_IDLE_TIMEOUTS * idle_s

    @asynccontextmanager
    async def stream(
        self, prompt: Prompt
    ) -> AsyncGenerator[AsyncIterator[ResponseEvent]]:
        """See `ModelClient`."""
        body = self._wire.body(prompt)
        own_headers = [
            (name.encode(), value.encode()) for name, value in prompt.headers.items()
        ]
        request = self._http.build_request(
            "POST",
            self._url,
            content=body,
            headers=[*self._headers, *own_headers],
            timeout=self._timeout,
            extensions={SENT: self._sent},
        )
        try:
            response = await self._http.send(request, stream=True)
        except httpx.TransportError as error:
            raise self._not_answered(error) from error
        self._sent()
        self._answered.add(self._url.netloc)
        try:
            if response.status_code != 200:
                raise await self._failure(response)
            events = self._events(response, prompt)
            async with aclosing(events):
                yield events
        except ModelError as error:
            from codex_py.model.refused_tools import refused_tool  # 1 ms

            error.refused_tool = refused_tool(error.words, body)
            raise
        finally:
            await response.aclose()

    async def aclose(self) -> None:
        await self._http.aclose()

    async def _events(
        self, response: httpx.Response, prompt: Prompt
    ) -> AsyncGenerator[ResponseEvent]:
        """The events of an answer. The last one has token counts, if need be estimated."""
        decoder = self._wire.decoder(prompt)
        items: list[ResponseItem] = []
        source = server_sent_events(response, max_quiet_s=self._max_quiet_s)
        has_begun = False
        unread = ""
        try:
            async for batch in source:
                for name, data in batch:
                    for event in decoder.feed(data, name):
                        has_begun = True
                        yield _with_usage(event, prompt, items)
                    if not has_begun and data.strip() not in _WITHOUT_WORDS:
                        unread = data
                if decoder.finished:
                    break
            try:
                rest = decoder.end()
            except StreamError as error:
                if has_begun:
                    raise
                raise self._no_answer(error, unread, response) from None
            for event in rest:
                yield _with_usage(event, prompt, items)
            await _linger(source)
        except ModelError as error:
            error.args = (self._without_key(str(error)),)
            raise
        finally:
            await source.aclose()

    def _no_answer(
        self, error: StreamError, unread: str, response: httpx.Response
    ) -> ModelError:
        """The error for an answer without events. `unread`: the last data in it."""
        content_type = response.headers.get("content-type", "no content type")
        return no_answer(
            error,
            unread,
            content_type=content_type,
            address=self._shown_url,
            advice=self._advice,
        )

    def _not_answered(self, error: httpx.TransportError) -> StreamError:
        """The error for a request that got no answer."""
        cause = str(error) or type(error).__name__
        match error:
            case httpx.ConnectTimeout() | httpx.ConnectError() | httpx.ProxyError():
                message = f"cannot connect to {self._shown_url}: {cause}"
            case httpx.TimeoutException():
                message = f"no answer from {self._shown_url}: {cause}"
            case _:
                message = f"the connection to {self._shown_url} broke before an answer: {cause}"
        is_timeout = isinstance(error, httpx.TimeoutException)
        is_here = self._url.host in _THIS_MACHINE
        # A server that has answered before may be restarting, or its tunnel may be down.
        is_new = self._url.netloc not in self._answered
        is_missing = is_here and is_new and isinstance(error, httpx.ConnectError)
        return StreamError(
            message,
            code="timeout" if is_timeout else "connection",
            exit_code=ExitCode.UNAVAILABLE,
            local=is_missing,
        )

    async def _failure(self, response: httpx.Response) -> ModelError:
        """The error for an answer with another status than 200."""
        status = response.status_code
        if 300 <= status < 400:
            # Do not follow a redirect: the key must not go to an address that is not configured.
            target = plain_line(_shown(response.extensions[LOCATION])) or "nowhere"
            return ModelError(
                f"{self._shown_url} is redirected to {target} (status {status}); "
                "set the base_url of the provider to where it is served",
                code="redirect",
                status=status,
            )
        if response.is_success:
            return ModelError(
                f"{self._shown_url} answered with status {status} where 200 was due",
                code="unexpected_status",
                status=status,
            )
        body = await _error_body(response)
        failure = http_failure(status, response.headers, body, self._shown_url)
        message = self._without_key(str(failure))
        if status in {401, 403}:
            sent = f"key from {self._key.source}" if self._key else "no key was sent"
            message = f"{message} ({sent})"
        elif failure.code == "not_found" and "model" not in message.lower():
            message += self._advice
        failure.args = (message,)
        return failure

    def _without_key(self, message: str) -> str:
        """Hide the key in a message, because some servers repeat a key that they refuse."""
        if self._key is None or len(self._key.value) < _SECRET_CHARACTERS:
            return message
        return message.replace(self._key.value, "[the key]")

    @property
    def _shown_url(self) -> str:
        return _shown(str(self._url))


class UnavailableClient:
    """Replaces a `ModelClient` that cannot be made.

    The session can begin; its first request raises `error`.
    """

    def __init__(self, error: ModelError) -> None:
        self.error = error

    def stream(
        self,
        prompt: Prompt,  # noqa: ARG002 - named by the Protocol
    ) -> AbstractAsyncContextManager[AsyncIterator[ResponseEvent]]:
        raise self.error

    async def aclose(self) -> None:
        pass


def _with_usage(
    event: ResponseEvent, prompt: Prompt, items: list[ResponseItem]
) -> ResponseEvent:
    """The event. If it ends a response without token counts, it gets an estimate of them.

    `items`: the items of the response so far, to which an item in the event is appended.
    """
    match event:
        case OutputItemDone(_, item):
            items.append(item)
        case Completed(usage=Usage(input_tokens=0, output_tokens=0)):
            output = estimated_tokens(item.encoded() for item in items)
            estimate = Usage(prompt.estimated_tokens, output_tokens=output)
            return replace(event, usage=estimate)
        case Completed(usage=usage) if usage.cached_input_tokens > usage.input_tokens:
            # Otherwise the uncached input would be negative, and a budget would get money back.
            possible = replace(usage, cached_input_tokens=usage.input_tokens)
            return replace(event, usage=possible)
        case _:
            pass
    return event


def _url(provider: Provider, wire: Wire) -> httpx.URL:
    """The address of the requests. Raises a `ConfigError` if the base URL is invalid."""
    try:
        url = httpx.URL(provider.base_url + wire.path)
        # Decode punycode now, which `httpx.URL` does only when asked.
        _ = url.host
    except (httpx.InvalidURL, UnicodeError) as error:
        raise ConfigError(f"model_providers.{provider.id}.base_url: {error}") from error
    if provider.query_params:
        return url.copy_merge_params(dict(provider.query_params))
    return url


def _shown(url: str) -> str:
    """The address without what may be secret in it."""
    try:
        return shown_url(str(httpx.URL(url)))
    except (httpx.InvalidURL, UnicodeError):
        return "an address that is no URL"


def _headers(
    provider: Provider,
    key: ProviderKey | None,
    headers: Mapping[str, str],
    environment: Mapping[str, str],
) -> Sequence[tuple[bytes, bytes]]:
    """The headers of every request; the provider's own count most.

    Raises a `ConfigError` if one cannot be sent.
    """
    texts = {"accept": "text/event-stream", "content-type": "application/json"}
    texts |= {name.lower(): value for name, value in headers.items()}
    if key is not None:
        name, prefix = _KEY_HEADERS[provider.key_header]
        texts[name] = prefix + key.value
    texts |= {name.lower(): value for name, value in provider.http_headers.items()}
    for name, variable in provider.env_http_headers.items():
        value = environment.get(variable, "").strip()
        if value:
            texts[name.lower()] = value
    encoded: list[tuple[bytes, bytes]] = []
    for name, text in texts.items():
        if not re.fullmatch(_HEADER_NAME, name) or not text.isprintable():
            raise ConfigError(
                f"the header {name!r} has a name or value that cannot be sent"
            )
        # HTTP once prescribed Latin-1, which keys are sent in; servers read the other headers as
        # UTF-8.
        value = text.encode("latin-1" if name in _SECRET_HEADERS else "utf-8")
        encoded.append((name.encode("ascii"), value))
    return encoded


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


async def _linger(source: AsyncIterator[object]) -> None:
    """Read the body after the last event. The response is complete, so failures are ignored."""
    try:
        async with asyncio.timeout(_LINGER_S):
            async for _ in source:
                pass
    except (TimeoutError, ModelError):
        pass

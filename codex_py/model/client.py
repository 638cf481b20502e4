"""The model client over HTTP: it sends the requests of a wire, and the wire's decoder reads the
answers."""

import asyncio
import os
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final

import httpx

from codex_py.errors import ConfigError, ModelError, StreamError
from codex_py.http.sse import server_sent_events
from codex_py.http.transport import SENT
from codex_py.model.auth import ProviderKey, TokenSource
from codex_py.model.providers import Provider
from codex_py.protocol.items import ResponseItem
from codex_py.protocol.messages import estimated_tokens
from codex_py.protocol.stream import (
    Completed,
    OutputItemDone,
    PlanUse,
    Prompt,
    ResponseEvent,
    Usage,
    Wire,
)

if TYPE_CHECKING:
    from codex_py.model.request_failures import RequestFailures

_CONNECT_S = 10.0
"""The time limit for name lookup, connection and TLS handshake together."""
_WRITE_S = 60.0
"""The time limit for writing without any progress."""
_QUIET_IDLE_TIMEOUTS = 4
"""The number of idle time-outs for which a server may send only comments: some queue a request for
minutes."""
HEADER_NAME: Final = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
"""Matches the names that a header may have."""
# The header for the key, and the text before the key in it.
_KEY_HEADERS = {
    "bearer": ("authorization", "Bearer "),
    "x-api-key": ("x-api-key", ""),
    "api-key": ("api-key", ""),
}
_SECRET_HEADERS = {name for name, _ in _KEY_HEADERS.values()}
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
        tokens: TokenSource | None = None,
        headers: Mapping[str, str],
        environment: Mapping[str, str] = os.environ,
        sent: Callable[[], None] = lambda: None,
        answered: set[bytes] | None = None,
    ) -> None:
        """
        Args:
            http: closed by `aclose`.
            tokens: is asked for the key of each request, in place of `key`.
            headers: sent with every request; the provider's headers override them.
            environment: the source of the provider's `env_http_headers`.
            sent: called when a request has been written, and again when the head of its answer has
                come, because not every transport of `http` reports the first.
            answered: hosts and ports that have answered before; the client adds its own.

        Raises:
            ConfigError: a header cannot be sent as it is, or the base URL is invalid.
        """
        self._wire = wire
        self._wire_api = provider.wire_api
        self._http = http
        self._key = key
        self._sent = sent
        self._awaits_first_answer = True
        self._answered = set[bytes]() if answered is None else answered
        self._url = _url(provider, wire)
        self._tokens = tokens
        self._make_headers = partial(
            request_headers,
            provider,
            headers={**wire.headers, **headers},
            environment=environment,
        )
        self._headers = self._make_headers(key)
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
        key = self._key
        if self._tokens is not None:
            key = await self._tokens.key()
        response = await self._answer(prompt, body, key)
        if response.status_code == 401 and key is not None and self._tokens is not None:
            await response.aclose()
            key = await self._tokens.after_refusal(key)
            response = await self._answer(prompt, body, key)
        try:
            if response.status_code != 200:
                raise await self._failures.of_response(response, key)
            plan: PlanUse | None = None
            if self._tokens is not None:
                plan = self._tokens.plan_use(response.headers)
            events = self._events(response, prompt, plan)
            async with aclosing(events):
                yield events
        except ModelError as error:
            self._failures.complete(error, body, key)
            raise
        finally:
            await response.aclose()

    async def _answer(
        self, prompt: Prompt, body: bytes, key: ProviderKey | None
    ) -> httpx.Response:
        """Send a request. Returns its answer, whose body is still to be read."""
        headers = self._headers
        if self._tokens is not None:
            headers = self._make_headers(key)
        own_headers = [
            (name.encode(), value.encode()) for name, value in prompt.headers.items()
        ]
        request = self._http.build_request(
            "POST",
            self._url,
            content=body,
            headers=[*headers, *own_headers],
            timeout=self._timeout,
            extensions={SENT: partial(self._has_sent, prompt)},
        )
        try:
            response = await self._http.send(request, stream=True)
        except httpx.TransportError as error:
            answered_before = self._url.netloc in self._answered
            raise self._failures.not_answered(
                error, answered_before=answered_before
            ) from error
        self._sent()
        self._answered.add(self._url.netloc)
        return response

    def _has_sent(self, prompt: Prompt) -> None:
        """Tell that the request is written. Load what decodes the first answer meanwhile."""
        self._sent()
        if self._awaits_first_answer:
            self._awaits_first_answer = False
            asyncio.get_running_loop().call_soon(self._wire.decoder, prompt)

    async def aclose(self) -> None:
        await self._http.aclose()

    async def _events(
        self, response: httpx.Response, prompt: Prompt, plan: PlanUse | None
    ) -> AsyncGenerator[ResponseEvent]:
        """The events of an answer. The last one has token counts, if need be estimated.

        `plan`: the use of the plan that pays; see `Completed.plan`.
        """
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
                        yield _paid(_with_usage(event, prompt, items), plan)
                    if not has_begun and data.strip() not in _WITHOUT_WORDS:
                        unread = data
                if decoder.finished:
                    break
            try:
                rest = decoder.end()
            except StreamError as error:
                if has_begun:
                    raise
                raise self._failures.no_answer(error, unread, response) from None
            for event in rest:
                yield _paid(_with_usage(event, prompt, items), plan)
            await _linger(source)
        finally:
            await source.aclose()

    @cached_property
    def _failures(self) -> "RequestFailures":
        from codex_py.model.request_failures import RequestFailures  # 6 ms

        return RequestFailures(self._url, wire_api=self._wire_api)


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


def _paid(event: ResponseEvent, plan: PlanUse | None) -> ResponseEvent:
    """The event. If it ends a response that a plan has paid, it gets the use of the plan."""
    if plan is not None and isinstance(event, Completed):
        return replace(event, plan=plan)
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


def request_headers(
    provider: Provider,
    key: ProviderKey | None,
    headers: Mapping[str, str],
    environment: Mapping[str, str],
) -> Sequence[tuple[bytes, bytes]]:
    """Return the headers of every request to a provider. The provider's own override `headers`.

    Raises a `ConfigError` if one cannot be sent.
    """
    texts = {"accept": "text/event-stream", "content-type": "application/json"}
    texts |= {name.lower(): value for name, value in headers.items()}
    if key is not None:
        name, prefix = _KEY_HEADERS[provider.key_header]
        texts[name] = prefix + key.value
        if key.account_id is not None:
            texts["chatgpt-account-id"] = key.account_id
    texts |= {name.lower(): value for name, value in provider.http_headers.items()}
    for name, variable in provider.env_http_headers.items():
        value = environment.get(variable, "").strip()
        if value:
            texts[name.lower()] = value
    encoded: list[tuple[bytes, bytes]] = []
    for name, text in texts.items():
        if not re.fullmatch(HEADER_NAME, name) or not text.isprintable():
            raise ConfigError(
                f"the header {name!r} has a name or value that cannot be sent"
            )
        # HTTP once prescribed Latin-1, which keys are sent in; servers read the other headers as
        # UTF-8.
        value = text.encode("latin-1" if name in _SECRET_HEADERS else "utf-8")
        encoded.append((name.encode("ascii"), value))
    return encoded


async def _linger(source: AsyncIterator[object]) -> None:
    """Read the body after the last event. The response is complete, so failures are ignored."""
    try:
        async with asyncio.timeout(_LINGER_S):
            async for _ in source:
                pass
    except (TimeoutError, ModelError):
        pass

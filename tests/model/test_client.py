"""Also tests `model/request_failures.py`."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from codex_py.errors import ConfigError, ExitCode, ModelError, StreamError
from codex_py.http.transport import http_client
from codex_py.model.auth import ProviderKey
from codex_py.model.client import HttpModelClient, UnavailableClient
from codex_py.model.providers import Provider
from codex_py.protocol.stream import (
    Completed,
    Decoder,
    OutputTextDelta,
    Prompt,
    ResponseEvent,
    Usage,
)
from tests.support.raw_server import RawConnection, RawServer, answers, raw_server

PROMPT = Prompt(model="m", input=(), cache_key="thread")
COMPLETED = Completed(Usage(1, output_tokens=1))
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n"


@dataclass
class FakeWire:
    """Each event's data is a text delta; `end` completes, `fail` fails for good."""

    path: str = "/responses"
    headers: dict[str, str] = field(default_factory=dict[str, str])

    def body(self, prompt: Prompt) -> bytes:
        return json.dumps({"model": prompt.model}).encode()

    def decoder(self, prompt: Prompt) -> Decoder:
        return FakeDecoder()


class FakeDecoder:
    def __init__(self) -> None:
        self.finished = False
        self._is_cut = False

    def feed(self, data: str, name: str = "message") -> Sequence[ResponseEvent]:
        if data.startswith("fail"):
            raise ModelError(f"{data}ed for good")
        self._is_cut = data == "cut"
        self.finished = data in {"end", "cut"}
        return [COMPLETED if data == "end" else OutputTextDelta(0, data)]

    def end(self) -> Sequence[ResponseEvent]:
        if self._is_cut:
            raise ModelError("cut short")
        if not self.finished:
            raise StreamError("no end", started=True)
        return []


def chunks(*texts: str) -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (len(text), text.encode()) for text in texts)


def stream_of(*data: str, headers: bytes = b"") -> bytes:
    events = [f"data: {text}\n\n" for text in data]
    return HEAD + headers + b"\r\n" + chunks(*events) + b"0\r\n\r\n"


def status(line: str, body: bytes = b"", headers: bytes = b"") -> bytes:
    length = b"Content-Length: %d\r\n" % len(body)
    return b"HTTP/1.1 " + line.encode() + b"\r\n" + length + headers + b"\r\n" + body


def model_client(
    url: str, wire: FakeWire | None = None, **values: Any
) -> HttpModelClient:
    arguments: dict[str, Any] = {
        "key": ProviderKey("secret", "environment variable K"),
        "headers": {},
    }
    provider_values = {
        name: values.pop(name)
        for name in list(values)
        if name in Provider.__dataclass_fields__
    }
    return HttpModelClient(
        provider=Provider(id="mock", name="Mock", base_url=url, **provider_values),
        wire=wire or FakeWire(),
        http=http_client(environment={}),
        **(arguments | values),
    )


async def collect(client: HttpModelClient) -> list[ResponseEvent]:
    async with client.stream(PROMPT) as events:
        return [event async for event in events]


def ask(
    *responses: bytes, **values: Any
) -> tuple[list[list[ResponseEvent]], RawServer]:
    """The events of as many requests as there are responses on one connection, each in turn."""

    async def main() -> tuple[list[list[ResponseEvent]], RawServer]:
        async with raw_server(answers(*responses)) as server:
            client = model_client(server.url + "/v1", **values)
            try:
                return [await collect(client) for _ in responses], server
            finally:
                await client.aclose()

    return asyncio.run(main())


def failure_of(*responses: bytes, **values: Any) -> ModelError:
    with pytest.raises(ModelError) as caught:
        ask(*responses, **values)
    return caught.value


def test_events_come_as_the_decoder_makes_them_and_the_connection_is_kept() -> None:
    response = stream_of("a", "b", "end")
    events, server = ask(response, response)
    assert events == [[OutputTextDelta(0, "a"), OutputTextDelta(0, "b"), COMPLETED]] * 2
    assert server.connections == 1


def test_the_request_carries_headers_key_and_query() -> None:
    _, server = ask(
        stream_of("end"),
        headers={"Originator": "codex_exec", "X-Twice": "1"},
        http_headers={"x-twice": "2", "x-name": "Zoë"},
        env_http_headers={"x-env": "SET", "x-unset": "UNSET"},
        query_params={"api-version": "a b"},
        environment={"SET": "yes"},
    )
    head, _, body = server.requests[0].partition(b"\r\n\r\n")
    first, *lines = head.split(b"\r\n")
    names = {
        line.partition(b": ")[0].lower(): line.partition(b": ")[2] for line in lines
    }
    assert first == b"POST /v1/responses?api-version=a+b HTTP/1.1"
    for boring in (b"host", b"user-agent", b"connection"):
        names.pop(boring)
    assert names == {
        b"accept": b"text/event-stream",
        b"accept-encoding": b"identity",
        b"authorization": b"Bearer secret",
        b"content-length": b"14",
        b"content-type": b"application/json",
        b"originator": b"codex_exec",
        b"x-twice": b"2",
        b"x-name": "Zoë".encode(),
        b"x-env": b"yes",
    }
    assert body == b'{"model": "m"}'


def test_events_before_a_broken_stream_are_given_out() -> None:
    async def main() -> tuple[list[ResponseEvent], StreamError]:
        response = HEAD + b"\r\n" + chunks("data: a\n\n")
        events: list[ResponseEvent] = []
        async with raw_server(answers(response)) as server:
            client = model_client(server.url)
            try:
                async with client.stream(PROMPT) as stream:
                    async for event in stream:
                        events += [event]
            except StreamError as error:
                return events, error
            finally:
                await client.aclose()
        raise AssertionError

    events, error = asyncio.run(main())
    assert events == [OutputTextDelta(0, "a")]
    assert error.started
    assert error.exit_code == ExitCode.UNAVAILABLE


def test_a_stream_without_its_last_event_is_the_decoders_to_judge() -> None:
    assert str(failure_of(stream_of("a"))) == "no end"


def test_a_failure_in_the_stream_is_raised() -> None:
    assert str(failure_of(stream_of("a", "fail"))) == "failed for good"


def test_nothing_after_the_last_event_can_fail_or_hold_up_the_response() -> None:
    async def handler(connection: RawConnection) -> None:
        await connection.request()
        await connection.send(HEAD + b"\r\n" + chunks("data: end\n\n"))
        # No last chunk, and no end either.
        await connection.reader.read()

    async def main() -> list[ResponseEvent]:
        async with raw_server(handler) as server:
            client = model_client(server.url)
            events = await asyncio.wait_for(collect(client), 5)
            await client.aclose()
            return events

    assert asyncio.run(main()) == [COMPLETED]
    (events,), _ = ask(stream_of("end")[:-5] + b"broken")
    assert events == [COMPLETED]


def test_a_response_that_was_cut_short_ends_though_its_connection_stays_open() -> None:
    async def handler(connection: RawConnection) -> None:
        await connection.request()
        await connection.send(HEAD + b"\r\n" + chunks("data: cut\n\n"))
        await connection.reader.read()

    async def main() -> None:
        async with raw_server(handler) as server:
            client = model_client(server.url)
            with pytest.raises(ModelError, match="cut short"):
                await asyncio.wait_for(collect(client), 5)
            await client.aclose()

    asyncio.run(main())


def test_a_refused_connection_names_the_address_and_the_cause() -> None:
    async def main() -> str:
        async with raw_server(answers()) as server:
            url = server.url
        client = model_client(url + "/v1", query_params={"key": "secret"})
        with pytest.raises(StreamError) as caught:
            await collect(client)
        await client.aclose()
        error = caught.value
        assert (error.code, error.exit_code, error.started) == (
            "connection",
            ExitCode.UNAVAILABLE,
            False,
        )
        return str(error).replace(url, "URL")

    message = asyncio.run(main())
    assert message == "cannot connect to URL/v1/responses: Connection refused"


def test_a_server_of_this_machine_that_has_answered_is_not_taken_for_missing() -> None:
    async def main() -> list[bool]:
        async with raw_server(answers(status("500 Oops"))) as server:
            answered = set[bytes]()
            first, second = [
                model_client(f"{server.url}/v1", answered=answered, headers={"n": name})
                for name in ("1", "2")
            ]
            other = model_client("http://127.0.0.1:1/v1", answered=answered)
            with pytest.raises(StreamError, match="status 500"):
                await collect(first)
        missing: list[bool] = []
        for client in (first, second, other):
            with pytest.raises(StreamError, match="Connection refused") as caught:
                await collect(client)
            missing.append(caught.value.few_retries)
            await client.aclose()
        return missing

    assert asyncio.run(main()) == [False, False, True]


def test_a_connection_that_ends_without_an_answer_can_be_tried_again() -> None:
    error = failure_of(b"")
    assert isinstance(error, StreamError)
    assert (error.code, error.started) == ("connection", False)
    assert "broke before an answer: connection closed without an answer" in str(error)


def test_silence_before_the_answer_is_a_timeout() -> None:
    async def main() -> StreamError:
        async def silence(connection: RawConnection) -> None:
            await connection.reader.read()

        async with raw_server(silence) as server:
            client = model_client(server.url, stream_idle_timeout_ms=20)
            with pytest.raises(StreamError) as caught:
                await collect(client)
            await client.aclose()
            return caught.value

    error = asyncio.run(main())
    assert (error.code, error.exit_code, error.started) == (
        "timeout",
        ExitCode.UNAVAILABLE,
        False,
    )


@pytest.mark.parametrize(
    ("key", "note"),
    [
        (
            ProviderKey("secret", "environment variable K"),
            "(key from environment variable K)",
        ),
        (None, "(no key was sent)"),
    ],
)
def test_a_refused_key_says_where_it_came_from(
    key: ProviderKey | None, note: str
) -> None:
    body = b'{"error": {"message": "Incorrect API key"}}'
    error = failure_of(
        status("401 Unauthorized", body), key=key, query_params={"k": "secret"}
    )
    text = str(error)
    assert text.startswith(
        "unexpected status 401 Unauthorized: Incorrect API key, url: http://"
    )
    assert text.endswith(f"/v1/responses {note}")
    assert "secret" not in text
    assert (error.status, error.exit_code, error.retryable) == (
        401,
        ExitCode.AUTHENTICATION,
        False,
    )


_ADVICE = "; look at `base_url` and `wire_api`, which is 'responses'"


@pytest.mark.parametrize(
    ("body", "advice"),
    [
        (b"404 page not found", _ADVICE),
        (b'{"detail": "Not Found"}', _ADVICE),
        (b"<html><p>", _ADVICE),
        (b"", _ADVICE),
        (b'{"error": {"message": "No Model m"}}', ""),
        (b'{"error": {"message": "gone", "code": "model_not_found"}}', ""),
    ],
)
def test_an_address_that_is_not_there_names_what_to_look_at(
    body: bytes, advice: str
) -> None:
    error = failure_of(status("404 Not Found", body))
    assert str(error).partition("/v1/responses")[2] == advice
    assert (error.status, error.exit_code) == (404, ExitCode.TURN_FAILED)


def test_a_key_that_a_stream_repeats_is_not_shown() -> None:
    key = ProviderKey("sk-123456789", "environment variable K")
    error = failure_of(stream_of("fail: sk-123456789 has fail"), key=key)
    assert str(error) == "fail: [the key] has failed for good"


def test_the_delay_that_a_server_asks_for_reaches_the_caller() -> None:
    error = failure_of(status("503 Service Unavailable", headers=b"Retry-After: 2\r\n"))
    assert isinstance(error, StreamError)
    assert (error.status, error.retry_after_s, error.started) == (503, 2.0, False)


def test_a_failure_keeps_its_status_when_its_body_breaks_off() -> None:
    error = failure_of(status("500 Internal Server Error", b"long body")[:-3])
    assert error.status == 500


def test_a_redirect_is_an_error_that_says_where_to() -> None:
    headers = b"Location: https://u:secret@other.example/v2?token=secret\r\n"
    error = failure_of(status("308 Permanent Redirect", headers=headers))
    assert "is redirected to https://other.example/v2 (status 308)" in str(error)
    assert (error.code, error.status, error.retryable) == ("redirect", 308, False)


@pytest.mark.parametrize(
    ("location", "shown"),
    [
        (b"", "nowhere"),
        (b"/v2", "/v2"),
        (b"http://xn--a.example/", "http://xn--a.example/"),
        (b"javascript:x", "javascript:x"),
        (b"http://[::1", "an address that is no URL"),
        (b"http://a\x1b[2J/", "an address that is no URL"),
    ],
)
def test_a_redirect_to_what_is_no_address_is_the_same_error(
    location: bytes, shown: str
) -> None:
    error = failure_of(status("302 Found", headers=b"Location: " + location + b"\r\n"))
    assert f"is redirected to {shown} (status 302)" in str(error)
    assert (error.code, error.retryable) == ("redirect", False)


def test_a_success_without_a_stream_is_an_error() -> None:
    assert failure_of(b"HTTP/1.1 204 No Content\r\n\r\n").code == "unexpected_status"


def test_a_header_that_cannot_be_sent_is_named_without_its_value() -> None:
    with pytest.raises(ConfigError, match="x-bad") as caught:
        model_client("http://127.0.0.1:1", http_headers={"x-bad": "secret\r\nevil: 1"})
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("name", ["x y", "", "x:", "ключ"])
def test_a_header_whose_name_cannot_be_sent_is_an_error_of_the_configuration(
    name: str,
) -> None:
    with pytest.raises(ConfigError, match="has a name or value that cannot be sent"):
        model_client("http://127.0.0.1:1", http_headers={name: "1"})


def test_a_base_url_whose_host_cannot_be_read_is_an_error_of_the_configuration() -> (
    None
):
    with pytest.raises(ConfigError, match=r"model_providers\.mock\.base_url: "):
        model_client("http://xn--a.example/v1")


def test_leaving_early_closes_the_connection() -> None:
    closed = asyncio.Event()

    async def handler(connection: RawConnection) -> None:
        await connection.request()
        await connection.send(HEAD + b"\r\n" + chunks("data: a\n\n"))
        await connection.reader.read()
        closed.set()

    async def main() -> None:
        async with raw_server(handler) as server:
            client = model_client(server.url)
            async with client.stream(PROMPT) as events:
                assert await anext(events) == OutputTextDelta(0, "a")
            await asyncio.wait_for(closed.wait(), 5)
            await client.aclose()

    asyncio.run(main())


@pytest.mark.parametrize("sent", [b"", HEAD + b"\r\n" + chunks("data: a\n\n")])
def test_cancelling_closes_the_connection(sent: bytes) -> None:
    asked, closed = asyncio.Event(), asyncio.Event()

    async def handler(connection: RawConnection) -> None:
        await connection.request()
        await connection.send(sent)
        asked.set()
        await connection.reader.read()
        closed.set()

    async def main() -> None:
        async with raw_server(handler) as server:
            client = model_client(server.url)
            task = asyncio.create_task(collect(client))
            await asked.wait()
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.wait_for(closed.wait(), 5)
            await client.aclose()

    asyncio.run(main())


def test_any_transport_of_httpx_will_do() -> None:
    async def events() -> AsyncIterator[bytes]:
        yield b"data: a\n\n"
        yield b"data: end\n\n"

    def handle(_request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, content=events())

    async def main() -> list[ResponseEvent]:
        client = HttpModelClient(
            provider=Provider(id="mock", name="Mock", base_url="http://model.example"),
            wire=FakeWire(),
            http=http_client(environment={}, transport=httpx.MockTransport(handle)),
            key=None,
            headers={},
        )
        return await collect(client)

    assert asyncio.run(main()) == [OutputTextDelta(0, "a"), COMPLETED]


def test_a_client_that_could_not_be_made_says_why_on_each_request() -> None:
    async def main() -> None:
        client = UnavailableClient(ModelError("no key"))
        for _ in range(2):
            with pytest.raises(ModelError, match="no key"):
                async with client.stream(PROMPT):
                    pass
        await client.aclose()

    asyncio.run(main())

import asyncio
import itertools
import json
import random
import time
from collections.abc import AsyncIterator, Iterable

import httpx
import httpx_sse
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_py.errors import ExitCode, ModelError, StreamError
from codex_py.http import sse
from codex_py.http.sse import server_sent_events
from codex_py.model.responses.decoder import ResponsesDecoder
from codex_py.protocol.stream import ResponseEvent
from tests.support.streams import full_stream, sse_bytes


def answer(
    pieces: Iterable[bytes | Exception], content_type: str | None = "text/event-stream"
) -> httpx.Response:
    async def body() -> AsyncIterator[bytes]:
        for piece in pieces:
            if isinstance(piece, Exception):
                raise piece
            yield piece

    headers = {} if content_type is None else {"content-type": content_type}
    return httpx.Response(200, headers=headers, content=body())


def events(
    *pieces: bytes | Exception, content_type: str | None = "text/event-stream"
) -> list[tuple[str, str]]:
    async def main() -> list[tuple[str, str]]:
        batches = server_sent_events(answer(pieces, content_type))
        return [event async for batch in batches for event in batch]

    return asyncio.run(main())


def read(
    *pieces: bytes | Exception, content_type: str | None = "text/event-stream"
) -> list[str]:
    return [data for _, data in events(*pieces, content_type=content_type)]


def failure(
    *pieces: bytes | Exception, content_type: str = "text/event-stream"
) -> ModelError:
    with pytest.raises(ModelError) as error:
        read(*pieces, content_type=content_type)
    return error.value


def decoded(pieces: Iterable[bytes]) -> list[ResponseEvent]:
    decoder = ResponsesDecoder()
    out = [
        event for name, data in events(*pieces) for event in decoder.feed(data, name)
    ]
    return [*out, *decoder.end()]


@pytest.mark.parametrize(
    ("body", "data"),
    [
        (b"data: a\n\ndata: b\n\n", ["a", "b"]),
        (b"data: a\r\n\r\ndata:b\r\n\r\n", ["a", "b"]),
        (b"data: a\r\rdata: b\r\r", ["a", "b"]),
        (b"\xef\xbb\xbfdata: a\n\n", ["a"]),
        (b"\n\ndata: a\n\n", ["a"]),
        (b": keepalive\n\nevent: x\ndata: a\n: more\n\n", ["a"]),
        (b"data: a\ndata: b\n\n", ["a\nb"]),
        (b"data: a\n\ndata: b", ["a", "b"]),
        (b"data: a\n\ndata: b\n", ["a", "b"]),
        (b"event: ping\n\ndata:\n\ndata: a\n\n", ["a"]),
        (b"id: 7\nretry: 10\n\ndata: a\n\n", ["a"]),
        ("data: a\u2028b\u0085c\n\n".encode(), ["a\u2028b\u0085c"]),
        (b"data: \xff\n\n", ["\ufffd"]),
        (b'error: {"message":"no slot"}\n\n', ['{"message":"no slot"}']),
        (b"data: a\n\nerror: b\n\n", ["a", "b"]),
        (b"data: x\ndata: error: y\n\n", ["x\nerror: y"]),
        (b"", []),
        (b"\n", []),
    ],
)
def test_framing_however_the_bytes_are_cut(body: bytes, data: list[str]) -> None:
    assert read(body) == data
    assert read(*[body[n : n + 1] for n in range(len(body))]) == data


@pytest.mark.parametrize(
    "content_type", [None, "application/octet-stream", "text/plain", "application/json"]
)
def test_content_type_is_not_believed(content_type: str | None) -> None:
    assert read(b"data: a\n\n", content_type=content_type) == ["a"]


@pytest.mark.parametrize("content_type", ["application/json", "text/event-stream"])
def test_plain_json_body_is_one_event(content_type: str) -> None:
    body = json.dumps({"object": "response", "output": ["a\nb: é"]}, indent=2).encode()
    for pieces in ([body], [body[n : n + 1] for n in range(len(body))]):
        [data] = read(*pieces, content_type=content_type)
        assert json.loads(data) == json.loads(body)


def test_broken_connection_is_a_stream_error_after_what_came_before() -> None:
    seen: list[str] = []

    async def main() -> None:
        body = (b"data: a\n\ndata: b\n", httpx.ReadError("reset by peer"))
        async for batch in server_sent_events(answer(body)):
            seen.extend(data for _, data in batch)

    with pytest.raises(StreamError) as error:
        asyncio.run(main())
    assert seen == ["a"]
    assert str(error.value) == "stream disconnected before completion: reset by peer"
    assert (error.value.code, error.value.started) == ("disconnected", True)
    assert error.value.exit_code is ExitCode.UNAVAILABLE


@pytest.mark.parametrize(
    ("cause", "message", "code"),
    [
        (httpx.ReadTimeout(""), "idle timeout waiting for SSE", "idle_timeout"),
        (httpx.RemoteProtocolError("bad chunk"), "bad chunk", "disconnected"),
        (httpx.ReadError(""), "ReadError", "disconnected"),
    ],
)
def test_every_fault_of_the_connection_has_a_name(
    cause: Exception, message: str, code: str
) -> None:
    error = failure(b"data: a\n\n", cause)
    assert isinstance(error, StreamError)
    assert str(error) == f"stream disconnected before completion: {message}"
    assert error.code == code


def test_a_body_that_is_packed_is_no_stream_however_often_it_is_asked_for() -> None:
    error = failure(b"", httpx.DecodingError("it is packed"))
    assert (str(error), error.code, error.retryable) == (
        "it is packed",
        "packed",
        False,
    )


def test_event_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "MAX_EVENT_BYTES", 10_000)
    line = b"data: " + b"x" * 993 + b"\n"
    assert read(*[line + b"\n"] * 50) == ["x" * 993] * 50
    for endless in ([line] * 50, [b"x" * 1000] * 50, [b'{"a":'] + [b" " * 1000] * 50):
        error = failure(*endless)
        assert (error.code, error.retryable) == ("event_too_large", False)


def test_large_line_takes_time_in_proportion_to_its_size() -> None:
    text = b"x" * 20_000_000
    pieces = [
        b"data: ",
        *(text[n : n + 4096] for n in range(0, len(text), 4096)),
        b"\n\n",
    ]
    start = time.process_time()
    assert read(*pieces) == [text.decode()]
    # Some 50 ms; with a copy for each piece it is minutes.
    assert time.process_time() - start < 5


def test_stream_that_is_left_early_closes_nothing_it_does_not_own() -> None:
    async def main() -> None:
        response = answer([b"data: a\n\n", b"data: b\n\n"])
        batches = server_sent_events(response)
        assert await anext(batches) == [("message", "a")]
        await batches.aclose()
        assert not response.is_closed

    asyncio.run(main())


@pytest.mark.parametrize("seed", range(10))
def test_full_stream_reads_the_same_however_it_is_cut(seed: int) -> None:
    chance = random.Random(seed)
    body = sse_bytes(*full_stream())
    pieces: list[bytes] = []
    while body:
        size = chance.choice((1, 2, 7, 100, 1000))
        pieces.append(body[:size])
        body = body[size:]
    assert decoded(pieces) == decoded([sse_bytes(*full_stream())])


@pytest.mark.parametrize(
    "sign",
    [
        b": keep-alive\n\n",
        b"data: {}\n\n",
        b'data: {"type":"response.junk"}\n\n',
        b'event: response.created\ndata: {"type":"response.created"}\n\n',
        b"data: one\n\ndata: one\n\n",
    ],
)
def test_signs_of_life_without_an_event_are_waited_for_so_long_only(
    sign: bytes,
) -> None:
    async def main() -> None:
        response = answer(itertools.repeat(sign))
        async for _ in server_sent_events(response, max_quiet_s=0.05):
            pass

    with pytest.raises(StreamError, match="only signs of life"):
        asyncio.run(asyncio.wait_for(main(), 10))


def test_a_response_without_an_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "MAX_RESPONSE_BYTES", 10_000)
    error = failure(*itertools.repeat(b"data: x\n\n", 2_000))
    assert (error.code, error.retryable) == ("response_too_large", False)


_LINES = st.sampled_from(
    [
        "data: a",
        "data:b",
        "data",
        "data:  c",
        "event: x",
        "event:\u00e9",
        "event:y",
        "event",
        "event: data: y",
        ": data: d",
        "id: 1",
        "",
        "",
    ]
)


@given(
    lines=st.lists(_LINES, max_size=12),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    cuts=st.lists(st.integers(0, 100), max_size=6),
)
def test_events_are_split_as_httpx_sse_splits_them(
    lines: list[str], end: str, cuts: list[int]
) -> None:
    # Each of the two begins and ends a body in its own way.
    body = "".join(
        f"{line}{end}" for line in ["data: first", "", *lines, "", ""]
    ).encode()
    places = sorted({0, *(cut for cut in cuts if cut < len(body)), len(body)})
    pieces = [body[start:stop] for start, stop in itertools.pairwise(places)]
    expected = httpx_sse.EventSource(
        httpx.Response(200, headers={"content-type": "text/event-stream"}, content=body)
    ).iter_sse()
    assert events(*pieces) == [
        (each.event, each.data) for each in expected if each.data
    ]

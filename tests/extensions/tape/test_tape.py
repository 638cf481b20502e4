"""Tests `extensions/tape/transports.py`."""

import asyncio
import json
import os
import stat
import time
from collections.abc import AsyncIterator, Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import httpx
import pytest

from codex_py.errors import ConfigError, ExitCode
from codex_py.extensions.tape.transports import (
    RecordingTransport,
    ReplayTransport,
    TapeMismatch,
)
from codex_py.http.transport import http_client

URL = "http://model.example/v1/responses?key=secret"
Handler = Callable[[httpx.Request], httpx.Response]


async def _pieces(
    *pieces: bytes, error: Exception | None = None
) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece
    if error is not None:
        raise error


def streaming(*pieces: bytes, error: Exception | None = None) -> Handler:
    headers = {
        "content-type": "text/event-stream",
        "x-request-id": "r",
        "set-cookie": "secret",
        "server": "s",
    }
    return lambda _: httpx.Response(
        200, headers=headers, content=_pieces(*pieces, error=error)
    )


async def exchange(
    transport: httpx.AsyncBaseTransport, body: Any
) -> tuple[int, list[bytes]]:
    async with http_client(environment={}, transport=transport) as client:
        headers = {"authorization": "Bearer secret"}
        async with client.stream("POST", URL, json=body, headers=headers) as response:
            return response.status_code, [piece async for piece in response.aiter_raw()]


def record(path: Path, handler: Handler, body: Any) -> tuple[int, list[bytes]]:
    return asyncio.run(
        exchange(RecordingTransport(httpx.MockTransport(handler), path), body)
    )


def tape(path: Path, *exchanges: dict[str, Any]) -> Path:
    lines = [json.dumps(line) for line in ({"tape": 1}, *exchanges)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def recorded(body: Any, *pieces: str, **more: Any) -> dict[str, Any]:
    return {
        "request": {"method": "POST", "path": "/v1/responses", "body": body},
        "response": {"status": 200, "headers": {}, "body": list(pieces)},
        **more,
    }


def replay(path: Path, *bodies: Any) -> list[tuple[int, list[bytes]]]:
    async def main() -> list[tuple[int, list[bytes]]]:
        transport = ReplayTransport(path)
        return [await exchange(transport, body) for body in bodies]

    return asyncio.run(main())


def play_paced(path: Path) -> list[tuple[str, float]]:
    """The pieces of the first answer of a tape, each with the time at which it came, in seconds."""

    async def main() -> list[tuple[str, float]]:
        transport = ReplayTransport(path, paced=True)
        request = httpx.Request("POST", URL, json={})
        response = await transport.handle_async_request(request)
        stream = cast("httpx.AsyncByteStream", response.stream)
        return [(piece.decode(), time.monotonic()) async for piece in stream]

    return asyncio.run(main())


def test_a_paced_replay_pauses_before_each_delta(tmp_path: Path) -> None:
    created = "data: {}\n\n"
    deltas = [f'data: {{"delta": "{word}"}}\n\n' for word in ("one", "two", "three")]
    # The pieces of a recording are those of its network.
    path = tape(tmp_path / "tape", recorded({}, "data", created[4:] + "".join(deltas)))
    pieces = play_paced(path)
    assert [piece for piece, _ in pieces] == [created, *deltas]
    times = [at for _, at in pieces]
    assert all(later - earlier > 0.05 for earlier, later in pairwise(times))


def test_the_pauses_of_a_long_tape_are_short(tmp_path: Path) -> None:
    exchanges = [recorded({}, 'data: {"delta": "word"}\n\n' * 100) for _ in range(100)]
    path = tape(tmp_path / "tape", *exchanges)
    began = time.monotonic()
    assert len(play_paced(path)) == 100
    assert time.monotonic() - began < 3


def test_an_exchange_is_passed_on_and_written_down_without_secrets(
    tmp_path: Path,
) -> None:
    path = tmp_path / "tape.jsonl"
    # The second piece begins in the middle of a character.
    answer = record(path, streaming(b"data: \xc3", b"\xa9\n\n"), {"model": "m"})
    assert answer == (200, [b"data: \xc3", b"\xa9\n\n"])
    text = path.read_text(encoding="utf-8")
    assert [json.loads(line) for line in text.splitlines()] == [
        {"tape": 1},
        {
            "request": {
                "method": "POST",
                "path": "/v1/responses",
                "body": {"model": "m"},
            },
            "response": {
                "status": 200,
                "headers": {"content-type": "text/event-stream", "x-request-id": "r"},
                "body": ["data: ", "é\n\n"],
            },
        },
    ]
    assert "secret" not in text
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_recorded_bytes_are_played_back_in_their_pieces(tmp_path: Path) -> None:
    path = tmp_path / "tape.jsonl"
    answer = record(path, streaming(b"a", b"b"), {"model": "m"})
    assert replay(path, {"model": "m"}) == [answer]


def test_a_broken_stream_breaks_at_the_same_place_again(tmp_path: Path) -> None:
    path = tmp_path / "tape.jsonl"
    with pytest.raises(httpx.ReadError):
        record(path, streaming(b"a", error=httpx.ReadError("reset")), {})
    assert (
        json.loads(path.read_text(encoding="utf-8").splitlines()[1])["error"] == "reset"
    )
    with pytest.raises(httpx.ReadError, match="reset"):
        replay(path, {})


def test_a_failed_connection_fails_again(tmp_path: Path) -> None:
    def refuse(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("Connection refused", request=request)

    path = tmp_path / "tape.jsonl"
    with pytest.raises(httpx.ConnectError):
        record(path, refuse, {})
    with pytest.raises(httpx.ConnectError, match="Connection refused"):
        replay(path, {})


def test_a_stream_left_early_is_written_as_broken_off(tmp_path: Path) -> None:
    path = tmp_path / "tape.jsonl"

    async def main() -> None:
        transport = RecordingTransport(httpx.MockTransport(streaming(b"a", b"b")), path)
        async with (
            http_client(environment={}, transport=transport) as client,
            client.stream("POST", URL, json={}) as response,
        ):
            await anext(response.aiter_raw())

    asyncio.run(main())
    line = json.loads(path.read_text(encoding="utf-8").splitlines()[1])
    assert (line["response"]["body"], line["error"]) == (["a"], "closed before its end")


def test_exchanges_are_played_in_order(tmp_path: Path) -> None:
    path = tape(tmp_path / "t", recorded({"n": 1}, "one"), recorded({"n": 2}, "two"))
    assert replay(path, {"n": 1}, {"n": 2}) == [(200, [b"one"]), (200, [b"two"])]


def test_another_request_than_the_recorded_one_is_refused(tmp_path: Path) -> None:
    path = tape(tmp_path / "t", recorded({"input": [{"output": "a\nb"}]}))
    with pytest.raises(TapeMismatch) as caught:
        replay(path, {"input": [{"output": "a\nc"}]})
    error = caught.value
    assert str(error) == (
        f"{path}: request 1 is not the recorded one: input[0].output: line 2: expected 'b', got 'c'"
    )
    assert (error.code, error.exit_code, error.retryable) == (
        "tape",
        ExitCode.TURN_FAILED,
        False,
    )


def test_a_request_beyond_the_tape_is_refused(tmp_path: Path) -> None:
    path = tape(tmp_path / "t", recorded({}))
    with pytest.raises(TapeMismatch, match="ends after 1 requests"):
        replay(path, {}, {})


def test_answers_follow_the_working_directory(tmp_path: Path) -> None:
    answer = '{"workdir":"/old/repo/sub","other":"/old/repo-2"}'
    path = tape(tmp_path / "t", recorded({"input": "<cwd>/old/repo</cwd>"}, answer))
    assert replay(path, {"input": "<cwd>/new</cwd>"}) == [
        (200, [b'{"workdir":"/new/sub","other":"/old/repo-2"}'])
    ]


def exchange_with(**fields: Any) -> dict[str, Any]:
    """An exchange whose response has some other fields."""
    response: dict[str, Any] = {"status": 200, "headers": {}, "body": [], **fields}
    request: dict[str, Any] = {"method": "POST", "path": "/", "body": {}}
    return {"request": request, "response": response}


_DAMAGED: list[dict[str, Any]] = [
    exchange_with(headers={"content-type": 5}),
    exchange_with(headers={"content-type": None}),
    exchange_with(headers={"content-type": ["text/plain"]}),
    exchange_with(headers={"x-\u20ac": "1"}),
    exchange_with(headers={"content-type": "\ud800"}),
    exchange_with(status=True),
    {**exchange_with(), "error": 5},
    {**exchange_with(), "error": None},
]


def test_a_header_that_is_not_ascii_is_replayed(tmp_path: Path) -> None:
    path = tmp_path / "t"
    lines = [{"tape": 1}, exchange_with(headers={"x-name": "\u20ac"})]
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    request = httpx.Request("POST", "http://x/", json={})
    response = asyncio.run(ReplayTransport(path).handle_async_request(request))
    assert response.headers["x-name"] == "\u20ac"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "line 1: not valid JSON"),
        ('{"tape": 2}', "line 1: no tape begins like this"),
        ("[]", "line 1: no tape begins like this"),
        ('{"tape": 1}\n\n{"request": ', "line 3: not valid JSON"),
        ('{"tape": 1}\n{"request": {}}', "line 2: not a recorded exchange"),
        ('{"tape": 1}\n' + "[" * 100_000, "line 2: not valid JSON"),
        ('{"tape": 1}\n1', "line 2: not a recorded exchange"),
        (
            '{"tape": 1}\n{"request": {"method": "POST", "path": "/", "body": 1},'
            ' "response": {"status": 200, "headers": {}, "body": [1]}}',
            "line 2: not a recorded exchange",
        ),
        ('{"tape": true}', "line 1: no tape begins like this"),
        *(
            (
                f'{{"tape": 1}}\n{json.dumps(exchange)}',
                "line 2: not a recorded exchange",
            )
            for exchange in _DAMAGED
        ),
    ],
)
def test_a_bad_tape_names_its_line(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "tape.jsonl"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(ConfigError, match=message) as caught:
        ReplayTransport(path)
    assert str(path) in str(caught.value)


def test_a_tape_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match="none: the tape cannot be read: No such file"
    ):
        ReplayTransport(tmp_path / "none")
    with pytest.raises(ConfigError, match="the tape cannot be written: No such file"):
        RecordingTransport(httpx.MockTransport(streaming()), tmp_path / "none" / "tape")


def test_a_pipe_that_nobody_writes_to_is_no_tape(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(
        ConfigError, match="pipe: the tape cannot be read: it is a named pipe"
    ):
        ReplayTransport(tmp_path / "pipe")


@pytest.mark.skipif(
    not Path("/dev/full").exists(), reason="Linux has a device that is always full"
)
def test_a_tape_on_a_full_disk_is_named() -> None:
    with pytest.raises(
        ConfigError, match="full: the tape cannot be written: No space left"
    ):
        RecordingTransport(httpx.MockTransport(streaming()), Path("/dev/full"))


def test_a_tape_replaces_nothing_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("kept", encoding="utf-8")
    (tmp_path / "tape").symlink_to("victim")
    with pytest.raises(ConfigError) as caught:
        RecordingTransport(httpx.MockTransport(streaming()), tmp_path / "tape")
    assert str(caught.value) == (
        f"{tmp_path}/tape: the tape cannot be written: it is a symbolic link; name the file itself"
    )
    assert (tmp_path / "victim").read_text(encoding="utf-8") == "kept"

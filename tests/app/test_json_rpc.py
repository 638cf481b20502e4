"""Also tests `streams/messages.py`."""

import asyncio
import json
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import wraps
from typing import Any, ParamSpec

import pytest

from codex_py.app.json_rpc import METHOD_NOT_FOUND, JsonRpc, RpcError
from codex_py.streams.messages import MAX_MESSAGE_BYTES

VERSION = {"jsonrpc": "2.0"}
P = ParamSpec("P")


def in_a_loop(test: Callable[P, Awaitable[None]]) -> Callable[P, None]:
    @wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        async def main() -> None:
            async with asyncio.timeout(60):
                await test(*args, **kwargs)

        asyncio.run(main())

    return run


class Client:
    """The other end, and what our end was told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, Any]] = []
        self.cancelled: list[str] = []
        self.rpc: JsonRpc
        self.reader: asyncio.StreamReader
        self.writer: asyncio.StreamWriter

    async def requested(self, method: str, params: Any) -> Any:
        match method:
            case "begin":
                return self.told.append((method, params))
            case "echo":
                return params
            case "wait":
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    self.cancelled.append(method)
                    raise
            case "ask":
                return await self.rpc.request("question", {"about": params})
            case "bug":
                raise KeyError("a bug")
            case _:
                raise RpcError(
                    METHOD_NOT_FOUND, f"no method {method}", {"known": ["echo"]}
                )

    def notified(self, method: str, params: Any) -> None:
        self.told.append((method, params))

    async def aclose(self) -> None: ...

    def write(self, *lines: str | bytes | dict[str, Any]) -> None:
        for line in lines:
            text = json.dumps(line) if isinstance(line, dict) else line
            self.writer.write(
                (text.encode() if isinstance(text, str) else text) + b"\n"
            )

    async def read(self) -> dict[str, Any]:
        return json.loads(await self.reader.readline())


@asynccontextmanager
async def connected(envelope: dict[str, Any] = VERSION) -> AsyncGenerator[Client]:
    ours, theirs = socket.socketpair()
    client = Client()
    reader, writer = await asyncio.open_connection(sock=ours, limit=MAX_MESSAGE_BYTES)
    client.reader, client.writer = await asyncio.open_connection(sock=theirs)
    client.rpc = JsonRpc(reader, writer, envelope)
    serving = asyncio.create_task(client.rpc.serve(client))
    try:
        yield client
    finally:
        client.writer.close()
        await serving
        writer.close()


def error(number: int | None, code: int, message: str, **more: Any) -> dict[str, Any]:
    return {
        **VERSION,
        "id": number,
        "error": {"code": code, "message": message, **more},
    }


@in_a_loop
async def test_requests_are_answered_by_their_id_and_notifications_are_not() -> None:
    async with connected() as client:
        client.write({"id": 1, "method": "echo", "params": ["é\ud800"]})
        client.write({"method": "hello"}, {"id": "two", "method": "nothing"})
        assert await client.read() == {**VERSION, "id": 1, "result": ["é\ufffd"]}
        refused = error(
            None, METHOD_NOT_FOUND, "no method nothing", data={"known": ["echo"]}
        )
        assert await client.read() == refused | {"id": "two"}
        assert client.told == [("hello", None)]


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        (b"{", error(None, -32700, "this is no JSON")),
        (b"\xff", error(None, -32700, "this is no JSON")),
        (b"[" * 100_000, error(None, -32700, "this is no JSON")),
        (b"[]", error(None, -32600, "a message is an object")),
        (b"42", error(None, -32600, "a message is an object")),
        (b'{"id": 1}', error(None, -32600, "a request has a method, and an id")),
        (
            b'{"id": true, "method": "echo"}',
            error(None, -32600, "a request has a method, and an id"),
        ),
        (
            b'{"id": [], "method": "echo"}',
            error(None, -32600, "a request has a method, and an id"),
        ),
        (
            b" " * (MAX_MESSAGE_BYTES + 1),
            error(None, -32600, "a message of more than 32 MB was skipped"),
        ),
    ],
    ids=[
        "broken",
        "no text",
        "deep",
        "list",
        "number",
        "no method",
        "true",
        "strange id",
        "long",
    ],
)
@in_a_loop
async def test_a_wrong_line_costs_one_answer(
    line: bytes, answer: dict[str, Any]
) -> None:
    async with connected() as client:
        client.write(line, b"", {"id": 7, "method": "echo", "params": {}})
        assert [await client.read(), await client.read()] == [
            answer,
            {**VERSION, "id": 7, "result": {}},
        ]


_LONG = b"x" * (MAX_MESSAGE_BYTES + 10_000_000)


@pytest.mark.parametrize(
    ("line", "number"),
    [
        (b'{"id": 3, "method": "m", "params": ["%s"]}' % _LONG, 3),
        (b'{"id": -3, "method": "m", "params": ["%s"]}' % _LONG, -3),
        (b'{"jsonrpc": "2.0", "id": "a-1", "params": ["%s"]}' % _LONG, "a-1"),
        (b'{"method": "m", "params": {"id": 1, "x": "%s"}, "id": 4}' % _LONG, 4),
        (b'{"params": {"x": "%s"}, "id": "a" }  ' % _LONG, "a"),
        (b'{"method": "m", "params": {"x": "%s", "id": 4}}' % _LONG, None),
        (b'{"id": 007, "params": {"x": "%s"}}' % _LONG, None),
    ],
    ids=["number", "negative", "text", "last", "last text", "inner", "zeros"],
)
@in_a_loop
async def test_a_request_that_is_too_long_is_refused_by_its_id(
    line: bytes, number: int | str | None
) -> None:
    async with connected() as client:
        client.write(line, {"id": 7, "method": "echo", "params": 1})
        refused = error(None, -32600, "a message of more than 32 MB was skipped")
        assert await client.read() == refused | {"id": number}
        assert await client.read() == {**VERSION, "id": 7, "result": 1}


@pytest.mark.parametrize(
    "answer",
    [b'{"id": 0, "result": {"text": "%s"}}', b'{"result": {"text": "%s"}, "id": 0}'],
)
@in_a_loop
async def test_an_answer_that_is_too_long_ends_our_request(answer: bytes) -> None:
    async with connected() as client:
        client.write({"id": 7, "method": "ask"})
        assert (await client.read())["id"] == 0
        client.write(answer % _LONG)
        assert await client.read() == error(
            7, -32600, "a message of more than 32 MB was skipped"
        )


@in_a_loop
async def test_a_request_that_waits_holds_up_no_other() -> None:
    async with connected({}) as client:
        client.write(
            {"id": 1, "method": "wait"}, {"id": 2, "method": "echo", "params": 2}
        )
        assert await client.read() == {"id": 2, "result": 2}
    assert client.cancelled == ["wait"]


@in_a_loop
async def test_a_request_has_begun_when_the_next_message_is_taken() -> None:
    async with connected() as client:
        # In one piece: nothing suspends the reader between the lines.
        client.write(
            {"id": 1, "method": "begin"},
            {"method": "cancel"},
            {"id": 2, "method": "begin"},
        )
        assert [(await client.read())["id"] for _ in range(2)] == [1, 2]
        assert [method for method, _ in client.told] == ["begin", "cancel", "begin"]


@in_a_loop
async def test_a_bug_is_told_and_its_traceback_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with connected() as client:
        client.write({"id": 1, "method": "bug"})
        assert await client.read() == error(
            1, -32603, "internal error: KeyError('a bug')"
        )
    assert "Traceback" in capsys.readouterr().err


@in_a_loop
async def test_the_client_is_asked() -> None:
    async with connected({}) as client:
        client.write(
            {"id": 1, "method": "ask", "params": "a"},
            {"id": 2, "method": "ask", "params": "b"},
        )
        first, second = await client.read(), await client.read()
        assert first == {"method": "question", "id": 0, "params": {"about": "a"}}
        client.write(
            {"id": 99, "result": "strange"},
            {"id": False, "result": "no id of ours"},
            {"id": second["id"], "result": "B"},
        )
        assert await client.read() == {"id": 2, "result": "B"}
        client.write({"id": first["id"], "error": {"code": -1, "message": "no"}})
        assert await client.read() == {"id": 1, "error": {"code": -1, "message": "no"}}


@pytest.mark.parametrize("is_answered", [True, False])
@in_a_loop
async def test_the_asker_is_told_if_a_question_ends_without_an_answer(
    is_answered: bool,
) -> None:
    async with connected({}) as client:
        ends: list[tuple[int, bool]] = []
        question = asyncio.create_task(
            client.rpc.request(
                "question", {}, lambda number, answered: ends.append((number, answered))
            )
        )
        number = (await client.read())["id"]
        if is_answered:
            client.write({"id": number, "result": "yes"})
        else:
            question.cancel()
        await asyncio.wait([question])
        assert ends == [(number, is_answered)]


@in_a_loop
async def test_a_question_to_a_client_that_leaves_is_answered() -> None:
    async with connected() as client:
        question = asyncio.create_task(client.rpc.request("question", {}))
        await client.read()
    with pytest.raises(RpcError, match="the client left"):
        await question


@in_a_loop
async def test_a_client_that_does_not_read_misses_what_is_live_and_is_then_left() -> (
    None
):
    async with connected() as client:
        transport = client.rpc._writer.transport  # pyright: ignore[reportPrivateUsage]
        for _ in range(100):
            client.rpc.notify("delta", {"text": "x" * 100_000}, is_live=True)
        assert 4_000_000 < transport.get_write_buffer_size() < 5_000_000
        for _ in range(700):
            client.rpc.notify("item", {"text": "x" * 100_000})
        assert transport.is_closing()

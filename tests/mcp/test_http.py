"""Also tests `mcp/bounded.py`."""

import asyncio
import gzip
import json
import re
import tracemalloc
import zlib
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from codex_py.mcp.settings import HttpTransport, ServerSettings
from codex_py.protocol.mcp import RequestFailed
from tests.support.mcp import started
from tests.support.mcp_http import HttpMcpServer, http_mcp_server


def server(url: str, **transport: Any) -> ServerSettings:
    headers = {"X-Team": "blue", "Authorization": "Bearer t0k"}
    return ServerSettings(
        name="web", transport=HttpTransport(url, headers, **transport)
    )


@pytest.mark.parametrize("stream", [False, True])
def test_a_server_at_an_address_is_spoken_to_until_the_end(
    tmp_path: Path, stream: bool
) -> None:
    async def run(url: str) -> None:
        async with started(tmp_path, others=[server(url)]) as it:
            assert list(it.servers.tools()) == ["mcp__web__echo"]
            assert await it.call("web", "echo", a=1) == {
                "content": [{"type": "text", "text": '{"a": 1}'}]
            }
            assert it.warnings == []

    with http_mcp_server(stream=stream) as http:
        asyncio.run(run(http.url))
        (call,) = http.sent("tools/call")
        assert (call["x-team"], call["authorization"]) == ("blue", "Bearer t0k")
        assert (call["mcp-session-id"], call["mcp-protocol-version"]) == (
            "s1",
            "2025-11-25",
        )
        assert len(http.sent("DELETE")) == 1


def test_a_refusal_is_told_with_its_status(tmp_path: Path) -> None:
    async def run(url: str) -> None:
        async with started(tmp_path, others=[server(url)]) as it:
            assert it.warnings == [
                "MCP server `web` answered with HTTP 401 Unauthorized"
            ]

    with http_mcp_server(refuse=401) as http:
        asyncio.run(run(http.url))


def test_a_call_that_is_refused_leaves_the_connection_alone(tmp_path: Path) -> None:
    async def run(http: HttpMcpServer) -> None:
        async with started(tmp_path, others=[server(http.url)]) as it:
            http.refuse = 503
            with pytest.raises(
                RequestFailed, match=r"\(HTTP 503 Service Unavailable\)"
            ):
                await it.call("web", "echo")
            http.refuse = None
            assert await it.call("web", "echo") == {
                "content": [{"type": "text", "text": "{}"}]
            }

    with http_mcp_server() as http:
        asyncio.run(run(http))
        assert len(http.sent("initialize")) == 1


def test_an_address_where_nobody_listens_is_named(tmp_path: Path) -> None:
    async def run() -> None:
        async with started(tmp_path, others=[server("http://127.0.0.1:1/mcp")]) as it:
            assert it.warnings == [
                "MCP server `web` could not be reached: All connection attempts failed"
            ]

    asyncio.run(run())


def refusal(code: int, message: str) -> bytes:
    error = {"code": code, "message": message}
    return json.dumps({"jsonrpc": "2.0", "id": None, "error": error}).encode()


@pytest.mark.parametrize(
    "answer",
    [
        (404, b""),
        (404, refusal(-32001, "Session not found")),
        # Servers made after the first examples of the SDK for TypeScript.
        (400, refusal(-32000, "Bad Request: No valid session ID provided")),
        (200, refusal(-32001, "Session not found")),
        (200, refusal(-32000, "Session expired, please initialize again")),
        (200, refusal(-32600, "Invalid Request: unknown session id")),
        (200, refusal(-32001, "Session with the given ID does not exist")),
        # Without the envelope of JSON-RPC.
        (200, b'{"error": {"code": -32001, "message": "Session not found"}}'),
        (
            200,
            b'{"jsonrpc": "2.0", "error": {"code": -32000, "message": "Session expired"}}',
        ),
        (200, b'{"error": {"message": "No valid session ID provided"}}'),
        (200, b'{"error": "Session not found"}'),
        (400, b'{"error": "Session not found"}'),
        (404, b'{"error": "Session not found"}'),
    ],
)
def test_a_server_that_forgot_the_session_is_greeted_anew(
    tmp_path: Path, answer: tuple[int, bytes]
) -> None:
    async def run(http: HttpMcpServer) -> None:
        async with started(tmp_path, others=[server(http.url)]) as it:
            http.forget = True
            # It has done nothing, so the call is sent again.
            assert await it.call("web", "echo") == {
                "content": [{"type": "text", "text": "{}"}]
            }
            assert it.warnings == []

    with http_mcp_server(forgetful_answer=answer) as http:
        asyncio.run(run(http))
        assert len(http.sent("initialize")) == 2
        assert len(http.sent("tools/call")) == 2


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (-32001, "Request timed out"),
        (-32603, "Session not found"),
        (-32000, "The session of the browser is busy"),
        (-32602, "Unknown tool"),
    ],
)
def test_an_error_that_is_no_forgotten_session_is_that_of_the_call(
    tmp_path: Path, code: int, message: str
) -> None:
    async def run(http: HttpMcpServer) -> None:
        async with started(tmp_path, others=[server(http.url)]) as it:
            http.forget = True
            with pytest.raises(RequestFailed, match=message):
                await it.call("web", "echo")

    with http_mcp_server(forgetful_answer=(200, refusal(code, message))) as http:
        asyncio.run(run(http))
        # It may have run: it is not sent again.
        assert len(http.sent("tools/call")) == 1


def test_a_server_that_keeps_no_session_is_not_asked_for_ever(tmp_path: Path) -> None:
    async def run(http: HttpMcpServer) -> None:
        async with started(tmp_path, others=[server(http.url)]) as it:
            http.refuse_calls = 404
            with pytest.raises(
                RequestFailed, match="answered with HTTP 404 Not Found"
            ) as lost:
                await it.call("web", "echo")
            assert lost.value.code == "SessionLost"

    with http_mcp_server() as http:
        asyncio.run(run(http))
        assert len(http.sent("tools/call")) == 2


def test_a_bare_error_of_another_kind_is_that_of_the_call(tmp_path: Path) -> None:
    async def run(http: HttpMcpServer) -> None:
        async with started(tmp_path, others=[server(http.url)]) as it:
            http.forget = True
            with pytest.raises(RequestFailed, match="-32603: out of order"):
                await it.call("web", "echo")

    answer = b'{"error": {"code": -32603, "message": "out of order"}}'
    with http_mcp_server(forgetful_answer=(200, answer)) as http:
        asyncio.run(run(http))
        assert len(http.sent("tools/call")) == 1


@pytest.mark.parametrize("answer", [b"", b"{{{", b"{}"])
def test_an_answer_that_is_no_message_is_told_in_one_line(
    tmp_path: Path, answer: bytes
) -> None:
    async def run(http: HttpMcpServer) -> None:
        async with started(tmp_path, others=[server(http.url)]) as it:
            http.instead = answer
            with pytest.raises(RequestFailed) as failed:
                await it.call("web", "echo")
            assert (
                str(failed.value) == "Mcp error: -32700: Failed to parse JSON response"
            )
        async with started(tmp_path, others=[server(http.url)]) as it:
            assert it.warnings == [
                "MCP server `web` refused the handshake: Failed to parse JSON response"
            ]

    with http_mcp_server() as http:
        asyncio.run(run(http))


def test_an_answer_may_have_text_that_is_no_unicode(tmp_path: Path) -> None:
    async def run(http: HttpMcpServer) -> None:
        async with started(tmp_path, others=[server(http.url)]) as it:
            content = b'{"content": [{"type": "text", "text": "\\ud800"}]}'
            http.instead = b'{"jsonrpc": "2.0", "id": 3, "result": ' + content + b"}"
            result = await it.call("web", "echo")
            assert result["content"] == [
                {"type": "text", "text": "\N{REPLACEMENT CHARACTER}"}
            ]

    with http_mcp_server() as http:
        asyncio.run(run(http))


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("encoding", "pack"), [("gzip", gzip.compress), ("deflate", zlib.compress)]
)
def test_a_server_may_pack_all_its_answers(
    tmp_path: Path, encoding: str, pack: Callable[[bytes], bytes], stream: bool
) -> None:
    async def run(url: str) -> None:
        async with started(tmp_path, others=[server(url)]) as it:
            result = await it.call("web", "echo", a=1)
            assert result["content"] == [{"type": "text", "text": '{"a": 1}'}]

    with http_mcp_server(stream=stream, encoding=encoding, pack=pack) as http:
        asyncio.run(run(http.url))
        assert {headers["accept-encoding"] for _, headers, _ in http.requests} == {
            "identity"
        }


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("encoding", ["zstd", "gzip, gzip", "br"])
def test_an_answer_packed_in_an_unknown_way_is_refused(
    tmp_path: Path, encoding: str, stream: bool
) -> None:
    refusal = (
        f"the server packed its answer ({encoding!r}), which nobody asked it to do;"
        " gzip or deflate alone can be read"
    )

    async def run(http: HttpMcpServer) -> None:
        async with started(tmp_path, others=[server(http.url)]) as it:
            http.encoding = encoding
            with pytest.raises(RequestFailed, match=re.escape(refusal)):
                await it.call("web", "echo")
        async with started(tmp_path, others=[server(http.url)]) as it:
            assert it.warnings == [f"MCP server `web` could not be reached: {refusal}"]

    with http_mcp_server(stream=stream) as http:
        asyncio.run(run(http))


@pytest.mark.parametrize("stream", [False, True])
def test_a_small_answer_that_unpacks_to_a_huge_one_is_not_kept(
    tmp_path: Path, stream: bool
) -> None:
    bomb = gzip.compress(b"data: " + bytes(256 << 20), 1)

    async def run(http: HttpMcpServer) -> None:
        async with started(tmp_path, others=[server(http.url)]) as it:
            http.encoding = "gzip"
            tracemalloc.start()
            with pytest.raises(RequestFailed):
                await it.call("web", "echo")
            assert tracemalloc.get_traced_memory()[1] < 150_000_000
            tracemalloc.stop()

    def packed(_: bytes) -> bytes:
        return bomb

    with http_mcp_server(stream=stream, pack=packed) as http:
        asyncio.run(run(http))


@pytest.mark.parametrize("stream", [False, True])
def test_a_result_without_end_is_not_taken(tmp_path: Path, stream: bool) -> None:
    async def run(url: str) -> None:
        async with started(tmp_path, others=[server(url)]) as it:
            with pytest.raises(RequestFailed):
                await it.call("web", "echo")

    with http_mcp_server(stream=stream, result_bytes=33 << 20) as http:
        asyncio.run(run(http.url))


@pytest.mark.parametrize("end", ["\n", "\x00x", "\x7f", " "])
def test_a_header_that_cannot_be_sent_is_named_without_its_value(
    tmp_path: Path, end: str
) -> None:
    async def run(url: str) -> None:
        transport = HttpTransport(url, {"Authorization": f"Bearer t0k{end}"})
        settings = ServerSettings(name="web", transport=transport)
        async with started(tmp_path, others=[settings]) as it:
            (warning,) = it.warnings
            assert "header 'Authorization' cannot be sent" in warning
            assert "t0k" not in warning

    with http_mcp_server() as http:
        asyncio.run(run(http.url))


class Signed(httpx2.Auth):
    def auth_flow(
        self, request: httpx2.Request
    ) -> Generator[httpx2.Request, httpx2.Response]:
        request.headers["X-Signed"] = "yes"
        yield request


def signed(_: object) -> Signed:
    return Signed()


def test_whoever_logs_in_signs_every_request(tmp_path: Path) -> None:
    async def run(url: str) -> None:
        async with started(tmp_path, others=[server(url, make_auth=signed)]) as it:
            await it.call("web", "echo")

    with http_mcp_server() as http:
        asyncio.run(run(http.url))
        assert all(headers["x-signed"] == "yes" for _, headers, _ in http.requests)

"""Also tests `http/connection.py`."""

import asyncio
import gzip
import shutil
import ssl
import subprocess
import tracemalloc
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast

import httpx
import pytest

from codex_py.errors import ExitCode, ModelError
from codex_py.http.connection import Connection
from codex_py.http.transport import BulkTransport, http_client
from tests.support.raw_server import (
    Handler,
    RawConnection,
    RawServer,
    answers,
    raw_server,
)

Client = httpx.AsyncClient
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def sized(body: bytes, *headers: bytes) -> bytes:
    lines = [b"HTTP/1.1 200 OK", b"Content-Length: %d" % len(body), *headers]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def run(handler: Handler, use: Callable[[Client, RawServer], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        async with raw_server(handler) as server, http_client(environment={}) as client:
            return await use(client, server)

    return asyncio.run(main())


async def post(client: Client, server: RawServer) -> tuple[int, bytes]:
    response = await client.post(server.url + "/p", content=b"hello")
    return response.status_code, response.content


def test_head_and_body_of_a_request_arrive_as_sent() -> None:
    async def use(client: Client, server: RawServer) -> bytes:
        await post(client, server)
        return server.requests[0]

    head, _, body = run(answers(sized(b"")), use).partition(b"\r\n\r\n")
    assert head.startswith(b"POST /p HTTP/1.1\r\nHost: 127.0.0.1:")
    assert b"\r\naccept-encoding: identity" in head
    assert body == b"hello"


def test_a_packed_body_is_refused_in_bounded_memory_and_its_connection_closed() -> None:
    bomb = gzip.compress(gzip.compress(bytes(64 << 20)))

    async def use(client: Client, server: RawServer) -> int:
        async with client.stream("GET", server.url) as response:
            assert response.status_code == 200
            with pytest.raises(
                httpx.DecodingError, match=r"packed its answer \('GZip, gzip'\)"
            ):
                await response.aread()
        await server.ended.wait()
        return tracemalloc.get_traced_memory()[1]

    async def handler(connection: RawConnection) -> None:
        await connection.request()
        await connection.send(
            sized(bomb, b"Content-Encoding: GZip", b"content-encoding: gzip", b"X: y")
        )
        await connection.request()

    tracemalloc.start()
    try:
        assert run(handler, use) < 10_000_000
    finally:
        tracemalloc.stop()


RESPONSE = CHUNKED + b"5\r\nhello\r\n7;x=y\r\n, world\r\n0\r\nTrailer: t\r\n\r\n"


def test_a_response_may_be_cut_at_any_byte() -> None:
    async def handler(connection: RawConnection) -> None:
        for at in range(1, len(RESPONSE)):
            await connection.request()
            await connection.send(RESPONSE[:at])
            # The reader gets a turn between the two pieces.
            await asyncio.sleep(0)
            await connection.send(RESPONSE[at:])

    async def use(
        client: Client, server: RawServer
    ) -> tuple[set[tuple[int, bytes]], int]:
        return {
            await post(client, server) for _ in range(1, len(RESPONSE))
        }, server.connections

    assert run(handler, use) == ({(200, b"hello, world")}, 1)


def test_a_connection_is_kept_for_the_next_request() -> None:
    async def use(
        client: Client, server: RawServer
    ) -> tuple[list[tuple[int, bytes]], int]:
        return [await post(client, server) for _ in range(3)], server.connections

    handler = answers(sized(b"1"), CHUNKED + b"1\r\n2\r\n0\r\n\r\n", sized(b"3"))
    assert run(handler, use) == ([(200, b"1"), (200, b"2"), (200, b"3")], 1)


@pytest.mark.parametrize(
    "response",
    [
        sized(b"x", b"Connection: close"),
        sized(b"x") + b"unasked",
        sized(b"x").replace(b"1.1", b"1.0"),
    ],
)
def test_a_connection_that_cannot_be_kept_is_closed(response: bytes) -> None:
    async def handler(connection: RawConnection) -> None:
        await connection.request()
        await connection.send(response)
        assert not await connection.request()

    async def use(client: Client, server: RawServer) -> int:
        assert await post(client, server) == (200, b"x")
        assert await post(client, server) == (200, b"x")
        return server.connections

    assert run(handler, use) == 2


def test_unasked_bytes_behind_an_empty_response_are_no_answer_to_the_next_request() -> (
    None
):
    async def handler(connection: RawConnection) -> None:
        await connection.request()
        await connection.send(b"HTTP/1.1 204 No Content\r\n\r\n" + sized(b"unasked"))
        await connection.reader.read()

    async def use(client: Client, server: RawServer) -> list[int]:
        statuses: list[int] = []
        for _ in range(2):
            async with client.stream("POST", server.url) as response:
                statuses.append(response.status_code)
        return [*statuses, server.connections]

    assert run(handler, use) == [204, 204, 2]


def test_a_kept_connection_closed_by_the_server_is_replaced() -> None:
    async def use(
        client: Client, server: RawServer
    ) -> tuple[list[tuple[int, bytes]], int]:
        first = await post(client, server)
        await server.ended.wait()
        return [first, await post(client, server)], server.connections

    assert run(answers(sized(b"x")), use) == ([(200, b"x"), (200, b"x")], 2)


def test_a_request_that_meets_a_closing_connection_is_sent_again() -> None:
    async def handler(connection: RawConnection) -> None:
        await connection.request()
        await connection.send(sized(b"x"))
        if connection.number == 1:
            # The second request has been taken off the wire when the connection goes.
            await connection.request()

    async def use(
        client: Client, server: RawServer
    ) -> tuple[list[tuple[int, bytes]], int]:
        return [await post(client, server) for _ in range(2)], len(server.requests)

    assert run(handler, use) == ([(200, b"x"), (200, b"x")], 3)


def test_a_fresh_connection_without_an_answer_is_an_error() -> None:
    async def use(client: Client, server: RawServer) -> int:
        with pytest.raises(httpx.RemoteProtocolError, match="closed without an answer"):
            await post(client, server)
        return server.connections

    assert run(answers(b""), use) == 1


@pytest.mark.parametrize(
    ("response", "cause"),
    [
        (CHUNKED + b"5\r\nhel", "before the last chunk"),
        (CHUNKED + b"5\r\nhello\r\n", "before the last chunk"),
        (CHUNKED + b"5\r\nhello\r\n0\r\n", "before the last chunk"),
        (CHUNKED + b"5\r\nhellooo", "longer than its size"),
        (CHUNKED + b"zz\r\n", "illegal chunk size"),
        (sized(b"hello")[:-1], "after 4 of 5 bytes"),
        (b"HTTP/1.1 200 OK\r\nX: ", "inside the response head"),
        (b"HTTP/1.1 200 OK\r\nbroken\r\n\r\n", "illegal header line"),
        (b"\x16\x03\x01 no http", "not HTTP/1.1"),
    ],
)
def test_a_broken_response_is_a_protocol_error(response: bytes, cause: str) -> None:
    async def use(client: Client, server: RawServer) -> None:
        with pytest.raises(httpx.RemoteProtocolError, match=cause):
            await post(client, server)

    run(answers(response), use)


async def read_until_error(response: httpx.Response) -> tuple[bytes, str]:
    content = b""
    try:
        async for piece in response.aiter_raw():
            content += piece
    except httpx.TransportError as error:
        return content, f"{type(error).__name__}: {error}"
    return content, ""


def test_bytes_before_a_broken_connection_are_given_out() -> None:
    async def use(client: Client, server: RawServer) -> bytes:
        async with client.stream("POST", server.url) as response:
            return (await read_until_error(response))[0]

    assert run(answers(CHUNKED + b"5\r\nhello\r\n3\r\nab"), use) == b"helloab"


def test_a_body_without_a_length_ends_with_the_connection() -> None:
    async def use(client: Client, server: RawServer) -> tuple[int, bytes]:
        return await post(client, server)

    assert run(answers(b"HTTP/1.1 200 OK\r\n\r\nto the end"), use) == (
        200,
        b"to the end",
    )


def test_interim_responses_are_skipped() -> None:
    async def use(client: Client, server: RawServer) -> tuple[int, bytes]:
        return await post(client, server)

    interim = (
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
    )
    assert run(answers(interim + sized(b"x")), use) == (200, b"x")


def test_an_answer_to_head_has_no_body() -> None:
    async def use(client: Client, server: RawServer) -> tuple[bytes, int]:
        first = await client.head(server.url)
        await client.head(server.url)
        return first.content, server.connections

    head = sized(b"hello")[:-5]
    assert run(answers(head, head), use) == (b"", 1)


def test_silence_within_a_body_is_a_read_timeout_and_bytes_put_it_off() -> None:
    async def handler(connection: RawConnection) -> None:
        await connection.request()
        await connection.send(CHUNKED)
        for _ in range(4):
            # Together longer than the time-out, each far shorter.
            await asyncio.sleep(0.3)
            await connection.send(b"1\r\nx\r\n")
        await connection.reader.read()

    async def use(client: Client, server: RawServer) -> tuple[bytes, str]:
        async with client.stream("POST", server.url, timeout=1) as response:
            return await read_until_error(response)

    assert run(handler, use) == (b"xxxx", "ReadTimeout: nothing came for 1 s")


def test_silence_before_the_head_is_a_read_timeout() -> None:
    async def handler(connection: RawConnection) -> None:
        await connection.reader.read()

    async def use(client: Client, server: RawServer) -> None:
        with pytest.raises(httpx.ReadTimeout):
            await client.get(server.url, timeout=httpx.Timeout(5, read=0.01))

    run(handler, use)


@pytest.mark.parametrize("piece", [b"x: y\r\n", b"\r\nHTTP/1.1 103 Early\r\n"])
def test_a_head_that_has_no_end_is_a_read_timeout(piece: bytes) -> None:
    async def handler(connection: RawConnection) -> None:
        await connection.request()
        await connection.send(b"HTTP/1.1 103 Early\r\n")
        while True:
            await connection.send(piece)
            await asyncio.sleep(0.01)

    async def use(client: Client, server: RawServer) -> None:
        with pytest.raises(httpx.ReadTimeout):
            await client.get(server.url, timeout=httpx.Timeout(5, read=0.2))

    run(handler, use)


def test_a_server_that_takes_nothing_is_a_write_timeout() -> None:
    done = asyncio.Event()

    async def handler(connection: RawConnection) -> None:
        cast("asyncio.Transport", connection.writer.transport).pause_reading()
        await done.wait()

    async def use(client: Client, server: RawServer) -> None:
        with pytest.raises(httpx.WriteTimeout):
            await client.post(
                server.url,
                content=b"x" * 30_000_000,
                timeout=httpx.Timeout(5, write=0.05),
            )
        done.set()

    run(handler, use)


def test_an_answer_before_the_end_of_the_request_is_read() -> None:
    async def handler(connection: RawConnection) -> None:
        await connection.reader.readuntil(b"\r\n\r\n")
        await connection.send(b"HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig")
        await connection.reader.read()

    async def use(client: Client, server: RawServer) -> tuple[int, bytes]:
        response = await client.post(server.url, content=b"x" * 30_000_000)
        return response.status_code, response.content

    assert run(handler, use) == (413, b"big")


def test_twenty_megabytes_go_both_ways() -> None:
    body = bytes(range(256)) * 80_000

    async def handler(connection: RawConnection) -> None:
        request = await connection.request()
        await connection.send(sized(request.partition(b"\r\n\r\n")[2]))

    async def use(client: Client, server: RawServer) -> bool:
        response = await client.post(server.url, content=body)
        return response.content == body

    assert run(handler, use)


def test_an_unread_body_is_not_read_ahead_without_bound() -> None:
    async def handler(connection: RawConnection) -> None:
        await connection.request()
        connection.writer.write(sized(b"x" * 30_000_000))
        await connection.reader.read()

    async def use(client: Client, server: RawServer) -> int:
        async with client.stream("GET", server.url) as response:
            pieces = response.aiter_raw()
            sizes = [len(await anext(pieces))]
            while sum(sizes) < 30_000_000:
                # Whatever can come meanwhile, comes.
                await asyncio.sleep(0.001)
                sizes.append(len(await anext(pieces)))
            return max(sizes)

    assert run(handler, use) <= 1_048_576 + 262_144


def test_many_small_pieces_are_read_together_and_the_first_at_once() -> None:
    class Socket:
        pauses = 0

        def pause_reading(self) -> None:
            self.pauses += 1

        def resume_reading(self) -> None:
            connection.data_received(b"and ")
            connection.data_received(b"more")

        def write(self, data: bytes) -> None:
            pass

    connection, socket = Connection(), Socket()
    connection._transport = cast("Any", socket)  # pyright: ignore[reportPrivateUsage]

    async def read_many() -> list[bytes]:
        pieces: list[bytes] = []
        for _ in range(33):
            connection.data_received(b"piece")
            pieces.append(await connection.read(1))
        pieces.append(await connection.read(1))
        await connection.write(b"another request", b"", 1)
        connection.data_received(b"its answer")
        return [*pieces, await connection.read(1)]

    *pieces, last, answer = asyncio.run(read_many())
    assert pieces == [b"piece"] * 33
    assert (last, answer, socket.pauses) == (b"and more", b"its answer", 1)


def test_room_to_write_is_no_end_of_what_is_read() -> None:
    async def main() -> bytes:
        connection = Connection()
        reading = asyncio.create_task(connection.read(5))
        await asyncio.sleep(0)
        connection.resume_writing()
        await asyncio.sleep(0)
        connection.data_received(b"it goes on")
        return await reading

    assert asyncio.run(main()) == b"it goes on"


def test_leaving_a_stream_early_closes_its_connection() -> None:
    closed = asyncio.Event()

    async def handler(connection: RawConnection) -> None:
        await connection.request()
        await connection.send(CHUNKED + b"1\r\nx\r\n")
        await connection.reader.read()
        closed.set()

    async def use(client: Client, server: RawServer) -> None:
        async with client.stream("GET", server.url) as response:
            assert await anext(response.aiter_raw()) == b"x"
        await asyncio.wait_for(closed.wait(), 5)

    run(handler, use)


def test_cancelling_a_wait_for_the_head_closes_the_connection() -> None:
    asked, closed = asyncio.Event(), asyncio.Event()

    async def handler(connection: RawConnection) -> None:
        await connection.request()
        asked.set()
        await connection.reader.read()
        closed.set()

    async def use(client: Client, server: RawServer) -> None:
        task = asyncio.create_task(client.get(server.url))
        await asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(closed.wait(), 5)

    run(handler, use)


def test_requests_side_by_side_have_connections_of_their_own() -> None:
    both = asyncio.Event()

    async def handler(connection: RawConnection) -> None:
        while await connection.request():
            if connection.number == 2:
                both.set()
            await both.wait()
            await connection.send(sized(b"x"))

    async def use(client: Client, server: RawServer) -> int:
        await asyncio.gather(post(client, server), post(client, server))
        await post(client, server)
        return server.connections

    assert run(handler, use) == 2


def test_a_refused_connection_is_told_in_the_words_of_the_system() -> None:
    async def main() -> None:
        async with raw_server(answers()) as server:
            url = server.url
        async with http_client(environment={}) as client:
            with pytest.raises(httpx.ConnectError, match=r"^Connection refused$"):
                await client.get(url)

    asyncio.run(main())


def test_closing_the_transport_closes_kept_connections() -> None:
    async def main() -> None:
        async with raw_server(answers(sized(b"x"), b"")) as server:
            transport = BulkTransport()
            async with http_client(environment={}, transport=transport) as client:
                await post(client, server)
                assert not server.ended.is_set()
            await asyncio.wait_for(server.ended.wait(), 5)

    asyncio.run(main())


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A certificate for `localhost` and its key, in one PEM file."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("needs openssl")
    pem, key = tmp_path / "both.pem", tmp_path / "key.pem"
    command = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    subprocess.run(
        [*command, *names, "-keyout", str(key), "-out", str(pem)],
        check=True,
        capture_output=True,
    )
    pem.write_bytes(pem.read_bytes() + key.read_bytes())
    return pem


def get_over_tls(certificate: Path) -> tuple[list[httpx.Response], int]:
    async def main() -> tuple[list[httpx.Response], int]:
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(certificate)
        handler = answers(sized(b"x"), CHUNKED + b"1\r\ny\r\n0\r\n\r\n")
        async with (
            raw_server(handler, tls) as server,
            http_client(environment={}) as client,
        ):
            return [await client.get(server.url) for _ in range(2)], server.connections

    return asyncio.run(main())


def test_a_slow_stream_over_tls_is_whole_and_keeps_its_connection(
    certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    pieces = [b"data: %d\n\n" % n for n in range(60)]

    async def slowly(connection: RawConnection) -> None:
        while await connection.request():
            await connection.send(CHUNKED)
            for piece in pieces:
                await connection.send(b"%x\r\n%s\r\n" % (len(piece), piece))
                await asyncio.sleep(0.012)
            await connection.send(b"0\r\n\r\n")

    async def main() -> tuple[list[bytes], int]:
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(certificate)
        async with (
            raw_server(slowly, tls) as server,
            http_client(environment={}) as client,
        ):
            return [
                (await client.get(server.url)).content for _ in range(3)
            ], server.connections

    assert asyncio.run(main()) == ([b"".join(pieces)] * 3, 1)


def test_https_trusts_the_certificates_of_ssl_cert_file(
    certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    responses, connections = get_over_tls(certificate)
    assert [response.content for response in responses] == [b"x", b"y"]
    assert connections == 1


def test_a_certificate_that_is_not_trusted_says_why(
    certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    with pytest.raises(httpx.ConnectError, match="certificate refused: self-signed"):
        get_over_tls(certificate)


def test_certificates_that_cannot_be_read_are_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def main() -> None:
        async with http_client(environment={}) as client:
            await client.get("https://127.0.0.1:9/")

    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere.pem")
    with pytest.raises(
        ModelError, match=r"read from /nowhere\.pem: No such file"
    ) as caught:
        asyncio.run(main())
    assert (caught.value.exit_code, caught.value.retryable) == (
        ExitCode.CONFIGURATION,
        False,
    )


_NO_TLS = r"^the TLS handshake failed: .*\w \w.*; is it an http:// address\?$"


def test_tls_to_a_plain_server_says_so() -> None:
    async def use(client: Client, server: RawServer) -> None:
        with pytest.raises(httpx.ConnectError, match=_NO_TLS):
            await client.get(server.url.replace("http:", "https:"))

    async def handler(connection: RawConnection) -> None:
        await connection.reader.read(10)
        await connection.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    run(handler, use)


def test_a_server_that_closes_within_the_handshake_is_told_in_words() -> None:
    async def use(client: Client, server: RawServer) -> None:
        with pytest.raises(httpx.ConnectError, match=_NO_TLS):
            await client.get(server.url.replace("http:", "https:"))

    async def handler(connection: RawConnection) -> None:
        await connection.reader.read(10)

    run(handler, use)

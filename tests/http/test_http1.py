import httpx
import pytest

from codex_py.http.http1 import (
    Chunked,
    Head,
    Sized,
    UntilClose,
    body_of,
    request_head,
    split_head,
)


def head(
    *headers: tuple[bytes, bytes], status: int = 200, version: bytes = b"1.1"
) -> Head:
    return Head(version, status, list(headers))


def test_a_head_is_split_from_what_follows() -> None:
    data = b"HTTP/1.1 200 OK\r\nContent-Type:  text/plain \r\nX-Empty:\r\n\r\nbody"
    expected = Head(b"1.1", 200, [(b"Content-Type", b"text/plain"), (b"X-Empty", b"")])
    assert split_head(data) == (expected, b"body")


@pytest.mark.parametrize("size", range(1, 42))
def test_an_unfinished_head_is_none(size: int) -> None:
    assert (
        split_head(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"[:size])
        is None
    )


def test_bare_line_feeds_no_reason_and_folded_lines_are_read() -> None:
    data = b"HTTP/1.0 404\nX-Long: one\n  two\n\nrest"
    assert split_head(data) == (Head(b"1.0", 404, [(b"X-Long", b"one two")]), b"rest")


@pytest.mark.parametrize(
    "data",
    [
        b"SSH-2.0-OpenSSH_9.9\r\n",
        b"HTTP/2.0 200 OK\r\n\r\n",
        b"HTTP/1.1 20 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nbad name: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nnul: a\x00b\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nx: " + b"a" * 70_000,
    ],
)
def test_a_malformed_head_is_a_protocol_error(data: bytes) -> None:
    with pytest.raises(httpx.RemoteProtocolError):
        split_head(data)


CHUNKS = b"5;name=value\r\nhello\r\n1 \r\n,\r\n00A\r\n 123456789\r\n0\r\nTrailer: x\r\n\r\nNEXT"


@pytest.mark.parametrize("at", range(len(CHUNKS) + 1))
def test_a_chunked_body_may_be_cut_anywhere(at: int) -> None:
    body = Chunked()
    content = body.feed(CHUNKS[:at])
    content += body.feed(CHUNKS[at:]) if not body.done else b""
    rest = body.rest if at < len(CHUNKS) - 4 else body.rest + CHUNKS[at:]
    assert (content, body.done, rest) == (b"hello, 123456789", True, b"NEXT")


def test_a_chunked_body_may_come_byte_by_byte() -> None:
    body = Chunked()
    content = b"".join(body.feed(CHUNKS[i : i + 1]) for i in range(len(CHUNKS) - 4))
    assert (content, body.done, body.rest) == (b"hello, 123456789", True, b"")


def test_an_open_chunk_is_given_out_as_it_comes() -> None:
    body = Chunked()
    assert body.feed(b"ffffff\r\nabc") == b"abc"
    assert body.feed(b"def") == b"def"
    assert body.rest == b""


@pytest.mark.parametrize(
    "data",
    [
        b"xyz\r\n",
        b"-5\r\nhello",
        b"0x5\r\nhello",
        b"1_0\r\nhello",
        b"\r\n",
        b"5\r\nhello world",
        b"5\nhello",
        b"5" * 9_000,
        b"1" + b"0" * 20 + b"\r\n",
        b"0\r\n" + b"t" * 9_000,
    ],
)
def test_broken_chunks_are_a_protocol_error(data: bytes) -> None:
    with pytest.raises(httpx.RemoteProtocolError):
        Chunked().feed(data)


def test_the_framing_follows_the_head() -> None:
    def framing(value: Head, method: str = "POST") -> type:
        return type(body_of(value, method))

    chunked, length = (b"Transfer-Encoding", b"Chunked"), (b"Content-Length", b"5")
    assert framing(head(chunked)) is Chunked
    assert framing(head(chunked, length)) is Chunked
    assert framing(head(length)) is Sized
    assert framing(head(length, length)) is Sized
    assert framing(head()) is UntilClose
    assert body_of(head(length), "HEAD").done
    assert body_of(head(chunked, status=204), "POST").done
    assert body_of(head(length, status=304), "POST").done


@pytest.mark.parametrize(
    "headers",
    [
        [(b"content-length", b"5"), (b"content-length", b"6")],
        [(b"content-length", b"-5")],
        [(b"content-length", b"five")],
        [(b"transfer-encoding", b"gzip, chunked")],
        [(b"transfer-encoding", b"chunked, chunked")],
    ],
)
def test_contradictory_framing_is_a_protocol_error(
    headers: list[tuple[bytes, bytes]],
) -> None:
    with pytest.raises(httpx.RemoteProtocolError):
        body_of(head(*headers), "POST")


def test_a_sized_body_ends_at_its_length() -> None:
    body = Sized(5)
    assert (body.feed(b"he"), body.done) == (b"he", False)
    assert (body.feed(b"lloNEXT"), body.done, body.rest) == (b"llo", True, b"NEXT")


def test_a_short_body_says_how_much_came() -> None:
    body = Sized(5)
    body.feed(b"he")
    with pytest.raises(httpx.RemoteProtocolError, match="after 2 of 5 bytes"):
        body.end()


def test_a_connection_is_kept_unless_told_otherwise() -> None:
    assert head().keeps_connection
    assert not head(version=b"1.0").keeps_connection
    assert not head((b"Connection", b"foo, Close")).keeps_connection


def test_a_request_head_states_the_length_of_the_body_at_hand() -> None:
    request = httpx.Request(
        "POST", "http://h/a%20b?c=d", headers={"X-A": "1"}, content=iter([b"ab", b"c"])
    )
    assert request_head(request, b"abc") == (
        b"POST /a%20b?c=d HTTP/1.1\r\nHost: h\r\nX-A: 1\r\ncontent-length: 3\r\n\r\n"
    )


def test_a_header_that_would_end_its_line_is_refused_without_its_value() -> None:
    request = httpx.Request(
        "GET", "http://h/", headers=[(b"x-key", b"secret\r\nevil: 1")]
    )
    with pytest.raises(httpx.LocalProtocolError, match="x-key") as caught:
        request_head(request, b"")
    assert "secret" not in str(caught.value)

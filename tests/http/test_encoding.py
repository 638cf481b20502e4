import gzip
import zlib
from collections.abc import Iterator

import pytest

from codex_py.http.encoding import DamagedBody, Unpacker, is_packed, unreadable

TEXT = b"data: one\n\n" * 40


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


def unpacked(encoding: str, data: bytes, size: int = 1) -> bytes:
    unpacker = Unpacker(encoding)
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    return b"".join(content for piece in pieces for content in unpacker.feed(piece))


@pytest.mark.parametrize("size", [1, 7, 10_000])
@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", gzip.compress(TEXT, mtime=0)),
        ("x-gzip", gzip.compress(TEXT, mtime=0)),
        (" GZip , identity", gzip.compress(TEXT, mtime=0)),
        ("gzip", gzip.compress(TEXT[:90], mtime=0) + gzip.compress(TEXT[90:], mtime=0)),
        ("gzip", gzip.compress(TEXT, mtime=0) + b"\0\0\0"),
        ("gzip", TEXT),
        ("deflate", zlib.compress(TEXT)),
        ("deflate", zlib.compress(TEXT, 0)),
        ("deflate", raw_deflate(TEXT)),
        ("Deflate", gzip.compress(TEXT, mtime=0)),
    ],
)
def test_a_packed_body_is_unpacked_wherever_it_is_split(
    encoding: str, body: bytes, size: int
) -> None:
    assert is_packed(encoding)
    assert unreadable(encoding) is None
    assert unpacked(encoding, body, size) == TEXT


def test_bytes_that_the_server_has_flushed_are_there_at_once() -> None:
    packer, unpacker = zlib.compressobj(wbits=31), Unpacker("gzip")
    for text in (b"one", b"two"):
        sent = packer.compress(text) + packer.flush(zlib.Z_SYNC_FLUSH)
        assert b"".join(unpacker.feed(sent)) == text


def test_a_body_that_is_cut_short_gives_what_there_is() -> None:
    assert TEXT.startswith(unpacked("gzip", gzip.compress(TEXT, mtime=0)[:-9]))


def test_a_small_body_cannot_become_a_large_piece() -> None:
    pieces: Iterator[bytes] = Unpacker("gzip").feed(gzip.compress(bytes(64 << 20)))
    assert max(len(next(pieces)) for _ in range(20)) <= 65_536


@pytest.mark.parametrize(
    ("encoding", "body"),
    [("gzip", gzip.compress(TEXT, mtime=0)[:20] + b"x" * 90), ("deflate", b"x" * 90)],
)
def test_a_damaged_body_is_named(encoding: str, body: bytes) -> None:
    with pytest.raises(DamagedBody, match="is damaged"):
        unpacked(encoding, body)


@pytest.mark.parametrize(
    "encoding", ["br", "zstd", "gzip, gzip", "deflate, gzip", "new"]
)
def test_any_other_packing_is_refused_in_one_sentence(encoding: str) -> None:
    assert unreadable(encoding) == (
        f"the server packed its answer ({encoding!r}), which nobody asked it to do;"
        " gzip or deflate alone can be read"
    )


@pytest.mark.parametrize("encoding", [None, "", "identity", "Identity, "])
def test_a_body_may_come_as_it_is(encoding: str | None) -> None:
    assert not is_packed(encoding)
    assert unreadable(encoding) is None

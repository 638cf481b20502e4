import pytest

from codex_py.process.output import HeadTailBuffer


def _buffer(*chunks: bytes, limit: int = 8) -> HeadTailBuffer:
    buffer = HeadTailBuffer(limit)
    for chunk in chunks:
        buffer.append(chunk)
    return buffer


def test_the_lines_that_are_left_out_are_counted() -> None:
    printed = "".join(f"{n}\n" for n in range(1, 200_001)).encode()
    buffer = HeadTailBuffer()
    buffer.append(printed)
    head, mark, tail = buffer.text().partition("\n... ")
    count = int(tail.partition(" bytes (")[2].partition(" ")[0])
    rest = tail.partition(" omitted ...\n")[2]
    assert mark
    assert head.count("\n") + count + rest.count("\n") == 200_000
    assert "(" not in _buffer(b"abcdefghijklmnop").text()


def test_output_within_the_limit_is_kept_whole() -> None:
    buffer = _buffer(b"ab", b"cdef", b"gh")
    assert (buffer.text(), buffer.total_bytes, buffer.omitted_bytes) == (
        "abcdefgh",
        8,
        0,
    )


def test_output_beyond_the_limit_keeps_both_ends() -> None:
    buffer = _buffer(b"abcde", b"fghi" * 10, b"wxyz")
    assert buffer.text() == "abcd\n... 41 bytes omitted ...\nwxyz"
    assert (buffer.total_bytes, buffer.omitted_bytes) == (49, 41)


def test_the_cut_may_fall_between_any_two_chunks() -> None:
    data = bytes(range(65, 91))
    for size in range(1, 27):
        chunks = [data[i : i + size] for i in range(0, len(data), size)]
        assert _buffer(*chunks).text() == "ABCD\n... 18 bytes omitted ...\nWXYZ"


def test_bytes_that_are_not_utf8_become_replacement_characters() -> None:
    assert _buffer(b"a\xffb\x00").text() == "a\ufffdb\x00"


def test_a_character_is_not_cut_in_two_by_the_omission() -> None:
    # Three bytes each; four bytes of either end are kept.
    assert _buffer("€€€€".encode()).text() == "€\n... 6 bytes omitted ...\n€"


@pytest.mark.parametrize(
    ("data", "lines"), [(b"", 0), (b"a", 1), (b"a\n", 1), (b"a\nb", 2), (b"\n\n", 2)]
)
def test_lines_are_counted_with_the_unfinished_one(data: bytes, lines: int) -> None:
    assert _buffer(data).lines == lines


def test_lines_that_were_not_kept_are_counted() -> None:
    assert _buffer(b"1\n2\n" * 25).lines == 50


@pytest.mark.parametrize("first", [0, 3, 8, 50])
@pytest.mark.parametrize("second", [0, 3, 8, 50])
def test_absorbing_a_buffer_gives_what_one_buffer_would_have(
    first: int, second: int
) -> None:
    data = bytes(65 + i % 26 if i % 7 else 10 for i in range(first + second))
    one, two = _buffer(data[:first]), _buffer(data[first:])
    one.absorb(two)
    whole = _buffer(data)
    assert (one.text(), one.total_bytes, one.lines) == (
        whole.text(),
        whole.total_bytes,
        whole.lines,
    )


@pytest.mark.parametrize(
    ("data", "popped"),
    [
        (b"ab", b""),
        ("é".encode(), b""),
        (b"a\xc3", b"\xc3"),
        ("a€".encode()[:-1], b"\xe2\x82"),
        ("🙂".encode()[:3], "🙂".encode()[:3]),
        (b"a\x82\x82", b""),
    ],
)
def test_only_the_beginning_of_a_character_is_popped(
    data: bytes, popped: bytes
) -> None:
    buffer = _buffer(data)
    assert (buffer.pop_incomplete(), buffer.total_bytes) == (
        popped,
        len(data) - len(popped),
    )

import pytest

from codex_py.filesystem.texts import NotText, decode_readable, decode_text

TEXT = "Use café.\r\nNo 日本 🙂.\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_a_mark_decides_between_the_encodings_of_unicode(encoding: str) -> None:
    assert decode_text(TEXT.encode(encoding)) == TEXT


@pytest.mark.parametrize("order", ["be", "le"])
def test_both_orders_of_bytes_are_read(order: str) -> None:
    for width in ("utf-16", "utf-32"):
        assert decode_text(f"\ufeff{TEXT}".encode(f"{width}-{order}")) == TEXT


def test_an_empty_text_and_a_mark_alone_are_empty() -> None:
    assert [decode_text(data) for data in (b"", b"\xef\xbb\xbf", b"\xff\xfe")] == [
        "",
        "",
        "",
    ]


@pytest.mark.parametrize(
    ("data", "readable", "fault"),
    [
        (
            b"a\ncaf\xe9\n",
            "a\ncaf\ufffd\n",
            "UTF-8 (invalid byte at offset 5, in line 2)",
        ),
        (
            b"\x93quoted\x94",
            "\ufffdquoted\ufffd",
            "UTF-8 (invalid byte at offset 0, in line 1)",
        ),
        (
            b"\xef\xbb\xbfx\n\n\xff",
            "x\n\n\ufffd",
            "UTF-8 (invalid byte at offset 6, in line 3)",
        ),
        (b"x\xc3", "x\ufffd", "UTF-8 (invalid byte at offset 1, in line 1)"),
        (
            b"\xed\xa0\x80",
            "\ufffd\ufffd\ufffd",
            "UTF-8 (invalid byte at offset 0, in line 1)",
        ),
        (
            b"\xff\xfea\x00\n\x00b",
            "a\n\ufffd",
            "UTF-16-LE (invalid byte at offset 6, in line 2)",
        ),
    ],
)
def test_bytes_that_are_not_valid_are_replaced_and_the_first_is_named(
    data: bytes, readable: str, fault: str
) -> None:
    text, found = decode_readable(data)
    assert (text, str(found)) == (readable, f"it is not valid {fault}")
    with pytest.raises(NotText) as caught:
        decode_text(data)
    assert str(caught.value) == str(found)


@pytest.mark.parametrize(
    "data", [TEXT.encode("utf-16-le"), b"\x89PNG\n\0", b"x\n\0", b"\xff\0"]
)
def test_nul_characters_are_no_text(data: bytes) -> None:
    for decode in (decode_text, decode_readable):
        with pytest.raises(NotText):
            decode(data)
    with pytest.raises(
        NotText, match="the first in line 2: it is binary, or UTF-16 without"
    ):
        decode_readable(b"x\n\0")


def test_a_character_that_a_cut_went_through_is_no_fault() -> None:
    assert decode_readable("aé".encode()[:-1], is_cut=True) == ("a", None)
    assert decode_readable("a🙂".encode("utf-16")[:-1], is_cut=True) == ("a", None)

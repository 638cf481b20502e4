import pytest

from codex_py.patch.diff.names import git_names, header_name, quoted, stripped, unquoted


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("a b", b"a b"),
        ("café", "café".encode()),
        ('say "hi"', rb'"say \"hi\""'),
        ("a\\b\tc\nd", rb'"a\\b\tc\nd"'),
        ("\x01\x7f", rb'"\001\177"'),
        ("caf\udce9", rb'"caf\351"'),
    ],
)
def test_names_are_quoted_as_git_does_and_read_back(name: str, written: bytes):
    assert quoted(name) == written
    assert unquoted(written) == name.encode(errors="surrogateescape")


def test_octal_escapes_are_bytes():
    assert unquoted(rb'"caf\303\251"') == "café".encode()


@pytest.mark.parametrize(
    ("rest", "expected"),
    [
        (b"a/x\n", (b"a/x", b"")),
        (b"a/x y\t\n", (b"a/x y", b"")),
        (b"x\t2020-01-01 10:00:00.0 +0000\n", (b"x", b"2020-01-01 10:00:00.0 +0000")),
        (b"x y 2020-01-01 10:00:00 +0000\r\n", (b"x y", b"2020-01-01 10:00:00 +0000")),
        (b'"a/\\"x"\t1\n', (b'a/"x', b"1")),
        (
            b"/dev/null Thu Jan 01 00:00:00 1970 +0000\n",
            (b"/dev/null", b"Thu Jan 01 00:00:00 1970 +0000"),
        ),
        (
            b"a/t.txt Thu Jan  1 00:00:00 1970\n",
            (b"a/t.txt", b"Thu Jan  1 00:00:00 1970"),
        ),
        (
            b"a b c   Fri Feb 12 10:11:12.5 2021 GMT\n",
            (b"a b c", b"Fri Feb 12 10:11:12.5 2021 GMT"),
        ),
        (b"x 2020-01-01T10:00:00Z\n", (b"x", b"2020-01-01T10:00:00Z")),
        (b"x 2020-01-01 10:00 +01:00\n", (b"x", b"2020-01-01 10:00 +01:00")),
        (b"Thu Jan 1 notes.txt\n", (b"Thu Jan 1 notes.txt", b"")),
        (b"minutes of Thu Jan 01\n", (b"minutes of Thu Jan 01", b"")),
        (b"v 2020-01-01\n", (b"v 2020-01-01", b"")),
    ],
)
def test_a_header_has_a_name_and_perhaps_a_time(
    rest: bytes, expected: tuple[bytes, bytes]
):
    assert header_name(rest) == expected


@pytest.mark.parametrize(
    ("rest", "expected"),
    [
        (b"a/x b/x\n", (b"a/x", b"b/x")),
        (b"a/x b/y b/x b/y\n", (b"a/x b/y", b"b/x b/y")),
        (b"x x\n", (b"x", b"x")),
        (b'"a/\\t" "b/\\t"\n', (b"a/\t", b"b/\t")),
        (b'a/x "b/\\t"\n', (b"a/x", b"b/\t")),
        (b"a/x b/y\n", None),
    ],
)
def test_the_two_names_of_a_git_line_are_told_apart(
    rest: bytes, expected: tuple[bytes, bytes] | None
):
    assert git_names(rest) == expected


def test_leading_directories_are_left_out():
    assert [stripped("a//b/c", count) for count in range(4)] == [
        "a//b/c",
        "b/c",
        "c",
        None,
    ]

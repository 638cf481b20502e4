"""Tests `command_line/prompt_input.py`."""

import os
import pty
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from codex_py.command_line import prompt_input
from codex_py.command_line.prompt_input import decode_prompt, start_reading
from codex_py.errors import CodexError, UsageError


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for fd in ends:
        try:
            os.close(fd)
        except OSError:
            continue


def read(argument: str | None, fd: int) -> tuple[str, list[str]]:
    notices: list[str] = []
    return start_reading(argument, notice=notices.append, fd=fd).result(10), notices


def test_without_an_argument_the_input_is_the_prompt(pipe: tuple[int, int]) -> None:
    os.write(pipe[1], b"do it\n")
    os.close(pipe[1])
    assert read(None, pipe[0]) == ("do it\n", ["Reading prompt from stdin..."])


def test_a_dash_reads_the_prompt_without_a_notice(pipe: tuple[int, int]) -> None:
    os.write(pipe[1], b"do it")
    os.close(pipe[1])
    assert read("-", pipe[0]) == ("do it", [])


@pytest.mark.parametrize(
    ("piped", "expected", "told"),
    [
        (b"a\nb\n", "review\n\n<stdin>\na\nb\n</stdin>", "2 lines"),
        (b"a", "review\n\n<stdin>\na\n</stdin>", "1 line"),
        (b" \n", "review", None),
        (b"", "review", None),
    ],
)
def test_input_goes_below_the_argument(
    pipe: tuple[int, int], piped: bytes, expected: str, told: str | None
) -> None:
    os.write(pipe[1], piped)
    os.close(pipe[1])
    notices = ["Reading additional input from stdin..."] if piped else []
    if told is not None:
        notices.append(f"The prompt ends with {told} of standard input.")
    assert read("review", pipe[0]) == (expected, notices)


def test_input_that_is_not_to_go_below_is_left_to_others(pipe: tuple[int, int]) -> None:
    os.write(pipe[1], b"theirs")
    reading = start_reading("look", notice=print, piped=False, fd=pipe[0])
    assert (reading.result(0), os.read(pipe[0], 10)) == ("look", b"theirs")


def test_a_pipe_that_says_nothing_is_not_waited_for(pipe: tuple[int, int]) -> None:
    prompt, (notice,) = read("do it", pipe[0])
    assert prompt == "do it"
    assert notice.startswith("warning: nothing has come on standard input yet")


def test_once_the_first_byte_is_there_all_is_read(pipe: tuple[int, int]) -> None:
    reading = start_reading("look", notice=lambda _: None, fd=pipe[0])
    os.write(pipe[1], b"first ")

    def later() -> None:
        os.write(pipe[1], b"x" * 200_000)
        os.close(pipe[1])

    writer = threading.Timer(prompt_input.GRACE_S * 2, later)
    writer.start()
    text = reading.result(10)
    writer.join()
    assert text == f"look\n\n<stdin>\nfirst {'x' * 200_000}\n</stdin>"


def test_a_non_blocking_pipe_is_read_to_its_end(pipe: tuple[int, int]) -> None:
    os.set_blocking(pipe[0], False)
    reading = start_reading(None, notice=lambda _: None, fd=pipe[0])
    os.write(pipe[1], b"do it")
    os.close(pipe[1])
    assert reading.result(10) == "do it"


def test_a_file_is_read_at_once(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"text")
    with (tmp_path / "in").open("rb") as file:
        assert read("p", file.fileno())[0] == "p\n\n<stdin>\ntext\n</stdin>"


def test_a_terminal_is_not_read(capsys: pytest.CaptureFixture[str]) -> None:
    ours, theirs = pty.openpty()
    try:
        assert read("do it", theirs) == ("do it", [])
        with pytest.raises(UsageError, match="no prompt"):
            start_reading(None, notice=print, fd=theirs)
    finally:
        os.close(ours)
        os.close(theirs)
    assert capsys.readouterr().out == ""


def test_blank_input_is_no_prompt(pipe: tuple[int, int]) -> None:
    os.write(pipe[1], b" \n")
    os.close(pipe[1])
    with pytest.raises(CodexError) as caught:
        read(None, pipe[0])
    assert (str(caught.value), caught.value.exit_code) == (
        "No prompt provided via stdin.",
        2,
    )


def test_an_empty_argument_is_no_prompt() -> None:
    with pytest.raises(UsageError, match="the prompt is empty"):
        start_reading(" ", notice=print)


def test_input_that_is_no_text_is_refused() -> None:
    assert decode_prompt(b"\xff\xfeh\x00i\x00") == "hi"
    with pytest.raises(CodexError, match="UTF-16 without a byte order mark"):
        decode_prompt(b"h\x00i\x00")


def test_input_without_an_end_is_an_error(
    pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prompt_input, "MAX_BYTES", 1000)
    os.write(pipe[1], b"x" * 2000)
    with pytest.raises(
        CodexError, match="Failed to read prompt from stdin: there are more than"
    ):
        read(None, pipe[0])


def test_a_folder_as_input_is_an_error(tmp_path: Path) -> None:
    fd = os.open(tmp_path, os.O_RDONLY)
    try:
        with pytest.raises(CodexError, match="Is a directory"):
            read(None, fd)
    finally:
        os.close(fd)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("é\r\n".encode(), "é\r\n"),
        ("é".encode("utf-8-sig"), "é"),
        ("é".encode("utf-16"), "é"),
        (b"\xfe\xff" + "é".encode("utf-16-be"), "é"),
        ("é".encode("utf-32"), "é"),
    ],
)
def test_byte_order_marks_choose_the_encoding(data: bytes, text: str) -> None:
    assert decode_prompt(data) == text


@pytest.mark.parametrize(
    ("data", "place"),
    [
        (b"ab\xffcd", "UTF-8 (invalid byte at offset 2, in line 1)"),
        (b"\xff\xfea", "UTF-16-LE (invalid byte at"),
    ],
)
def test_the_first_bad_byte_is_named(data: bytes, place: str) -> None:
    with pytest.raises(CodexError) as caught:
        decode_prompt(data)
    assert place in str(caught.value)

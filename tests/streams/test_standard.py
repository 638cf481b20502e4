import os
import threading
from pathlib import Path

import pytest

from codex_py.streams.standard import OutputStream


def drain(fd: int) -> bytes:
    data = b""
    while piece := os.read(fd, 65536):
        data += piece
    return data


@pytest.mark.parametrize("blocking", [True, False])
def test_everything_arrives_through_a_slow_pipe(blocking: bool) -> None:
    ours, theirs = os.pipe()
    os.set_blocking(theirs, blocking)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(drain(ours)))
    reader.start()
    OutputStream(theirs).write(b"x" * 1_000_000)
    os.close(theirs)
    reader.join()
    os.close(ours)
    assert got == [b"x" * 1_000_000]


def test_a_reader_that_left_is_told_of_once() -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    told: list[str] = []
    stream = OutputStream(theirs)
    stream.on_failure = lambda: told.append("left")
    stream.write(b"a")
    stream.write(b"b")
    os.close(theirs)
    assert (told, stream.reader_left) == (["left"], True)


def test_patience_with_a_full_pipe_ends_and_comes_back_with_its_reader() -> None:
    ours, theirs = os.pipe()
    stream = OutputStream(theirs, timeout_s=0.05)
    stream.write(b"x" * 1_000_000)
    held = len(os.read(ours, 1_000_000))
    stream.write(b"more")
    os.close(theirs)
    assert 0 < held < 1_000_000
    assert drain(ours) == b"more"
    os.close(ours)


def test_a_file_is_not_waited_for(tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as file:
        OutputStream(file.fileno(), timeout_s=0.0).write_text("é" * 10_000 + "\ud800")
    assert (tmp_path / "out").read_text(encoding="utf-8") == "é" * 10_000 + "?"


def test_a_closed_descriptor_is_a_failure_and_no_exception() -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    os.close(theirs)
    stream = OutputStream(theirs)
    stream.write(b"x")
    assert stream.failure is not None
    assert not stream.reader_left

"""A damaged line costs itself alone: what is left of a session can be sent.

Tests `protocol/response_order.py`.
"""

import json
import re
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from codex_py.protocol.messages import EncodedItem, encode_json
from codex_py.protocol.response_order import COMPLETED, HistoryPlace
from codex_py.rollout.reader import read_session
from codex_py.rollout.writer import RolloutWriter
from codex_py.testing.rules import pairing_problem
from tests.rollout.builders import assistant, call, developer, meta, output, user


def reasoning(text: str) -> EncodedItem:
    summary = [{"type": "summary_text", "text": text}]
    return EncodedItem(encode_json({"type": "reasoning", "summary": summary}))


def place(
    response: int, position: int, arrival: int | None = None, *, answer: bool = False
) -> HistoryPlace:
    return HistoryPlace(
        response, answer, position, position if arrival is None else arrival
    )


PLACED: Sequence[tuple[EncodedItem, HistoryPlace | None]] = [
    (user("go"), None),
    (reasoning("hm"), place(1, 0)),
    (call("a"), place(1, 1)),
    (call("b"), place(1, 2)),
    (developer("a hook on b"), place(1, 2, answer=True)),
    (output("b"), place(1, 2, answer=True)),
    (call("c", "custom_tool_call"), place(1, 3)),
    (output("c", kind="custom_tool_call_output"), place(1, 3, answer=True)),
    (output("a"), place(1, 1, answer=True)),
    # A stream that broke, and one that repeats a call of it.
    (reasoning("on"), place(2, 0)),
    (call("d"), place(2, 1)),
    (output("d"), place(2, 1, answer=True)),
    (reasoning("and?"), place(2, 2)),
    (reasoning("on"), place(3, 0)),
    (assistant("second"), place(3, 3, 2)),
    (assistant("first"), place(3, 2, 3)),
    (user("and on"), None),
    (call("old"), None),
    (output("old"), None),
    (assistant("done"), None),
]
WHOLE = [
    *(user("go"), reasoning("hm"), call("a"), call("b"), call("c", "custom_tool_call")),
    *(output("a"), developer("a hook on b"), output("b")),
    output("c", kind="custom_tool_call_output"),
    *(reasoning("on"), call("d"), output("d"), assistant("first"), assistant("second")),
    *(user("and on"), call("old"), output("old"), assistant("done")),
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with closing(RolloutWriter.create(tmp_path, meta(), warn=pytest.fail)) as writer:
        for item, where in PLACED:
            writer.response_item(item, where)
    return writer.path


def test_items_are_read_in_the_order_of_the_history(path: Path) -> None:
    assert read_session(path).items == WHOLE


def test_reasoning_at_the_end_of_a_whole_response_is_kept(path: Path) -> None:
    with closing(RolloutWriter.resume(path, warn=pytest.fail)) as writer:
        writer.response_item(reasoning("last"), place(4, 0))
        assert read_session(path).items == WHOLE
        writer.event_msg({"type": COMPLETED}, place(4, 1))
    assert read_session(path).items == [*WHOLE, reasoning("last")]


def replaced(lines: list[bytes], number: int, *new: bytes) -> list[bytes]:
    return [*lines[:number], *new, *lines[number + 1 :]]


def garbage(line: bytes) -> bytes:
    return line[:20] + b"\xff\0\x80" * 9 + line[47:]


def without_place(line: bytes) -> bytes:
    return re.sub(rb'"place":\[[^]]*\],', b"", line)


LOSSES: dict[str, Callable[[list[bytes], int], list[bytes]]] = {
    "lost": lambda lines, n: replaced(lines, n),
    "torn": lambda lines, n: replaced(lines, n, lines[n][: len(lines[n]) // 2]),
    "torn at its end": lambda lines, n: replaced(lines, n, lines[n][:-2] + b"\n"),
    "garbage": lambda lines, n: replaced(lines, n, garbage(lines[n])),
    "zeros": lambda lines, n: replaced(lines, n, b"\0" * len(lines[n])),
    "half overwritten": lambda lines, n: replaced(
        lines, n, lines[1][:60] + lines[n][60:]
    ),
    "no id": lambda lines, n: replaced(
        lines, n, lines[n].replace(b'"call_id":"', b'"call_no":"')
    ),
    "no place": lambda lines, n: replaced(lines, n, without_place(lines[n])),
    "no place and no id": lambda lines, n: replaced(
        lines, n, without_place(lines[n]).replace(b'"call_id":"', b'"call_no":"')
    ),
    "a number as id": lambda lines, n: replaced(
        lines, n, lines[n].replace(b'"call_id":"', b'"call_id":7,"was":"')
    ),
}


@pytest.mark.parametrize("number", range(1, len(PLACED) + 1))
@pytest.mark.parametrize("how", LOSSES)
def test_a_damaged_line_costs_itself_alone(path: Path, how: str, number: int) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(LOSSES[how](lines, number)))
    stored = read_session(path)
    items: list[Any] = [json.loads(item) for item in stored.items]
    assert pairing_problem(items) is None
    # Of the rest, only what belongs to the line is left out: the output of a call, the reasoning before it.
    damaged = PLACED[number - 1][0]
    gone = [item for item in WHOLE if item != damaged and item not in stored.items]
    call_id = json.loads(damaged).get("call_id")
    assert all(
        json.loads(item).get("call_id", call_id) == call_id
        and (b"_output" in item or b"reasoning" in item)
        for item in gone
    )
    assert len(gone) <= 2
    assert stored.damaged_lines <= 1


@pytest.mark.parametrize("number", range(1, len(PLACED) + 1))
def test_a_line_that_is_there_twice_or_runs_into_the_next_costs_nothing(
    path: Path, number: int
) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    again = lines[number].replace(b'{"timestamp":"2', b'{"timestamp":"3')
    twice, later, joined = (
        [lines[number], lines[number]],
        [lines[number], again] if b"call" in again else [lines[number]],
        [lines[number][:-1]],
    )
    for new in (twice, later, joined):
        path.write_bytes(b"".join(replaced(lines, number, *new)))
        stored = read_session(path)
        assert (stored.items, stored.damaged_lines) == (WHOLE, 0)


def test_lines_after_a_torn_line_are_read(path: Path) -> None:
    data = path.read_bytes()
    lines = data.splitlines(keepends=True)
    for cut in range(1, len(lines[-1]) - 1):
        # As Codex goes on with a file whose last line a kill has cut off.
        path.write_bytes(b"".join([*lines[:-1], lines[-1][:cut], lines[1]]))
        stored = read_session(path)
        assert (stored.items, stored.damaged_lines) == ([*WHOLE[:-1], user("go")], 1)

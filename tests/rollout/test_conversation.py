"""Tests `rollout/reader.py`."""

import json
from pathlib import Path

from codex_py.rollout.reader import read_conversation
from tests.rollout.builders import assistant, meta, record, session_file, user


def _file(home: Path, *items: bytes) -> Path:
    session = meta()
    lines = [record("response_item", json.loads(item)) for item in items]
    return session_file(
        home, [record("session_meta", session.payload()), *lines], session.id
    )


def test_only_the_end_of_a_long_file_is_shown_if_that_is_asked_for(
    tmp_path: Path,
) -> None:
    items = [
        user("first"),
        assistant("x" * 3_000_000),
        user("second"),
        assistant("y" * 2_000),
    ]
    path = _file(tmp_path, *items)
    assert read_conversation(path) == items
    assert read_conversation(path, 5_000_000) == items
    assert read_conversation(path, 2_200) == items[2:]
    # The line that the end begins in is whole.
    assert read_conversation(path, 1_000_000) == items[1:]


def test_the_whole_thread_is_shown_without_what_was_taken_back(tmp_path: Path) -> None:
    path = _file(tmp_path, user("one"), assistant("1"), user("two"))
    with path.open("a", encoding="utf-8") as file:
        for kind, payload in (
            (
                "compacted",
                {"message": "m", "replacement_history": [json.loads(user("summary"))]},
            ),
            ("response_item", json.loads(user("three"))),
            ("event_msg", {"type": "thread_rolled_back", "num_turns": 1}),
            ("event_msg", {"type": "agent_message", "message": "not an item"}),
            ("event_msg", {"type": "task_complete", "duration_ms": 1}),
        ):
            file.write(record(kind, payload) + "\n")
    said = [json.loads(item) for item in read_conversation(path)]
    assert said[:-1] == [
        json.loads(each)
        for each in (user("one"), assistant("1"), user("two"), user("summary"))
    ]
    assert said[-1]["type"] == "task_complete"

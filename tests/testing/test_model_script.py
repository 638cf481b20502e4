"""The scripts that `scripts/model-server` plays.

Tests `testing/script.py`.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from codex_py.testing import (
    Reply,
    ev_completed,
    ev_created,
    ev_failed,
    ev_item_done,
    ev_message,
)
from scripts.model_script import load_script


def script(tmp_path: Path, value: Any) -> Path:
    path = tmp_path / "script.json"
    path.write_text(
        value if isinstance(value, str) else json.dumps(value), encoding="utf-8"
    )
    return path


def test_a_list_says_texts_and_items_and_is_completed(tmp_path: Path):
    call = {"type": "function_call", "call_id": "call_1", "name": "exec_command"}
    written = [["Look:", {**call, "arguments": {"cmd": "ls"}}]]
    assert load_script(script(tmp_path, written)) == [
        Reply(
            events=[
                ev_created(),
                *ev_message("Look:"),
                ev_item_done({**call, "arguments": '{"cmd": "ls"}'}, index=1),
                ev_completed(),
            ]
        )
    ]


def test_a_list_that_ends_its_response_is_left_so(tmp_path: Path):
    failed = ev_failed("server_error", "oh")
    assert load_script(script(tmp_path, [[failed]])) == [
        Reply(events=[ev_created(), failed])
    ]


def test_an_object_is_played_as_it_stands(tmp_path: Path):
    written: Any = [
        {"events": ["Half an"], "cut": True, "chunk_each": True},
        {"status": 429, "headers": {"retry-after": "1"}, "body": {"error": {}}},
        {"status": 502, "body": "<html>"},
    ]
    assert load_script(script(tmp_path, written)) == [
        Reply(events=ev_message("Half an"), cut=True, chunk_each=True),
        Reply(status=429, headers={"retry-after": "1"}, body=b'{"error": {}}'),
        Reply(status=502, body=b"<html>"),
    ]


def test_events_of_other_apis_go_out_as_they_are(tmp_path: Path):
    chunk: dict[str, Any] = {"id": "x", "choices": []}
    start = {"type": "content_block_start", "index": 0}
    written = [{"events": [chunk, start, "Hi."]}]
    assert load_script(script(tmp_path, written)) == [
        Reply(events=[chunk, start, *ev_message("Hi.", index=2)])
    ]


NO_SCRIPTS: list[tuple[Any, str]] = [
    ("[", "Expecting value: line 1 column 2 (char 1)"),
    ({}, "a script is a list of replies"),
    ([["fine"], 3], "reply 2: neither a list nor an object"),
    ([[3]], "reply 1: neither a text nor an object with a type: 3"),
    ([{"evnts": []}], "reply 1: unknown fields: evnts"),
]


@pytest.mark.parametrize(("written", "problem"), NO_SCRIPTS)
def test_a_wrong_script_is_reported_with_its_place(
    tmp_path: Path, written: Any, problem: str
):
    path = script(tmp_path, written)
    with pytest.raises(ValueError, match=f"^{re.escape(f'{path}: {problem}')}$"):
        load_script(path)

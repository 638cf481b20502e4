"""Also tests `rollout/lines.py` and `rollout/records.py`."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from codex_py.errors import SessionError
from codex_py.protocol.ids import new_thread_id
from codex_py.protocol.messages import EncodedItem
from codex_py.protocol.stream import Usage
from codex_py.rollout.reader import StoredSession, read_conversation, read_session
from codex_py.rollout.records import SessionMeta
from tests.rollout.builders import (
    TIMESTAMP,
    assistant,
    call,
    developer,
    meta,
    numbered,
    output,
    record,
    session_file,
    user,
)

_PREFIX = (
    "Another language model started to solve this problem and produced a summary.\n"
)


def _read(home: Path, *lines: str) -> StoredSession:
    session = meta()
    first = record("session_meta", session.payload())
    return read_session(session_file(home, [first, *lines], session.id))


def _item(item: EncodedItem) -> str:
    return record("response_item", json.loads(item))


def _tokens(total: int, last: int) -> str:
    info = {
        "total_token_usage": {"input_tokens": total},
        "last_token_usage": {"input_tokens": last},
    }
    return record("event_msg", {"type": "token_count", "info": info})


def test_a_session_is_read_as_it_was_recorded(tmp_path: Path) -> None:
    context = developer("<permissions instructions>ask</permissions instructions>")
    environment = user(
        "<environment_context>\n  <cwd>/repo</cwd>\n</environment_context>"
    )
    items = [
        context,
        environment,
        user("hi"),
        call("a"),
        output("a"),
        assistant("done"),
    ]
    session = meta(
        base_instructions="be good", forked_from_id="an id", git={"branch": "main"}
    )
    lines = [
        record("session_meta", session.payload()),
        *map(_item, items),
        record("turn_context", {"model": "gpt-5.4"}),
        record("turn_context", {"model": "gpt-5.5"}),
        _tokens(100, 100),
        _tokens(250, 150),
        record("event_msg", {"type": "token_count", "info": None}),
        record("a line of another time", {"x": 1}),
    ]
    path = session_file(tmp_path, lines, session.id)
    assert read_session(path) == StoredSession(
        path=path,
        meta=session,
        items=items,
        usage=Usage(input_tokens=250),
        last_usage=Usage(input_tokens=150),
        model="gpt-5.5",
        context={
            "<permissions instructions>": "<permissions instructions>ask</permissions instructions>",
            "<environment_context>": "<environment_context>\n  <cwd>/repo</cwd>\n</environment_context>",
        },
        damaged_lines=0,
    )


def test_context_is_what_was_said_last_of_each_kind(tmp_path: Path) -> None:
    first, second = (f"# AGENTS.md instructions for /repo\n\n{n}" for n in (1, 2))
    stored = _read(tmp_path, _item(user(first)), _item(user("hi")), _item(user(second)))
    assert stored.context == {"# AGENTS.md instructions": second}


def test_a_classic_file_may_have_its_base_prompt_as_plain_text(tmp_path: Path) -> None:
    session = meta()
    first = record("session_meta", {**session.payload(), "instructions": "old"})
    stored = read_session(session_file(tmp_path, [first], session.id))
    assert stored.meta.base_instructions == "old"


@pytest.mark.parametrize(
    "line",
    [
        '{"timestamp": "x", "type": "response_item", "payload": {"role": "user", "content": "é"}}',
        '{"payload":{"role":"user","content":"\\u00e9"},"type":"response_item"}',
    ],
)
def test_lines_of_another_layout_are_read_too(tmp_path: Path, line: str) -> None:
    assert _read(tmp_path, line).items == ['{"role":"user","content":"é"}'.encode()]


@pytest.mark.parametrize("kind", [[], {}, 1, None])
def test_an_event_whose_type_is_no_text_is_not_shown(
    tmp_path: Path, kind: object
) -> None:
    session = meta()
    first = record("session_meta", session.payload())
    lines = [first, record("event_msg", {"type": kind}), _item(user("hi"))]
    path = session_file(tmp_path, lines, session.id)
    assert len(read_conversation(path)) == 1


def test_a_line_separator_within_a_line_does_not_end_it(tmp_path: Path) -> None:
    item = user("a\u2028b\u0085c\x0cd")
    assert _read(tmp_path, _item(item)).items == [item]


def test_a_lone_surrogate_does_not_reach_the_next_request(tmp_path: Path) -> None:
    line = record("response_item", {"type": "message", "role": "user", "content": "?"})
    stored = _read(tmp_path, line.replace("?", "\\ud800 \\ud83d\\ude00"))
    assert [json.loads(item)["content"] for item in stored.items] == [
        "\ufffd \U0001f600"
    ]


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(_item(user("lost"))[:-1], id="cut"),
        pytest.param(_item(user("lost")) + "}", id="too much"),
        pytest.param("\x00" * 100, id="zeros"),
        pytest.param("[" * 100_000, id="deep"),
        pytest.param(
            '{"timestamp":"x","type":"response_item","payload":' + "[" * 99_999,
            id="deeper",
        ),
        pytest.param(record("response_item", "text"), id="no object"),
        pytest.param(
            '{"timestamp":"x","type":"response_item","payload":{"n":NaN}}', id="NaN"
        ),
        pytest.param("7", id="a number"),
    ],
)
def test_a_damaged_line_costs_no_other(tmp_path: Path, damage: str) -> None:
    stored = _read(tmp_path, _item(user("a")), damage, "", _item(user("b")))
    assert (stored.items, stored.damaged_lines) == ([user("a"), user("b")], 1)


def test_bytes_that_are_no_text_are_a_damaged_line(tmp_path: Path) -> None:
    path = _read(tmp_path, _item(user("a"))).path
    with path.open("ab") as file:
        file.write(b'{"timestamp":"\xff"}\n')
    assert read_session(path).damaged_lines == 1


@pytest.mark.parametrize(
    ("recorded", "items"),
    [
        pytest.param([output("a"), user("x")], [user("x")], id="output without a call"),
        pytest.param(
            [call("a"), user("x")],
            [call("a"), output("a", "aborted"), user("x")],
            id="no output",
        ),
        pytest.param(
            [call("a"), call("b"), call("c"), output("a")],
            [
                call("a"),
                call("b"),
                call("c"),
                output("a"),
                output("b", "aborted"),
                output("c", "aborted"),
            ],
            id="behind the outputs of its response",
        ),
        pytest.param(
            [call("a"), call("b"), output("b"), call("c"), output("c")],
            [
                call("a"),
                call("b"),
                output("b"),
                output("a", "aborted"),
                call("c"),
                output("c"),
            ],
            id="before the next response",
        ),
        pytest.param(
            [call("a"), user("x"), call("a"), output("a")],
            [call("a"), output("a", "aborted"), user("x"), call("a"), output("a")],
            id="an id that came again",
        ),
        pytest.param(
            [call("a"), call("b"), output("a"), call("c"), output("b"), output("c")],
            [call("a"), call("b"), output("a"), call("c"), output("b"), output("c")],
            id="outputs among the calls",
        ),
        pytest.param(
            [call("a", "custom_tool_call"), output("a")],
            [
                call("a", "custom_tool_call"),
                output("a", "aborted", "custom_tool_call_output"),
            ],
            id="an output of another kind",
        ),
    ],
)
def test_every_call_has_one_output_and_every_output_its_call(
    tmp_path: Path, recorded: list[EncodedItem], items: list[EncodedItem]
) -> None:
    def decoded(encoded: list[EncodedItem]) -> list[Any]:
        return [json.loads(item) for item in encoded]

    assert decoded(_read(tmp_path, *map(_item, recorded)).items) == decoded(items)


@pytest.mark.parametrize(
    "damage",
    [
        {"type": 5},
        {"type": ["message"]},
        {"type": "message", "role": ["user"]},
        {"type": "message", "content": None},
        {"name": 5},
        {"arguments": {"cmd": "ls"}},
        {"call_id": ""},
        {"call_id": None},
        {"type": "custom_tool_call", "input": 5},
        {"type": "function_call_output", "output": None},
    ],
    ids=str,
)
def test_an_item_that_no_provider_takes_is_damage(
    tmp_path: Path, damage: dict[str, Any]
) -> None:
    item = {**json.loads(call("a")), "role": "user", "content": "x", **damage}
    stored = _read(
        tmp_path, _item(user("x")), record("response_item", item), _item(output("a"))
    )
    assert [json.loads(each) for each in stored.items] == [json.loads(user("x"))]
    assert stored.damaged_lines == 1


def test_an_old_local_shell_call_is_answered_under_its_id(tmp_path: Path) -> None:
    shell = {
        "type": "local_shell_call",
        "id": "lsh_1",
        "call_id": None,
        "action": {"type": "exec"},
    }
    stored = _read(tmp_path, record("response_item", shell))
    assert json.loads(stored.items[-1]) == json.loads(output("lsh_1", "aborted"))


def test_a_compaction_replaces_what_came_before_it(tmp_path: Path) -> None:
    kept = [
        developer("<permissions instructions>now"),
        user("hi"),
        user(_PREFIX + "all is well"),
    ]
    compacted = {
        "message": "…",
        "replacement_history": [json.loads(item) for item in kept],
    }
    stored = _read(
        tmp_path,
        _item(user("<environment_context>gone")),
        _item(call("a")),
        record("compacted", compacted),
        _item(assistant("and on")),
    )
    assert stored.items == [*kept, assistant("and on")]
    assert stored.context == {
        "<permissions instructions>": "<permissions instructions>now"
    }


def test_a_compaction_that_kept_its_summary_alone_is_built_again(
    tmp_path: Path,
) -> None:
    environment = user("<environment_context>here</environment_context>")
    long_ago, earlier, latest = (
        user("x" * 60_000),
        user("y" * 30_000),
        user("z" * 40_000),
    )
    stored = _read(
        tmp_path,
        _item(environment),
        _item(long_ago),
        _item(user("<turn_aborted>stopped</turn_aborted>")),
        _item(call("a")),
        _item(output("a")),
        _item(earlier),
        _item(user(_PREFIX + "the first summary")),
        _item(latest),
        _item(assistant("yes")),
        record("compacted", {"message": _PREFIX + "the second summary"}),
    )
    assert stored.items == [
        environment,
        earlier,
        latest,
        user(_PREFIX + "the second summary"),
    ]


@pytest.mark.parametrize(("turns", "kept"), [(1, 4), (2, 1), (9, 1), (0, 7), ("x", 7)])
def test_turns_that_were_taken_back_are_gone(
    tmp_path: Path, turns: object, kept: int
) -> None:
    items = [
        user("<environment_context>here</environment_context>"),
        user("one"),
        call("a"),
        output("a"),
        user("two"),
        user("<turn_aborted>stopped</turn_aborted>"),
        assistant("done"),
    ]
    taken_back = record("event_msg", {"type": "thread_rolled_back", "num_turns": turns})
    stored = _read(tmp_path, *map(_item, items), taken_back, _item(user("three")))
    assert stored.items == [*items[:kept], user("three")]


def _native(
    home: Path,
    texts: dict[int, str],
    *,
    thread_id: str,
    base: tuple[str, int] | None = None,
    suffix: str = "",
    stamp: str = "2026-11-20T10-00-00",
) -> Path:
    """A file as today's Codex writes it: a prompt for each ordinal, with what it adds to items."""
    payload: dict[str, Any] = {
        **meta(id=thread_id).payload(),
        "history_mode": "paginated",
    }
    payload["base_instructions"] = {"text": "be good", "provenance": "x"}
    if base is not None:
        payload["history_base"] = {
            "thread_id": base[0],
            "end_ordinal_exclusive": base[1],
        }
    first = min(texts) - 1
    lines = [numbered(first, "session_meta", payload)]
    for ordinal, text in texts.items():
        item = {
            **json.loads(user(text)),
            "internal_chat_message_metadata_passthrough": {"turn_id": "t"},
        }
        lines.append(
            numbered(ordinal, "response_item", item, metadata={"history_sequence": 1})
        )
    return session_file(home, lines, thread_id + suffix, stamp=stamp)


def test_a_native_session_is_read_without_what_is_private_to_its_service(
    tmp_path: Path,
) -> None:
    thread_id = new_thread_id()
    stored = read_session(_native(tmp_path, {1: "hi", 2: "é"}, thread_id=thread_id))
    assert stored.meta.native
    assert stored.items == [user("hi"), user("é")]
    assert stored.meta.base_instructions == "be good"
    assert stored.damaged_lines == 0


def test_a_native_fork_goes_on_from_the_lines_it_shares_with_its_parents(
    tmp_path: Path,
) -> None:
    grandparent, parent, child = (new_thread_id() for _ in range(3))
    _native(tmp_path, {1: "a", 2: "b", 3: "not shared"}, thread_id=grandparent)
    _native(
        tmp_path, {4: "c", 5: "not shared"}, thread_id=parent, base=(grandparent, 3)
    )
    path = _native(tmp_path, {6: "d"}, thread_id=child, base=(parent, 5))
    stored = read_session(path)
    assert stored.items == [user("a"), user("b"), user("c"), user("d")]
    assert (stored.thread_id, stored.path) == (child, path)


def test_a_native_session_taken_back_to_an_earlier_prompt_has_its_second_file(
    tmp_path: Path,
) -> None:
    thread_id = new_thread_id()
    _native(tmp_path, {1: "a", 2: "taken back"}, thread_id=thread_id)
    second = _native(
        tmp_path,
        {3: "b"},
        thread_id=thread_id,
        base=(thread_id, 2),
        suffix=f"_{new_thread_id()}",
        stamp="2026-11-20T11-00-00",
    )
    assert read_session(second).items == [user("a"), user("b")]


def test_a_fork_without_its_parent_is_not_read_in_part(tmp_path: Path) -> None:
    thread_id, parent = new_thread_id(), new_thread_id()
    path = _native(tmp_path, {6: "d"}, thread_id=thread_id, base=(parent, 5))
    with pytest.raises(SessionError) as caught:
        read_session(path)
    assert str(caught.value) == (
        f"{path} goes on from session {parent}, whose file is missing;"
        " restore it from a backup, or use another session"
    )


def test_a_missing_file_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "none.jsonl"
    with pytest.raises(SessionError) as caught:
        read_session(path)
    assert str(caught.value) == (
        f"the session file {path} cannot be read: No such file or directory"
    )


@pytest.mark.parametrize(
    "first",
    [
        "",
        "[" * 100_000,
        record("response_item", json.loads(user("hi"))),
        record("session_meta", {"timestamp": TIMESTAMP}),
        record("session_meta", {"id": "../../etc/passwd"}),
    ],
)
def test_a_file_that_does_not_begin_as_a_session_is_refused(
    tmp_path: Path, first: str
) -> None:
    path = session_file(tmp_path, [first], new_thread_id())
    with pytest.raises(SessionError) as caught:
        read_session(path)
    assert str(caught.value) == (
        f"{path} is damaged: it does not start with session metadata;"
        " restore it from a backup, or use another session"
    )


def test_metadata_is_read_as_it_was_written() -> None:
    session = meta(
        base_instructions="be good", git={"branch": "main"}, source={"subagent": "x"}
    )
    assert (
        SessionMeta.from_line(record("session_meta", session.payload()).encode())
        == session
    )


def test_a_session_of_twenty_megabytes_is_read_in_a_moment(tmp_path: Path) -> None:
    text = 'a line of output, "quoted", with\ta tab\n' * 230
    lines = [
        line
        for n in range(1000)
        for line in (_item(call(str(n))), _item(output(str(n), text * 2)))
    ]
    path = _read(tmp_path, *lines).path
    assert path.stat().st_size > 18_000_000
    seconds: list[float] = []
    for _ in range(3):
        started = time.process_time()
        assert len(read_session(path).items) == 2000
        seconds.append(time.process_time() - started)
    # Some 0.05 s on a quiet machine; a reader that goes over the text again and again is far beyond this.
    assert min(seconds) < 1

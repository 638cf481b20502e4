"""Mistakes in a script are told where it is written.

Tests `testing/reply.py`, and how `testing/fake_model.py` and `testing/script.py` check replies.
"""

from typing import Any

import pytest

from codex_py import Agent
from codex_py.testing import (
    FakeModel,
    Pause,
    Reply,
    ScriptedServer,
    call,
    ev_completed,
    ev_message,
)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"body": {"error": 1}}, "`body` of a reply is bytes or None, not a dict"),
        ({"body": "text"}, "`body` of a reply is bytes or None, not a str"),
        ({"events": 42}, "`events` of a reply is a list of parts, not an int"),
        ({"events": "text"}, "`events` of a reply is a list of parts, not a str"),
        ({"events": b"data"}, "`events` of a reply is a list of parts, not a bytes"),
        (
            {"events": ev_completed()},
            "`events` of a reply is a list of parts, not a dict",
        ),
        ({"events": None}, "`events` of a reply is a list of parts, not a NoneType"),
        (
            {"events": [ev_message("nested")]},
            "a part of a reply is an event, bytes or a `Pause`, not a list",
        ),
        (
            {"events": [Pause]},
            "a part of a reply is an event, bytes or a `Pause`, not a type",
        ),
        ({"status": "429"}, "`status` of a reply is a number, not a str"),
        ({"status": True}, "`status` of a reply is a number, not a bool"),
        (
            {"headers": None},
            "`headers` of a reply is a mapping of texts, not a NoneType",
        ),
        (
            {"headers": {"retry-after": 1}},
            "a header of a reply is a text, not an int",
        ),
        (
            {"write_bytes": 1.5},
            "`write_bytes` of a reply is a number or None, not a float",
        ),
        ({"delay_s": "1"}, "`delay_s` of a reply is a number of seconds, not a str"),
    ],
)
def test_a_wrong_field_of_a_reply_is_refused(
    fields: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(TypeError) as raised:
        Reply(**fields)
    assert str(raised.value) == sentence


_NO_REPLY = (
    "a reply is a text, a call, a list of events, bytes, a `Reply` or a function, not "
)


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        (42, f"{_NO_REPLY}an int"),
        (None, f"{_NO_REPLY}a NoneType"),
        (1.5, f"{_NO_REPLY}a float"),
        (ev_completed(), f"{_NO_REPLY}a dict"),
        ({"a set"}, f"{_NO_REPLY}a set"),
        ([42], "a part of a reply is an event, bytes or a `Pause`, not an int"),
        (
            [ev_completed(), "text"],
            "a part of a reply is an event, bytes or a `Pause`, not a str",
        ),
    ],
)
def test_what_is_no_reply_is_refused(script: Any, sentence: str) -> None:
    with pytest.raises(TypeError) as raised:
        FakeModel("Hello.", script)
    assert str(raised.value) == sentence
    with pytest.raises(TypeError) as raised:
        ScriptedServer([script])
    assert str(raised.value) == sentence
    with pytest.raises(TypeError) as raised:
        Agent(FakeModel(lambda _: script)).run_sync("go")
    assert str(raised.value) == sentence


@pytest.mark.parametrize("line", [42, None, ev_completed(), ["nested"]])
def test_a_list_that_begins_with_a_text_or_a_call_has_nothing_else(line: Any) -> None:
    for first in ("text", call("exec_command", cmd="ls")):
        with pytest.raises(
            TypeError, match=r"^a line of a response is a text or a call, not "
        ):
            FakeModel([first, line])


def test_the_name_of_a_call_is_a_text() -> None:
    name: Any = 42
    with pytest.raises(TypeError, match=r"^the name of a tool is a text, not an int$"):
        call(name)

"""Tests `core/context.py`."""

import json
from typing import Any

from codex_py.core.context import context_update, initial_items
from codex_py.protocol.messages import EncodedItem, encode_json, input_text, message

PERMISSIONS = "<permissions instructions>\nread\n</permissions instructions>"
ELSEWHERE = "<environment_context>\n  <cwd>/elsewhere</cwd>\n</environment_context>"
HERE = "<environment_context>\n  <cwd>/here</cwd>\n</environment_context>"
AGENTS = (
    "# AGENTS.md instructions for /here\n\n<INSTRUCTIONS>\nBe kind.\n</INSTRUCTIONS>"
)
REPLACED = (
    "# AGENTS.md instructions for /here\n\n<INSTRUCTIONS>\n"
    "These AGENTS.md instructions replace all previously provided AGENTS.md instructions.\n\n"
    "Be kind.\n</INSTRUCTIONS>"
)
NO_AGENTS = (
    "# AGENTS.md instructions\n\n<INSTRUCTIONS>\n"
    "The previously provided AGENTS.md instructions no longer apply.\n</INSTRUCTIONS>"
)


def developer(*texts: str) -> EncodedItem:
    return message("developer", [input_text(text) for text in texts])


def user(*texts: str) -> EncodedItem:
    return message("user", [input_text(text) for text in texts])


def told(update: list[EncodedItem]) -> list[tuple[str, list[str]]]:
    items: list[dict[str, Any]] = [json.loads(item) for item in update]
    return [
        (item["role"], [part["text"] for part in item["content"]]) for item in items
    ]


def test_unchanged_context_is_not_sent_again() -> None:
    context = [developer("Mine.", PERMISSIONS), user(AGENTS, HERE)]
    assert context_update([*context, user("hi")], context) == []


def test_only_the_block_that_changed_is_sent() -> None:
    history = [developer(PERMISSIONS), user(AGENTS, ELSEWHERE), user("hi")]
    current = [developer(PERMISSIONS), user(AGENTS, HERE)]
    assert told(context_update(history, current)) == [("user", [HERE])]


def test_the_newest_block_counts() -> None:
    history = [developer(PERMISSIONS), user(HERE), user("hi"), user(ELSEWHERE)]
    assert told(context_update(history, [developer(PERMISSIONS), user(HERE)])) == [
        ("user", [HERE])
    ]


def test_other_agents_md_replaces_the_one_before() -> None:
    history = [user(AGENTS.replace("kind", "quick"), HERE)]
    update = context_update(history, [user(AGENTS, HERE)])
    assert told(update) == [("user", [REPLACED])]
    assert context_update([*history, *update], [user(AGENTS, HERE)]) == []


def test_agents_md_that_went_away_is_taken_back_once() -> None:
    history = [user(AGENTS, HERE)]
    update = context_update(history, [user(HERE)])
    assert told(update) == [("user", [NO_AGENTS])]
    assert context_update([*history, *update], [user(HERE)]) == []


def test_agents_md_that_came_later_replaces_nothing() -> None:
    assert told(context_update([user(HERE)], [user(AGENTS, HERE)])) == [
        ("user", [AGENTS])
    ]


def test_a_history_without_blocks_is_told_everything() -> None:
    current = [developer("Mine.", PERMISSIONS), user(AGENTS, HERE)]
    assert told(context_update([user("hi")], current)) == [
        ("developer", [PERMISSIONS]),
        ("user", [AGENTS, HERE]),
    ]


def test_context_of_others_does_not_count() -> None:
    said = {"type": "function_call_output", "call_id": "c", "output": ELSEWHERE}
    plain = {"type": "message", "role": "user", "content": ELSEWHERE}
    history = [
        user(HERE),
        EncodedItem(encode_json(said)),
        EncodedItem(encode_json(plain)),
    ]
    assert context_update(history, [user(HERE)]) == []


def test_a_thread_begins_with_the_developer_and_the_place():
    encoded = initial_items(["dev", "perms"], ["agents", "env"])
    messages = [json.loads(item) for item in encoded]
    assert {message["type"] for message in messages} == {"message"}
    assert [
        (message["role"], [part["text"] for part in message["content"]])
        for message in messages
    ] == [("developer", ["dev", "perms"]), ("user", ["agents", "env"])]


def test_context_that_is_turned_off_or_blank_is_left_out():
    only_user = initial_items([" ", None], ["agents", None])
    assert only_user == initial_items([], ["agents"])
    assert initial_items([" ", None], [None, None]) == []

"""`exec resume`, as Codex 0.169 does it."""

import os
from typing import Any

import pytest

from codex_py.testing import ev_completed, ev_created, ev_custom_tool_call, ev_message
from tests.support.program import Workplace, run_codex_py
from tests.support.server import ScriptedServer


def says(text: str) -> list[dict[str, Any]]:
    return [ev_created(), *ev_message(text), ev_completed()]


def texts(item: dict[str, Any]) -> list[str]:
    return [part["text"] for part in item["content"]]


def test_the_newest_session_of_all_folders_is_found_on_demand(place: Workplace) -> None:
    other = place.cwd / "other"
    other.mkdir()
    with ScriptedServer([says("one"), says("two")]) as server:
        first = place.run(server, "first")
        here_only = place.rerun("-C", "other", "resume", "--last", "second")
        anywhere = place.rerun("-C", "other", "resume", "--last", "--all", "second")
    assert (here_only.code, here_only.events) == (2, [])
    assert here_only.err.startswith(
        f"Error: no session to resume: none was recorded in {other}"
    )
    assert anywhere.events[0] == first.events[0]
    assert anywhere.messages == ["two"]


@pytest.mark.parametrize("how", [("resume",), ("fork",)])
def test_the_newest_session_goes_on_with_the_provider_that_is_configured_now(
    place: Workplace, how: tuple[str]
) -> None:
    with ScriptedServer([says("one"), says("two"), says("three")]) as server:
        place.run(server, "first")
        other = f'model_providers.other={{name="Other", base_url="{server.base_url}"}}'
        moved = ("-c", other, "-c", "model_provider=other")
        second = place.rerun(*moved, *how, "--last", "second")
        third = place.rerun(*moved, *how, "--last", "third")
    assert (second.code, second.messages, third.messages) == (0, ["two"], ["three"])
    assert texts(server.requests[2].input[-1]) == ["third"]
    assert "began with the provider `mock`; it goes on with `other`." in str(
        second.items[0]
    )


def test_a_folder_that_was_renamed_is_named_with_what_to_do(place: Workplace) -> None:
    old, new = place.cwd / "old", place.cwd / "new"
    old.mkdir()
    patch = "*** Begin Patch\n*** Add File: a\n+b\n*** End Patch"
    changes = [
        ev_created(),
        *ev_custom_tool_call("c", "apply_patch", patch),
        ev_completed(),
    ]
    with ScriptedServer([changes, says("one"), says("two")]) as server:
        first = place.run(server, "-C", str(old), "first")
        old.rename(new)
        renamed = Workplace(place.home, new)
        last = renamed.rerun("resume", "--last", "second")
        thread: str = first.events[0]["thread_id"]
        listed = run_codex_py(["sessions", "list"], place.home, new)
        undone = run_codex_py(["undo"], place.home, new)
        assert renamed.rerun("resume", thread, "second").messages == ["two"]
    for text in (last.err, listed.stdout.decode()):
        assert f"the folder {old} of session {thread} does not exist any more" in text
        assert f"`codex-py resume {thread}`" in text
        assert "--all" in text
    assert (last.code, listed.returncode, undone.returncode) == (2, 0, 1)
    assert (
        f"in {old}, which does not exist any more (rename it back"
        in undone.stderr.decode()
    )
    assert (new / "a").exists()


def test_a_folder_whose_name_is_not_utf_8_has_its_sessions(place: Workplace) -> None:
    odd = place.cwd / os.fsdecode(b"caf\xe9")
    odd.mkdir()
    with ScriptedServer([says("one"), says("two")]) as server:
        there = Workplace(place.home, odd)
        there.run(server, "first")
        assert there.rerun("resume", "--last", "second").messages == ["two"]


def test_the_context_can_be_turned_off(place: Workplace) -> None:
    switches = ("include_permissions_instructions", "include_environment_context")
    off = [word for name in switches for word in ("-c", f"{name}=false")]
    with ScriptedServer([says("one"), says("two")]) as server:
        place.run(server, *off, "-c", "developer_instructions='mine'", "first")
        place.run(server, "second")
    without, whole = (
        [text for item in request.input for text in texts(item)]
        for request in server.requests
    )
    assert without[-2:] == ["mine", "first"]
    for block in ("<permissions instructions>", "<environment_context>"):
        assert [text for text in without if text.startswith(block)] == []
        assert len([text for text in whole if text.startswith(block)]) == 1


def test_standard_input_is_left_alone_beside_a_prompt(place: Workplace) -> None:
    with ScriptedServer([says("one"), says("two")]) as server:
        place.run(server, "first")
        done = place.rerun("resume", "--last", "second", stdin=b"not for us")
    assert done.err == ""
    assert texts(server.requests[1].input[-1]) == ["second"]


def test_the_model_is_told_what_has_changed(place: Workplace) -> None:
    sub = place.cwd / "sub"
    sub.mkdir()
    with ScriptedServer([says("one"), says("two"), says("three")]) as server:
        place.run(server, "first")
        (sub / "AGENTS.md").write_text("Be kind.\n", encoding="utf-8")
        arguments = ("-C", "sub", "-s", "read-only", "resume", "--last", "--all")
        place.rerun(*arguments, "second")
        place.rerun(*arguments, "third")
    before, after, last = (request.input for request in server.requests)
    permissions, surroundings, prompt = after[len(before) + 1 :]
    assert permissions["role"] == "developer"
    assert texts(permissions)[0].startswith("<permissions instructions>\n")
    agents, environment = texts(surroundings)
    assert agents.startswith(f"# AGENTS.md instructions for {sub}\n")
    assert f"<cwd>{sub}</cwd>" in environment
    assert texts(prompt) == ["second"]
    # Once is enough.
    assert [texts(item) for item in last[len(after) :]] == [["two"], ["third"]]

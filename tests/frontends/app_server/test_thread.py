"""The settings of a turn, where they need the session to be opened anew: the first turn too takes all of them.

Tests `frontends/app_server/thread.py`.
"""

from typing import Any

import pytest

from codex_py.testing import ev_completed, ev_created, ev_message
from tests.support.app_server import AppServer, Message
from tests.support.program import Workplace
from tests.support.server import ScriptedServer

SETTINGS: Message = {
    "model": "gpt-5.4",
    "approvalPolicy": "never",
    "approvalsReviewer": "auto_review",
    "serviceTier": "flex",
    "effort": "low",
    "summary": "none",
    "sandboxPolicy": {"type": "workspaceWrite", "networkAccess": True},
}


def says(text: str) -> list[Any]:
    return [ev_created(), *ev_message(text), ev_completed()]


def texts(request: Any) -> list[str]:
    """The texts of all messages of a request."""
    return [
        part["text"]
        for item in request.fields["input"]
        for part in item.get("content", ())
    ]


@pytest.mark.parametrize("kind", ["kept", "ephemeral", "named"])
def test_the_first_turn_takes_what_a_thread_starts_with(
    place: Workplace, kind: str
) -> None:
    other = place.cwd / "other"
    other.mkdir()
    with ScriptedServer([says("one"), says("two")], check_prefix=False) as model:
        place.configure(model)
        with AppServer(place.home, place.cwd) as server:
            thread = server.thread(sandbox="read-only", ephemeral=kind == "ephemeral")
            if kind == "named":
                named = {"threadId": thread, "name": "mine"}
                server.ask("thread/name/set", named)
            server.turn(thread, cwd=str(other), **SETTINGS)
            assert server.ended(thread)["status"] == "completed"
            server.turn(thread, "and again")
            server.ended(thread)
            resumed = server.ask("thread/resume", {"threadId": thread})
            read = server.ask("thread/read", {"threadId": thread})["thread"]
    first, second = model.requests
    assert (first.fields["model"], first.fields["service_tier"]) == ("gpt-5.4", "flex")
    assert first.fields["reasoning"]["effort"] == "low"
    last_permissions = [text for text in texts(first) if "<permissions" in text][-1]
    assert "`workspace-write`" in last_permissions
    places = [text for text in texts(first) if "<environment_context>" in text]
    assert f"<cwd>{other}</cwd>" in places[-1]
    assert ("go" in texts(second), "and again" in texts(second)) == (True, True)
    assert (resumed["cwd"], resumed["approvalPolicy"]) == (str(other), "never")
    assert (resumed["approvalsReviewer"], resumed["serviceTier"]) == (
        "auto_review",
        "flex",
    )
    assert (read["id"], read["cwd"]) == (thread, str(other))
    assert read["name"] == ("mine" if kind == "named" else None)
    assert len(place.rollouts()) == (0 if kind == "ephemeral" else 1)


@pytest.mark.parametrize("ephemeral", [False, True])
def test_the_first_turn_of_a_fork_takes_settings_and_keeps_the_conversation(
    place: Workplace, ephemeral: bool
) -> None:
    other = place.cwd / "other"
    other.mkdir()
    with ScriptedServer([says("one"), says("two")], check_prefix=False) as model:
        place.configure(model)
        with AppServer(place.home, place.cwd) as server:
            thread = server.thread()
            server.turn(thread, "remember this")
            server.ended(thread)
            asked = {"threadId": thread, "ephemeral": ephemeral}
            fork = server.ask("thread/fork", asked)["thread"]["id"]
            server.turn(fork, cwd=str(other), **SETTINGS)
            assert server.ended(fork)["status"] == "completed"
    said = texts(model.requests[1])
    assert ("remember this" in said, "one" in said) == (True, True)
    places = [text for text in said if "<environment_context>" in text]
    assert f"<cwd>{other}</cwd>" in places[-1]
    assert model.requests[1].fields["service_tier"] == "flex"


def test_a_folder_that_is_not_there_changes_nothing(place: Workplace) -> None:
    with ScriptedServer([says("one")]) as model:
        place.configure(model)
        with AppServer(place.home, place.cwd) as server:
            thread = server.thread(ephemeral=True)
            said = [{"type": "text", "text": "go"}]
            gone = str(place.cwd / "gone")
            asked = {"threadId": thread, "input": said, "cwd": gone}
            assert "gone" in server.refused("turn/start", asked)["message"]
            server.turn(thread)
            assert server.ended(thread)["status"] == "completed"
            resumed = server.ask("thread/resume", {"threadId": thread})
    assert resumed["cwd"] == str(place.cwd)

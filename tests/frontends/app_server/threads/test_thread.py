"""The settings of a turn, where they need the session to be opened anew: the first turn too takes all of them.
And what codex-acp needs besides: the mode of a thread, and its commands in the background.

Tests `frontends/app_server/threads/thread.py`, `frontends/app_server/threads/setting_changes.py`
and `frontends/app_server/threads/background_terminals.py`.
"""

from typing import Any

import pytest

from codex_py.testing import (
    Pause,
    ev_completed,
    ev_created,
    ev_function_call,
    ev_message,
)
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

SHORT = {"yield_time_ms": 250}


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


def plan(mode: str) -> Message:
    # As codex-acp asks for it.
    settings = {
        "model": "gpt-5.4",
        "reasoning_effort": "low",
        "developer_instructions": None,
    }
    return {"mode": mode, "settings": settings}


def test_a_thread_can_be_put_into_plan_mode_and_keeps_it_when_it_is_resumed(
    place: Workplace,
) -> None:
    with ScriptedServer([says("one"), says("two"), says("three")]) as model:
        place.configure(model)
        with AppServer(place.home, place.cwd) as server:
            thread = server.thread(sandbox="workspace-write")
            asked = {"threadId": thread, "collaborationMode": plan("plan")}
            assert server.ask("thread/settings/update", asked) == {}
            told = server.told("thread/settings/updated")["threadSettings"]
            # The mode alone makes it read-only.
            assert told["sandboxPolicy"]["type"] == "workspaceWrite"
            assert told["collaborationMode"] == plan("plan")
            server.turn(thread, approvalPolicy="never")
            server.ended(thread)
        with AppServer(place.home, place.cwd) as server:
            resumed = server.ask("thread/resume", {"threadId": thread})
            assert resumed["collaborationMode"]["mode"] == "plan"
            server.turn(thread)
            server.ended(thread)
            asked = {"threadId": thread, "collaborationMode": plan("default")}
            server.ask("thread/settings/update", asked)
            server.turn(thread)
            server.ended(thread)
    modes = [
        [text for text in texts(request) if "<collaboration_mode>" in text]
        for request in model.requests
    ]
    assert [len(told) for told in modes] == [1, 1, 2]
    assert "read-only" in "".join(texts(model.requests[0]))
    assert model.requests[0].fields["model"] == "gpt-5.4"
    assert model.requests[0].fields["reasoning"]["effort"] == "low"


def test_settings_do_not_change_while_a_turn_runs(place: Workplace) -> None:
    pause = Pause()
    with ScriptedServer([[ev_created(), pause, *says("one")[1:]]]) as model:
        place.configure(model)
        with AppServer(place.home, place.cwd) as server:
            thread = server.thread()
            server.turn(thread)
            asked = {"threadId": thread, "collaborationMode": plan("plan")}
            error = server.refused("thread/settings/update", asked)
            assert "while it runs a turn" in error["message"]
            pause.until.set()
            server.ended(thread)


LOOSENED = """
model = "gpt-5.4"
model_reasoning_effort = "high"
approval_policy = "never"
sandbox_mode = "danger-full-access"
"""


@pytest.mark.parametrize(
    "changed", [{"effort": "low"}, {"serviceTier": "flex"}, {"cwd": "other"}]
)
def test_a_change_of_one_setting_takes_no_other_one_from_files_that_were_edited(
    place: Workplace, changed: Message
) -> None:
    (place.cwd / "other").mkdir()
    with ScriptedServer([says("one"), says("two")], check_prefix=False) as model:
        place.configure(model)
        config = place.home / "config.toml"
        text = config.read_text(encoding="utf-8")
        with AppServer(place.home, place.cwd) as server:
            thread = server.ask("thread/start", {"cwd": str(place.cwd)})["thread"]["id"]
            before = server.ask("thread/resume", {"threadId": thread})
            server.turn(thread)
            server.ended(thread)
            provider = text[text.index("model_provider") :]
            config.write_text(LOOSENED + provider, encoding="utf-8")
            server.turn(thread, **changed)
            server.ended(thread)
            after = server.ask("thread/resume", {"threadId": thread})
    kept = ("model", "approvalPolicy", "approvalsReviewer", "sandbox")
    assert [after[name] for name in kept] == [before[name] for name in kept]
    assert after["reasoningEffort"] == changed.get("effort")
    assert after["serviceTier"] == changed.get("serviceTier")
    assert model.requests[1].fields["model"] == before["model"]


def test_a_thread_goes_on_in_another_folder_when_its_own_is_gone(
    place: Workplace,
) -> None:
    gone = place.cwd / "gone"
    gone.mkdir()
    with ScriptedServer([says("one"), says("two")], check_prefix=False) as model:
        place.configure(model)
        with AppServer(place.home, place.cwd) as server:
            thread = server.thread(cwd=str(gone), sandbox="workspace-write")
            server.turn(thread)
            server.ended(thread)
            gone.rmdir()
            server.turn(thread, cwd=str(place.cwd))
            assert server.ended(thread)["status"] == "completed"
            after = server.ask("thread/resume", {"threadId": thread})
    assert after["cwd"] == str(place.cwd)
    assert after["sandbox"]["writableRoots"] == [str(place.cwd)]


def test_a_setting_that_the_files_have_too_by_now_is_taken(place: Workplace) -> None:
    with ScriptedServer([says("one")]) as model:
        place.configure(model)
        config = place.home / "config.toml"
        text = config.read_text(encoding="utf-8")
        with AppServer(place.home, place.cwd) as server:
            thread = server.ask("thread/start", {"cwd": str(place.cwd)})["thread"]["id"]
            config.write_text(f'model_reasoning_effort = "high"\n{text}', "utf-8")
            server.ask("thread/settings/update", {"threadId": thread, "effort": "high"})
            told = server.told("thread/settings/updated")["threadSettings"]
            server.turn(thread)
            server.ended(thread)
    assert told["effort"] == "high"
    assert model.requests[0].fields["reasoning"]["effort"] == "high"


def test_a_thread_that_cannot_be_read_keeps_its_settings(place: Workplace) -> None:
    with ScriptedServer([says("one")]) as model:
        place.configure(model)
        with AppServer(place.home, place.cwd) as server:
            thread = server.thread()
            server.turn(thread)
            server.ended(thread)
            before = server.ask("thread/resume", {"threadId": thread})
            (file,) = place.rollouts()
            away = file.rename(file.with_suffix(".away"))
            asked = {"threadId": thread, "sandbox": "read-only", "model": "gpt-5.4"}
            assert "cannot be read" in server.refused("thread/resume", asked)["message"]
            away.rename(file)
            after = server.ask("thread/resume", {"threadId": thread})
    for data in (before["thread"], after["thread"]):
        del data["updatedAt"]
        del data["recencyAt"]
    assert after == before


def test_no_command_runs_on_behind_its_turn(place: Workplace) -> None:
    runs = ev_function_call("c", "exec_command", {"cmd": "sleep 60", **SHORT})
    script = [[ev_created(), *runs, ev_completed()], says("one")]
    with ScriptedServer(script) as model:
        place.configure(model)
        with AppServer(place.home, place.cwd) as server:
            thread = server.thread()
            server.turn(thread)
            server.ended(thread)
            (item,) = server.items("commandExecution", thread)
            assert item["status"] == "failed"
            # As codex-acp does before it closes a thread.
            one = {"threadId": thread}
            answer = server.ask("thread/backgroundTerminals/list", one)
            assert answer == {"data": [], "nextCursor": None}
            none = {**one, "processId": "1"}
            answer = server.ask("thread/backgroundTerminals/terminate", none)
            assert answer == {"terminated": False}
            assert server.ask("thread/backgroundTerminals/clean", one) == {}


def test_a_thread_whose_file_was_removed_is_an_error_of_the_request(
    place: Workplace,
) -> None:
    with ScriptedServer([[*ev_message("done"), ev_completed()]]) as server:
        place.configure(server)
        with AppServer(place.home, place.cwd) as app:
            thread = app.thread()
            app.turn(thread)
            app.ended(thread)
            (file,) = place.home.rglob("rollout-*.jsonl")
            file.unlink()
            error = app.refused("thread/read", {"threadId": thread})
    assert error["code"] == -32600
    assert str(file) in error["message"]

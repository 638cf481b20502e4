"""Goals. Statuses and fields are those of Codex 0.169; its rounds are turns, ours are parts of one.

Tests `app/features/goals.py`.
"""

from typing import Any

import pytest

from codex_py.testing import (
    Pause,
    ev_completed,
    ev_created,
    ev_failed,
    ev_function_call,
    ev_message,
)
from tests.support.app_server import AppServer, Message
from tests.support.program import Workplace
from tests.support.server import ScriptedServer


def says(text: str) -> list[Any]:
    return [ev_created(), *ev_message(text), ev_completed()]


def calls(name: str, **arguments: Any) -> list[Any]:
    return [
        ev_created(),
        *ev_function_call(f"c_{name}", name, arguments),
        ev_completed(),
    ]


def goals(server: AppServer) -> list[Message | None]:
    """The goal after each change."""
    changes = ("thread/goal/updated", "thread/goal/cleared")
    said = [each for each in server.seen if each.get("method") in changes]
    return [each["params"].get("goal") for each in said]


def test_the_agent_goes_on_until_the_goal_is_reached(place: Workplace) -> None:
    script = [
        says("some"),
        says("more"),
        calls("update_goal", status="complete"),
        says("done"),
    ]
    with ScriptedServer(script) as model:
        place.configure(model)
        with AppServer(place.home, place.cwd) as server:
            thread = server.thread()
            assert server.ask("thread/goal/get", {"threadId": thread}) == {"goal": None}
            asked = {"threadId": thread, "objective": " make it "}
            goal = server.ask("thread/goal/set", asked)["goal"]
            assert (goal["objective"], goal["status"], goal["tokensUsed"]) == (
                "make it",
                "active",
                0,
            )
            # The answer comes before its notifications.
            assert [each.get("method") for each in server.seen[-2:]] != [
                "turn/started"
            ] * 2
            assert server.ended(thread)["status"] == "completed"
            goal = server.ask("thread/goal/get", {"threadId": thread})["goal"]
    # 70 a response: cached tokens do not count, nor does what comes after the end.
    assert (goal["status"], goal["tokensUsed"]) == ("complete", 210)
    note = model.requests[1].fields["input"][-1]
    assert (note["role"], "<objective>\nmake it\n" in note["content"][0]["text"]) == (
        "developer",
        True,
    )
    tools = [tool.get("name") for tool in model.requests[0].fields["tools"]]
    assert {"get_goal", "create_goal", "update_goal"} <= set(tools)
    methods = [each.get("method") for each in server.seen]
    assert methods.count("turn/started") == 1


def test_a_budget_ends_the_work(place: Workplace) -> None:
    script = [calls("get_goal"), says("wrapped up"), says("never sent")]
    with ScriptedServer(script) as model:
        place.configure(model)
        with AppServer(place.home, place.cwd) as server:
            thread = server.thread()
            asked = {"threadId": thread, "objective": "make it", "tokenBudget": 60}
            server.ask("thread/goal/set", asked)
            assert server.ended(thread)["status"] == "completed"
    assert len(model.requests) == 2
    assert (
        "budget of the goal is used up"
        in model.requests[1].fields["input"][-1]["content"][0]["text"]
    )
    last = goals(server)[-1]
    assert last is not None
    assert (last["status"], last["tokensUsed"]) == ("budgetLimited", 70)


@pytest.mark.parametrize("is_interrupted", [True, False])
def test_a_goal_whose_turn_ends_early_waits(
    place: Workplace, is_interrupted: bool
) -> None:
    pause = Pause()
    broken: list[Any] = [ev_failed("invalid_prompt", "no")]
    if is_interrupted:
        broken = [ev_created(), *ev_message("I begin", pieces=2)[:3], pause]
    with ScriptedServer(
        [broken, calls("update_goal", status="complete"), says("done")]
    ) as model:
        place.configure(model)
        with AppServer(place.home, place.cwd) as server:
            thread = server.thread()
            server.ask("thread/goal/set", {"threadId": thread, "objective": "make it"})
            if is_interrupted:
                turn = server.told("turn/started")["turn"]["id"]
                server.told("item/agentMessage/delta")
                server.ask("turn/interrupt", {"threadId": thread, "turnId": turn})
            server.ended(thread)
            goal = server.ask("thread/goal/get", {"threadId": thread})["goal"]
            assert goal["status"] == ("paused" if is_interrupted else "blocked")
        pause.until.set()
        # A later process goes on with it.
        with AppServer(place.home, place.cwd) as server:
            server.ask(
                "thread/resume", {"threadId": thread, "sandbox": "danger-full-access"}
            )
            assert (
                server.ask("thread/goal/get", {"threadId": thread})["goal"]["objective"]
                == "make it"
            )
            server.ask("thread/goal/set", {"threadId": thread, "status": "active"})
            assert server.ended(thread)["status"] == "completed"
            assert (
                server.ask("thread/goal/get", {"threadId": thread})["goal"]["status"]
                == "complete"
            )
            assert server.ask("thread/goal/clear", {"threadId": thread}) == {
                "cleared": True
            }
            assert server.ask("thread/goal/clear", {"threadId": thread}) == {
                "cleared": False
            }
            assert goals(server)[-1] is None


def test_mistakes_are_told(place: Workplace) -> None:
    with AppServer(place.home, place.cwd) as server:
        thread = {"threadId": server.thread()}
        for params, text in (
            ({"status": "paused"}, "no goal exists"),
            ({"objective": " "}, "goal objective must not be empty"),
            (
                {"objective": "x", "tokenBudget": 0},
                "a token budget is a whole number above 0",
            ),
            ({"objective": "x", "status": "begun"}, "Invalid request: `status`"),
        ):
            error = server.refused("thread/goal/set", {**thread, **params})
            assert (error["code"], text in error["message"]) == (-32600, True)
        assert server.ask("thread/goal/get", thread) == {"goal": None}
    with AppServer(place.home, place.cwd, "-c", "features.goals=false") as server:
        error = server.refused("thread/goal/get", {"threadId": server.thread()})
        assert error["message"] == "goals are off: `features.goals`"


def test_a_run_of_exec_has_goals_if_they_are_on(place: Workplace) -> None:
    script = [
        calls("create_goal", objective="make it"),
        says("some"),
        calls("update_goal", status="complete"),
        says("done"),
    ]
    with ScriptedServer(script) as model:
        outcome = place.run(model, "--enable", "goals", "go")
    assert (outcome.code, outcome.messages) == (0, ["some", "done"])
    with ScriptedServer([says("done")]) as model:
        place.run(model)
    assert "create_goal" not in [
        tool.get("name") for tool in model.requests[0].fields["tools"]
    ]

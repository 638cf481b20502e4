"""Tests `frontends/app_server/turn_items/plan_items.py` and
`frontends/app_server/turn_items/planning_feed.py`.
"""

import pytest

from codex_py.frontends.app_server.turn_items.plan_items import (
    PlanSplitter,
    ProposedPlan,
    separated,
)
from codex_py.protocol.event_items import AgentMessage
from codex_py.testing import ev_completed, ev_created, ev_message
from tests.support.app_server import AppServer, Message
from tests.support.program import Workplace
from tests.support.server import ScriptedServer

ANSWER = "I looked.\n\n<proposed_plan>\n# Plan\n\n- a\n</proposed_plan>\nBye"
MESSAGE = "I looked.\n\nBye"
PLAN = "# Plan\n\n- a\n"


def split(*deltas: str) -> dict[bool, str]:
    """The plan under True, and the rest under False."""
    splitter = PlanSplitter()
    found = {False: "", True: ""}
    for parts in (*map(splitter.feed, deltas), splitter.end()):
        for is_plan, text in parts:
            found[is_plan] += text
    return found


@pytest.mark.parametrize("size", [1, 3, 7, 100])
def test_an_answer_is_split_however_it_arrives(size: int) -> None:
    pieces = [ANSWER[at : at + size] for at in range(0, len(ANSWER), size)]
    assert split(*pieces) == {False: MESSAGE, True: PLAN}


@pytest.mark.parametrize(
    ("answer", "message", "plan"),
    [
        ("none", "none", ""),
        ("a <proposed_plan>\nb", "a <proposed_plan>\nb", ""),
        ("<proposed\nb", "<proposed\nb", ""),
        ("<prop", "<prop", ""),
        ("<proposed_plan>  \na", "", "a"),
        ("<proposed_plan>\na\n</proposed_plan>", "", "a\n"),
        ("</proposed_plan>\na", "</proposed_plan>\na", ""),
    ],
)
def test_only_a_line_of_its_own_is_a_tag(answer: str, message: str, plan: str) -> None:
    assert split(answer) == {False: message, True: plan}


def test_a_message_without_a_plan_stays_as_it_is() -> None:
    message = AgentMessage(id="1", text="")
    assert separated(message) == [message]


def test_a_message_is_separated_from_its_plan() -> None:
    whole = AgentMessage(id="1", text=ANSWER)
    assert separated(whole) == [
        AgentMessage(id="1", text=MESSAGE),
        ProposedPlan(PLAN),
    ]


def test_a_plan_at_the_beginning_is_the_first_item() -> None:
    whole = AgentMessage(id="1", text="<proposed_plan>\n- a\n</proposed_plan>\nBye\n")
    assert separated(whole) == [
        ProposedPlan("- a\n"),
        AgentMessage(id="1", text="Bye\n"),
    ]


def test_a_plan_is_an_item_of_its_own(place: Workplace) -> None:
    answer = [ev_created(), *ev_message(ANSWER, pieces=9), ev_completed()]
    with ScriptedServer([answer]) as model:
        place.configure(model)
        with AppServer(place.home, place.cwd) as server:
            thread = server.thread()
            mode: Message = {"mode": "plan", "settings": {}}
            server.turn(thread, collaborationMode=mode)
            turn = server.ended(thread)
            (plan,) = server.items("plan", thread)
            (message,) = server.items("agentMessage", thread)
            asked = {"threadId": thread, "includeTurns": True}
            read = server.ask("thread/read", asked)["thread"]["turns"]
    assert (plan["text"], message["text"]) == (PLAN, MESSAGE)
    assert turn["items"] == [message]
    methods = {"item/plan/delta": PLAN, "item/agentMessage/delta": MESSAGE}
    streamed = {
        method: "".join(
            each["params"]["delta"]
            for each in server.seen
            if each.get("method") == method
        )
        for method in methods
    }
    assert streamed == methods
    # With the same ids.
    assert read[0]["items"][1:] == [message, plan]

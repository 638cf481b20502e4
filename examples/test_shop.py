"""Tests of an agent, without a model, a key or a network: `pytest examples/test_shop.py`.

The agent of the program is made by a function, so that a test can give it another model.
"""

from typing import Any, Literal

import pytest
from pydantic import BaseModel

from codex_py import Agent, ApprovalRequest, ModelError, Review, ReviewDecision, tool
from codex_py.testing import FakeModel, Reply, call


class Answer(BaseModel):
    kind: Literal["stock", "order"]
    text: str


def stock(part: str) -> int:
    """How many of a part there are."""
    return {"bolts": 7, "nuts": 0}[part]


@tool(needs_approval=True)
def order(part: str, count: int) -> str:
    """Order more of a part."""
    return f"{count} {part} are on their way"


def approve(request: ApprovalRequest) -> bool | Review:
    if request.arguments["count"] > 100:
        return Review(ReviewDecision.DENIED, "Ask Eve for more than 100.")
    return True


def shop(model: Any = None) -> Agent[Answer]:
    return Agent(model, tools=[stock, order], approve=approve, output_type=Answer)


SAID = '{"kind": "stock", "text": "There are 7."}'


def test_the_answer_is_typed() -> None:
    model = FakeModel(call("stock", part="bolts"), SAID)
    answer = shop(model).run_sync("How many bolts?").output
    assert answer == Answer(kind="stock", text="There are 7.")


def test_the_model_reads_what_the_function_returns() -> None:
    model = FakeModel(call("stock", part="bolts"), SAID)
    shop(model).run_sync("How many bolts?")
    assert model.requests[1].output("call_1") == "7"


def test_a_failure_of_the_function_does_not_end_the_turn() -> None:
    model = FakeModel(call("stock", part="gears"), SAID)
    shop(model).run_sync("How many gears?")
    assert "KeyError: 'gears'" in model.requests[1].output("call_1")


@pytest.mark.parametrize(
    ("count", "output"), [(100, "on their way"), (101, "Ask Eve for more than 100.")]
)
def test_a_large_order_is_refused(count: int, output: str) -> None:
    model = FakeModel(call("order", part="nuts", count=count), SAID)
    result = shop(model).run_sync("Order nuts")
    assert output in model.requests[1].output("call_1")
    assert result.denied == (count > 100)


def test_an_answer_of_another_form_is_sent_back_once() -> None:
    model = FakeModel("There are 7.", SAID)
    assert shop(model).run_sync("How many bolts?").output.kind == "stock"
    assert len(model.requests) == 2


def test_a_provider_that_refuses_the_key_is_an_error_with_facts() -> None:
    with pytest.raises(ModelError) as caught:
        shop(FakeModel(Reply(status=401))).run_sync("How many bolts?")
    assert (caught.value.code, caught.value.retryable) == ("authentication", False)

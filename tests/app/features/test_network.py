"""The question about a host that is not on the list, while the request waits."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from codex_py.app.features.network import NetworkList
from codex_py.app.options import SessionOptions, SessionSetup
from codex_py.config.config import load_config
from codex_py.protocol.approval import (
    ApprovalPolicy,
    ApprovalRequest,
    Review,
    ReviewDecision,
    SandboxPolicy,
)
from codex_py.protocol.dispatch import Approvals, ItemIds, ToolContext, ToolUse
from codex_py.protocol.events import CallDenied, Event
from codex_py.protocol.network_report import Blocked
from codex_py.protocol.tools import FunctionPayload, ToolCall, ToolOutput


class _Approver:
    def __init__(self, *answers: ReviewDecision) -> None:
        self.answers, self.asked = list(answers), list[ApprovalRequest]()

    async def review(self, request: ApprovalRequest) -> Review:
        self.asked.append(request)
        return Review(self.answers.pop(0))


async def _dispatched(
    tmp_path: Path, approver: _Approver, policy: ApprovalPolicy, *hosts: str
) -> tuple[list[bool], ToolOutput, list[Event]]:
    """The answers for the hosts, of a command in one call; those that are refused are reported."""
    home = tmp_path / "home"
    home.mkdir()
    config = load_config(
        cwd=tmp_path, environment={"HOME": str(tmp_path), "CODEX_HOME": str(home)}
    )
    unused: Any = None
    setup = SessionSetup(config, SessionOptions(), {}, approver, unused, print)
    extension = NetworkList(setup)(unused)
    events: list[Event] = []
    context = ToolContext(
        "call",
        tmp_path,
        {},
        policy,
        SandboxPolicy(),
        Approvals(approver),
        events.append,
        ItemIds(lambda: "item"),
    )
    answers: list[bool] = []

    async def command(_: ToolUse) -> ToolOutput:
        for host in hosts:
            blocked = Blocked("call", host, 443, "not_allowed")
            assert setup.network.ask is not None
            answers.append(await asyncio.wrap_future(setup.network.ask(blocked)))
            if not answers[-1]:
                setup.network.add(blocked)
        return ToolOutput("printed\n")

    async with extension.around_session():
        use = ToolUse(
            ToolCall("exec_command", "call", FunctionPayload("{}")),
            unused,
            unused,
            context,
        )
        output = await extension.wrap_dispatch(command)(use)
    return answers, output, events


@pytest.mark.parametrize(
    ("decision", "asked"),
    [
        (ReviewDecision.APPROVED, ["a.test:443", "b.test:443"]),
        (ReviewDecision.APPROVED_FOR_SESSION, ["a.test:443", "b.test:443"]),
    ],
)
def test_a_yes_lets_the_request_go_on_and_is_asked_once_for_a_host(
    tmp_path: Path, decision: ReviewDecision, asked: list[str]
):
    approver = _Approver(decision, ReviewDecision.DENIED)
    answers, output, events = asyncio.run(
        _dispatched(
            tmp_path,
            approver,
            ApprovalPolicy.ON_REQUEST,
            "a.test",
            "a.test",
            "b.test",
            "b.test",
        )
    )
    assert answers == [True, True, False, False]
    assert [request.summary for request in approver.asked] == asked
    line = "Network access was blocked: b.test, port 443: it is not on the list of allowed domains."
    assert output.text == f"printed\n{line}"
    (denied,) = events
    assert isinstance(denied, CallDenied)
    assert (denied.reason, denied.allow) == (line, "`--allow-domain b.test`")


def test_always_is_written_to_the_users_configuration(tmp_path: Path):
    approver = _Approver(ReviewDecision.APPROVED_WITH_RULE)
    answers, _, _ = asyncio.run(
        _dispatched(tmp_path, approver, ApprovalPolicy.ON_REQUEST, "a.test")
    )
    assert answers == [True]
    config = load_config(
        cwd=tmp_path,
        environment={"HOME": str(tmp_path), "CODEX_HOME": str(tmp_path / "home")},
    )
    assert config.domains is not None
    assert config.domains.allow == ("a.test",)


def test_after_three_noes_a_command_asks_about_no_further_host(tmp_path: Path):
    approver = _Approver(*[ReviewDecision.DENIED] * 3)
    hosts = [f"{number}.test" for number in range(9)]
    answers, output, _ = asyncio.run(
        _dispatched(tmp_path, approver, ApprovalPolicy.ON_REQUEST, *hosts)
    )
    assert answers == [False] * 9
    assert [request.summary for request in approver.asked] == [
        f"{h}:443" for h in hosts[:3]
    ]
    assert "8.test" in output.text


def test_a_child_may_have_a_call_of_the_same_id_at_the_same_time(tmp_path: Path):
    unused: Any = None
    config = load_config(cwd=tmp_path, environment={"HOME": str(tmp_path)})
    setup = SessionSetup(config, SessionOptions(), {}, _Approver(), unused, print)
    call = ToolCall("exec_command", "call_0", FunctionPayload("{}"))
    context: Any = SimpleNamespace(call_id="call_0")

    async def command(_: ToolUse) -> ToolOutput:
        await asyncio.sleep(0)
        return ToolOutput("printed")

    async def both() -> list[ToolOutput]:
        dispatch = NetworkList(setup)(unused).wrap_dispatch(command)
        uses = [ToolUse(call, unused, unused, context) for _ in range(2)]
        return await asyncio.gather(*map(dispatch, uses))

    assert asyncio.run(both()) == [ToolOutput("printed")] * 2


def test_nobody_is_asked_where_the_policy_is_never(tmp_path: Path):
    approver = _Approver()
    answers, output, _ = asyncio.run(
        _dispatched(tmp_path, approver, ApprovalPolicy.NEVER, "a.test")
    )
    assert answers == [False]
    assert "a.test" in output.text

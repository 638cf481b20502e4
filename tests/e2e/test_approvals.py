"""Approval policies and rules in the real program; and with somebody who answers, in sessions of it.

Tests `protocol/approval.py`.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from codex_py.core.session import Session
from codex_py.core.session_turn import TurnResult
from codex_py.errors import TurnAborted
from codex_py.protocol.approval import Approver, ReviewDecision
from codex_py.protocol.event_items import ErrorItem
from codex_py.protocol.events import CallDenied, Event, ItemCompleted
from codex_py.testing import ev_completed, ev_function_call, ev_message
from tests.sandbox.local_backends import BACKENDS
from tests.support.program import Outcome, Workplace
from tests.support.repository import make_repository
from tests.support.server import ScriptedServer
from tests.support.talk import talk
from tests.support.tool_calls import ScriptedApprover

DONE = [*ev_message("done"), ev_completed()]
RULES = """
prefix_rule(pattern=["touch", "free"])
prefix_rule(pattern=["touch", "asked"], decision="prompt")
prefix_rule(pattern=["touch", "forbidden"], decision="forbidden", justification="not that one")
"""

needs_sandbox = pytest.mark.skipif(not BACKENDS, reason="needs a way to hold commands")


def calls(*scripts: str, **arguments: Any) -> list[Any]:
    return [
        *(
            event
            for n, script in enumerate(scripts)
            for event in ev_function_call(
                f"c{n}", "exec_command", {"cmd": script, **arguments}, index=n
            )
        ),
        ev_completed(),
    ]


def run(
    place: Workplace, script: str, *args: str, **arguments: Any
) -> tuple[Outcome, dict[str, Any], str]:
    """The run, the item of the command, and what the model was told."""
    with ScriptedServer([calls(script, **arguments), DONE]) as server:
        outcome = place.run(server, *args, "--fail-on", "denied", "go")
        told = server.requests[1].output("c0")
    commands = [item for item in outcome.items if item["type"] == "command_execution"]
    (command,) = commands
    return outcome, command, told


def names(place: Workplace) -> list[str]:
    return sorted(path.name for path in place.cwd.iterdir())


def write_rules(folder: Path, text: str = RULES) -> Path:
    path = folder / "rules" / "default.rules"
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("script", "arguments", "why"),
    [
        (
            "rm -rf kept",
            {},
            "`/bin/bash -lc 'rm -rf kept'` rejected: rm -f style commands are not permitted."
            " Use a safer approach",
        ),
        (
            "touch forbidden",
            {},
            "`/bin/bash -lc 'touch forbidden'` rejected: not that one",
        ),
        (
            "ls && touch asked",
            {},
            "`/bin/bash -lc 'ls && touch asked'` rejected: approval required by policy, but"
            " AskForApproval is set to Never",
        ),
        (
            "touch x",
            {"sandbox_permissions": "require_escalated"},
            "approval policy is Never; reject command — you cannot ask for escalated permissions"
            " if the approval policy is Never",
        ),
    ],
)
@pytest.mark.parametrize("policy", ["on-request", "untrusted", "{granular={}}", None])
def test_exec_refuses_shows_and_counts_what_it_cannot_ask(
    place: Workplace,
    script: str,
    arguments: dict[str, Any],
    why: str,
    policy: str | None,
) -> None:
    write_rules(place.home)
    (place.cwd / "kept").touch()
    configured = [] if policy is None else ["-c", f"approval_policy={policy}"]
    outcome, item, told = run(place, script, *configured, **arguments)
    assert outcome.code == 5
    assert told == f"[ERROR:ApprovalDenied] {why}"
    assert (item["status"], item["exit_code"], item["aggregated_output"]) == (
        "declined",
        None,
        why,
    )
    assert names(place) == ["kept"]
    assert outcome.messages == ["done"]


@needs_sandbox
def test_a_rule_lets_a_command_out_of_the_sandbox(place: Workplace) -> None:
    write_rules(place.home)
    read_only = ("-s", "read-only")
    outcome, item, _ = run(place, "touch free", *read_only)
    assert (outcome.code, item["status"], names(place)) == (0, "completed", ["free"])
    # With a redirection the rule does not apply.
    _, item, _ = run(place, "touch free-2 > /dev/null", *read_only)
    assert (item["status"], names(place)) == ("failed", ["free"])
    _, item, _ = run(place, "touch free", *read_only, "--ignore-rules")
    assert item["status"] == "failed"


@needs_sandbox
@pytest.mark.parametrize("tool", ["exec_command", "shell"])
def test_a_rule_does_not_let_a_shell_of_the_model_out_of_the_sandbox(
    tool: str, place: Workplace
) -> None:
    write_rules(place.home)
    shell = place.cwd / "bash"
    shell.write_text("#!/bin/sh\ntouch escaped\n", encoding="utf-8")
    shell.chmod(0o755)
    argv = {"command": ["./bash", "-lc", "touch free"]}
    arguments = argv if tool == "shell" else {"cmd": "touch free", "shell": str(shell)}
    asked = [*ev_function_call("c0", tool, arguments), ev_completed()]
    with ScriptedServer([asked, DONE]) as server:
        outcome = place.run(server, "-s", "read-only", "go")
    assert outcome.code == 0
    assert "escaped" not in names(place)
    # By its name, the shell is that of the system.
    assert ("free" in names(place)) is (tool == "exec_command")


@needs_sandbox
def test_an_allowed_command_finds_no_program_of_the_model(place: Workplace) -> None:
    write_rules(place.home, 'prefix_rule(pattern=["sh", "run"])')
    (place.cwd / "run").write_text("helper; touch made\n", encoding="utf-8")
    helper = place.cwd / "helper"
    helper.write_text("#!/bin/sh\necho helped\n", encoding="utf-8")
    helper.chmod(0o755)
    search_path = f"{place.cwd}:{os.environ['PATH']}"
    with ScriptedServer(
        [calls("sh run; helper", "sh run", login=False), DONE]
    ) as server:
        outcome = place.run(server, "-s", "read-only", "go", env={"PATH": search_path})
        held, free = (server.requests[1].output(call) for call in ("c0", "c1"))
    assert outcome.code == 0
    assert "helped" in held
    assert "helped" not in free
    assert "made" in names(place)


@needs_sandbox
def test_nothing_can_be_typed_into_an_allowed_command(place: Workplace) -> None:
    write_rules(place.home, 'prefix_rule(pattern=["test", "-t", "0"])')
    script = calls("test -t 0", "test -t 0 && pwd", tty=True)
    with ScriptedServer([script, DONE]) as server:
        place.run(server, "-s", "read-only", "go")
        free, held = (server.requests[1].output(call) for call in ("c0", "c1"))
    assert "exited with code 1" in free
    assert "exited with code 0" in held


def test_rules_of_a_project_count_where_it_is_trusted(place: Workplace) -> None:
    make_repository(place.cwd)
    write_rules(place.cwd / ".codex")
    for trust, status, code in ((), "completed", 0), (("--trust",), "declined", 5):
        outcome, item, _ = run(place, "touch forbidden", *trust)
        assert (item["status"], outcome.code) == (status, code)


def test_rules_that_cannot_be_read_stop_the_start(place: Workplace) -> None:
    path = write_rules(place.home, "prefix_rule(pattern=[])\n")
    with ScriptedServer([DONE]) as server:
        outcome = place.run(server)
        assert (outcome.code, outcome.events, server.requests) == (78, [], [])
        assert f"Error loading rules: {path}:1:" in outcome.err
        assert "Traceback" not in outcome.err
        assert place.rerun("--ignore-rules", "go").code == 0
    assert len(place.rollouts()) == 1


def test_two_hundred_plain_commands_need_no_decision_of_weight(
    place: Workplace,
) -> None:
    with ScriptedServer([calls(*["true"] * 200), DONE]) as server:
        outcome = place.run(server, env={"PYTHONPROFILEIMPORTTIME": "1"})
    assert outcome.code == 0
    assert "tree_sitter" not in outcome.err


class Answers(ScriptedApprover):
    """Gives the answers in their order, the last one for ever."""

    def __init__(self, *answers: ReviewDecision) -> None:
        super().__init__(answers[0])
        self.answers = list(answers)

    async def review(self, request: Any) -> Any:
        self.decision = (
            self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        )
        return await super().review(request)


def answered(
    place: Workplace, replies: list[Any], approver: Approver | None, **options: Any
) -> tuple[TurnResult, list[Event], ScriptedServer]:
    """What became of a turn under the policy that asks on request; `options` are those of `talk`."""
    results: list[TurnResult] = []
    events: list[Event] = []

    async def work(session: Session) -> None:
        results.append(await session.run_turn("go"))

    with ScriptedServer(replies) as server:
        talk(place, server, work, sink=events.append, approver=approver, **options)
    return results[0], events, server


WISH = {"sandbox_permissions": "require_escalated", "prefix_rule": ["touch", "a"]}


@needs_sandbox
def test_a_yes_with_a_rule_holds_now_and_for_later_sessions(place: Workplace) -> None:
    approver = Answers(ReviewDecision.APPROVED_WITH_RULE, ReviewDecision.DENIED)
    for script in ("touch a", "touch a b"):
        replies = [calls(script, **WISH), DONE]
        result, _, _ = answered(place, replies, approver, sandbox_mode="read-only")
        assert not result.denied
    assert [request.prefix for request in approver.asked] == [("touch", "a")]
    rules = (place.home / "rules" / "default.rules").read_text(encoding="utf-8")
    assert rules == 'prefix_rule(pattern=["touch", "a"], decision="allow")\n'
    assert names(place) == ["a", "b"]


@needs_sandbox
def test_a_rule_that_cannot_be_written_holds_for_the_session(place: Workplace) -> None:
    in_the_way = place.home / "rules"
    in_the_way.touch()
    approver = Answers(ReviewDecision.APPROVED_WITH_RULE, ReviewDecision.DENIED)
    replies = [calls("touch a", **WISH), calls("touch a b"), DONE]
    result, events, _ = answered(place, replies, approver, sandbox_mode="read-only")
    assert not result.denied
    assert names(place) == ["a", "b"]
    (warning,) = [
        event.item.message
        for event in events
        if isinstance(event, ItemCompleted) and isinstance(event.item, ErrorItem)
    ]
    assert warning.startswith(f"The rule could not be written to {in_the_way}: ")
    assert warning.endswith(" It holds for this session.")


def test_an_answer_can_end_the_turn(place: Workplace) -> None:
    (place.cwd / "kept").touch()
    approver = ScriptedApprover(ReviewDecision.ABORT)
    result, events, server = answered(
        place, [calls("rm -f kept", "sleep 1000"), DONE], approver
    )
    assert isinstance(result.error, TurnAborted)
    assert result.denied
    assert len(server.requests) == 1
    assert [event.reason for event in events if isinstance(event, CallDenied)] == [
        "exec command rejected by user"
    ]
    assert names(place) == ["kept"]


@pytest.mark.parametrize(
    ("approver", "why"),
    [
        (lambda: None, "exec command rejected by user: there is nobody to ask"),
        (
            lambda: ScriptedApprover(ReviewDecision.DENIED, "move it"),
            "exec command rejected by user: move it",
        ),
    ],
)
def test_a_no_is_told_and_the_turn_goes_on(
    place: Workplace, approver: Callable[[], Approver | None], why: str
) -> None:
    result, events, server = answered(place, [calls("rm -f x"), DONE], approver())
    assert (result.error, result.denied, result.last_message) == (None, True, "done")
    assert server.requests[1].output("c0") == f"[ERROR:ApprovalDenied] {why}"
    denied = [event for event in events if isinstance(event, CallDenied)]
    assert denied == [CallDenied("exec_command", why, code="ApprovalDenied")]

"""Plan mode and the questions of the model, from outside of a session.

Tests `app/features/plan_mode.py` and `tools/user_input.py`.
"""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from codex_py.app.features.plan_mode import PlanMode
from codex_py.app.options import SessionOptions
from codex_py.app.session import open_session
from codex_py.config.config import load_config
from codex_py.core.session import Session
from codex_py.protocol.approval import ApprovalRequest, Review, ReviewDecision
from codex_py.protocol.events import CallDenied, Event
from codex_py.protocol.mcp import Elicitation, ElicitationAnswer
from codex_py.protocol.plans import proposed_plan
from codex_py.testing import (
    ev_completed,
    ev_custom_tool_call,
    ev_function_call,
    ev_message,
)
from codex_py.tools.user_input import Option, Question
from tests.app.test_agents import talk
from tests.support import hooks
from tests.support.agents import AgentServer, calls, says, texts, waits
from tests.support.mcp import odd_command
from tests.support.program import Workplace
from tests.support.server import ScriptedServer

DONE = [*ev_message("done"), ev_completed()]
PATCH = "*** Begin Patch\n*** Add File: made.txt\n+made\n*** End Patch\n"
REFUSED = (
    "[ERROR:ApprovalDenied] {} is refused: nothing is changed in Plan mode. Put it into the plan;"
    " the user decides when to begin."
)
QUESTION = {
    "id": "db",
    "header": "Database",
    "question": "Which database?",
    "options": [
        {"label": "SQLite (Recommended)", "description": "Small."},
        {"label": "Postgres", "description": "Large."},
    ],
}
ASKS = [
    *ev_function_call("q1", "request_user_input", {"questions": [QUESTION]}),
    ev_completed(),
]


class Yes:
    def __init__(self) -> None:
        self.asked: list[ApprovalRequest] = []

    async def review(self, request: ApprovalRequest) -> Review:
        self.asked.append(request)
        return Review(ReviewDecision.APPROVED)


class Answering:
    def __init__(self, answer: ElicitationAnswer) -> None:
        self.answer = answer
        self.asked: list[Elicitation] = []

    async def elicit(self, elicitation: Elicitation) -> ElicitationAnswer:
        self.asked.append(elicitation)
        return self.answer


class Place:
    """A folder with a home, and sessions in it against a scripted model."""

    def __init__(self, path: Path) -> None:
        self.cwd, self.home = path / "repo", path / "home"
        self.home.mkdir()
        self.cwd.mkdir()
        self.events: list[Event] = []

    def run(
        self,
        script: list[Any],
        work: Callable[[Session], Awaitable[None]],
        *,
        config: str = "",
        tables: str = "",
        options: SessionOptions | None = None,
        check_prefix: bool = True,
        **settings: Any,
    ) -> ScriptedServer:
        async def go() -> None:
            environment = {**os.environ, "CODEX_HOME": str(self.home), "MOCK_KEY": "k"}
            loaded = load_config(cwd=self.cwd, environment=environment)
            async with AsyncExitStack() as stack:
                opening = open_session(
                    loaded,
                    options or SessionOptions(),
                    self.events.append,
                    environment=environment,
                    **settings,
                )
                await work(await stack.enter_async_context(opening))

        with ScriptedServer(script, check_prefix=check_prefix) as server:
            text = f'sandbox_mode = "workspace-write"\n{config}{server.config_toml()}{tables}'
            (self.home / "config.toml").write_text(text, encoding="utf-8")
            asyncio.run(go())
        return server


@pytest.fixture
def folder(tmp_path: Path) -> Place:
    return Place(tmp_path)


def switch(session: Session, mode: Any) -> None:
    session.change(replace(session.settings.choices, mode=mode))


async def turn(session: Session, text: str = "go") -> None:
    (await session.run_turn(text)).raise_for_error()


async def planning(session: Session) -> None:
    switch(session, "plan")
    await turn(session)


def outputs(server: ScriptedServer) -> Mapping[str, str]:
    return {
        item["call_id"]: item["output"]
        for item in server.requests[-1].body["input"]
        if item["type"].endswith("_output")
    }


def notes(server: ScriptedServer, request: int = -1) -> list[str]:
    """The titles of what the model was told about modes."""
    return [
        part["text"].split("\n")[0]
        for item in server.requests[request].body["input"]
        if item.get("role") == "developer"
        for part in item["content"]
        if part["text"].startswith("<collaboration_mode>")
    ]


PLAN_NOTE = "<collaboration_mode># Plan mode"
DEFAULT_NOTE = "<collaboration_mode># Default mode"


def test_the_model_is_told_its_mode_when_it_changes(folder: Place) -> None:
    async def work(session: Session) -> None:
        await turn(session)
        await planning(session)
        await turn(session)
        switch(session, "default")
        await turn(session)

    server = folder.run([DONE] * 4, work)
    told = [notes(server, n) for n in range(4)]
    assert told == [[], [PLAN_NOTE], [PLAN_NOTE], [PLAN_NOTE, DEFAULT_NOTE]]


def test_the_model_is_told_again_after_a_compaction_and_a_rollback(
    folder: Place,
) -> None:
    async def work(session: Session) -> None:
        await planning(session)
        await session.compact()
        await turn(session)
        switch(session, "default")
        await turn(session)
        session.rollback(1)
        await turn(session)

    server = folder.run([DONE] * 5, work, check_prefix=False)
    assert notes(server, 2) == [PLAN_NOTE]
    assert notes(server, 4) == [PLAN_NOTE, DEFAULT_NOTE]


def test_the_note_can_be_turned_off(folder: Place) -> None:
    config = "include_collaboration_mode_instructions = false\n"
    assert notes(folder.run([DONE], planning, config=config)) == []


def test_a_resumed_thread_says_which_mode_it_was_in(folder: Place) -> None:
    ids: list[str] = []

    async def begin(session: Session) -> None:
        ids.append(session.thread_id)
        await planning(session)

    async def resume(session: Session) -> None:
        mode = session.feature(PlanMode)
        assert mode is not None
        assert mode.told == "plan"
        await turn(session)

    folder.run([DONE], begin)
    server = folder.run([DONE], resume, options=SessionOptions(resume=ids[0]))
    assert notes(server) == [PLAN_NOTE, DEFAULT_NOTE]


@pytest.mark.parametrize(
    "call",
    [
        ev_custom_tool_call("c1", "apply_patch", PATCH),
        ev_function_call("c1", "apply_patch", {"input": PATCH}),
        ev_function_call("c1", "functions.applypatch", {"input": PATCH}),
    ],
)
def test_a_patch_is_refused_in_each_spelling_although_all_is_approved(
    folder: Place, call: list[Any]
) -> None:
    yes = Yes()
    server = folder.run([[*call, ev_completed()], DONE], planning, approver=yes)
    assert outputs(server) == {"c1": REFUSED.format("apply_patch")}
    assert (list(folder.cwd.iterdir()), yes.asked) == ([], [])
    assert [event.tool for event in folder.events if isinstance(event, CallDenied)] == [
        "apply_patch"
    ]


@pytest.mark.parametrize("policy", ["untrusted", "on-failure", "on-request", "never"])
def test_a_command_writes_nothing_whatever_the_policy_is(
    folder: Place, policy: str
) -> None:
    (folder.home / "rules").mkdir()
    rule = 'prefix_rule(pattern=["touch"], decision="allow")\n'
    (folder.home / "rules/default.rules").write_text(rule, encoding="utf-8")
    patched = f"apply_patch <<'EOF'\n{PATCH}EOF\n"
    calls = [
        ev_function_call("c1", "exec_command", {"cmd": "touch made.txt"}),
        ev_function_call("c2", "shell", {"command": ["touch", "made.txt"]}, index=1),
        ev_function_call(
            "c3",
            "exec_command",
            {
                "cmd": "echo x > made.txt",
                "sandbox_permissions": "require_escalated",
                "justification": "May I?",
            },
            index=2,
        ),
        ev_function_call("c4", "exec_command", {"cmd": patched}, index=3),
    ]
    script = [[*(event for call in calls for event in call), ev_completed()], DONE]
    config = f'approval_policy = "{policy}"\n'
    server = folder.run(script, planning, config=config, approver=Yes())
    assert list(folder.cwd.iterdir()) == []
    answers = outputs(server)
    assert (
        "Read-only file system" in answers["c1"] + answers["c2"]
        or "ermission" in answers["c1"]
    )
    assert "read-only sandbox" in answers["c4"]


def test_approvals_for_the_session_do_not_hold_in_plan_mode(folder: Place) -> None:
    class Always:
        async def review(self, request: ApprovalRequest) -> Review:
            return Review(ReviewDecision.APPROVED_FOR_SESSION)

    command = {
        "cmd": "echo x > made.txt",
        "sandbox_permissions": "require_escalated",
        "justification": "May I?",
    }
    calls = [
        [*ev_function_call(f"c{n}", "exec_command", command), ev_completed()]
        for n in (1, 2)
    ]

    async def work(session: Session) -> None:
        await turn(session)
        (folder.cwd / "made.txt").unlink()
        await planning(session)

    config = 'approval_policy = "on-request"\n'
    folder.run([calls[0], DONE, calls[1], DONE], work, config=config, approver=Always())
    assert list(folder.cwd.iterdir()) == []


def test_reading_goes_on_and_the_choices_come_back(folder: Place) -> None:
    (folder.cwd / "here.txt").write_text("seen", encoding="utf-8")
    call = [
        *ev_function_call("c1", "exec_command", {"cmd": "cat here.txt"}),
        ev_completed(),
    ]
    config = 'plan_mode_reasoning_effort = "high"\nmodel_reasoning_effort = "low"\n'

    async def work(session: Session) -> None:
        before = session.settings
        await planning(session)
        assert session.settings.sandbox_policy.mode == "read-only"
        # As `/permissions` and `/model` do.
        chosen = replace(session.settings.choices, model="gpt-5.4")
        assert chosen.sandbox_policy.mode == "workspace-write"
        session.change(chosen)
        assert session.settings.mode == "plan"
        assert session.settings.sandbox_policy.mode == "read-only"
        switch(session, "default")
        assert session.settings.sandbox_policy == before.sandbox_policy
        await turn(session)

    server = folder.run([call, DONE, DONE], work, config=config)
    assert "seen" in outputs(server)["c1"]
    efforts = [request.body["reasoning"]["effort"] for request in server.requests]
    assert efforts == ["high", "high", "low"]


def test_nothing_is_typed_into_a_command_that_was_started_before(folder: Place) -> None:
    begin = {"cmd": "bash --norc", "tty": True, "yield_time_ms": 500}

    async def work(session: Session) -> None:
        await turn(session)
        await planning(session)

    def typing(request: Any) -> list[Any]:
        output = next(
            i["output"]
            for i in request.body["input"]
            if i.get("call_id") == "c1" and "output" in i
        )
        number = int(output.partition("session ID ")[2].split()[0])
        return [
            *ev_function_call(
                "c2", "write_stdin", {"session_id": number, "chars": "touch x\n"}
            ),
            ev_completed(),
        ]

    server = folder.run(
        [
            [*ev_function_call("c1", "exec_command", begin), ev_completed()],
            DONE,
            typing,
            DONE,
        ],
        work,
        options=SessionOptions(keep_commands=True),
    )
    assert outputs(server)["c2"] == REFUSED.format("write_stdin")


def test_a_function_of_the_caller_is_refused(folder: Place) -> None:
    def save(text: str) -> str:
        (folder.cwd / "saved").write_text(text, encoding="utf-8")
        return "saved"

    call = [*ev_function_call("c1", "save", {"text": "x"}), ev_completed()]
    server = folder.run([call, DONE], planning, tools=[save])
    assert outputs(server) == {"c1": REFUSED.format("save")}


def test_the_plan_is_found_in_an_answer() -> None:
    assert (
        proposed_plan("Hm.\n<proposed_plan>\n# A\n\n- b\n</proposed_plan>\nSo.")
        == "# A\n\n- b"
    )
    assert proposed_plan("Write <proposed_plan> and </proposed_plan>.") is None
    assert proposed_plan("<proposed_plan>\n\n</proposed_plan>") is None


def answered(folder: Place, answer: ElicitationAnswer) -> tuple[Answering, Any]:
    elicitor = Answering(answer)
    server = folder.run([ASKS, DONE], turn, elicitor=elicitor)
    return elicitor, json.loads(outputs(server)["q1"])


def test_the_callers_elicitor_answers_the_model(folder: Place) -> None:
    elicitor, output = answered(folder, ElicitationAnswer("accept", {"db": "MariaDB"}))
    assert output == {"answers": {"db": {"answers": ["MariaDB"]}}}
    asked = elicitor.asked[0]
    assert (asked.server, asked.message) == ("codex-py", "Which database?")
    assert asked.questions[0].options[1] == ("Postgres", "Large.")
    assert asked.schema is not None
    assert asked.schema["properties"]["db"]["enum"] == [
        "SQLite (Recommended)",
        "Postgres",
    ]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (
            {"db": "Postgres", "db_other": "15"},
            {"db": {"answers": ["Postgres", "user_note: 15"]}},
        ),
        ({"db_other": "MariaDB"}, {"db": {"answers": ["MariaDB"]}}),
        (
            {"db": ["Postgres", "user_note: x"]},
            {"db": {"answers": ["Postgres", "user_note: x"]}},
        ),
        ({}, {"db": {"answers": []}}),
    ],
)
def test_a_form_has_room_for_other_text(
    folder: Place, content: Any, expected: Any
) -> None:
    assert answered(folder, ElicitationAnswer("accept", content))[1] == {
        "answers": expected
    }


def test_a_declined_question_is_left_to_the_model(folder: Place) -> None:
    assert answered(folder, ElicitationAnswer("decline"))[1] == {"answers": {}}


def test_a_dismissed_question_ends_the_turn(folder: Place) -> None:
    async def work(session: Session) -> None:
        result = await session.run_turn("go")
        assert result.error is not None
        assert result.error.code == "aborted"

    folder.run([ASKS], work, elicitor=Answering(ElicitationAnswer("cancel")))


def test_without_anybody_to_ask_the_tool_is_not_offered_and_says_so(
    folder: Place,
) -> None:
    server = folder.run([ASKS, DONE], turn)
    assert outputs(server) == {
        "q1": "request_user_input is unavailable in Default mode"
    }
    names = [tool.get("name") for tool in server.requests[0].body["tools"]]
    assert "request_user_input" not in names


def test_a_terminal_is_asked_in_plan_mode_only(folder: Place) -> None:
    async def work(session: Session) -> None:
        await turn(session)
        await planning(session)

    elicitor = Answering(ElicitationAnswer("accept", {"db": "Postgres"}))
    options = SessionOptions(source="cli")
    server = folder.run(
        [ASKS, DONE, ASKS, DONE], work, options=options, elicitor=elicitor
    )
    answers = [i["output"] for i in server.requests[-1].body["input"] if "output" in i]
    assert answers[0] == "request_user_input is unavailable in Default mode"
    assert json.loads(answers[1]) == {"answers": {"db": {"answers": ["Postgres"]}}}
    flag = "features.default_mode_request_user_input = true\n"
    server = folder.run(
        [ASKS, DONE], turn, config=flag, options=options, elicitor=elicitor
    )
    assert "Postgres" in outputs(server)["q1"]


def test_the_tool_can_be_turned_off(folder: Place) -> None:
    config = "tools.experimental_request_user_input.enabled = false\n"
    elicitor = Answering(ElicitationAnswer("decline"))
    server = folder.run([ASKS, DONE], turn, config=config, elicitor=elicitor)
    assert "unsupported call: request_user_input" in outputs(server)["q1"]


@pytest.mark.parametrize(
    "question", [{**QUESTION, "options": []}, {"id": "a", "question": "b"}]
)
def test_a_question_needs_options(folder: Place, question: Any) -> None:
    call = ev_function_call("q1", "request_user_input", {"questions": [question]})
    elicitor = Answering(ElicitationAnswer("decline"))
    server = folder.run([[*call, ev_completed()], DONE], turn, elicitor=elicitor)
    expected = "request_user_input requires non-empty options for every question"
    assert (outputs(server)["q1"], elicitor.asked) == (expected, [])


def test_the_offered_schema_has_the_parameters_of_the_tool(folder: Place) -> None:
    elicitor = Answering(ElicitationAnswer("decline"))
    server = folder.run([DONE], turn, elicitor=elicitor)
    tools = server.requests[0].body["tools"]
    offered = next(tool for tool in tools if tool.get("name") == "request_user_input")
    question = offered["parameters"]["properties"]["questions"]["items"]["properties"]
    assert list(question) == [each.name for each in fields(Question)]
    option = question["options"]["items"]["properties"]
    assert list(option) == [each.name for each in fields(Option)]


def child_of_planning(place: Workplace, script: list[Any], **given: Any) -> AgentServer:
    server = AgentServer(
        [calls("spawn_agent", message="look"), waits(), says("all done")], script
    )
    talk(place, server, planning, **given)
    return server


def test_a_child_of_a_planning_session_changes_nothing(folder: Place) -> None:
    place = Workplace(folder.home, folder.cwd)
    write = calls("exec_command", "x1", cmd="echo x > made.txt")
    patch = [*ev_custom_tool_call("x2", "apply_patch", PATCH), ev_completed()]
    server = child_of_planning(place, [write, patch, says("looked")])
    last = server.of_children()[-1]
    assert "Read-only file system" in last.output("x1")
    assert last.output("x2") == REFUSED.format("apply_patch")
    assert list(folder.cwd.iterdir()) == []
    assert any(text.startswith(PLAN_NOTE) for _, text in texts(last))


def test_a_child_from_before_is_held_to_plan_mode_too(folder: Place) -> None:
    place = Workplace(folder.home, folder.cwd)

    def again(_: Any, ids: list[str]) -> Any:
        return calls("send_input", "s1", target=ids[0], message="write it")

    server = AgentServer(
        [
            calls("spawn_agent", message="look"),
            waits(),
            says("one"),
            again,
            waits("w2"),
            says("two"),
        ],
        [
            says("looked"),
            calls("exec_command", "x1", cmd="echo x > made.txt"),
            says("tried"),
        ],
    )

    async def work(session: Session) -> None:
        await turn(session)
        await planning(session)

    talk(place, server, work, options=SessionOptions(keep_commands=True))
    assert "Read-only file system" in server.of_children()[-1].output("x1")
    assert list(folder.cwd.iterdir()) == []


def test_a_question_of_a_child_reaches_the_user_with_its_name(folder: Place) -> None:
    elicitor = Answering(ElicitationAnswer("accept", {"db": "Postgres"}))
    place = Workplace(folder.home, folder.cwd)
    server = child_of_planning(place, [ASKS, says("asked")], elicitor=elicitor)
    assert [each.server for each in elicitor.asked] == ["Ada"]
    assert "Postgres" in server.of_children()[-1].output("q1")


def test_hooks_are_told_the_mode(folder: Place) -> None:
    async def work(session: Session, _: Any) -> None:
        await planning(session)

    place = Workplace(folder.home, folder.cwd)
    hooked = hooks.run(
        place, {"UserPromptSubmit": [hooks.note("asked")]}, [DONE], work=work
    )
    assert [given["permission_mode"] for given in hooked.given("asked")] == ["plan"]


@pytest.mark.parametrize("name", ["progress", "exec_command"])
def test_of_mcp_tools_only_those_that_only_read_run(folder: Place, name: str) -> None:
    command, *args = odd_command(name, folder.home / "log")
    tables = (
        f"\n[mcp_servers.odd]\ncommand = {json.dumps(command)}\nargs = {json.dumps(args)}\n"
        'default_tools_approval_mode = "approve"\n'
    )
    script = [
        [*ev_function_call(f"c{n}", f"mcp__odd__{each}", {}), ev_completed()]
        for n, each in enumerate(("echo", name))
    ]
    yes = Yes()
    server = folder.run([*script, DONE], planning, tables=tables, approver=yes)
    answers = outputs(server)
    assert "{}" in str(answers["c0"])
    assert answers["c1"] == REFUSED.format(f"mcp__odd__{name}")
    assert yes.asked == []

"""`exec --answers` and `exec --plan`: the questions of the model without a user, and a plan as the answer.

Tests `command_line/answers.py`.
"""

import json
import subprocess
from typing import Any, cast

import pytest

from codex_py.testing import ev_completed, ev_function_call, ev_message
from tests.support.codex import CODEX, needs_codex
from tests.support.program import Workplace, environment, run_codex_py
from tests.support.server import ScriptedServer


def question(name: str, text: str) -> dict[str, Any]:
    options = [{"label": label, "description": f"{label}."} for label in ("One", "Two")]
    return {"id": name, "header": name, "question": text, "options": options}


ASKED = {
    "questions": [question("db", "Which database?"), question("port", "Which port?")]
}
ASKS = [*ev_function_call("q1", "request_user_input", ASKED), ev_completed()]
DONE = [*ev_message("Done."), ev_completed()]
PLAN = "First.\n\n<proposed_plan>\n# A plan\n\n- one\n</proposed_plan>\n"


def output(server: ScriptedServer) -> str:
    return server.requests[-1].body["input"][-1]["output"]


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ({"db": "Two", "port": "5433"}, {"db": ["Two"], "port": ["5433"]}),
        (
            {"Which port?": "One", "db": ["Two", "user_note: 15"]},
            {"db": ["Two", "user_note: 15"], "port": ["One"]},
        ),
        (["Two", "One"], {"db": ["Two"], "port": ["One"]}),
    ],
)
def test_answers_come_from_a_file(
    place: Workplace, answers: Any, expected: Any
) -> None:
    file = place.cwd / "answers.json"
    file.write_text(json.dumps(answers), encoding="utf-8")
    with ScriptedServer([ASKS, DONE]) as server:
        outcome = place.run(server, "--answers", "answers.json", "go")
    assert (outcome.code, outcome.messages) == (0, ["Done."])
    given = {name: {"answers": texts} for name, texts in expected.items()}
    assert json.loads(output(server)) == {"answers": given}
    assert outcome.items[0]["tool"] == "request_user_input"


def test_a_question_without_an_answer_is_left_to_the_model(place: Workplace) -> None:
    (place.cwd / "answers.json").write_text('{"db": "One"}', encoding="utf-8")
    with ScriptedServer([ASKS, DONE]) as server:
        outcome = place.run(server, "--answers", "answers.json", "go")
    assert outcome.code == 0
    assert json.loads(output(server))["answers"]["port"] == {"answers": []}
    (warning,) = [item["message"] for item in outcome.items if item["type"] == "error"]
    assert warning == "answers.json has no answer to 'port': Which port?"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (
            '{"db": "One",\n "port": 5433}',
            "answers.json:2: an answer is a text, or a list of texts",
        ),
        (
            '["One",\n [],\n "Two"]',
            "answers.json:2: an answer is a text, or a list of texts",
        ),
        ('{"db": "One"\n "port"', "answers.json:2: Expecting ',' delimiter"),
        ('"One"', "answers.json:1: it is neither an object nor a list of answers"),
        (None, "answers.json: No such file or directory"),
    ],
)
def test_a_bad_file_is_told_before_anything_is_sent(
    place: Workplace, text: str | None, complaint: str
) -> None:
    if text is not None:
        (place.cwd / "answers.json").write_text(text, encoding="utf-8")
    with ScriptedServer([]) as server:
        outcome = place.run(server, "--answers", "answers.json", "go")
    assert (outcome.code, server.requests) == (2, [])
    assert complaint in outcome.err


def test_without_a_file_the_turn_goes_on(place: Workplace) -> None:
    with ScriptedServer([ASKS, DONE]) as server:
        outcome = place.run(server, "go")
    assert (outcome.code, outcome.messages) == (0, ["Done."])
    # As the Codex program answers, 0.171.
    assert output(server) == "request_user_input is unavailable in Default mode"


def test_the_plan_is_the_answer_and_nothing_is_changed(place: Workplace) -> None:
    write = {"cmd": "echo x > made.txt"}
    script = [
        [*ev_function_call("c1", "exec_command", write), ev_completed()],
        [*ev_message(PLAN), ev_completed()],
    ]
    with ScriptedServer(script) as server:
        place.configure(server)
        args = [
            "exec",
            "--skip-git-repo-check",
            "--yolo",
            "--plan",
            "-o",
            "plan.md",
            "Go.",
        ]
        ran = run_codex_py(args, place.home, place.cwd)
    assert (ran.returncode, ran.stdout.decode()) == (0, "# A plan\n\n- one\n")
    assert (place.cwd / "plan.md").read_text(encoding="utf-8") == "# A plan\n\n- one"
    assert "proposed_plan" not in ran.stderr.decode()
    assert "sandbox: read-only" in ran.stderr.decode()
    assert not (place.cwd / "made.txt").exists()
    assert "<collaboration_mode># Plan mode" in json.dumps(
        server.requests[0].body["input"]
    )


def shape(schema: Any) -> Any:
    """A schema without its words, which are our own."""
    if not isinstance(schema, dict):
        return schema
    fields = cast("dict[str, Any]", schema)
    # A property may have this name too.
    return {
        k: shape(v)
        for k, v in fields.items()
        if k != "description" or isinstance(v, dict)
    }


@needs_codex
def test_codex_offers_the_same_tool_and_gives_the_same_answers(
    place: Workplace,
) -> None:
    assert CODEX is not None
    (place.cwd / "answers.json").write_text("[]", encoding="utf-8")
    no_options: list[Any] = []
    empty = {"questions": [{**question("db", "Which?"), "options": no_options}]}
    asks = [*ev_function_call("q2", "request_user_input", empty), ev_completed()]
    with ScriptedServer([ASKS, asks, DONE] * 2 + [DONE]) as server:
        place.configure(server)
        with (place.home / "config.toml").open("a", encoding="utf-8") as file:
            file.write("\n[analytics]\nenabled = false\n")
        subprocess.run(
            [CODEX, "exec", "--skip-git-repo-check", "go"],
            cwd=place.cwd,
            env=environment(place.home),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=120,
            check=True,
        )
        place.rerun("go")
        place.rerun("--answers", "answers.json", "go")
    theirs, ours = (
        request.body["input"] for request in (server.requests[2], server.requests[5])
    )
    given = [
        [item["output"] for item in items if "output" in item]
        for items in (theirs, ours)
    ]
    assert (
        given[0][0]
        == given[1][0]
        == "request_user_input is unavailable in Default mode"
    )
    offered = [
        tool
        for request in (server.requests[0], server.requests[6])
        for tool in request.body["tools"]
        if tool.get("name") == "request_user_input"
    ]
    assert shape(offered[0]) == shape(offered[1])

"""`tool_choice` and `parallel_tool_calls`, from outside.

Tests `app/features/tool_choice.py`.
"""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from codex_py.app.options import SessionOptions
from codex_py.app.session import open_session
from codex_py.config.config import load_config
from codex_py.core.session import Session
from codex_py.errors import ConfigError
from codex_py.protocol.stream import ToolChoice
from codex_py.testing import (
    ev_completed,
    ev_function_call,
    ev_message,
    ev_web_search_call,
)
from tests.support.program import Workplace
from tests.support.server import ScriptedServer
from tests.support.wires import AnyWire

CALL = [*ev_function_call("c1", "exec_command", {"cmd": "true"}), ev_completed()]
PLAN = [*ev_function_call("c2", "update_plan", {"plan": []}), ev_completed()]
DONE = [*ev_message("done"), ev_completed()]


def run(
    tmp_path: Path,
    script: list[Any],
    *,
    config: str = "",
    events: list[Any] | None = None,
    **turn: Any,
) -> ScriptedServer:
    """One turn against a scripted model."""

    async def work() -> None:
        environment = {
            **os.environ,
            "CODEX_HOME": str(tmp_path / "home"),
            "MOCK_KEY": "k",
        }
        loaded = load_config(cwd=tmp_path, environment=environment)
        sink = ([] if events is None else events).append
        opening = open_session(loaded, SessionOptions(), sink, environment=environment)
        async with opening as session:
            await take(session)

    async def take(session: Session) -> None:
        result = await session.run_turn("go", **turn)
        result.raise_for_error()

    with ScriptedServer(script) as server:
        home = tmp_path / "home"
        home.mkdir(exist_ok=True)
        (home / "config.toml").write_text(
            config + server.config_toml(), encoding="utf-8"
        )
        asyncio.run(work())
    return server


def choices(server: ScriptedServer) -> list[Any]:
    return [request.body["tool_choice"] for request in server.requests]


@pytest.mark.parametrize(
    ("text", "choice"),
    [
        ("auto", ToolChoice()),
        ("none", ToolChoice("none")),
        ("required", ToolChoice("required")),
        ("exec_command", ToolChoice("required", ("exec_command",))),
        ("allowed:a, b", ToolChoice("auto", ("a", "b"))),
    ],
)
def test_a_choice_is_a_word_a_name_or_a_list(text: str, choice: ToolChoice) -> None:
    assert ToolChoice.parse(text) == choice


@pytest.mark.parametrize("text", ["", "allowed:", "none:x", "two words"])
def test_anything_else_is_an_error_of_the_configuration(text: str) -> None:
    with pytest.raises(ConfigError, match="use auto, none, required"):
        ToolChoice.parse(text)


def test_a_required_call_holds_for_the_first_request_of_a_turn(
    tmp_path: Path,
) -> None:
    server = run(tmp_path, [CALL, DONE], config='tool_choice = "required"\n')
    assert choices(server) == ["required", "auto"]
    named = run(tmp_path, [CALL, DONE], tool_choice="exec_command")
    assert choices(named) == [{"type": "function", "name": "exec_command"}, "auto"]


def test_another_call_than_the_one_that_was_asked_for_does_not_run(
    tmp_path: Path,
) -> None:
    server = run(tmp_path, [CALL, PLAN, DONE], tool_choice="update_plan")
    last = server.requests[2]
    assert (
        last.output("c1")
        == "[ERROR:ToolNotAllowed] now, only update_plan may be called"
    )
    assert "ERROR" not in last.output("c2")


def test_none_holds_for_the_whole_turn_and_is_enforced(tmp_path: Path) -> None:
    server = run(tmp_path, [CALL, DONE], tool_choice="none")
    assert choices(server) == ["none", "none"]
    assert (
        server.requests[1]
        .output("c1")
        .startswith("[ERROR:ToolNotAllowed] no tool may be called")
    )


def test_allowed_tools_run_and_others_do_not(tmp_path: Path) -> None:
    server = run(tmp_path, [CALL, PLAN, DONE], tool_choice="allowed:update_plan")
    assert {str(choice["mode"]) for choice in choices(server)} == {"auto"}
    last = server.requests[2]
    assert (
        last.output("c1")
        == "[ERROR:ToolNotAllowed] in this turn, only update_plan may be called"
    )
    assert "ERROR" not in last.output("c2")


def test_a_tool_that_is_not_offered_cannot_be_chosen(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no tool 'nosuch' is offered"):
        run(tmp_path, [], tool_choice="nosuch")


def test_calls_of_one_response_run_one_after_another_if_they_must(
    tmp_path: Path,
) -> None:
    both = [
        *ev_function_call("c1", "exec_command", {"cmd": "sleep 0.2; echo one >> log"}),
        *ev_function_call("c2", "exec_command", {"cmd": "echo two >> log"}, index=1),
        ev_completed(),
    ]
    config = 'parallel_tool_calls = false\nsandbox_mode = "danger-full-access"\n'
    server = run(tmp_path, [both, DONE], config=config)
    assert server.requests[0].body["parallel_tool_calls"] is False
    assert (tmp_path / "log").read_text(encoding="utf-8") == "one\ntwo\n"


@pytest.mark.parametrize(
    ("choice", "chat", "anthropic"),
    [
        ("auto", [None, None], ["auto", "auto"]),
        ("none", ["none", "none"], ["none", "none"]),
        ("required", ["required", None], ["any", "auto"]),
        (
            "exec_command",
            [{"type": "function", "function": {"name": "exec_command"}}, None],
            ["tool", "auto"],
        ),
    ],
)
def test_other_apis_say_it_in_their_own_words(
    tmp_path: Path, choice: str, chat: list[Any], anthropic: list[str]
) -> None:
    home, cwd = tmp_path / "home", tmp_path / "cwd"
    home.mkdir()
    cwd.mkdir()
    with AnyWire(Workplace(home, cwd)) as wires:
        for wire in ("chat", "anthropic"):
            wires.prompt(wire, "go", CALL, DONE, flags={"tool_choice": choice})
        sent: dict[str, list[Any]] = {
            wire: [r.fields.get("tool_choice") for r in wires.servers[wire].requests]
            for wire in ("chat", "anthropic")
        }
    assert sent["chat"] == chat
    assert [each["type"] for each in sent["anthropic"]] == anthropic
    assert sent["anthropic"][0].get("name") == (
        choice if choice == "exec_command" else None
    )


@pytest.mark.parametrize("wire", ["chat", "anthropic", "text"])
@pytest.mark.parametrize("choice", ["none", "allowed:update_plan"])
def test_it_is_enforced_on_every_wire(tmp_path: Path, wire: str, choice: str) -> None:
    home, cwd = tmp_path / "home", tmp_path / "cwd"
    home.mkdir()
    cwd.mkdir()
    written = [
        *ev_function_call("c1", "exec_command", {"cmd": "echo x > log"}),
        ev_completed(),
    ]
    with AnyWire(Workplace(home, cwd)) as wires:
        wires.prompt(wire, "go", written, DONE, flags={"tool_choice": choice})
    assert not (cwd / "log").exists()
    assert "[ERROR:ToolNotAllowed]" in str(wires.requests[1].fields["messages"][-1])
    assert wires.last["type"] == "turn.completed"


@pytest.mark.parametrize("wire", ["responses", "chat", "anthropic", "text"])
@pytest.mark.parametrize(
    ("choice", "replies", "unmet"),
    [
        ("required", [DONE], "a tool"),
        ("required", [CALL, DONE], None),
        ("update_plan", [CALL, DONE], "update_plan"),
        ("update_plan", [PLAN, DONE], None),
        ("auto", [DONE], None),
    ],
)
def test_a_choice_that_the_model_did_not_meet_is_told_once(
    tmp_path: Path, wire: str, choice: str, replies: list[Any], unmet: str | None
) -> None:
    home, cwd = tmp_path / "home", tmp_path / "cwd"
    home.mkdir()
    cwd.mkdir()
    # The system prompt of the text wire asks for the call, at first.
    with AnyWire(Workplace(home, cwd), check_prefix=False) as wires:
        wires.prompt(wire, "go", *replies, flags={"tool_choice": choice})
    told = [warning for warning in wires.warnings if "tool_choice" in warning]
    text = f"`tool_choice` was not met: the first response does not call {unmet}."
    assert told == ([] if unmet is None else [text])


def test_a_server_that_does_not_know_it_is_not_sent_it(tmp_path: Path) -> None:
    home, cwd = tmp_path / "home", tmp_path / "cwd"
    home.mkdir()
    cwd.mkdir()
    profile = {"model_providers": {"chat": {"profile": {"tool_choice": "ignored"}}}}
    with AnyWire(Workplace(home, cwd)) as wires:
        wires.prompt("chat", "go", DONE, flags={"tool_choice": "required", **profile})
    assert len(wires.warnings) == 1
    assert "tool_choice" not in wires.requests[0].fields


def test_a_search_of_the_provider_is_a_call(tmp_path: Path) -> None:
    search = [*ev_web_search_call("q"), *ev_message("done", index=1), ev_completed()]
    events: list[Any] = []
    run(tmp_path, [search], events=events, tool_choice="required")
    assert "not met" not in str(events)
    run(tmp_path, [DONE], events=events, tool_choice="required")
    assert "not met" in str(events)

"""MCP servers, through the real program."""

import json
import signal
from pathlib import Path
from typing import Any

from codex_py.testing import (
    RecordedRequest,
    Reply,
    ev_completed,
    ev_custom_tool_call,
    ev_function_call,
    ev_message,
)
from tests.support.lifeline import Lifeline
from tests.support.mcp import odd_command
from tests.support.program import Outcome, Workplace
from tests.support.server import ScriptedServer

DONE = [*ev_message("done"), ev_completed()]
RESOURCES = ["list_mcp_resources", "list_mcp_resource_templates", "read_mcp_resource"]


def add_servers(
    place: Workplace, *behaviours: str, keys: str = "startup_timeout_sec = 120"
) -> None:
    """Configure odd servers, each named for its behaviour."""
    with (place.home / "config.toml").open("a", encoding="utf-8") as config:
        for behaviour in behaviours:
            command, *args = odd_command(behaviour, place.home / "messages")
            config.write(
                f"[mcp_servers.{behaviour}]\ncommand = {json.dumps(command)}\n"
                f"args = {json.dumps(args)}\n{keys}\n"
            )


def calls(*names: str) -> list[dict[str, Any]]:
    events = [ev_function_call(f"call_{n}", name, {}) for n, name in enumerate(names)]
    return [*(event for call in events for event in call), ev_completed()]


def run(
    place: Workplace,
    server: ScriptedServer,
    *behaviours: str,
    keys: str = "startup_timeout_sec = 120",
) -> Outcome:
    place.configure(server)
    add_servers(place, *behaviours, keys=keys)
    return place.rerun()


def test_the_tools_of_servers_are_offered_and_called(place: Workplace) -> None:
    names = ["mcp__fails__echo", "mcp__fails__fails"]
    with ScriptedServer([calls(*names), DONE]) as server:
        outcome = run(place, server, "fails", "banner", "dies-at-start")
        first, second = server.requests
    assert (outcome.code, outcome.messages, outcome.err) == (0, ["done"], "")
    offered = [tool.get("name", tool["type"]) for tool in first.body["tools"]]
    banner = ["mcp__banner__banner", "mcp__banner__echo"]
    assert offered[-7:] == [*RESOURCES, *banner, *names]
    assert second.body["tools"] == first.body["tools"]
    assert [item["output"][1]["text"] for item in second.input[-2:]] == ["{}", "no"]
    seen = [
        item for item in outcome.items if item["type"] in {"error", "mcp_tool_call"}
    ]
    assert sorted(str(item.get("message"))[:29] for item in seen[:2]) == [
        "MCP server `banner` prints li",
        "MCP server `dies-at-start` ex",
    ]
    (failed,) = (
        item["message"] for item in seen[:2] if "dies-at-start" in item["message"]
    )
    assert failed.endswith("\n`codex-py mcp test dies-at-start` says more.")
    assert seen[3] == {
        "id": seen[3]["id"],
        "type": "mcp_tool_call",
        "server": "fails",
        "tool": "fails",
        "arguments": {},
        "result": {
            "content": [{"type": "text", "text": "no"}],
            "structured_content": None,
        },
        "error": None,
        "status": "failed",
    }


def test_without_a_required_server_nothing_begins(place: Workplace) -> None:
    with ScriptedServer() as server:
        outcome = run(place, server, "dies-at-start", keys="required = true")
        assert server.requests == []
    assert (outcome.code, outcome.types) == (1, [])
    assert (
        "required MCP servers failed to initialize: MCP server `dies-at-start`"
        in outcome.err
    )
    assert "Traceback" not in outcome.err
    assert place.rollouts() == []


def test_a_server_that_dies_in_a_call_costs_that_call(place: Workplace) -> None:
    with ScriptedServer(
        [calls("mcp__dies__dies"), calls("mcp__dies__echo"), DONE]
    ) as server:
        outcome = run(place, server, "dies")
        outputs = [request.input[-1]["output"] for request in server.requests[1:]]
    assert (outcome.code, outcome.err) == (0, "")
    assert outputs[0].startswith(
        "[ERROR:ConnectionLost] tool call error: tool call failed for `d"
    )
    assert outputs[1][1] == {"type": "input_text", "text": "{}"}


def test_a_tool_that_is_called_as_a_custom_one_is_answered_as_one(
    place: Workplace,
) -> None:
    events = [
        *ev_custom_tool_call("call_0", "mcp__fails__echo", '{"a":1}'),
        *ev_custom_tool_call("call_1", "mcp__fails__echo", "plain text"),
    ]
    with ScriptedServer([[*events, ev_completed()], DONE]) as server:
        outcome = run(place, server, "fails")
        answers = server.requests[1].input[-2:]
    assert (outcome.code, outcome.messages, outcome.err) == (0, ["done"], "")
    assert [answer["type"] for answer in answers] == ["custom_tool_call_output"] * 2
    assert answers[0]["output"][1]["text"] == '{"a": 1}'
    assert answers[1]["output"].startswith("[ERROR:InvalidArgs] ")


def refusal(message: str) -> Reply:
    error = {
        "message": message,
        "type": "invalid_request_error",
        "param": "tools[9].parameters",
        "code": "invalid_function_parameters",
    }
    return Reply(status=400, body=json.dumps({"error": error}).encode())


def test_a_tool_that_the_service_refuses_costs_no_other(place: Workplace) -> None:
    def fails(request: RecordedRequest) -> list[Any]:
        tools = request.body["tools"]
        return [tool for tool in tools if tool.get("name") == "mcp__fails__fails"]

    refusals = [
        refusal(f"Invalid schema for function 'mcp__fails__{n}': no")
        for n in ("fails",) * 2
    ]
    script = [refusals[0], calls("mcp__fails__echo"), refusals[1], DONE]
    with ScriptedServer(script) as server:
        outcome = run(place, server, "fails")
        offered = [fails(request) for request in server.requests]
    assert (outcome.code, outcome.messages, outcome.err) == (0, ["done"], "")
    schema: dict[str, Any] = {"type": "object", "properties": {}}
    described = '\nSchema of the parameters: {"type":"object","properties":{}}'
    plain = {**offered[0][0], "description": described}
    assert offered[0][0]["parameters"] == schema
    assert offered[1:] == [[plain], [plain], []]
    told = [item["message"] for item in outcome.items if item["type"] == "error"]
    assert [text.partition(", url: ")[0] for text in told] == [
        f"provider mock refuses the tool `mcp__fails__fails`, {remedy}: unexpected status 400 Bad "
        "Request: Invalid schema for function 'mcp__fails__fails': no"
        for remedy in ("its schema is now part of its description", "it is left out")
    ]


def test_of_thousands_of_tools_those_that_are_found_are_offered(
    place: Workplace,
) -> None:
    search = ev_function_call("call_0", "tool_search", {"query": "number7", "limit": 1})
    script = [[*search, ev_completed()], calls("mcp__many__tool-7"), DONE]
    with ScriptedServer(script) as server:
        outcome = run(place, server, "many")
        offered = [
            [tool.get("name") for tool in r.body["tools"]] for r in server.requests
        ]
        answer = json.loads(server.requests[1].input[-1]["output"])
    assert (outcome.code, outcome.err) == (0, "")
    assert offered[0][-4:] == [*RESOURCES, "tool_search"]
    assert offered[1] == offered[2] == [*offered[0], "mcp__many__tool-7"]
    assert [tool["name"] for tool in answer["tools"]] == ["mcp__many__tool-7"]


def interrupt(
    place: Workplace, number: signal.Signals, lifeline: Lifeline
) -> list[Any]:
    """End the program in the middle of a call that never ends; its events."""
    with ScriptedServer([calls("mcp__silent__silent")]) as server:
        place.configure(server)
        command = " ".join(odd_command("silent", place.home / "messages"))
        script = json.dumps(f"{lifeline.hold} exec {command}")
        with (place.home / "config.toml").open("a", encoding="utf-8") as config:
            config.write(
                f"[mcp_servers.silent]\ncommand = 'sh'\nargs = ['-c', {script}]\n"
            )
        with place.start() as program:
            assert program.stdout is not None
            events: list[Any] = []
            for line in program.stdout:
                events.append(json.loads(line))
                if events[-1]["type"] == "item.started":
                    lifeline.wait_until_up()
                    program.send_signal(number)
    lifeline.wait_until_dead()
    return events


def test_an_interrupted_call_is_told_and_its_server_ends(
    place: Workplace, tmp_path: Path
) -> None:
    with Lifeline(tmp_path) as lifeline:
        events = interrupt(place, signal.SIGINT, lifeline)
    types = [event["type"] for event in events]
    assert types[-3:] == ["item.completed", "error", "turn.failed"]
    assert events[-3]["item"]["error"] == {"message": "the call was interrupted"}
    assert "notifications/cancelled" in (place.home / "messages").read_text(
        encoding="utf-8"
    )


def test_a_server_dies_with_us(place: Workplace, tmp_path: Path) -> None:
    with Lifeline(tmp_path) as lifeline:
        events = interrupt(place, signal.SIGKILL, lifeline)
    assert events[-1]["type"] == "item.started"

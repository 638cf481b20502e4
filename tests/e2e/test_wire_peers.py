"""The program against servers that others have written, in each API; see `tests/support/wire_peers.py`."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from codex_py.testing import (
    RecordedRequest,
    Reply,
    ev_completed,
    ev_created,
    ev_failed,
    ev_function_call,
    ev_incomplete,
    ev_message,
    ev_reasoning,
)
from codex_py.testing.server import Script
from tests.support.program import Outcome, Workplace
from tests.support.server import ScriptedServer
from tests.support.wire_peers import Peer, aimock, litellm

WIRES = ("responses", "chat", "anthropic")
PATCH = "*** Begin Patch\n*** Add File: hello.txt\n+hé\n*** End Patch\n"
LONG = "".join(
    f"Line {number} of a long answer, with “quotes”.\n" for number in range(400)
)
COMMANDS = [{"cmd": "echo one"}, {"cmd": "echo two; exit 3"}]
CALLED = [
    ("agent_message", "I look."),
    ("command_execution", 0),
    ("command_execution", 3),
    ("agent_message", "Both ran."),
]


def _call(name: str, arguments: dict[str, str], call_id: str) -> dict[str, str]:
    return {"name": name, "arguments": json.dumps(arguments), "id": call_id}


ANSWERS: dict[str, dict[str, Any]] = {
    "long": {"content": LONG},
    "reasoning": {"reasoning": "Hm.", "content": "Yes.", "reasoningSignature": "sig"},
    "calls": {
        "content": "I look.",
        "toolCalls": [
            _call("exec_command", each, f"call_{n}") for n, each in enumerate(COMMANDS)
        ],
    },
    "patch": {"toolCalls": [_call("apply_patch", {"input": PATCH}, "call_patch")]},
    "length": {"content": "It is too", "finishReason": "length"},
    "filter": {"content": "It is", "finishReason": "content_filter"},
}
ERRORS = {
    "many": {
        "error": {"message": "Too many.", "type": "rate_limit_error"},
        "status": 429,
    },
    "down": {"error": {"message": "Down.", "type": "server_error"}, "status": 503},
}
FIXTURES: list[dict[str, Any]] = [
    {"match": {"toolCallId": "call_1"}, "response": {"content": "Both ran."}},
    {"match": {"toolCallId": "call_patch"}, "response": {"content": "Patched."}},
    *(
        {"match": {"userMessage": f"case {name}"}, "response": response}
        for name, response in {**ANSWERS, **ERRORS}.items()
    ),
]


@pytest.fixture(scope="module")
def mock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peer]:
    with aimock(tmp_path_factory.mktemp("aimock"), FIXTURES) as peer:
        yield peer


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peer]:
    with litellm(tmp_path_factory.mktemp("litellm")) as peer:
        yield peer


def run(
    place: Workplace, peer: Peer, wire: str, prompt: str, **provider: Any
) -> Outcome:
    keys = {
        "name": "peer",
        "base_url": peer.base_url,
        "env_key": "PEER_KEY",
        "wire_api": wire,
        "request_max_retries": 0,
        "stream_max_retries": 0,
    }
    lines = ['model = "gpt-5.5"', 'model_provider = "peer"', "[model_providers.peer]"]
    lines += [f"{key} = {json.dumps(value)}" for key, value in keys.items()]
    lines += [f"{key} = {value}" for key, value in provider.items()]
    (place.home / "config.toml").write_text("\n".join(lines), encoding="utf-8")
    return place.rerun(prompt, env={"PEER_KEY": peer.key})


def seen(outcome: Outcome) -> list[tuple[str, Any]]:
    """The items that were completed, in short."""
    shown = {
        "agent_message": "text",
        "reasoning": "text",
        "command_execution": "exit_code",
    }
    return [
        (item["type"], item.get(shown.get(item["type"], "status")))
        for item in outcome.items
    ]


def behind(peer: Peer, wire: str, *script: Script) -> ScriptedServer:
    """The server behind the proxy. It refuses requests that break the rules of Chat Completions."""
    has_text_tools = wire == "text"
    return ScriptedServer(
        script, port=peer.upstream_port, check_prefix=False, text_tools=has_text_tools
    )


def says(*events: Any) -> list[Any]:
    return [
        ev_created(),
        *events,
        ev_completed(input_tokens=90, cached=40, output_tokens=7),
    ]


@pytest.mark.parametrize("wire", WIRES)
def test_a_long_answer_of_the_mock_comes_whole(
    place: Workplace, mock: Peer, wire: str
) -> None:
    assert seen(run(place, mock, wire, "case long")) == [("agent_message", LONG)]


@pytest.mark.parametrize("wire", WIRES)
def test_the_mock_thinks_calls_and_patches(
    place: Workplace, mock: Peer, wire: str
) -> None:
    thought = run(place, mock, wire, "case reasoning")
    assert seen(thought) == [("reasoning", "Hm."), ("agent_message", "Yes.")]
    called = run(place, mock, wire, "case calls")
    assert sorted(seen(called), key=str) == sorted(CALLED, key=str)
    patched = run(
        place, mock, wire, "case patch", profile="{function_tools_only = true}"
    )
    assert seen(patched) == [
        ("file_change", "completed"),
        ("agent_message", "Patched."),
    ]
    assert (place.cwd / "hello.txt").read_text(encoding="utf-8") == "hé\n"


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    ("case", "code"),
    [("many", "rate_limited"), ("down", "server_error"), ("length", "incomplete")],
)
def test_errors_of_the_mock_are_told(
    place: Workplace, mock: Peer, wire: str, case: str, code: str
) -> None:
    assert run(place, mock, wire, f"case {case}").error["code"] == code


@pytest.mark.parametrize("wire", WIRES)
def test_a_filtered_answer_of_the_mock_is_an_error(
    place: Workplace, mock: Peer, wire: str
) -> None:
    # In the Responses API it gives no reason.
    code = "server_error" if wire == "responses" else "content_filter"
    outcome = run(place, mock, wire, "case filter")
    assert (outcome.error["code"], outcome.messages) == (code, ["It is"])


@pytest.mark.parametrize("wire", [*WIRES, "text"])
def test_a_long_answer_comes_through_the_proxy(
    place: Workplace, proxy: Peer, wire: str
) -> None:
    with behind(proxy, wire, says(*ev_message(LONG, pieces=300))):
        outcome = run(place, proxy, wire, "go")
    assert seen(outcome) == [("agent_message", LONG)]
    assert outcome.events[-1]["usage"]["output_tokens"] == 7


@pytest.mark.parametrize("wire", [*WIRES, "text"])
def test_thoughts_and_calls_come_through_the_proxy(
    place: Workplace, proxy: Peer, wire: str
) -> None:
    calls = [
        event
        for n, arguments in enumerate(COMMANDS)
        for event in ev_function_call(
            f"call_{n}", "exec_command", arguments, index=n + 2
        )
    ]
    answer = [*ev_reasoning("Hm."), *ev_message("I look.", index=1), *calls]
    with behind(proxy, wire, says(*answer), says(*ev_message("Both ran."))) as server:
        outcome = run(place, proxy, wire, "go")
    assert sorted(seen(outcome), key=str) == sorted(
        [("reasoning", "Hm."), *CALLED], key=str
    )
    sent = json.dumps(server.requests[1].messages[1:])
    assert sent.index("one\\n") < sent.index("two\\n")


@pytest.mark.parametrize("wire", [*WIRES, "text"])
def test_a_patch_comes_through_the_proxy(
    place: Workplace, proxy: Peer, wire: str
) -> None:
    with behind(proxy, wire, patch, says(*ev_message("Patched."))):
        outcome = run(place, proxy, wire, "go")
    assert seen(outcome) == [
        ("file_change", "completed"),
        ("agent_message", "Patched."),
    ]
    assert (place.cwd / "hello.txt").read_text(encoding="utf-8") == "hé\n"


def patch(request: RecordedRequest) -> Script:
    """The proxy has a name of its own for the parameter that stands for the input of a freeform tool."""
    functions = [tool["function"] for tool in request.body.get("tools", ())]
    offered = [function for function in functions if function["name"] == "apply_patch"]
    parameters = offered[0]["parameters"]["properties"] if offered else ["input"]
    arguments = dict.fromkeys(parameters, PATCH)
    return says(*ev_function_call("call_patch", "apply_patch", arguments))


@pytest.mark.parametrize("wire", [*WIRES, "text"])
@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (
            Reply(status=429, body=b'{"error": {"message": "Slow down."}}'),
            "rate_limited",
        ),
        (Reply(status=503, body=b'{"error": {"message": "Down."}}'), "server_error"),
        (Reply(status=400, body=b'{"error": {"message": "No."}}'), "bad_request"),
        ([*ev_message("It is"), ev_incomplete()], "incomplete"),
        ([*ev_message("It is"), ev_incomplete("content_filter")], "content_filter"),
    ],
    ids=["429", "503", "400", "length", "filter"],
)
def test_errors_come_through_the_proxy(
    place: Workplace, proxy: Peer, wire: str, reply: Script, code: str
) -> None:
    with behind(proxy, wire, reply):
        assert run(place, proxy, wire, "go").error["code"] == code


@pytest.mark.parametrize("wire", [*WIRES, "text"])
def test_a_failure_within_a_stream_comes_through_the_proxy(
    place: Workplace, proxy: Peer, wire: str
) -> None:
    reply = [*ev_message("It is")[:3], ev_failed("server_error", "Broken.")]
    with behind(proxy, wire, reply):
        outcome = run(place, proxy, wire, "go")
    assert (outcome.code, outcome.error["retryable"]) == (69, True)
    assert "Broken." in outcome.error["message"]

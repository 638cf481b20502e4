"""Clients that write nonsense, or leave; and that of the official package."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import acp
import pytest
from acp import schema

from codex_py.testing import (
    Pause,
    ev_completed,
    ev_function_call,
    ev_message,
    ev_text_deltas,
)
from tests.support.codex_process import start_codex_py
from tests.support.editor import Editor, begin_prompt, editor, new_session, prompt
from tests.support.lifeline import Lifeline
from tests.support.program import Workplace, environment, run_codex_py
from tests.support.server import ScriptedServer

DONE = [*ev_message("done"), ev_completed()]
FREE = ("-s", "danger-full-access")


def runs(command: str, **more: Any) -> list[Any]:
    call = ev_function_call("call_1", "exec_command", {"cmd": command, **more})
    return [*call, ev_completed()]


def answers(place: Workplace, stdin: bytes) -> list[dict[str, Any]]:
    """What is written to a client that writes all this and leaves."""
    done = run_codex_py(["acp"], place.home, place.cwd, stdin=stdin)
    assert (done.returncode, done.stderr) == (0, b"")
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"{", -32700),
        (b'{"jsonrpc":"2.0",\xff}', -32700),
        (b"42", -32600),
        (b"[]", -32600),
        (b'{"id":1}', -32600),
        (b'{"id":[],"method":"initialize"}', -32600),
        (b'{"id":1,"method":"no/such"}', -32601),
        (b'{"id":1,"method":"_own/thing"}', -32601),
        (b'{"id":1,"method":"session/fork","params":{}}', -32601),
        (b'{"id":1,"method":"initialize"}', -32602),
        (b'{"id":1,"method":"initialize","params":[]}', -32602),
        (b'{"id":1,"method":"initialize","params":{"protocolVersion":-1}}', -32602),
        (b'{"id":1,"method":"session/new","params":{"cwd":"/"}}', -32602),
        (
            b'{"id":1,"method":"session/new","params":{"cwd":"work","mcpServers":[]}}',
            -32602,
        ),
        (b'{"id":1,"method":"session/new","params":{"cwd":3,"mcpServers":[]}}', -32602),
        (
            b'{"id":1,"method":"session/new","params":{"cwd":"/%b","mcpServers":[]}}'
            % (b"n" * 300),
            -32602,
        ),
        (
            b'{"id":1,"method":"session/new","params":{"cwd":"/no/such","mcpServers":[]}}',
            -32602,
        ),
        (
            b'{"id":1,"method":"session/new","params":{"cwd":"/dev/null","mcpServers":[]}}',
            -32602,
        ),
        (
            b'{"id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[],'
            b'"additionalDirectories":["/no/such"]}}',
            -32602,
        ),
        (
            b'{"id":1,"method":"session/prompt","params":{"sessionId":"x","prompt":[]}}',
            -32002,
        ),
        (
            b'{"id":1,"method":"session/prompt","params":{"sessionId":"x","prompt":"go"}}',
            -32602,
        ),
        (b'{"id":1,"method":"session/close","params":{"sessionId":"x"}}', -32002),
        (b'{"id":1,"method":"session/list","params":{"cwd":"."}}', -32602),
        (b'{"id":1,"method":"session/list","params":{"cwd":"/\\u0000"}}', -32602),
        (b'{"id":1,"method":"session/list","params":{"cursor":"next"}}', -32602),
        (
            b'{"id":1,"method":"session/load","params":{"sessionId":"../x","cwd":"/","mcpServers":[]}}',
            -32002,
        ),
        (b" " * 33_000_000 + b"{}", -32600),
    ],
)
def test_bad_input_is_one_error_and_the_next_line_counts(
    place: Workplace, line: bytes, code: int
) -> None:
    with ScriptedServer([]) as server:
        place.configure(server)
        shake = b'{"id":7,"method":"initialize","params":{"protocolVersion":1}}'
        begun, first, second = answers(place, b"\n".join([shake, line, shake, b""]))
    assert "result" in begun
    assert first["error"]["code"] == code
    assert first["error"]["message"]
    assert first["id"] == (1 if code not in {-32700, -32600} else None)
    assert second["id"] == 7
    assert "result" in second


def test_a_request_of_100_mb_is_one_error(place: Workplace) -> None:
    with ScriptedServer([DONE]) as server:
        place.configure(server)
        with editor(place, *FREE) as client:
            session = new_session(client, place)
            big = client.message("session/prompt", sessionId=session, prompt=[])
            client.write(json.dumps(big).encode() + b" " * 100_000_000)
            while "error" not in (message := client.step()):
                pass
            assert (message["id"], message["error"]["code"]) == (big["id"], -32600)
            assert prompt(client, session) == "end_turn"


def test_a_prompt_of_megabytes_is_taken(place: Workplace) -> None:
    """asyncio's reader of lines stops at 64 KiB, unless it is told otherwise."""
    with ScriptedServer([DONE]) as server:
        place.configure(server)
        with editor(place, *FREE) as client:
            session = new_session(client, place)
            assert prompt(client, session, "x" * 300_000) == "end_turn"
    assert "x" * 300_000 in json.dumps(server.requests[-1].input)


def test_nothing_is_answered_to_notifications_and_strange_answers(
    place: Workplace,
) -> None:
    lines: list[dict[str, Any]] = [
        {"method": "$/cancel_request", "params": {"requestId": 1}},
        {"method": "no/such"},
        {"method": "session/cancel", "params": 3},
        {"id": 99, "result": {}},
        {"id": "x", "error": {"code": 1, "message": "m"}},
    ]
    with ScriptedServer([]) as server:
        place.configure(server)
        stdin = b"".join(
            json.dumps({"jsonrpc": "2.0", **line}).encode() + b"\n" for line in lines
        )
        assert answers(place, stdin) == []


@pytest.mark.parametrize("half", [b"", b"{", b'{"id":1,"method":"initialize"'])
def test_a_client_that_leaves_in_the_middle_of_a_line_is_no_mistake(
    place: Workplace, half: bytes
) -> None:
    """The package of the protocol puts a traceback on standard error."""
    with ScriptedServer([]) as server:
        place.configure(server)
        assert answers(place, half) == []


@pytest.mark.parametrize("how", ["stdin", "SIGTERM"])
@pytest.mark.parametrize("when", ["answering", "command", "question", "open"])
def test_nothing_is_left_when_the_client_goes(
    place: Workplace, tmp_path: Path, how: str, when: str
) -> None:
    """zed's adapter does not end when stdin does; a command with children in the background outlives opencode."""
    with Lifeline(tmp_path) as line:
        script = (
            f"{line.hold} (trap '' HUP TERM; sleep 600) & trap '' HUP TERM; sleep 600"
        )
        script_of = {
            "answering": [[*ev_text_deltas(["Hel"]), Pause()]],
            "command": [runs(script, yield_time_ms=60_000)],
            "question": [runs("touch made")],
            "open": [],
        }
        with ScriptedServer(script_of[when]) as server:
            place.configure(server)
            options = (
                ("-s", "workspace-write", "-a", "untrusted")
                if when == "question"
                else FREE
            )
            program = start_codex_py(
                ["acp", *options],
                place.cwd,
                environment(place.home),
                stdin=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            with program:
                try:
                    client = Editor(program, lambda _method, _params: None)
                    client.request("initialize", protocolVersion=1)
                    session = new_session(client, place)
                    if when != "open":
                        begin_prompt(client, session)
                    match when:
                        case "answering":
                            client.until(
                                lambda u: u["sessionUpdate"] == "agent_message_chunk"
                            )
                        case "command":
                            line.wait_until_up()
                        case "question":
                            while not client.asked:
                                client.step()
                        case _:
                            pass
                    assert program.stdin
                    if how == "SIGTERM":
                        os.kill(program.pid, signal.SIGTERM)
                    else:
                        program.stdin.close()
                    assert program.wait(60) == (143 if how == "SIGTERM" else 0)
                    assert program.stderr
                    assert program.stderr.read() == b""
                finally:
                    program.kill()
        if when == "command":
            line.wait_until_dead()
    assert not (place.cwd / "made").exists()


class OfficialClient:
    """What the client side of the package calls, with what it was told."""

    def __init__(self) -> None:
        self.updates: list[Any] = []
        self.asked: list[Any] = []

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append(update)

    async def request_permission(
        self, session_id: str, tool_call: Any, options: Any, **_: Any
    ) -> schema.RequestPermissionResponse:
        self.asked.append(tool_call)
        outcome = schema.AllowedOutcome(
            outcome="selected", option_id=options[0].option_id
        )
        return schema.RequestPermissionResponse(outcome=outcome)


def test_the_client_of_the_official_package_works_with_it(place: Workplace) -> None:
    plan = [{"step": "look", "status": "in_progress"}]
    script = [
        [*ev_function_call("call_0", "update_plan", {"plan": plan}), ev_completed()],
        runs("echo hi; touch made"),
        DONE,
        DONE,
    ]

    async def main() -> OfficialClient:
        client = OfficialClient()
        async with acp.spawn_agent_process(
            cast("acp.Client", client),
            *(
                sys.executable,
                "-m",
                "codex_py",
                "acp",
                "-s",
                "workspace-write",
                "-a",
                "untrusted",
            ),
            env=environment(place.home),
            cwd=place.cwd,
        ) as (connection, process):
            told = await connection.initialize(protocol_version=acp.PROTOCOL_VERSION)
            assert told.agent_capabilities
            assert told.agent_capabilities.load_session
            session = await connection.new_session(cwd=str(place.cwd), mcp_servers=[])
            block = acp.text_block("go")
            done = await connection.prompt(
                session_id=session.session_id, prompt=[block]
            )
            assert done.stop_reason == "end_turn"
            assert session.config_options
            await connection.set_session_mode(
                session_id=session.session_id, mode_id="plan"
            )
            listed = await connection.list_sessions()
            assert [each.session_id for each in listed.sessions] == [session.session_id]
            await connection.load_session(
                session_id=session.session_id, cwd=str(place.cwd), mcp_servers=[]
            )
            assert process.returncode is None
        return client

    with ScriptedServer(script) as server:
        place.configure(server)
        client = asyncio.run(main())
    kinds = [type(update).__name__ for update in client.updates]
    assert {
        "AgentPlanUpdate",
        "ToolCallStart",
        "ToolCallProgress",
        "UserMessageChunk",
    } <= {*kinds}
    assert len(client.asked) == 1
    assert (place.cwd / "made").exists()


def test_words_that_are_no_options_are_refused(place: Workplace) -> None:
    for words in (["acp", "go"], ["acp", "--worktree"], ["acp", "login"]):
        done = run_codex_py(words, place.home, place.cwd)
        assert done.returncode in {1, 2}
        assert done.stderr.decode().count("\n") == 1


def test_a_client_that_leaves_while_a_session_is_opened_is_no_mistake(
    place: Workplace,
) -> None:
    with ScriptedServer([DONE]) as server:
        place.configure(server)
        with editor(place, *FREE) as client:
            session = new_session(client, place)
            prompt(client, session)
        here: dict[str, Any] = {"cwd": str(place.cwd), "mcpServers": []}
        opening = [
            {"method": "session/new", "params": here},
            {"method": "session/load", "params": {**here, "sessionId": session}},
            {"method": "session/load", "params": {**here, "sessionId": session}},
            {"method": "session/delete", "params": {"sessionId": session}},
        ]
        for count in range(1, len(opening) + 1):
            lines = [{"id": n, **line} for n, line in enumerate(opening[:count])]
            # The answers that come are well-formed; the others are not waited for.
            answers(
                place, b"".join(json.dumps(line).encode() + b"\n" for line in lines)
            )
    assert len(place.rollouts()) <= 1


@pytest.mark.parametrize(
    "line",
    [
        b'{"id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}',
        b'{"id":1,"method":"session/list","params":{}}',
        b'{"id":1,"method":"session/load","params":[]}',
        b'{"id":1,"method":"authenticate","params":{"methodId":"api-key"}}',
        b'{"id":1,"method":"logout","params":{}}',
    ],
)
def test_the_handshake_is_first(place: Workplace, line: bytes) -> None:
    wrong = b'{"id":2,"method":"initialize","params":{}}'
    refused, _, again = answers(place, b"\n".join([line, wrong, line, b""]))
    told = {"code": -32600, "message": "not initialized: send `initialize` first"}
    assert refused == {"jsonrpc": "2.0", "id": 1, "error": told}
    assert again == refused

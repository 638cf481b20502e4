"""`codex-py mcp-server`, called by the client of the official SDK and by the agent itself.

Tests `frontends/mcp_server/client.py`, `frontends/mcp_server/mcp_server_command.py`,
`frontends/mcp_server/messages.py`, `frontends/mcp_server/threads.py` and
`frontends/mcp_server/tools.py`.
"""

import asyncio
import itertools
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types import ElicitResult

from codex_py.frontends.mcp_server.tools import CodexReply, NewThread
from codex_py.instructions import instruction_text
from codex_py.protocol.json_schema import schema_of_class
from codex_py.testing import ev_completed, ev_function_call, ev_message
from tests.support.codex import CODEX, needs_codex
from tests.support.codex_process import start_codex_py
from tests.support.lifeline import Lifeline
from tests.support.mcp_agent import mcp_server, served, text_of, thread_of
from tests.support.program import Workplace, environment, run_codex_py
from tests.support.server import ScriptedServer

DONE = [*ev_message("done"), ev_completed()]
PROGRAM = [sys.executable, "-m", "codex_py", "mcp-server"]
HANDSHAKE: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
INITIALIZED: dict[str, Any] = {"jsonrpc": "2.0", "method": "notifications/initialized"}


@pytest.fixture
def line(tmp_path: Path) -> Iterator[Lifeline]:
    with Lifeline(tmp_path) as line:
        yield line


def runs(command: str, **more: Any) -> list[Any]:
    call = ev_function_call("call_1", "exec_command", {"cmd": command, **more})
    return [*call, ev_completed()]


ESCALATED = {
    "sandbox_permissions": "require_escalated",
    "justification": "it has\n\nto be",
}


def call_of(tool: str, **arguments: Any) -> dict[str, Any]:
    params = {"name": tool, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


TOOLS: list[Any] = json.loads(instruction_text("mcp_server.json"))["tools"]


def lines(*messages: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(message).encode() + b"\n" for message in messages)


def shape(schema: Any) -> Any:
    """A schema without its words, which are our own, and without an order."""
    match schema:
        case {**members}:
            return {
                key: shape(value)
                for key, value in members.items()
                if key != "description"
            }
        case [*values]:
            return sorted(values)
        case _:
            return schema


def schema(arguments: type[NewThread | CodexReply]) -> dict[str, Any]:
    """The schema as Codex has it: without null."""
    found = schema_of_class(arguments)
    fields = {
        name: field.get("anyOf", [field])[0]
        for name, field in found["properties"].items()
    }
    return {"type": found["type"], "required": found["required"], "properties": fields}


def test_the_tools_take_what_they_say() -> None:
    told = [shape(tool["inputSchema"]) for tool in TOOLS]
    assert told[0].pop("additionalProperties") is False
    assert told == [shape(schema(kind)) for kind in (NewThread, CodexReply)]


@needs_codex
def test_the_tools_are_those_of_codex(place: Workplace) -> None:
    """Of a Codex that has them: the last is 0.145 or a little newer."""
    messages = [
        HANDSHAKE,
        INITIALIZED,
        {"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
    ]
    with subprocess.Popen(
        [CODEX or "", "mcp-server"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment(place.home),
        cwd=place.cwd,
    ) as codex:
        assert codex.stdin
        assert codex.stdout
        try:
            codex.stdin.write(lines(*messages))
            codex.stdin.flush()
        except BrokenPipeError:
            codex.stdin = None
            pytest.skip("this Codex is no MCP server")
        if not codex.stdout.readline():
            pytest.skip("this Codex is no MCP server")
        theirs = json.loads(codex.stdout.readline())["result"]["tools"]
        codex.stdin.close()
    ours = json.loads(json.dumps(TOOLS))
    # What earlier ones had.
    del ours[0]["inputSchema"]["properties"]["profile"]
    ours[0]["inputSchema"]["properties"]["approval-policy"]["enum"].remove("on-failure")
    assert [shape(tool) for tool in ours] == [shape(tool) for tool in theirs]


def test_a_call_works_on_a_task_and_says_how_it_goes(place: Workplace) -> None:
    with ScriptedServer([runs("echo hi"), DONE]) as server:
        place.configure(server)

        async def main() -> None:
            async with served(place) as agent:
                result = await agent.call()
                assert (text_of(result), result.is_error) == ("done", False)
                assert result.structured_content == {
                    "threadId": thread_of(result),
                    "content": "done",
                }
                assert agent.progress == [
                    "thinking",
                    "running /bin/bash -lc 'echo hi'",
                    "done",
                ]
                events = [e for e in agent.events if e["type"] != "token_count"]
                assert [event["type"] for event in events] == [
                    "session_configured",
                    "task_started",
                    "exec_command_begin",
                    "exec_command_end",
                    "agent_message",
                    "task_complete",
                ]
                assert events[0]["thread_id"] == thread_of(result)
                assert events[3]["aggregated_output"] == "hi\n"
                (rollout,) = place.rollouts()
                meta = json.loads(rollout.read_text(encoding="utf-8").splitlines()[0])[
                    "payload"
                ]
                assert (meta["id"], meta["source"]) == (thread_of(result), "mcp")

        asyncio.run(main())


def test_a_thread_goes_on_here_and_in_a_later_process(place: Workplace) -> None:
    elsewhere = place.cwd / "sub"
    elsewhere.mkdir()
    replies = [[*ev_message(text), ev_completed()] for text in ("one", "two", "three")]
    with ScriptedServer(replies) as server:
        place.configure(server)

        async def main() -> None:
            async with served(place) as agent:
                first = await agent.call(cwd="sub", developer_instructions="Be brief.")
                thread = thread_of(first)
                second = await agent.call("codex-reply", prompt="more", threadId=thread)
            async with served(place) as agent:
                third = await agent.call(
                    "codex-reply", prompt="still more", conversationId=thread
                )
            assert [text_of(r) for r in (first, second, third)] == [
                "one",
                "two",
                "three",
            ]
            assert [thread_of(r) for r in (second, third)] == [thread, thread]

        asyncio.run(main())
        told = [json.dumps(request.input) for request in server.requests]
        assert ["Be brief." in text for text in told] == [True, True, True]
        assert [str(elsewhere) in text for text in told] == [True, True, True]
        said = [
            item["content"][0]["text"]
            for item in server.requests[2].input
            if "role" in item
        ]
        assert [
            text for text in said if text in {"go", "one", "more", "two", "still more"}
        ] == [*("go", "one", "more", "two", "still more")]


def test_a_thread_that_goes_on_may_write_where_the_command_line_says(
    place: Workplace, tmp_path: Path
) -> None:
    extra = tmp_path / "extra"
    extra.mkdir()
    patch = f"*** Begin Patch\n*** Add File: {extra}/new\n+x\n*** End Patch\n"
    call = ev_function_call("call_1", "apply_patch", {"input": patch})
    with ScriptedServer([DONE, [*call, ev_completed()], DONE]) as server:
        place.configure(server)
        table = "{exclude_slash_tmp=true, exclude_tmpdir_env_var=true}"
        sandbox = (
            "-c",
            'sandbox_mode="workspace-write"',
            "-c",
            f"sandbox_workspace_write={table}",
        )

        async def main() -> None:
            async with served(place) as agent:
                thread = thread_of(await agent.call())
            async with served(
                place, *sandbox, "--add-dir", str(extra), sandbox=None
            ) as agent:
                await agent.call("codex-reply", prompt="more", threadId=thread)

        asyncio.run(main())
    assert (extra / "new").read_bytes() == b"x\n"


@pytest.mark.parametrize(
    ("answer", "runs_it"),
    [
        ({"decision": "approved"}, True),
        ({"decision": "approved_for_session"}, True),
        ({"decision": "denied"}, False),
        ({}, False),
        (None, False),
    ],
)
def test_calls_that_need_an_approval_are_put_to_the_client(
    answer: dict[str, Any] | None, runs_it: bool, place: Workplace
) -> None:
    command = "echo ran > it"
    with ScriptedServer([runs(command, **ESCALATED), DONE]) as server:
        place.configure(server)

        async def main() -> None:
            async with served(place, answer=answer) as agent:
                result = await agent.call(
                    sandbox="workspace-write", approval_policy="on-request"
                )
                assert text_of(result) == "done"
                if answer is None:
                    assert agent.asked == []
                else:
                    (question,) = agent.asked
                    assert command in question
                    # No line of the model's words passes for the command.
                    assert "it has to be\n" in question

        asyncio.run(main())
        assert (place.cwd / "it").exists() == runs_it
        if answer is None:
            assert "there is nobody to ask" in str(server.requests[1].output("call_1"))


def test_a_call_that_is_cancelled_ends_its_commands_and_the_thread_goes_on(
    place: Workplace, line: Lifeline
) -> None:
    with ScriptedServer([runs(f"{line.hold} sleep 600"), DONE]) as server:
        place.configure(server)

        async def main() -> None:
            async with served(place) as agent:
                call = asyncio.create_task(agent.call())
                await agent.saw("exec_command_begin")
                await asyncio.to_thread(line.wait_until_up)
                call.cancel()
                await asyncio.wait([call])
                await asyncio.to_thread(line.wait_until_dead)
                thread = agent.events[0]["thread_id"]
                result = await agent.call("codex-reply", threadId=thread)
                assert (text_of(result), thread_of(result)) == ("done", thread)
                assert "turn_aborted" in [event["type"] for event in agent.events]

        asyncio.run(main())


def test_threads_work_side_by_side_and_each_on_one_call(place: Workplace) -> None:
    both = threading.Barrier(2)

    def meet(_: Any) -> list[Any]:
        both.wait(120)
        return DONE

    with ScriptedServer([DONE, meet, meet]) as server:
        place.configure(server)

        async def main() -> None:
            async with served(place) as agent:
                thread = thread_of(await agent.call())
                first = asyncio.create_task(agent.call("codex-reply", threadId=thread))
                agent.events.clear()
                await agent.saw("task_started")
                busy = await agent.call("codex-reply", threadId=thread)
                assert busy.is_error
                assert "is working on another call" in text_of(busy)
                other = await agent.call()
                assert text_of(other) == text_of(await first) == "done"
                assert thread_of(other) != thread_of(await first)

        asyncio.run(main())


def test_a_call_that_cannot_be_done_says_why(place: Workplace) -> None:
    wrong: list[tuple[str, dict[str, Any], str]] = [
        ("codex", {"cwd": "nowhere"}, "cannot work in"),
        (
            "codex",
            {"cwd": "/tmp/\0x"},
            "cannot work in '/tmp/\\x00x': embedded null byte",
        ),
        ("codex", {"cwd": "x" * 5000}, "File name too long"),
        ("codex", {"zork": 1}, "`zork`: it is unknown"),
        ("codex", {"prompt": 3}, "`prompt`: it must be a string"),
        ("codex", {"approval-policy": "maybe"}, "`approval-policy`"),
        ("codex", {"profile": "none"}, "none.config.toml"),
        ("codex", {"config": {"personality": {"a": 1}}}, "personality"),
        ("codex", {"config": {"model": None}}, "model"),
        ("codex", {"config": {"model": "a", "model.x": 1}}, "`config`: 'model.x'"),
        ("codex-reply", {}, "needs `threadId`"),
        ("codex-reply", {"threadId": "../x"}, "no thread found"),
        ("review", {}, "there is no tool 'review'"),
    ]
    with ScriptedServer() as server:
        place.configure(server)

        async def main() -> None:
            async with served(place) as agent:
                for tool, arguments, words in wrong:
                    result = await agent.call(tool, **arguments)
                    assert result.is_error
                    assert words in text_of(result)
                    assert "\n" not in text_of(result)

        asyncio.run(main())
        assert server.requests == []
    assert place.rollouts() == []


def test_a_turn_that_fails_is_an_error_with_its_thread_and_warnings_are_logged(
    place: Workplace,
) -> None:
    with ScriptedServer() as server:
        place.configure(server)
        with (place.home / "config.toml").open("a", encoding="utf-8") as config:
            config.write('[mcp_servers.gone]\ncommand = "/nowhere/at/all"\n')

        async def main() -> None:
            async with served(place) as agent:
                result = await agent.call()
                assert result.is_error
                assert result.structured_content["content"] == text_of(result) != ""
                assert "MCP server `gone`" in agent.logged[0]

        asyncio.run(main())


def test_the_settings_of_a_call_win(place: Workplace) -> None:
    with ScriptedServer([DONE]) as server:
        place.configure(server)

        async def main() -> None:
            async with served(
                place, "-m", "gpt-5", "-c", "model_verbosity=high"
            ) as agent:
                await agent.call(
                    model="gpt-5.5",
                    config={
                        "model_reasoning_effort": "low",
                        "tools.update_plan.enabled": False,
                    },
                    base_instructions="You are a parrot.",
                )

        asyncio.run(main())
        (request,) = server.requests
        assert request.body["model"] == "gpt-5.5"
        assert request.body["reasoning"]["effort"] == "low"
        assert request.body["text"]["verbosity"] == "high"
        assert "You are a parrot." in json.dumps(request.body)
        assert "update_plan" not in json.dumps(request.body["tools"])


@pytest.mark.parametrize("end", ["eof", "sigterm", "both pipes"])
def test_when_it_ends_nothing_is_left(
    end: str, place: Workplace, line: Lifeline
) -> None:
    with ScriptedServer([runs(f"{line.hold} sleep 600")]) as server:
        place.configure(server)
        words = ["mcp-server", "-s", "danger-full-access"]
        with start_codex_py(
            words, place.cwd, environment(place.home), stdin=subprocess.PIPE
        ) as program:
            assert program.stdin
            assert program.stdout
            call = call_of("codex", prompt="go")
            program.stdin.write(lines(HANDSHAKE, INITIALIZED, call))
            program.stdin.flush()
            line.wait_until_up()
            match end:
                case "eof":
                    program.stdin.close()
                case "sigterm":
                    program.send_signal(signal.SIGTERM)
                case _:
                    # The client still has our input open, and only reads no more.
                    program.stdout.close()
            code = program.wait(120)
            line.wait_until_dead()
            assert code == (143 if end == "sigterm" else 0)
            assert program.stderr
            assert program.stderr.read() == b""
            if end != "both pipes":
                assert all(
                    json.loads(text)["jsonrpc"] == "2.0" for text in program.stdout
                )
    (rollout,) = place.rollouts()
    assert "turn_aborted" in rollout.read_text(encoding="utf-8")


def test_a_message_that_is_too_long_is_refused_and_costs_no_other(
    place: Workplace,
) -> None:
    with start_codex_py(
        ["mcp-server"], place.cwd, environment(place.home), stdin=subprocess.PIPE
    ) as program:
        assert program.stdin
        assert program.stdout
        assert program.stderr
        program.stdin.write(lines(HANDSHAKE, INITIALIZED))
        program.stdin.write(lines(call_of("codex", prompt="x" * (100 << 20))))
        program.stdin.write(b"x" * (33 << 20) + b"\n")
        program.stdin.write(lines({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}))
        program.stdin.flush()
        answers = [json.loads(program.stdout.readline()) for _ in range(4)]
        program.stdin.close()
        assert (program.wait(120), program.stderr.read()) == (0, b"")
    skipped = {"code": -32600, "message": "a message of more than 32 MB was skipped"}
    assert [(each["id"], each.get("error")) for each in answers] == [
        *[(0, None), (1, skipped), (None, skipped), (2, None)]
    ]


def test_nothing_but_the_protocol_is_on_stdout(place: Workplace) -> None:
    script = (
        "import asyncio, os, subprocess\n"
        "from codex_py.streams.messages import standard_pipes\n"
        "async def main():\n"
        "    async with standard_pipes('test'):\n"
        "        print('printed', flush=True)\n"
        "        os.write(1, b'written ')\n"
        "        subprocess.run(['sh', '-c', 'echo read: $(cat)'], check=True)\n"
        "asyncio.run(main())"
    )
    done = subprocess.run(
        [sys.executable, "-X", "utf8", "-c", script],
        input=b"{}\n",
        capture_output=True,
        cwd=place.cwd,
        timeout=120,
        check=True,
    )
    assert (done.stdout, done.stderr) == (b"", b"printed\nwritten read:\n")


def test_a_client_of_the_newest_protocol_falls_back_and_can_be_asked(
    place: Workplace,
) -> None:
    with ScriptedServer([runs("echo ran > it", **ESCALATED), DONE]) as server:
        place.configure(server)

        async def yes(context: Any, params: Any) -> ElicitResult:
            return ElicitResult(action="accept", content={"decision": "approved"})

        async def main() -> None:
            parameters = StdioServerParameters(
                command=PROGRAM[0],
                args=PROGRAM[1:],
                env=environment(place.home),
                cwd=place.cwd,
            )
            async with Client(
                stdio_client(parameters), elicitation_callback=yes
            ) as client:
                arguments = {"prompt": "go", "sandbox": "read-only"}
                result = await client.call_tool("codex", arguments)
                assert text_of(result) == "done"

        asyncio.run(main())
    assert (place.cwd / "it").exists()


@pytest.mark.parametrize("can_be_asked", [True, False])
def test_a_question_of_the_model_is_a_form_for_the_client(
    place: Workplace, can_be_asked: bool
) -> None:
    options = [
        {"label": "One", "description": "Small."},
        {"label": "Two", "description": "Large."},
    ]
    question = {
        "id": "db",
        "header": "Database",
        "question": "Which?",
        "options": options,
    }
    call = ev_function_call("call_1", "request_user_input", {"questions": [question]})
    asked: list[Any] = []

    async def answer(context: Any, params: Any) -> ElicitResult:
        asked.append(params)
        return ElicitResult(
            action="accept", content={"db": "Two", "db_other": "for now"}
        )

    async def main() -> None:
        callback = answer if can_be_asked else None
        transport = mcp_server([], place.cwd, environment(place.home))
        async with Client(transport, elicitation_callback=callback) as client:
            result = await client.call_tool(
                "codex", {"prompt": "go", "sandbox": "read-only"}
            )
            assert text_of(result) == "done"

    with ScriptedServer([[*call, ev_completed()], DONE]) as server:
        place.configure(server)
        asyncio.run(main())
    output = server.requests[-1].body["input"][-1]["output"]
    if can_be_asked:
        assert json.loads(output) == {
            "answers": {"db": {"answers": ["Two", "user_note: for now"]}}
        }
        assert asked[0].message == "codex-py: Which?"
        assert list(asked[0].requested_schema["properties"]) == ["db", "db_other"]
    else:
        assert output == "request_user_input is unavailable in Default mode"
        assert asked == []


def test_the_agent_calls_itself(place: Workplace, tmp_path: Path) -> None:
    inner_home = tmp_path / "inner"
    inner_home.mkdir()
    call = ev_function_call("call_1", "mcp__agent__codex", {"prompt": "inner task"})
    with (
        ScriptedServer([[*call, ev_completed()], DONE]) as outer,
        ScriptedServer([[*ev_message("from within"), ev_completed()]]) as inner,
    ):
        Workplace(inner_home, place.cwd).configure(inner)
        place.configure(outer)
        variables = environment(inner_home)
        with (place.home / "config.toml").open("a", encoding="utf-8") as config:
            config.write(
                f"[mcp_servers.agent]\ncommand = {json.dumps(PROGRAM[0])}\n"
                f"args = {json.dumps(PROGRAM[1:])}\n[mcp_servers.agent.env]\n"
            )
            config.writelines(
                f"{name} = {json.dumps(v)}\n" for name, v in variables.items()
            )
        outcome = place.rerun()
        assert (outcome.code, outcome.messages) == (0, ["done"])
        assert "from within" in json.dumps(outer.requests[1].output("call_1"))
        assert inner.requests[0].input[-1]["content"][0]["text"] == "inner task"


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["prompt"], 2, "unexpected argument 'prompt'"),
        (["-c", "model_provider=3"], 78, "model_provider"),
        (["-C", "nowhere"], 2, "cannot work in 'nowhere'"),
    ],
)
def test_a_wrong_command_line_is_told_before_anything_is_served(
    args: list[str], code: int, words: str, place: Workplace
) -> None:
    done = run_codex_py(["mcp-server", *args], place.home, place.cwd)
    assert (done.returncode, done.stdout) == (code, b"")
    assert words in done.stderr.decode()
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("line", "code", "number"),
    [
        (b"{", -32700, None),
        (b"hello", -32700, None),
        (b"{\xff}", -32700, None),
        (b"[" * 10_000, -32700, None),
        (b"42", -32600, None),
        (b"[]", -32600, None),
        (b'[{"jsonrpc":"2.0","id":1,"method":"tools/list"}]', -32600, None),
        (b'{"jsonrpc":"2.0","id":1}', -32600, None),
        (b'{"id":1,"method":5}', -32600, 1),
        (b'{"jsonrpc":"2.0","id":5,"method":"tools/list"}', -32600, 5),
        (b'{"jsonrpc":"2.0","id":"a","method":"tools/call"}', -32600, "a"),
        (b'{"jsonrpc":"2.0","id":5,"method":"no/such"}', -32600, 5),
    ],
)
def test_bad_input_before_the_handshake_is_one_error_and_the_next_line_counts(
    place: Workplace, line: bytes, code: int, number: int | str | None
) -> None:
    stdin = line + b"\n" + lines(HANDSHAKE)
    done = run_codex_py(["mcp-server"], place.home, place.cwd, stdin=stdin)
    assert done.returncode == 0
    refused, shaken = map(json.loads, done.stdout.splitlines())
    assert (refused["id"], refused["error"]["code"]) == (number, code)
    told = ("not initialized", "this is not a message", "this is no JSON")
    assert refused["error"]["message"].startswith(told)
    assert "result" in shaken


def test_a_request_with_wrong_params_is_answered_under_its_id(place: Workplace) -> None:
    """A client that gets no answer under its id waits for ever."""
    methods = [
        "tools/call",
        "tools/list",
        "ping",
        "initialize",
        "no/such",
        "notifications/x",
    ]
    wrong = ["5", '"s"', "[]", "[1]", "true", r'{"a": "\ud800"}']
    requests = [
        f'{{"jsonrpc": "2.0", "id": "{number}", "method": "{method}", "params": {params}}}\n'
        for number, (method, params) in enumerate(itertools.product(methods, wrong))
    ]
    stdin = lines(HANDSHAKE, INITIALIZED) + "".join(requests).encode()
    done = run_codex_py(["mcp-server"], place.home, place.cwd, stdin=stdin)
    assert done.returncode == 0
    answers = [json.loads(line) for line in done.stdout.splitlines()][1:]
    expected = [(str(number), -32600) for number in range(len(requests))]
    assert [(each["id"], each["error"]["code"]) for each in answers] == expected

import asyncio
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from codex_py.errors import ToolError
from codex_py.protocol.dispatch import ToolContext
from codex_py.protocol.event_items import AgentMessage, ErrorItem
from codex_py.protocol.events import CallDenied, Event, ItemCompleted
from codex_py.protocol.frozen import frozen
from codex_py.protocol.items import (
    CustomToolCallOutput,
    FunctionCallOutput,
    OutputItem,
    parse_item,
)
from codex_py.protocol.tools import (
    CustomPayload,
    FunctionPayload,
    LocalShellPayload,
    ToolCall,
    ToolOutput,
)
from codex_py.tools.base import ToolParams
from codex_py.tools.router import ToolRouter
from tests.support.tool_context import router_of, tool_context


def context() -> ToolContext:
    return tool_context(Path("/repo"), emit=lambda event: None)


@frozen(kw_only=True)
class AddParams(ToolParams):
    a: int
    b: int = 0


class Add:
    name = "add"
    params = AddParams
    parallel = True

    async def run(self, params: AddParams, context: ToolContext) -> ToolOutput:
        if params.a < 0:
            raise ToolError("a is negative", code="EINVAL")
        if params.a == 404:
            raise FileNotFoundError(2, "No such file", "x.txt")
        return ToolOutput(str(params.a + params.b))


@frozen(kw_only=True)
class TextParams(ToolParams):
    input: str


class Shout:
    name = "apply_patch"
    params = TextParams
    parallel = False

    async def run(self, params: TextParams, context: ToolContext) -> ToolOutput:
        return ToolOutput(params.input.upper())


@frozen(kw_only=True)
class CommandParams(ToolParams):
    command: list[str]
    workdir: str | None = None
    timeout_ms: int | None = None


class Local:
    name = "local_shell"
    params = CommandParams
    parallel = True

    async def run(self, params: CommandParams, context: ToolContext) -> ToolOutput:
        return ToolOutput(json.dumps(asdict(params)))


ROUTER = router_of(Add(), Shout(), Local())


def function(name: str, arguments: str = "{}", **extra: Any) -> dict[str, Any]:
    return {
        "type": "function_call",
        "call_id": "c1",
        "name": name,
        "arguments": arguments,
        **extra,
    }


def custom(name: str, text: str) -> dict[str, Any]:
    return {"type": "custom_tool_call", "call_id": "c1", "name": name, "input": text}


def answer(item: dict[str, Any], router: ToolRouter = ROUTER) -> OutputItem:
    call = router.build_tool_call(parse_item(item))
    assert call is not None
    (output,) = asyncio.run(router.dispatch(call, context()))
    assert isinstance(output, OutputItem)
    return output


@pytest.mark.parametrize(
    ("item", "call"),
    [
        (function("add", "{}"), ToolCall("add", "c1", FunctionPayload("{}"))),
        (function("functions.add"), ToolCall("add", "c1", FunctionPayload("{}"))),
        (
            function("add", namespace="functions"),
            ToolCall("add", "c1", FunctionPayload("{}")),
        ),
        (function("container.exec"), ToolCall("shell", "c1", FunctionPayload("{}"))),
        (custom("apply_patch", "x"), ToolCall("apply_patch", "c1", CustomPayload("x"))),
        (
            function("mcp__srv__do_it", '{"q":1}'),
            ToolCall("mcp__srv__do_it", "c1", FunctionPayload('{"q":1}')),
        ),
        (
            function("do_it", namespace="mcp__srv"),
            ToolCall("mcp__srv__do_it", "c1", FunctionPayload("{}")),
        ),
        (
            function("do_it", namespace="mcp__srv__"),
            ToolCall("mcp__srv__do_it", "c1", FunctionPayload("{}")),
        ),
        (
            function("mcp__odd__name__do_it"),
            ToolCall("mcp__odd__name__do_it", "c1", FunctionPayload("{}")),
        ),
        (
            custom("mcp__srv__do_it", "{}"),
            ToolCall("mcp__srv__do_it", "c1", CustomPayload("{}")),
        ),
        (
            {
                "type": "local_shell_call",
                "id": "lsh_1",
                "action": {
                    "type": "exec",
                    "command": ["ls"],
                    "working_directory": "/x",
                },
            },
            ToolCall("local_shell", "lsh_1", LocalShellPayload(("ls",), "/x", None)),
        ),
        ({"type": "message", "role": "assistant", "content": "hi"}, None),
        ({"type": "something_new", "call_id": "c1"}, None),
    ],
)
def test_every_spelling_of_a_call_is_understood(
    item: dict[str, Any], call: ToolCall | None
) -> None:
    assert ROUTER.build_tool_call(parse_item(item)) == call


def test_a_function_call_is_answered_under_its_call_id() -> None:
    assert answer(
        function("add", '{"a":1,"b":2,"invented":true}')
    ) == FunctionCallOutput(call_id="c1", output="3")


def test_a_custom_call_is_answered_by_a_custom_output() -> None:
    assert answer(custom("apply_patch", "hi")) == CustomToolCallOutput(
        call_id="c1", output="HI"
    )


def test_a_local_shell_call_is_answered_by_a_function_output() -> None:
    action = {"type": "exec", "command": ["ls"], "timeout_ms": 5}
    item = {"type": "local_shell_call", "call_id": "c1", "action": action}
    assert answer(item) == FunctionCallOutput(
        call_id="c1", output='{"command": ["ls"], "workdir": null, "timeout_ms": 5}'
    )


@pytest.mark.parametrize("arguments", ['{"input":"hi"}', "hi"])
def test_a_freeform_tool_is_taken_as_a_function_too(arguments: str) -> None:
    assert answer(function("apply_patch", arguments)) == FunctionCallOutput(
        call_id="c1", output="HI"
    )


def test_a_freeform_text_may_come_wrapped_in_json() -> None:
    assert answer(custom("apply_patch", '{"input":"hi"}')) == CustomToolCallOutput(
        call_id="c1", output="HI"
    )


def test_a_function_tool_is_taken_as_a_custom_call_too() -> None:
    assert answer(custom("add", '{"a":1}')) == CustomToolCallOutput(
        call_id="c1", output="1"
    )


@pytest.mark.parametrize(
    ("item", "text"),
    [
        (function("nope"), "[ERROR:UnknownTool] unsupported call: nope"),
        (function(""), "[ERROR:UnknownTool] unsupported call: "),
        (custom("nope", ""), "[ERROR:UnknownTool] unsupported custom tool call: nope"),
        (
            function("mcp__srv__x"),
            "[ERROR:UnknownTool] unsupported call: mcp__srv__x"
            " (no connected MCP server 'srv' has a tool 'x')",
        ),
        (
            function("add", "{}"),
            "[ERROR:InvalidArgs] failed to parse function arguments: missing field `a`",
        ),
        (
            function("add", ""),
            "[ERROR:InvalidArgs] failed to parse function arguments: missing field `a`",
        ),
        (
            function("add", "{a"),
            "[ERROR:InvalidArgs] failed to parse function arguments:"
            " Expecting property name enclosed in double quotes: line 1 column 2 (char 1)",
        ),
        (
            function("add", '{"a":"x"}'),
            '[ERROR:InvalidArgs] failed to parse function arguments: invalid value "x" for `a`:'
            " it must be an integer",
        ),
        (function("add", '{"a":-1}'), "[ERROR:EINVAL] a is negative"),
        (
            function("add", '{"a":404}'),
            "[ERROR:ENOENT] [Errno 2] No such file: 'x.txt'",
        ),
    ],
)
def test_a_call_that_cannot_run_gets_a_plain_answer_with_a_code(
    item: dict[str, Any], text: str
) -> None:
    output = answer(item)
    assert isinstance(output, OutputItem)
    assert output.output == text


def test_a_denial_is_told_to_whoever_watches() -> None:
    events: list[Event] = []

    class Denied(Add):
        async def run(self, params: AddParams, context: ToolContext) -> ToolOutput:
            if params.a == 1:
                raise ToolError("not this one", code="ApprovalDenied")
            return ToolOutput("nor this one", success=False, error_code="SandboxDenied")

    router = router_of(Denied())
    for arguments in ('{"a": 1}', '{"a": 2}', "{}"):
        call = ToolCall("add", "c", FunctionPayload(arguments))
        asyncio.run(router.dispatch(call, tool_context(Path("/repo"), events.append)))
    denied = [event for event in events if isinstance(event, CallDenied)]
    assert denied == [
        CallDenied("add", "not this one", code="ApprovalDenied"),
        CallDenied("add", "nor this one", code="SandboxDenied"),
    ]


@pytest.mark.parametrize("arguments", ['{"a": -1}', "{}", '{"a": 404}'])
def test_a_call_that_fails_before_it_has_an_item_is_an_error_item(
    arguments: str,
) -> None:
    events: list[Event] = []
    call = ToolCall("add", "c", FunctionPayload(arguments))
    (output,) = asyncio.run(
        ROUTER.dispatch(call, tool_context(Path("/repo"), events.append))
    )
    (event,) = events
    assert isinstance(event, ItemCompleted)
    assert isinstance(event.item, ErrorItem)
    item = event.item
    assert (item.tool, item.call_id) == ("add", "c")
    assert isinstance(output, FunctionCallOutput)
    assert (
        output.output
        == f"[ERROR:{item.code}] {item.message.removeprefix('add failed: ')}"
    )


def test_a_call_that_shows_an_item_has_no_other() -> None:
    class Shows(Add):
        async def run(self, params: AddParams, context: ToolContext) -> ToolOutput:
            context.emit(ItemCompleted(AgentMessage(id="item_0", text="shown")))
            raise ToolError("no", code="EINVAL")

    events: list[Event] = []
    call = ToolCall("add", "c", FunctionPayload('{"a": 1}'))
    asyncio.run(
        router_of(Shows()).dispatch(call, tool_context(Path("/repo"), events.append))
    )
    assert events == [ItemCompleted(AgentMessage(id="item_0", text="shown"))]


def test_output_for_the_model_is_bounded_whatever_the_tool_returns() -> None:
    output = answer(custom("apply_patch", "x" * 1_000_000))
    assert isinstance(output, CustomToolCallOutput)
    assert len(output.output) < 50_000
    assert "tokens truncated" in str(output.output)


def test_exclusive_calls_wait_for_those_before_and_hold_up_those_after() -> None:
    log: list[str] = []

    @frozen(kw_only=True)
    class Step(ToolParams):
        name: str

    class Recorder:
        params = Step

        def __init__(
            self,
            name: str,
            *,
            parallel: bool,
            gate: asyncio.Event,
            two_started: asyncio.Event,
        ) -> None:
            self.name = name
            self.parallel = parallel
            self._gate = gate
            self._two_started = two_started

        async def run(self, params: Step, context: ToolContext) -> ToolOutput:
            log.append(f"{params.name} starts")
            if len(log) == 2:
                self._two_started.set()
            await self._gate.wait()
            log.append(f"{params.name} ends")
            return ToolOutput("")

    async def run() -> None:
        gate, two_started = asyncio.Event(), asyncio.Event()
        router = router_of(
            Recorder("read", parallel=True, gate=gate, two_started=two_started),
            Recorder("write", parallel=False, gate=gate, two_started=two_started),
        )

        async def call(name: str, label: str) -> None:
            payload = FunctionPayload(json.dumps({"name": label}))
            await router.dispatch(ToolCall(name, label, payload), context())

        async with asyncio.TaskGroup() as group:
            for name, label in [
                ("read", "r1"),
                ("read", "r2"),
                ("write", "w"),
                ("read", "r3"),
            ]:
                group.create_task(call(name, label))
            await two_started.wait()
            gate.set()

    asyncio.run(asyncio.wait_for(run(), 5))
    assert log == [
        "r1 starts",
        "r2 starts",
        "r1 ends",
        "r2 ends",
        "w starts",
        "w ends",
        "r3 starts",
        "r3 ends",
    ]

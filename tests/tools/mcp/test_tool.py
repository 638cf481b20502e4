"""Also tests `tools/mcp/item.py` and `tools/mcp/own.py`."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from codex_py.config.mcp import McpServerConfig
from codex_py.protocol.approval import (
    ApprovalPolicy,
    ApprovalRequest,
    ReviewDecision,
    SandboxPolicy,
)
from codex_py.protocol.event_items import ErrorItem, McpToolCall
from codex_py.protocol.events import (
    CallDenied,
    Event,
    ItemCompleted,
    ItemStarted,
    McpToolCallProgress,
)
from codex_py.protocol.image_rule import ImageRule
from codex_py.protocol.items import FunctionCallOutput, parse_item
from codex_py.tools.mcp.catalogue import McpCatalogue
from codex_py.tools.mcp.tool import mcp_tool_finder
from codex_py.tools.router import ToolRouter
from tests.support.mcp import started
from tests.support.tool_calls import ScriptedApprover
from tests.support.tool_context import tool_context

Call = Callable[..., Awaitable[Any]]


def run(
    tmp_path: Path,
    behaviour: str,
    test: Callable[[Call], Awaitable[None]],
    *,
    config: McpServerConfig | None = None,
    settings: dict[str, Any] | None = None,
    **context: Any,
) -> list[Event]:
    """Hand the test a function that calls a tool as a model does, and gives what the model is told."""
    events: list[Event] = []

    async def main() -> None:
        async with started(tmp_path, behaviour, **(settings or {})) as it:
            configs = {behaviour: config or McpServerConfig(command="x")}
            find = mcp_tool_finder(
                it.servers, configs, McpCatalogue(it.servers), ImageRule()
            )
            router = ToolRouter(find)
            turn = tool_context(tmp_path, events.append, **context)

            async def call(name: str, arguments: str = "{}", **fields: Any) -> Any:
                item = {"type": "function_call", "call_id": "c", "name": name, **fields}
                request = router.build_tool_call(
                    parse_item({**item, "arguments": arguments})
                )
                assert request is not None
                (output,) = await router.dispatch(request, turn)
                assert isinstance(output, FunctionCallOutput)
                if isinstance(output.output, str):
                    return output.output
                return [part["text"] for part in output.output][1:]

            await test(call)

    asyncio.run(main())
    return events


def item(tool: str, **fields: Any) -> McpToolCall:
    base = McpToolCall(id="item_0", server="fails", tool=tool, arguments={})
    return replace(base, **fields)


@pytest.mark.parametrize(
    "spelling",
    [
        {"name": "mcp__fails__echo"},
        {"name": "echo", "namespace": "mcp__fails"},
        {"name": "echo", "namespace": "mcp__fails__"},
        {"name": "functions.mcp__fails__echo"},
    ],
)
def test_a_tool_is_called_in_every_spelling(
    tmp_path: Path, spelling: dict[str, str]
) -> None:
    async def test(call: Call) -> None:
        assert await call(arguments='{"a":1}', **spelling) == ['{"a": 1}']

    result = {
        "content": [{"type": "text", "text": '{"a": 1}'}],
        "structured_content": None,
    }
    assert run(tmp_path, "fails", test) == [
        ItemStarted(item("echo", arguments={"a": 1})),
        ItemCompleted(
            item("echo", arguments={"a": 1}, result=result, status="completed")
        ),
    ]


def test_a_result_that_is_an_error_fails_the_item(tmp_path: Path) -> None:
    async def test(call: Call) -> None:
        assert await call("mcp__fails__fails") == ["no"]

    result = {"content": [{"type": "text", "text": "no"}], "structured_content": None}
    events = run(tmp_path, "fails", test)
    assert events[1:] == [ItemCompleted(item("fails", result=result, status="failed"))]


def test_a_call_without_a_result_says_why(tmp_path: Path) -> None:
    text = (
        "tool call error: tool call failed for `silent/silent`\n\nCaused by:\n"
        "    timed out awaiting tools/call after 0.2s"
    )

    async def test(call: Call) -> None:
        assert await call("mcp__silent__silent") == f"[ERROR:Timeout] {text}"

    events = run(tmp_path, "silent", test, settings={"tool_timeout_s": 0.2})
    failed = item("silent", server="silent", error={"message": text}, status="failed")
    assert events[-1] == ItemCompleted(failed)


def test_progress_is_shown(tmp_path: Path) -> None:
    async def test(call: Call) -> None:
        await call("mcp__silent__silent")

    events = run(tmp_path, "silent", test, settings={"tool_timeout_s": 0.5})
    assert events[1] == McpToolCallProgress("item_0", "1/2 half")


def test_arguments_have_to_be_an_object(tmp_path: Path) -> None:
    async def test(call: Call) -> None:
        for arguments in ("[1]", "{", '"x"'):
            answer = await call("mcp__fails__echo", arguments)
            assert answer.startswith(
                "[ERROR:InvalidArgs] failed to parse function arguments: "
            )

    shown = [
        event.item
        for event in run(tmp_path, "fails", test)
        if isinstance(event, ItemCompleted)
    ]
    tools = [(item.tool, item.code) for item in shown if isinstance(item, ErrorItem)]
    assert tools == [("mcp__fails__echo", "InvalidArgs")] * 3


def test_under_never_what_may_change_things_does_not_run(tmp_path: Path) -> None:
    allow = 'mcp_servers.fails.default_tools_approval_mode = "approve"'
    text = f"MCP tool call requires approval, but approval policy is never; to allow it: {allow}"

    async def test(call: Call) -> None:
        assert await call("mcp__fails__echo") == ["{}"]
        assert await call("mcp__fails__fails") == f"[ERROR:ApprovalDenied] {text}"

    events = run(tmp_path, "fails", test, sandbox=SandboxPolicy())
    failed = item("fails", id="item_1", error={"message": text}, status="failed")
    assert events[2:] == [
        ItemStarted(item("fails", id="item_1")),
        ItemCompleted(failed),
        CallDenied(
            "mcp__fails__fails",
            text,
            "a tool of an MCP server needs an approval",
            allow,
            "ApprovalDenied",
        ),
    ]


def test_the_user_is_asked_and_can_agree_for_the_session(tmp_path: Path) -> None:
    approver = ScriptedApprover(ReviewDecision.APPROVED_FOR_SESSION)

    async def test(call: Call) -> None:
        assert await call("mcp__fails__fails", '{"é":1}') == ["no"]
        assert await call("mcp__fails__fails") == ["no"]

    run(
        tmp_path,
        "fails",
        test,
        policy=ApprovalPolicy.ON_REQUEST,
        sandbox=SandboxPolicy(),
        approver=approver,
    )
    question = "Allow the MCP server `fails` to run the tool `fails`?"
    assert approver.asked == [
        ApprovalRequest(
            "mcp",
            'fails/fails {"é": 1}',
            tmp_path,
            question,
            tool=("mcp__fails__fails", {"é": 1}),
        )
    ]
    assert approver.asked[0].item_id == "item_0"


def test_the_configuration_can_agree_or_ask_by_tool(tmp_path: Path) -> None:
    config = McpServerConfig(
        command="x",
        default_tools_approval_mode="approve",
        tools_approval_modes={"echo": "prompt"},
    )
    approver = ScriptedApprover(ReviewDecision.DENIED)

    async def test(call: Call) -> None:
        assert await call("mcp__fails__fails") == ["no"]
        assert await call("mcp__fails__echo") == (
            "[ERROR:ApprovalDenied] user rejected MCP tool call"
        )

    run(
        tmp_path,
        "fails",
        test,
        config=config,
        policy=ApprovalPolicy.ON_REQUEST,
        approver=approver,
    )
    assert len(approver.asked) == 1


def test_an_interrupted_call_completes_its_item(tmp_path: Path) -> None:
    async def interrupted(call: Call) -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await call("mcp__silent__silent")

    events = run(tmp_path, "silent", interrupted)
    error = {"message": "the call was interrupted"}
    failed = item("silent", server="silent", error=error, status="failed")
    assert events[-1] == ItemCompleted(failed)


def test_tools_that_read_and_those_that_are_allowed_to_run_side_by_side(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        async with started(tmp_path, "fails") as it:
            for allowed, expected in ((False, [True, False]), (True, [True, True])):
                config = McpServerConfig(
                    command="x", supports_parallel_tool_calls=allowed
                )
                catalogue = McpCatalogue(it.servers)
                find = mcp_tool_finder(
                    it.servers, {"fails": config}, catalogue, ImageRule()
                )
                found = [find(f"mcp__fails__{name}") for name in ("echo", "fails")]
                assert [tool and tool.parallel for tool in found] == expected

    asyncio.run(main())


def test_resources_are_listed_and_read(tmp_path: Path) -> None:
    entry = '{"server":"fails","uri":"odd://%s","name":"a","mimeType":"text/plain"}'
    template = '{"server":"fails","uriTemplate":"odd://{n}","name":"t"}'

    async def test(call: Call) -> None:
        assert await call("list_mcp_resources") == (
            '{"resources":[' + entry % 1 + "," + entry % 2 + "]}"
        )
        assert await call("list_mcp_resources", '{"server":"fails"}') == (
            '{"server":"fails","resources":[' + entry % 1 + '],"nextCursor":"2"}'
        )
        assert await call("list_mcp_resources", '{"server":"fails","cursor":"2"}') == (
            '{"server":"fails","resources":[' + entry % 2 + "]}"
        )
        assert await call("list_mcp_resource_templates") == (
            '{"resourceTemplates":[' + template + "]}"
        )
        assert await call(
            "read_mcp_resource", '{"server":"fails","uri":"odd://1"}'
        ) == (
            '{"server":"fails","uri":"odd://1","contents":[{"uri":"odd://1","text":"one"}]}'
        )
        assert await call(
            "read_mcp_resource", '{"server":"fails","uri":"odd://2"}'
        ) == (
            "[ERROR:McpError] resources/read failed: Mcp error: -32002: Resource not found"
        )
        assert await call("read_mcp_resource", '{"server":"nope","uri":"x"}') == (
            "[ERROR:UnknownServer] unknown MCP server 'nope'"
        )
        assert await call("list_mcp_resources", '{"cursor":"2"}') == (
            "[ERROR:InvalidArgs] cursor can only be used when a server is specified"
        )

    events = run(tmp_path, "fails", test)
    started_items = [event.item for event in events if isinstance(event, ItemStarted)]
    assert started_items[:2] == [
        item("list_mcp_resources", server="codex"),
        item("list_mcp_resources", id="item_1", arguments={"server": "fails"}),
    ]
    assert (
        sum(isinstance(event, ItemCompleted) for event in events)
        == len(started_items)
        == 8
    )


def test_a_list_of_resources_that_never_ends_is_cut(tmp_path: Path) -> None:
    async def test(call: Call) -> None:
        assert await call("list_mcp_resources") == '{"resources":[]}'

    run(tmp_path, "endless", test, settings={"startup_timeout_s": 60})

"""Also tests `mcp/settings.py`, `mcp/tools.py` and `protocol/mcp.py`."""

import asyncio
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from codex_py.errors import CodexError
from codex_py.mcp.settings import ServerSettings, StdioTransport
from codex_py.mcp.tools import MAX_PAGES
from codex_py.protocol.mcp import Elicitation, ElicitationAnswer, RequestFailed
from tests.support.lifeline import Lifeline
from tests.support.mcp import ODD_SERVER, ScriptedElicitor, odd_server, started

REPO = Path(__file__).parents[2]


def text(value: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": value}]}


def test_a_tool_is_called_and_its_result_comes_as_it_was_sent(tmp_path: Path) -> None:
    async def run() -> None:
        async with started(tmp_path, "fails") as it:
            assert [tool.name for tool in it.get("fails").tools] == ["echo", "fails"]
            assert await it.call("fails", "echo", a=[1, "é"]) == text(
                '{"a": [1, "\\u00e9"]}'
            )
            assert await it.call("fails", "fails") == {**text("no"), "isError": True}
            with pytest.raises(
                RequestFailed, match=r"Mcp error: -32602: no tool nope"
            ) as caught:
                await it.call("fails", "nope")
            assert caught.value.code == "McpError"
            assert it.warnings == []

    asyncio.run(run())


def test_a_server_gets_no_more_of_our_environment_than_it_is_given(
    tmp_path: Path,
) -> None:
    async def run() -> None:
        async with started(tmp_path, "environment") as it:
            result = await it.call("environment", "environment")
            names = set(json.loads(result["content"][0]["text"]))
            assert names - {"LC_CTYPE"} == {"PATH", "HOME", "CODEX_PY_PROCESS"}

    asyncio.run(run())


def test_servers_that_fail_say_why_and_the_others_work(tmp_path: Path) -> None:
    async def run() -> None:
        absent = ServerSettings(
            name="absent", transport=StdioTransport(("nope",), tmp_path, {})
        )
        lost = ServerSettings(
            name="lost",
            transport=StdioTransport(("sh",), tmp_path / "gone", dict(os.environ)),
        )
        # The others have all the time that a busy machine takes.
        slow = [
            odd_server(tmp_path, name, startup_timeout_s=2)
            for name in ("mute", "unlisted")
        ]
        others = [absent, lost, *slow]
        async with started(tmp_path, "dies-at-start", "fine", others=others) as it:
            assert await it.call("fine", "echo") == text("{}")
            assert sorted(it.warnings) == [
                "MCP server `absent` could not be started: 'nope': No such file or directory",
                "MCP server `dies-at-start` exited with code 1; the end of its stderr:\n"
                + f"{'x' * 1000}\nno configuration found"[-1000:],
                f"MCP server `lost` could not be started: {str(tmp_path / 'gone')!r}: No such file"
                " or directory",
                "MCP server `mute` did not come up within 2 s (`startup_timeout_sec`)",
                "MCP server `unlisted` did not come up within 2 s (`startup_timeout_sec`)",
            ]
            with pytest.raises(RequestFailed, match="did not come up within"):
                await it.call("mute", "echo")
            await it.servers.require()

    asyncio.run(run())


_GREETS = """
import json, sys
request = json.loads(input())
print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": json.loads(sys.argv[1])}), flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize(
    ("greeting", "reason"),
    [
        (
            {"protocolVersion": "1999-01-01"},
            "Unsupported protocol version from the server",
        ),
        ({"protocolVersion": 1}, "protocolVersion: Input should be a valid string"),
    ],
)
def test_a_handshake_of_another_protocol_is_told(
    tmp_path: Path, greeting: dict[str, Any], reason: str
) -> None:
    answer = {
        "capabilities": {},
        "serverInfo": {"name": "s", "version": "1"},
        **greeting,
    }
    argv = (sys.executable, "-c", _GREETS, json.dumps(answer))
    other = ServerSettings(
        name="s", transport=StdioTransport(argv, tmp_path, dict(os.environ))
    )

    async def run() -> None:
        async with started(tmp_path, others=[other]) as it:
            (warning,) = it.warnings
            assert warning.startswith(
                f"MCP server `s` is no MCP server that we know: {reason}"
            )

    asyncio.run(run())


def test_a_required_server_that_fails_ends_it_all(tmp_path: Path) -> None:
    async def run() -> None:
        async with started(tmp_path, "dies-at-start", required=True) as it:
            with pytest.raises(
                CodexError, match="required MCP servers failed to initialize: MCP s"
            ):
                await it.servers.require()

    asyncio.run(run())


def test_a_line_that_is_no_message_is_skipped_and_reported_once(tmp_path: Path) -> None:
    async def run() -> None:
        async with started(tmp_path, "banner") as it:
            assert await it.call("banner", "echo") == text("{}")
            assert it.warnings == [
                "MCP server `banner` prints lines to stdout that are not messages, and are skipped:"
                " 'Listening…'"
            ]

    asyncio.run(run())


def test_a_server_that_dies_comes_back_once_and_no_call_is_repeated(
    tmp_path: Path,
) -> None:
    async def run() -> None:
        async with started(tmp_path, "dies") as it:
            with pytest.raises(RequestFailed) as first:
                await it.call("dies", "dies")
            assert (first.value.code, str(first.value)) == (
                "ConnectionLost",
                "MCP server `dies` exited with code 3; the end of its stderr:\na last word\n"
                "It is started again for the next call. This call was not repeated: it may have done"
                " part of its work, so check before you call it again.",
            )
            assert await it.call("dies", "echo") == text("{}")
            for after in ("It is started again", "It is not started again"):
                with pytest.raises(RequestFailed, match=after):
                    await it.call("dies", "dies")
            with pytest.raises(RequestFailed, match="exited with code 3") as down:
                await it.call("dies", "echo")
            assert down.value.code == "ConnectionLost"
            assert [call["name"] for call in it.sent("tools/call")] == [
                "dies",
                "echo",
                *["dies"] * 2,
            ]
            assert [tool.name for tool in it.get("dies").tools] == ["echo", "dies"]
            assert len(it.warnings) == 1

    asyncio.run(run())


def test_an_error_of_any_number_is_an_answer(tmp_path: Path) -> None:
    async def run() -> None:
        async with started(tmp_path, "refuses") as it:
            with pytest.raises(
                RequestFailed, match=r"Mcp error: -32000: rrr"
            ) as caught:
                await it.call("refuses", "refuses")
            assert caught.value.code == "McpError"
            assert len(str(caught.value)) < 11_000
            assert await it.call("refuses", "echo") == text("{}")
            assert len(it.sent("initialize")) == 1

    asyncio.run(run())


def test_values_beyond_json_or_unicode_do_not_cost_the_result(tmp_path: Path) -> None:
    async def run() -> None:
        async with started(tmp_path, "inexact") as it:
            assert await it.call("inexact", "inexact") == {
                **text("a\N{REPLACEMENT CHARACTER}"),
                "structuredContent": {"ratio": None},
            }

    asyncio.run(run())


def test_an_answer_that_is_no_result_is_not_waited_for(tmp_path: Path) -> None:
    async def run() -> None:
        async with started(tmp_path, "answers-nothing") as it:
            with pytest.raises(
                RequestFailed, match="the server's answer is no valid one"
            ):
                await it.call("answers-nothing", "answers-nothing")

    asyncio.run(run())


@pytest.mark.parametrize(
    ("behaviour", "end"),
    [
        ("nosy", "MCP server `nosy` asked more than 1000 things at once"),
        ("leaves", "MCP server `leaves` closed the connection"),
    ],
)
def test_the_end_of_a_connection_is_told(
    tmp_path: Path, behaviour: str, end: str
) -> None:
    async def run() -> None:
        async with started(tmp_path, behaviour) as it:
            with pytest.raises(RequestFailed) as lost:
                await it.call(behaviour, behaviour)
            assert (str(lost.value).splitlines()[0], lost.value.code) == (
                end,
                "ConnectionLost",
            )

    asyncio.run(run())


def test_all_calls_that_ran_are_told_and_later_ones_wait(tmp_path: Path) -> None:
    async def run() -> None:
        async with started(tmp_path, "dies") as it:
            names = ["silent", "silent", "dies"]
            silent, cancelled, dies = [
                asyncio.create_task(it.call("dies", n)) for n in names
            ]
            with pytest.raises(RequestFailed):
                await asyncio.wait_for(dies, 5)
            cancelled.cancel()
            with pytest.raises(RequestFailed, match="exited with code 3"):
                await silent
            assert await it.call("dies", "echo") == text("{}")

    asyncio.run(run())


def test_a_call_that_takes_too_long_is_given_up_and_the_server_is_told(
    tmp_path: Path,
) -> None:
    async def run() -> None:
        async with started(tmp_path, "silent", tool_timeout_s=0.2) as it:
            with pytest.raises(RequestFailed) as caught:
                await it.call("silent", "silent")
            assert (caught.value.code, str(caught.value)) == (
                "Timeout",
                "timed out awaiting tools/call after 0.2s",
            )
            # Whatever is answered now was read after the cancellation.
            await it.call("silent", "echo")
            assert [
                params["requestId"] for params in it.sent("notifications/cancelled")
            ] == [3]

    asyncio.run(run())


def test_a_call_that_is_cancelled_is_cancelled_at_the_server(tmp_path: Path) -> None:
    async def run() -> None:
        async with started(tmp_path, "silent") as it:
            runs = asyncio.Event()
            call = asyncio.create_task(
                it.call("silent", "silent", lambda _done, _total, _said: runs.set())
            )
            await runs.wait()
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            assert await it.call("silent", "echo") == text("{}")
            assert len(it.sent("notifications/cancelled")) == 1

    asyncio.run(run())


def test_progress_is_told_while_the_call_runs(tmp_path: Path) -> None:
    told: list[tuple[float, float | None, str | None]] = []

    def note(done: float, total: float | None, message: str | None) -> None:
        told.append((done, total, message))

    async def run() -> None:
        async with started(tmp_path, "progress") as it:
            assert await it.call("progress", "progress", note) == text("done")

    asyncio.run(run())
    assert told == [(1, 2, "half")]


def test_a_changed_list_of_tools_is_there_for_the_next_request(tmp_path: Path) -> None:
    async def run() -> None:
        async with started(tmp_path, "grows") as it:
            before = it.servers.tools()
            assert await it.call("grows", "grows") == text("grown")
            await it.servers.settled()
            assert list(before) == ["mcp__grows__echo", "mcp__grows__grows"]
            assert list(it.servers.tools()) == [*before, "mcp__grows__new"]

    asyncio.run(run())


def test_a_list_of_tools_that_never_ends_is_cut(tmp_path: Path) -> None:
    async def run() -> None:
        async with started(tmp_path, "endless", startup_timeout_s=60) as it:
            assert [tool.name for tool in it.get("endless").tools] == [
                "echo",
                "endless",
            ]
            assert await it.call("endless", "echo") == text("{}")
            assert len(it.sent("tools/list")) == MAX_PAGES
            assert it.warnings == [
                "MCP server `endless` lists its tools on more than 200 pages; the others are left out"
            ]

    asyncio.run(run())


def test_a_tool_that_can_only_run_as_a_task_is_left_out(tmp_path: Path) -> None:
    async def run() -> None:
        async with started(tmp_path, "tasks") as it:
            assert [tool.name for tool in it.get("tasks").tools] == [
                *("echo", "tasks", "optional", "forbidden")
            ]
            assert it.warnings == [
                "MCP server `tasks` has tools that can only run as tasks, which are left out: required"
            ]

    asyncio.run(run())


def test_a_server_that_always_announces_changes_holds_nothing_up(
    tmp_path: Path,
) -> None:
    async def run() -> None:
        async with started(tmp_path, "nervous") as it:
            for _ in range(2):
                await it.servers.settled()
            assert len(it.sent("tools/list")) <= 4

    asyncio.run(run())


def test_a_server_may_ask_and_its_clock_stands_still_meanwhile(tmp_path: Path) -> None:
    class Slow(ScriptedElicitor):
        async def elicit(self, elicitation: Elicitation) -> ElicitationAnswer:
            await asyncio.sleep(1)
            return await super().elicit(elicitation)

    elicitor = Slow(ElicitationAnswer("accept", {"name": "me"}))

    async def run() -> None:
        async with started(
            tmp_path, "asks", elicitor=elicitor, tool_timeout_s=0.7
        ) as it:
            result = await it.call("asks", "asks")
            assert json.loads(result["content"][0]["text"]) == {
                "action": "accept",
                "content": {"name": "me"},
            }

    asyncio.run(run())
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    assert elicitor.asked == [Elicitation("asks", "Who?", schema)]


def test_nobody_to_ask_declines(tmp_path: Path) -> None:
    async def run() -> None:
        async with started(tmp_path, "asks") as it:
            assert await it.call("asks", "asks") == text('{"action": "decline"}')

    asyncio.run(run())


def test_a_long_result_is_taken_and_one_without_end_is_not(tmp_path: Path) -> None:
    async def run() -> None:
        async with started(tmp_path, "huge") as it:
            result = await it.call("huge", "huge", megabytes=20)
            assert len(result["content"][0]["text"]) == 20 << 20
            with pytest.raises(
                RequestFailed, match="`huge` sent a message of more than 32 MB"
            ):
                await it.call("huge", "huge", megabytes=40)
            assert await it.call("huge", "echo") == text("{}")

    asyncio.run(run())


def test_odd_tools_lose_nothing_but_themselves(tmp_path: Path) -> None:
    async def run() -> None:
        async with started(tmp_path, "malformed", "many", "long") as it:
            assert [tool.name for tool in it.get("malformed").tools] == ["bare", "good"]
            assert len(it.get("many").tools) == 5000
            assert len(it.get("long").tools[0].description) == 1 << 20

    asyncio.run(run())


def test_filters_take_the_servers_own_names(tmp_path: Path) -> None:
    async def run() -> None:
        names = frozenset({"tool-1", "tool-2"})
        async with started(
            tmp_path, "many", enabled_tools=names, disabled_tools=frozenset({"tool-2"})
        ) as it:
            assert list(it.servers.tools()) == ["mcp__many__tool-1"]

    asyncio.run(run())


def test_a_server_is_ended_before_anything_else_of_it_ran(tmp_path: Path) -> None:
    async def run() -> None:
        # The pipes and the process tell, by a warning, if they are left.
        async with started(tmp_path, "fails", settle=False) as it:
            pass
        assert it.warnings == []

    asyncio.run(run())


def test_a_server_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    async def run() -> None:
        with Lifeline(tmp_path) as lifeline:
            script = f"{lifeline.hold} exec {sys.executable} -ES {ODD_SERVER} stubborn"
            transport = StdioTransport(
                ("bash", "-c", script), tmp_path, dict(os.environ)
            )
            stubborn = ServerSettings(name="stubborn", transport=transport)
            async with started(tmp_path, others=[stubborn]) as it:
                assert await it.call("stubborn", "echo") == text("{}")
                lifeline.wait_until_up()
                assert lifeline.is_held()
                began = time.monotonic()
            assert time.monotonic() - began < 10
            lifeline.wait_until_dead()

    asyncio.run(run())


AGENT = """
import asyncio, sys
from pathlib import Path
from tests.support.mcp import started
from codex_py.mcp.settings import ServerSettings, StdioTransport

async def main():
    transport = StdioTransport(("bash", "-c", sys.argv[1]), Path("/"), {"PATH": sys.argv[2]})
    server = ServerSettings(name="s", transport=transport, startup_timeout_s=120.0)
    async with started(Path(sys.argv[3]), others=[server]) as it:
        await it.call("s", "echo")
        print("started", flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


def test_servers_die_with_an_agent_that_is_killed(tmp_path: Path) -> None:
    with Lifeline(tmp_path) as lifeline:
        script = f"{lifeline.hold} exec {sys.executable} -ES {ODD_SERVER} stubborn"
        agent = subprocess.Popen(
            [sys.executable, "-c", AGENT, script, os.environ["PATH"], str(tmp_path)],
            stdout=subprocess.PIPE,
            cwd=REPO,
        )
        with agent:
            assert agent.stdout is not None
            assert agent.stdout.readline() == b"started\n"
            lifeline.wait_until_up()
            agent.kill()
        lifeline.wait_until_dead()

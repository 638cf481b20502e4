"""Python functions as tools of a session, by the public names alone."""

import asyncio
import threading
from typing import Any

import pytest

from codex_py import SessionOptions, TurnResult, load_config, open_session, tool
from codex_py.protocol.event_items import McpToolCall
from codex_py.protocol.events import Event, ItemCompleted, ItemStarted
from codex_py.testing import ev_completed, ev_function_call, ev_message
from tests.support.program import KEY, Workplace
from tests.support.server import ScriptedServer

DONE = [*ev_message("done"), ev_completed()]


@pytest.fixture(autouse=True)
def environment(place: Workplace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODEX_HOME", str(place.home))
    monkeypatch.setenv("MOCK_KEY", KEY)


def turn(
    place: Workplace, server: ScriptedServer, *tools: Any, resume: bool = False
) -> tuple[TurnResult, list[Event]]:
    events: list[Event] = []

    async def main() -> TurnResult:
        place.configure(server)
        config, options = load_config(cwd=place.cwd), SessionOptions(resume_last=resume)
        async with open_session(config, options, events.append, tools=tools) as session:
            return await session.run_turn("go")

    return asyncio.run(main()), events


def outputs(server: ScriptedServer) -> list[Any]:
    return [item["output"] for item in server.requests[-1].input if "output" in item]


def test_functions_are_offered_called_and_shown(place: Workplace) -> None:
    def weather(city: str, days: int = 3) -> dict[str, Any]:
        """Forecast the weather.

        Args:
            city: Where.
        """
        return {"city": city, "days": days}

    @tool(parallel=True)
    async def fail() -> None:
        """Fail."""
        raise ValueError("no")

    calls = [
        *ev_function_call("c1", "weather", {"city": "Ulm"}, index=0),
        *ev_function_call("c2", "fail", {}, index=1),
        ev_completed(),
    ]
    with ScriptedServer([calls, DONE]) as server:
        result, events = turn(place, server, weather, fail)
        offered = {
            entry.get("name"): entry for entry in server.requests[0].body["tools"]
        }
        assert outputs(server) == [
            '{"city":"Ulm","days":3}',
            "[ERROR:ToolFailed] ValueError: no",
        ]
    assert result.last_message == "done"
    assert offered["weather"] == {
        "type": "function",
        "name": "weather",
        "description": "Forecast the weather.",
        "strict": False,
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "Where."},
                "days": {"type": "integer", "default": 3},
            },
            "required": ["city"],
        },
    }
    items = [e.item for e in events if isinstance(e, ItemCompleted)]
    assert sorted(
        (item.server, item.tool, item.status)
        for item in items
        if isinstance(item, McpToolCall)
    ) == [("python", "fail", "failed"), ("python", "weather", "completed")]


def test_a_function_that_needs_approval_is_refused_where_nobody_can_be_asked(
    place: Workplace,
) -> None:
    @tool(needs_approval=True)
    def pay() -> None:
        pytest.fail("called")

    call = [*ev_function_call("c", "pay", {}), ev_completed()]
    with ScriptedServer([call, DONE]) as server:
        result, _ = turn(place, server, pay)
        (output,) = outputs(server)
    assert output.startswith("[ERROR:ApprovalDenied] ")
    assert result.denied


def test_a_session_that_is_continued_may_call_the_functions_it_has_now(
    place: Workplace,
) -> None:
    def now() -> str:
        return "noon"

    call = [*ev_function_call("c", "now", {}), ev_completed()]
    with ScriptedServer([call, DONE, call, DONE]) as server:
        turn(place, server, now)
        turn(place, server, resume=True)
        assert outputs(server) == ["noon", "[ERROR:UnknownTool] unsupported call: now"]


@pytest.mark.parametrize("name", ["shell", "web_search", "mcp__a__b", "twice"])
def test_a_name_that_is_taken_is_refused_before_the_session_begins(
    place: Workplace, name: str
) -> None:
    first, second = (tool(name=each)(lambda: None) for each in ("twice", name))
    with ScriptedServer([]) as server:
        with pytest.raises(ValueError, match=f"the tool '{name}' needs another name"):
            turn(place, server, first, second)
        assert server.requests == []
    assert place.rollouts() == []


def test_the_turn_ends_although_a_thread_does_not(place: Workplace) -> None:
    release = threading.Event()

    def block() -> None:
        release.wait()

    async def main() -> TurnResult:
        def sink(event: Event) -> None:
            if isinstance(event, ItemStarted):
                loop.call_soon(session.abort)

        loop = asyncio.get_running_loop()
        config = load_config(cwd=place.cwd)
        async with open_session(
            config, SessionOptions(), sink, tools=[block]
        ) as session:
            return await session.run_turn("go")

    call = [*ev_function_call("c", "block", {}), ev_completed()]
    with ScriptedServer([call]) as server:
        place.configure(server)
        result = asyncio.run(main())
    release.set()
    assert result.error is not None
    assert result.error.code == "aborted"

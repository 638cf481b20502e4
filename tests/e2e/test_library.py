"""The package as a library, against a scripted model.

Tests `app/opening.py`, `app/options.py`, `app/session.py` and `testing/fake_model.py`.
"""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from codex_py import CodexError, SessionOptions, TurnResult, load_config, open_session
from codex_py.protocol.events import Event
from codex_py.testing import Reply, ev_completed, ev_message
from tests.support.program import KEY, Workplace
from tests.support.server import ScriptedServer

SCHEMA = {"type": "object", "required": ["stars"]}


def says(text: str) -> list[dict[str, Any]]:
    return [*ev_message(text), ev_completed()]


@pytest.fixture(autouse=True)
def environment(place: Workplace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODEX_HOME", str(place.home))
    monkeypatch.setenv("MOCK_KEY", KEY)


def run_turn(
    place: Workplace, *replies: Any, schema: Any = None
) -> tuple[TurnResult, list[Any]]:
    """One turn with the environment of this process; the result and the prompts."""

    async def work(server: ScriptedServer) -> TurnResult:
        place.configure(server)
        config = load_config(cwd=place.cwd)
        async with open_session(config, SessionOptions(), lambda _: None) as session:
            return await session.run_turn("go", output_schema=schema)

    with ScriptedServer(replies) as server:
        result = asyncio.run(work(server))
        return result, [
            request.input[-1]["content"][0]["text"] for request in server.requests
        ]


def test_a_turn_that_fails_is_raised_when_asked_for(place: Workplace) -> None:
    result, _ = run_turn(
        place, Reply(status=400, body=b'{"error":{"message":"No such model"}}')
    )
    with pytest.raises(CodexError, match="No such model"):
        result.raise_for_error()
    run_turn(place, says("done"))[0].raise_for_error()


def test_an_answer_that_breaks_the_schema_is_asked_for_once_more(
    place: Workplace,
) -> None:
    result, prompts = run_turn(place, says("five"), says('{"stars": 5}'), schema=SCHEMA)
    assert (result.error, result.last_message) == (None, '{"stars": 5}')
    assert prompts[0] == "go"
    assert prompts[1].startswith("Your last message cannot be used: ")


def test_two_answers_that_break_the_schema_are_an_error(place: Workplace) -> None:
    result, _ = run_turn(place, says("five"), says("[]"), schema=SCHEMA)
    assert result.error is not None
    assert (result.error.code, result.last_message) == ("schema", "[]")


def test_a_turn_that_is_tried_again_has_its_answer_checked(place: Workplace) -> None:
    async def work(server: ScriptedServer) -> TurnResult:
        place.configure(server)
        async with open_session(
            load_config(cwd=place.cwd), SessionOptions(), lambda _: None
        ) as session:
            assert (await session.run_turn("go")).error is not None
            return await session.retry(output_schema=SCHEMA)

    refused = Reply(status=400, body=b'{"error":{"message":"Not now"}}')
    with ScriptedServer([refused, says("five"), says('{"stars": 5}')]) as server:
        assert asyncio.run(work(server)).last_message == '{"stars": 5}'


def test_a_schema_that_is_none_costs_no_request(place: Workplace) -> None:
    result, prompts = run_turn(place, schema={"type": "strange"})
    with pytest.raises(
        CodexError, match="the output schema is not a valid JSON Schema"
    ):
        result.raise_for_error()
    assert prompts == []


def test_a_sink_that_would_have_to_be_awaited_is_refused(place: Workplace) -> None:
    async def sink(event: Event) -> None: ...

    async def work() -> None:
        config = load_config(cwd=place.cwd)
        async with open_session(config, SessionOptions(), sink):  # pyright: ignore[reportArgumentType]
            pytest.fail("it was opened")

    with pytest.raises(TypeError, match="the sink must be a plain function"):
        asyncio.run(work())
    assert not list(Path(place.home).glob("sessions/**/*.jsonl"))


def test_a_session_that_was_left_takes_no_more_turns(place: Workplace) -> None:
    async def work(server: ScriptedServer) -> None:
        place.configure(server)
        async with open_session(
            load_config(cwd=place.cwd), SessionOptions(), lambda _: None
        ) as session:
            await session.run_turn("go")
        with pytest.raises(RuntimeError, match="the session is closed"):
            await session.run_turn("again")
        with pytest.raises(RuntimeError, match="the session is closed"):
            await session.compact()

    with ScriptedServer([says("done")]) as server:
        asyncio.run(work(server))
        assert len(server.requests) == 1

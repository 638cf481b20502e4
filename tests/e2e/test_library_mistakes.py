"""What a library user is told of mistakes, before anything runs."""

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import codex_py
from codex_py import (
    ApprovalRequest,
    CodexError,
    Review,
    ReviewDecision,
    SessionOptions,
    TurnResult,
    load_config,
    open_session,
    tool,
)
from codex_py.errors import ConfigError, UsageError
from codex_py.testing import Reply, ev_completed, ev_function_call, ev_message
from tests.support.program import KEY, Workplace
from tests.support.server import ScriptedServer

DONE = [*ev_message("done"), ev_completed()]


@pytest.fixture(autouse=True)
def environment(place: Workplace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODEX_HOME", str(place.home))
    monkeypatch.setenv("MOCK_KEY", KEY)


async def one_turn(place: Workplace, prompt: Any = "go", **how: Any) -> TurnResult:
    async with open_session(
        load_config(cwd=place.cwd), SessionOptions(), **how
    ) as session:
        return await session.run_turn(prompt)


def test_a_turn_that_fails_has_an_exit_code_beside_its_error(place: Workplace) -> None:
    with ScriptedServer(
        [Reply(status=401, body=b'{"error":{"message":"No"}}')]
    ) as server:
        place.configure(server, request_max_retries=0)
        result = asyncio.run(one_turn(place))
    assert result.error is not None
    assert (result.exit_code, result.error.exit_code) == (77, 77)


def test_nobody_has_to_give_a_sink_and_warnings_are_logged(
    place: Workplace,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with ScriptedServer([DONE]) as server, caplog.at_level(logging.WARNING, "codex_py"):
        place.configure(server)
        with (place.home / "config.toml").open("a", encoding="utf-8") as file:
            file.write("modle = 1\n")
        assert asyncio.run(one_turn(place)).last_message == "done"
    assert any("modle" in text for text in caplog.messages)
    assert capsys.readouterr().out == ""


def test_the_folder_may_be_text_and_must_be_there(tmp_path: Path) -> None:
    assert load_config(cwd=str(tmp_path)).cwd == tmp_path.resolve()
    for missing in (tmp_path / "missing", str(tmp_path / "missing")):
        with pytest.raises(ConfigError, match=r"`cwd`: there is no folder '.*missing'"):
            load_config(cwd=missing)


def test_a_prompt_that_is_none_costs_no_request(place: Workplace) -> None:
    with ScriptedServer([]) as server:
        place.configure(server)
        with pytest.raises(TypeError, match="the prompt is a NoneType, not a str"):
            asyncio.run(one_turn(place, None))
        with pytest.raises(UsageError, match="the prompt is empty"):
            asyncio.run(one_turn(place, " \n"))
        assert server.requests == []


class SyncReview:
    def review(self, request: ApprovalRequest) -> Review:
        return Review(ReviewDecision.APPROVED)


def approve(request: ApprovalRequest) -> bool:
    return True


@pytest.mark.parametrize("approver", [approve, SyncReview()])
def test_an_approver_without_a_review_that_can_be_awaited_is_refused_at_once(
    place: Workplace, approver: Any
) -> None:
    with ScriptedServer([]) as server:
        place.configure(server)
        with pytest.raises(TypeError, match="must have an `async def review"):
            asyncio.run(one_turn(place, approver=approver))
    assert place.rollouts() == []


def answering(answer: object) -> Any:
    class Answering:
        async def review(self, request: ApprovalRequest) -> Any:
            return answer

    return Answering()


def test_an_approver_may_answer_with_a_word_and_nothing_strange(
    place: Workplace,
) -> None:
    paid: list[object] = []

    @tool(needs_approval=True)
    def pay() -> str:
        paid.append(None)
        return "paid"

    call = [*ev_function_call("c", "pay", {}), ev_completed()]

    def turn(answer: object) -> TurnResult:
        with ScriptedServer([call, DONE]) as server:
            place.configure(server)
            return asyncio.run(one_turn(place, approver=answering(answer), tools=[pay]))

    for answer, times in [(True, 1), (ReviewDecision.APPROVED, 2), (False, 2)]:
        assert turn(answer).error is None
        assert len(paid) == times
    failed = turn("yes")
    assert failed.error is not None
    assert failed.error.code == "approver"
    assert str(failed.error).startswith(
        "the approver answered 'yes', which is neither a bool"
    )
    assert len(paid) == 2


def test_help_and_completion_show_what_there_is() -> None:
    assert set(codex_py.__all__) <= set(dir(codex_py))
    parameters = inspect.signature(SessionOptions).parameters
    assert parameters["ephemeral"].default is False
    assert list(inspect.signature(Review).parameters) == ["decision", "feedback"]


def test_every_public_name_can_be_described() -> None:
    for name in codex_py.__all__:
        value: Callable[..., Awaitable[Any]] | Any = getattr(codex_py, name)
        if inspect.isclass(value) and not issubclass(value, CodexError):
            inspect.signature(value)

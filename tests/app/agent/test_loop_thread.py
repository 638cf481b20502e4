import asyncio
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, field_validator

from codex_py import (
    Agent,
    ApprovalRequest,
    Event,
    Extension,
    Note,
    Thread,
    TurnAborted,
    TurnStop,
    UserPrompt,
    tool,
)
from codex_py.errors import CodexError
from codex_py.protocol.extension import TurnStart
from codex_py.testing import FakeModel, call

_PROGRAM = '''
import atexit
import threading
from codex_py import Agent
from codex_py.testing import FakeModel, call

def stock(part: str) -> int:
    """How many are there?"""
    return 7

agent = Agent(FakeModel({script}), {arguments})
print(agent.run_sync("How many bolts?").text)

def refuse(self):
    raise RuntimeError("can't create new thread at interpreter shutdown")

def begin_shutdown():
    threading.Thread.start = refuse

# What was registered last runs first: from now on no thread can be started, as in Python 3.12.1.
atexit.register(begin_shutdown)
'''


@pytest.mark.parametrize(
    ("script", "arguments"),
    [
        ('call("stock", part="bolts"), "There are 7."', "tools=[stock]"),
        (
            'call("exec_command", cmd="true", sandbox_permissions="require_escalated"), "There are 7."',
            'approve=lambda request: True, sandbox="workspace-write"',
        ),
        ('"There are 7."', ""),
    ],
    ids=["tool", "approver", "answer"],
)
def test_an_agent_of_a_module_ends_with_the_program(
    tmp_path: Path, script: str, arguments: str
) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        _PROGRAM.format(script=script, arguments=arguments), encoding="utf-8"
    )
    done = subprocess.run(
        [sys.executable, str(program)],
        cwd=tmp_path,
        env={
            "HOME": str(tmp_path),
            "PATH": "/usr/bin:/bin",
            "PYTHONPATH": ":".join(sys.path),
        },
        capture_output=True,
        encoding="utf-8",
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (0, "There are 7.\n"), done.stderr
    assert done.stderr == ""


END: Sequence[BaseException] = (
    KeyboardInterrupt(),
    SystemExit(2),
    GeneratorExit(),
    asyncio.CancelledError(),
)


@pytest.fixture
def in_tmp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


def ids(value: object) -> str:
    return getattr(value, "__name__", type(value).__name__)


def in_a_plain_tool(end: BaseException) -> dict[str, Any]:
    def fragile() -> None:
        raise end

    return {"tools": [fragile]}


def in_an_async_tool(end: BaseException) -> dict[str, Any]:
    async def fragile() -> None:
        raise end

    return {"tools": [fragile]}


def in_an_async_tool_that_has_waited(end: BaseException) -> dict[str, Any]:
    async def fragile() -> None:
        await asyncio.sleep(0)
        raise end

    return {"tools": [fragile]}


def in_a_task_of_a_tool(end: BaseException) -> dict[str, Any]:
    async def fails() -> None:
        raise end

    async def fragile() -> None:
        await asyncio.create_task(fails())

    return {"tools": [fragile]}


def needs_approval(approve: Callable[[ApprovalRequest], Any]) -> dict[str, Any]:
    @tool(needs_approval=True)
    def fragile() -> None:
        pass

    return {"tools": [fragile], "approve": approve}


def in_a_plain_approver(end: BaseException) -> dict[str, Any]:
    def approve(request: ApprovalRequest) -> bool:
        raise end

    return needs_approval(approve)


def in_an_async_approver(end: BaseException) -> dict[str, Any]:
    async def approve(request: ApprovalRequest) -> bool:
        raise end

    return needs_approval(approve)


def extension(**fields: Any) -> dict[str, Any]:
    def feature(_: Thread) -> Extension:
        return Extension(**fields)

    return {"extensions": [feature]}


def in_the_feature(end: BaseException) -> dict[str, Any]:
    def feature(_: Thread) -> Extension:
        raise end

    return {"extensions": [feature]}


def in_around_session(end: BaseException) -> dict[str, Any]:
    @asynccontextmanager
    async def around_session() -> AsyncGenerator[None]:
        raise end
        yield

    return extension(around_session=around_session)


def in_around_turn(end: BaseException) -> dict[str, Any]:
    @asynccontextmanager
    async def around_turn(_: TurnStart) -> AsyncGenerator[None]:
        yield
        raise end

    return extension(around_turn=around_turn)


def in_before_prompt(end: BaseException) -> dict[str, Any]:
    async def before_prompt(_: UserPrompt) -> Sequence[Note]:
        raise end

    return extension(before_prompt=before_prompt)


def in_before_request(end: BaseException) -> dict[str, Any]:
    async def before_request() -> Sequence[Note]:
        raise end

    return extension(before_request=before_request)


def in_before_stop(end: BaseException) -> dict[str, Any]:
    async def before_stop(_: TurnStop) -> None:
        raise end

    return extension(before_stop=before_stop)


def in_context(end: BaseException) -> dict[str, Any]:
    def context(_: str) -> Sequence[Note]:
        raise end

    return extension(context=context)


def in_turn_facts(end: BaseException) -> dict[str, Any]:
    def turn_facts() -> dict[str, Any]:
        raise end

    return extension(turn_facts=turn_facts)


def in_loaded(end: BaseException) -> dict[str, Any]:
    def loaded() -> None:
        raise end

    return extension(loaded=loaded)


def in_a_sink(end: BaseException) -> dict[str, Any]:
    def sink(event: Event) -> None:
        raise end

    return extension(sink=sink)


def in_a_sink_of_items(end: BaseException) -> dict[str, Any]:
    def sink(event: Event) -> None:
        if event.type == "item.completed":
            raise end

    return extension(sink=sink)


def in_a_validator(end: BaseException) -> dict[str, Any]:
    class Answer(BaseModel):
        stars: int

        @field_validator("stars")
        @classmethod
        def _check(cls, stars: int) -> int:
            raise end

    return {"output_type": Answer}


PLACES: Sequence[Callable[[BaseException], dict[str, Any]]] = (
    in_a_plain_tool,
    in_an_async_tool,
    in_an_async_tool_that_has_waited,
    in_a_task_of_a_tool,
    in_a_plain_approver,
    in_an_async_approver,
    in_the_feature,
    in_around_session,
    in_around_turn,
    in_before_prompt,
    in_before_request,
    in_before_stop,
    in_context,
    in_turn_facts,
    in_loaded,
    in_a_sink,
    in_a_sink_of_items,
    in_a_validator,
)


@pytest.mark.usefixtures("in_tmp")
@pytest.mark.parametrize("end", END, ids=ids)
@pytest.mark.parametrize("place", PLACES, ids=ids)
def test_whatever_ends_a_task_comes_out_of_run_sync_or_fails_its_call(
    place: Callable[[BaseException], dict[str, Any]],
    end: BaseException,
    capfd: pytest.CaptureFixture[str],
) -> None:
    threads = set(threading.enumerate())
    model = FakeModel([call("fragile")], '{"stars": 1}', '{"stars": 1}', "more")
    agent = Agent(model, **place(end))
    raised = outcome(agent)
    if raised is None:
        assert type(end).__name__ in model.requests[1].output("call_1")
        assert "tool" in place.__name__
    elif isinstance(end, GeneratorExit):
        # Python replaces it where it passes a context manager.
        assert "GeneratorExit" in repr(raised)
    else:
        assert end in causes(raised)
    agent.close_sync()
    left = [each for each in set(threading.enumerate()) - threads if each.is_alive()]
    assert [each for each in left if not each.daemon] == []
    assert "Traceback" not in capfd.readouterr().err


def outcome(agent: Agent[Any]) -> BaseException | None:
    """Run a turn in another thread, so that a hang fails the test."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            agent.run_sync("go")
        except BaseException as error:  # noqa: BLE001 - it is the outcome
            raised.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(30)
    assert not thread.is_alive()
    return next(iter(raised), None)


def causes(error: BaseException | None) -> Sequence[BaseException]:
    found: list[BaseException] = []
    while error is not None:
        found.append(error)
        error = error.__cause__
    return found


@pytest.mark.usefixtures("in_tmp")
@pytest.mark.parametrize("end", END[:2], ids=ids)
def test_the_agent_goes_on_after_it(end: BaseException) -> None:
    ends = [end]

    async def fragile() -> str:
        if ends:
            raise ends.pop()
        return "fine"

    @tool(needs_approval=True)
    def pay() -> None:
        pass

    def approve(_: ApprovalRequest) -> bool:
        raise end

    model = FakeModel(call("fragile"), call("fragile"), "one", call("pay"), "two")
    with Agent(model, tools=[fragile, pay], approve=approve) as agent:
        if isinstance(end, KeyboardInterrupt):
            with pytest.raises(KeyboardInterrupt):
                agent.run_sync("go")
        assert agent.run_sync("go on").text == "one"
        with pytest.raises(type(end)):
            agent.run_sync("pay")
        assert agent.run_sync("go on").text == "two"


@pytest.mark.usefixtures("in_tmp")
def test_an_agent_that_is_closed_meanwhile_ends_its_turn() -> None:
    started = threading.Event()

    async def waits() -> None:
        started.set()
        await asyncio.Event().wait()

    agent = Agent(FakeModel(call("waits")), tools=[waits])
    closing = threading.Thread(target=lambda: (started.wait(30), agent.close_sync()))
    closing.start()
    with pytest.raises(TurnAborted):
        agent.run_sync("go")
    closing.join(30)


def fails_at_its_end(error: BaseException) -> Callable[[Thread], Extension]:
    @asynccontextmanager
    async def around_session() -> AsyncGenerator[None]:
        yield
        raise error

    return lambda _: Extension(around_session=around_session)


def by_close_sync(agent: Agent[Any]) -> None:
    agent.close_sync()


def by_leaving(agent: Agent[Any]) -> None:
    with agent:
        pass


def by_close_in_a_loop(agent: Agent[Any]) -> None:
    asyncio.run(agent.close())


@pytest.mark.usefixtures("in_tmp")
@pytest.mark.parametrize("close", [by_close_sync, by_leaving, by_close_in_a_loop])
@pytest.mark.parametrize("error", [ValueError("broken"), CodexError("no"), *END[:2]])
def test_an_extension_that_fails_at_the_end_is_told_to_whoever_closes(
    close: Callable[[Agent[Any]], None],
    error: BaseException,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    agent = Agent(FakeModel("Hello."), extensions=[fails_at_its_end(error)])
    agent.run_sync("go")
    with pytest.raises(type(error)) as raised:
        close(agent)
    assert raised.value is error
    # It is closed, and the error is reported once.
    agent.close_sync()
    with pytest.raises(RuntimeError, match="the agent is closed"):
        agent.run_sync("more")
    assert "broken" not in capfd.readouterr().err
    assert caplog.records == []


@pytest.mark.usefixtures("in_tmp")
def test_an_agent_is_closed_from_one_of_its_tools_or_after_a_failed_turn() -> None:
    agents: list[Agent[Any]] = []

    async def leave() -> str:
        agents[0].close_sync()
        return "closed"

    agent = Agent(FakeModel(call("leave"), "Bye."), tools=[leave])
    agents.append(agent)
    assert outcome(agent) is not None
    agent.close_sync()
    failed = Agent(FakeModel())
    assert outcome(failed) is not None
    failed.close_sync()
    Agent(FakeModel()).close_sync()

"""Each seam of an extension, with public names alone.

Tests `protocol/combined.py` and `protocol/extension.py`.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from codex_py import (
    ApprovalRequest,
    Approver,
    CodexError,
    Compaction,
    CompactionFailed,
    Completed,
    Dispatch,
    Event,
    Extension,
    Feature,
    FunctionSpec,
    ModelError,
    ModelStream,
    Note,
    OfferedTool,
    Prompt,
    PromptRefused,
    ResponseEvent,
    Review,
    ReviewDecision,
    Session,
    SessionOptions,
    Thread,
    ToolContext,
    ToolOutput,
    ToolUse,
    TurnResult,
    TurnSkipped,
    TurnStart,
    TurnStop,
    UserPrompt,
    combined,
    load_config,
    open_session,
    tool,
)
from codex_py.errors import ConfigError, ExitCode
from codex_py.testing import Reply, ev_completed, ev_function_call, ev_message
from tests.support.program import Workplace, environment
from tests.support.server import ScriptedServer

Work = Callable[[Session], Awaitable[Any]]


@dataclass
class Talk:
    """What came of a session."""

    results: list[TurnResult] = field(default_factory=list[TurnResult])
    events: list[Event] = field(default_factory=list[Event])
    requests: list[list[dict[str, Any]]] = field(
        default_factory=list[list[dict[str, Any]]]
    )
    outputs: dict[str, str] = field(default_factory=dict[str, str])
    error: CodexError | None = None

    @property
    def result(self) -> TurnResult:
        (result,) = self.results
        return result

    @property
    def ends(self) -> list[Any]:
        kinds = {"turn.completed", "turn.failed"}
        return [event for event in self.events if event.type in kinds]

    @property
    def warnings(self) -> list[str]:
        items = [getattr(event, "item", None) for event in self.events]
        return [
            item.message for item in items if item is not None and item.type == "error"
        ]

    def texts(self, request: int) -> list[tuple[str, str]]:
        """Role and text of the messages of a request."""
        return [
            (item["role"], item["content"][0]["text"])
            for item in self.requests[request]
            if item["type"] == "message"
        ]


def run(
    place: Workplace,
    replies: Sequence[Any],
    *extensions: Feature,
    tools: Sequence[Callable[..., Any]] = (),
    approver: Approver | None = None,
    work: Work | None = None,
    flags: dict[str, Any] | None = None,
    check_prefix: bool = True,
) -> Talk:
    """Run a turn, or other work, in a session with these extensions."""
    talk = Talk()

    async def default(session: Session) -> None:
        talk.results.append(await asyncio.wait_for(session.run_turn("go"), 20))

    async def main() -> None:
        env = environment(place.home)
        config = load_config(
            cwd=place.cwd,
            environment=env,
            flags={"sandbox_mode": "danger-full-access", **(flags or {})},
        )
        async with open_session(
            config,
            SessionOptions(),
            talk.events.append,
            environment=env,
            approver=approver,
            extensions=extensions,
            tools=tools,
        ) as session:
            await (work or default)(session)

    with ScriptedServer(replies, check_prefix=check_prefix) as server:
        place.configure(server)
        try:
            asyncio.run(main())
        except CodexError as error:
            talk.error = error
        talk.requests = [request.input for request in server.requests]
        for item in talk.requests[-1] if talk.requests else ():
            if item["type"] == "function_call_output":
                talk.outputs[item["call_id"]] = str(item["output"])
    return talk


def says(text: str) -> list[dict[str, Any]]:
    return [*ev_message(text), ev_completed()]


def calls(name: str, call_id: str = "c1", **arguments: Any) -> list[dict[str, Any]]:
    return [*ev_function_call(call_id, name, arguments), ev_completed()]


class Echo:
    """A tool as an extension may offer it."""

    name = "echo"
    parallel = True

    def __init__(self) -> None:
        from pydantic import create_model  # noqa: PLC0415 (as a tool does that is loaded late)

        self.params: type[Any] = create_model("Params", text=(str, ...))

    async def run(self, params: Any, context: ToolContext) -> ToolOutput:
        return ToolOutput(f"{context.call_id}: {params.text}")


ECHO = FunctionSpec(
    "echo",
    "Says it again.",
    {
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "required": ["text"],
    },
)
OFFERED = OfferedTool("echo", Echo, ECHO)


def echoes(_: Thread) -> Extension:
    return Extension(tools=[OFFERED])


def test_an_extension_adds_a_tool(place: Workplace) -> None:
    talk = run(place, [calls("echo", text="hi"), says("done")], echoes)
    assert talk.outputs == {"c1": "c1: hi"}
    assert talk.result.last_message == "done"


def test_a_python_function_is_a_tool(place: Workplace) -> None:
    def weather(city: str) -> str:
        """How the weather is."""
        return f"fine in {city}"

    talk = run(place, [calls("weather", city="Rome"), says("done")], tools=[weather])
    assert talk.outputs == {"c1": "fine in Rome"}


def test_tools_may_come_and_go(place: Workplace) -> None:
    def feature(_: Thread) -> Extension:
        return Extension(
            find_tool=lambda: lambda name: Echo() if name == "late" else None
        )

    talk = run(place, [calls("late", text="hi"), says("done")], feature)
    assert talk.outputs == {"c1": "c1: hi"}


def test_an_extension_refuses_a_call_and_adds_a_note(place: Workplace) -> None:
    def feature(_: Thread) -> Extension:
        def wrap(dispatch: Dispatch) -> Dispatch:
            async def refuse(use: ToolUse) -> ToolOutput:
                if use.params.text == "secret":
                    note = Note("Secrets stay here.")
                    return ToolOutput("not allowed", success=False, notes=(note,))
                return await dispatch(
                    replace(use, params=use.tool.params(text="changed"))
                )

            return refuse

        return Extension(wrap_dispatch=wrap)

    replies = [
        calls("echo", text="secret"),
        calls("echo", "c2", text="hi"),
        says("done"),
    ]
    talk = run(place, replies, echoes, feature)
    assert talk.outputs == {"c1": "not allowed", "c2": "c2: changed"}
    # The history keeps the call as the model made it, and the note stands between a call and its output.
    call, note, output = talk.requests[1][-3:]
    assert (call["type"], output["type"]) == ("function_call", "function_call_output")
    assert (note["role"], note["content"][0]["text"]) == (
        "developer",
        "Secrets stay here.",
    )
    assert '"hi"' in talk.requests[2][-2]["arguments"]


def test_wrappers_and_their_order(place: Workplace) -> None:
    log: list[str] = []

    def named(name: str) -> Feature:
        def wrap(dispatch: Dispatch) -> Dispatch:
            async def run(use: ToolUse) -> ToolOutput:
                log.append(f"{name} before")
                output = await dispatch(use)
                log.append(f"{name} after")
                return output

            return run

        @asynccontextmanager
        async def around(_: TurnStart) -> AsyncGenerator[None]:
            log.append(f"{name} in")
            yield
            log.append(f"{name} out")

        return lambda _: Extension(wrap_dispatch=wrap, around_turn=around)

    run(
        place,
        [calls("echo", text="hi"), says("done")],
        echoes,
        named("outer"),
        named("inner"),
    )
    during = ["outer before", "inner before", "inner after", "outer after"]
    assert log == ["outer in", "inner in", *during, "inner out", "outer out"]


class Budget:
    """Ends a turn when this many tokens are used."""

    def __init__(self, tokens: int) -> None:
        self.left = tokens

    def __call__(self, _: Thread) -> Extension:
        return Extension(wrap_model=self._wrap)

    def _wrap(self, model: ModelStream) -> ModelStream:
        @asynccontextmanager
        async def stream(
            prompt: Prompt,
        ) -> AsyncGenerator[AsyncIterator[ResponseEvent]]:
            async with model(prompt) as events:
                yield self._counted(events)

        return stream

    async def _counted(
        self, events: AsyncIterator[ResponseEvent]
    ) -> AsyncIterator[ResponseEvent]:
        async for event in events:
            yield event
            if isinstance(event, Completed):
                self.left -= event.usage.total_tokens
                if self.left < 0:
                    raise CodexError("the budget is spent", code="budget")


def test_an_extension_counts_tokens_and_stops_the_turn(place: Workplace) -> None:
    budget = Budget(100)
    talk = run(place, [calls("echo", text="hi")], echoes, budget)
    assert budget.left < 0
    assert talk.result.error is not None
    assert (talk.result.error.code, str(talk.result.error)) == (
        "budget",
        "the budget is spent",
    )
    assert talk.result.usage.total_tokens == 100 - budget.left
    (end,) = talk.ends
    assert (end.type, end.error.code) == ("turn.failed", "budget")


def test_a_call_that_is_stopped_by_a_budget_is_answered(place: Workplace) -> None:
    def stops(_: Thread) -> Extension:
        def wrap(_: Dispatch) -> Dispatch:
            async def run(use: ToolUse) -> ToolOutput:
                raise CodexError(f"no more calls of {use.tool.name}", code="budget")

            return run

        return Extension(wrap_dispatch=wrap)

    async def work(session: Session) -> None:
        assert str((await session.run_turn("go")).error) == "no more calls of echo"
        assert (await session.run_turn("again")).error is None

    talk = run(
        place, [calls("echo", text="hi"), says("done")], echoes, stops, work=work
    )
    assert talk.outputs["c1"].endswith("aborted: no more calls of echo")


def test_an_extension_keeps_the_agent_going_once(place: Workplace) -> None:
    stops: list[TurnStop] = []

    def feature(_: Thread) -> Extension:
        async def before_stop(stop: TurnStop) -> Note | None:
            stops.append(stop)
            return Note("Run the tests first.", "user") if stop.rounds == 0 else None

        return Extension(before_stop=before_stop)

    async def work(session: Session) -> None:
        await session.run_turn("go")
        # A note is never a person's prompt.
        assert [past.prompt.text for past in session.past_prompts()] == ["go"]

    talk = run(place, [says("done"), says("tested")], feature, work=work)
    seen = [(stop.last_message, stop.rounds, stop.rounds_left) for stop in stops]
    assert seen == [("done", 0, 20), ("tested", 1, 19)]
    assert talk.texts(1)[-1] == ("user", "<note>\nRun the tests first.\n</note>")


def test_an_agent_is_not_kept_going_for_ever(place: Workplace) -> None:
    def feature(_: Thread) -> Extension:
        async def before_stop(_: TurnStop) -> Note | None:
            return Note("More.")

        return Extension(before_stop=before_stop)

    talk = run(place, [says("done")] * 21, feature)
    assert (talk.result.error, talk.result.exit_code, len(talk.requests)) == (
        None,
        3,
        21,
    )
    assert talk.warnings == [
        "The agent was kept going as often as allowed (20), and the turn ends: More."
    ]


def test_each_extension_has_rounds_of_its_own(place: Workplace) -> None:
    left: dict[str, list[int]] = {"quiet": [], "first": [], "second": [], "third": []}

    def feature(name: str, rounds: int, *, wants: int = 100) -> Extension:
        async def before_stop(stop: TurnStop) -> Note | None:
            left[name].append(stop.rounds_left)
            return Note(name) if stop.rounds < wants else None

        return Extension(before_stop=before_stop, max_rounds=rounds)

    async def work(session: Session) -> None:
        for _ in range(2):
            for each in left.values():
                each.clear()
            assert (await session.run_turn("go")).exit_code == 3
            # The second one is overridden, and the third one has its round all the same.
            expected = {
                "quiet": [1] * 6,
                "first": [2, 1, 0, 0, 0, 0],
                "second": [2, 1, 0, 0],
                "third": [1, 0],
            }
            assert left == expected

    talk = run(
        place,
        [says("done")] * 12,
        lambda _: feature("quiet", 1, wants=0),
        lambda _: combined([feature("first", 2, wants=2), feature("second", 2)]),
        lambda _: feature("third", 1),
        work=work,
    )
    assert [(end.stop.rounds, end.stop.reason) for end in talk.ends] == [
        (2, "second")
    ] * 2


def test_an_extension_that_is_content_in_the_end_was_not_overridden(
    place: Workplace,
) -> None:
    def feature(_: Thread) -> Extension:
        async def before_stop(stop: TurnStop) -> Note | None:
            return Note("More.") if stop.rounds_left else None

        return Extension(before_stop=before_stop, max_rounds=2)

    talk = run(place, [says("done")] * 3, feature)
    assert (talk.result.exit_code, talk.warnings) == (0, [])


def test_an_extension_answers_in_place_of_the_approver_and_is_asked_once(
    place: Workplace,
) -> None:
    asked: list[ApprovalRequest] = []

    class Reviewer:
        def __init__(self, approver: Approver) -> None:
            self._approver = approver

        async def review(self, request: ApprovalRequest) -> Review:
            asked.append(request)
            assert (
                await self._approver.review(request)
            ).decision is ReviewDecision.DENIED
            return Review(ReviewDecision.APPROVED_FOR_SESSION)

    def feature(_: Thread) -> Extension:
        return Extension(wrap_approver=Reviewer)

    patch = "*** Begin Patch\n*** Add File: f\n+text\n*** End Patch"
    again = "*** Begin Patch\n*** Update File: f\n@@\n-text\n+other\n*** End Patch"
    replies = [
        calls("apply_patch", input=patch),
        calls("apply_patch", "c2", input=again),
    ]
    flags = {"approval_policy": "untrusted", "sandbox_mode": "workspace-write"}
    talk = run(place, [*replies, says("done")], feature, flags=flags)
    assert (place.cwd / "f").read_text("utf-8") == "other\n"
    assert [request.kind for request in asked] == ["patch"]
    assert "+other" in talk.ends[0].diff


def test_a_prompt_is_followed_by_notes_or_refused(place: Workplace) -> None:
    def feature(_: Thread) -> Extension:
        async def before_prompt(prompt: UserPrompt) -> Sequence[Note]:
            if "password" in prompt.text:
                raise PromptRefused("this prompt has a password in it")
            return [Note(f"{len(prompt.text)} characters")]

        return Extension(before_prompt=before_prompt)

    async def work(session: Session) -> None:
        refused = await session.run_turn("my password is x")
        assert refused.error is not None
        assert refused.error.code == "prompt_refused"
        assert not session.is_unfinished
        await session.run_turn("hello")
        assert [past.prompt.text for past in session.past_prompts()] == ["hello"]

    talk = run(place, [says("hi")], feature, work=work)
    assert talk.texts(0)[-2:] == [("user", "hello"), ("developer", "5 characters")]
    assert [end.type for end in talk.ends] == ["turn.failed", "turn.completed"]


def test_a_turn_can_be_skipped_with_its_prompt(place: Workplace) -> None:
    def feature(_: Thread) -> Extension:
        async def before_prompt(prompt: UserPrompt) -> Sequence[Note]:
            if "password" in prompt.text:
                raise TurnSkipped("this prompt has a password in it")
            return ()

        return Extension(before_prompt=before_prompt)

    async def work(session: Session) -> None:
        skipped = await session.run_turn("my password is x")
        assert (skipped.error, skipped.last_message) == (None, None)
        assert not session.is_unfinished
        await session.run_turn("hello")
        assert [past.prompt.text for past in session.past_prompts()] == ["hello"]

    talk = run(place, [says("hi")], feature, work=work)
    assert talk.texts(0)[-1:] == [("user", "hello")]
    assert [end.type for end in talk.ends] == ["turn.completed", "turn.completed"]


def test_a_prompt_is_kept_if_something_else_goes_wrong_with_it(
    place: Workplace,
) -> None:
    has_failed = False

    def feature(_: Thread) -> Extension:
        async def before_prompt(_: UserPrompt) -> Sequence[Note]:
            nonlocal has_failed
            has_failed = True
            raise CodexError("the hook is broken", code="hook")

        return Extension(before_prompt=before_prompt)

    async def work(session: Session) -> None:
        assert str((await session.run_turn("go")).error) == "the hook is broken"
        assert has_failed
        assert (await session.retry()).last_message == "hi"

    talk = run(place, [says("hi")], feature, work=work)
    assert talk.texts(0)[-1] == ("user", "go")


def test_context_stands_before_the_first_prompt_and_notes_before_each_request(
    place: Workplace,
) -> None:
    def feature(thread: Thread) -> Extension:
        async def before_request() -> Sequence[Note]:
            count = sum(b'"note ' in item for item in thread.items)
            return [Note(f"note {count}")]

        return Extension(
            context=lambda occasion: [Note(f"context {occasion}")],
            before_request=before_request,
        )

    talk = run(place, [calls("echo", text="hi"), says("done")], echoes, feature)
    assert talk.texts(0)[-3:] == [
        ("developer", "context start"),
        ("user", "go"),
        ("developer", "note 0"),
    ]
    assert talk.texts(1)[-1] == ("developer", "note 1")


@pytest.mark.parametrize("outcome", ["completed", "failed", "cancelled"])
def test_a_turn_is_left_before_its_last_event(place: Workplace, outcome: str) -> None:
    log: list[str] = []

    def feature(thread: Thread) -> Extension:
        @asynccontextmanager
        async def around_turn(turn: TurnStart) -> AsyncGenerator[None]:
            assert turn.prompt == UserPrompt("go")
            assert thread.turn is turn
            log.append("entered")
            try:
                yield
            finally:
                await asyncio.sleep(0)
                log.append("left")

        def wrap(_: Dispatch) -> Dispatch:
            async def run(_: ToolUse) -> ToolOutput:
                thread.abort()
                await asyncio.Event().wait()
                raise AssertionError

            return run

        return Extension(
            around_turn=around_turn,
            wrap_dispatch=wrap,
            sink=lambda event: log.append(str(event.type)),
            turn_facts=lambda: {"gates": ["lint"], "exit_code": 3},
        )

    refusal = Reply(status=400, body=b'{"error":{"message":"No"}}')
    reply = {
        "completed": says("hi"),
        "failed": refusal,
        "cancelled": calls("echo", text="x"),
    }
    talk = run(place, [reply[outcome]], echoes, feature)
    ends = {"turn.completed", "turn.failed"}
    first, *_, left, last = [e for e in log if e in {"entered", "left", *ends}]
    assert (first, left) == ("entered", "left")
    assert last == ("turn.completed" if outcome == "completed" else "turn.failed")
    assert len([event for event in log if event in ends]) == 1
    assert talk.ends[0].facts == {"gates": ["lint"]}
    # That of an error is the stronger one.
    code = {
        "completed": 3,
        "failed": ExitCode.TURN_FAILED,
        "cancelled": ExitCode.INTERRUPTED,
    }
    assert talk.result.exit_code == code[outcome]


def test_a_wall_clock_ends_a_turn_with_its_reason(place: Workplace) -> None:
    def feature(thread: Thread) -> Extension:
        late = CodexError("the turn took too long", code="wall_clock")

        @asynccontextmanager
        async def around_turn(_: TurnStart) -> AsyncGenerator[None]:
            timer = asyncio.get_running_loop().call_later(60, thread.end, late)
            try:
                yield
            finally:
                timer.cancel()

        def wrap(_: Dispatch) -> Dispatch:
            async def run(_: ToolUse) -> ToolOutput:
                # The clock strikes.
                thread.end(late)
                await asyncio.Event().wait()
                raise AssertionError

            return run

        return Extension(around_turn=around_turn, wrap_dispatch=wrap)

    async def work(session: Session) -> None:
        result = await session.run_turn("go")
        assert result.error is not None
        assert result.error.code == "wall_clock"
        await session.run_turn("again")

    replies = [calls("echo", text="x"), says("done")]
    talk = run(place, replies, echoes, feature, work=work)
    assert talk.outputs["c1"].endswith("aborted: the turn took too long")
    note = talk.texts(1)[-2][1]
    assert note.startswith(
        "<turn_aborted>\nThe previous turn was stopped: the turn took too long."
    )


def test_an_extension_mends_a_request(place: Workplace) -> None:
    asked: list[tuple[int | None, int]] = []

    def feature(_: Thread) -> Extension:
        async def recover(failure: ModelError, retries_left: int) -> bool:
            asked.append((failure.status, retries_left))
            return len(asked) == 1

        return Extension(recover=recover)

    refusal = Reply(status=400, body=b'{"error":{"message":"No"}}')
    talk = run(place, [refusal, says("done")], feature)
    assert (talk.result.error, talk.result.last_message, asked) == (
        None,
        "done",
        [(400, 0)],
    )


def test_an_extension_refuses_a_compaction_or_keeps_a_note(place: Workplace) -> None:
    refuses = True

    def feature(_: Thread) -> Extension:
        @asynccontextmanager
        async def around_compaction(compaction: Compaction) -> AsyncGenerator[None]:
            if refuses:
                raise CompactionFailed("not now")
            compaction.keep(Note(f"kept at a {compaction.trigger} one"))
            yield

        return Extension(around_compaction=around_compaction)

    async def work(session: Session) -> None:
        nonlocal refuses
        await session.run_turn("go")
        assert str((await session.compact()).error) == "not now"
        refuses = False
        assert (await session.compact()).error is None
        assert [b"kept at a manual one" in item for item in session.items[-3:]] == [
            *(True, False, False)
        ]

    run(place, [says("hi"), says("summary")], feature, work=work)


def test_a_session_is_entered_before_it_is_announced(place: Workplace) -> None:
    log: list[str] = []

    def feature(thread: Thread) -> Extension:
        thread.warn("made")

        @asynccontextmanager
        async def around_session() -> AsyncGenerator[None]:
            log.append("entered")
            yield
            log.append("left")

        return Extension(
            around_session=around_session, sink=lambda e: log.append(str(e.type))
        )

    talk = run(place, [says("hi")], feature)
    assert log[:3] == ["entered", "thread.started", "item.completed"]
    assert log[-1] == "left"
    assert talk.warnings == ["made"]


def test_an_extension_that_cannot_begin_leaves_no_session(place: Workplace) -> None:
    def feature(_: Thread) -> Extension:
        @asynccontextmanager
        async def around_session() -> AsyncGenerator[None]:
            raise CodexError("no database")
            yield

        return Extension(around_session=around_session)

    talk = run(place, [], feature)
    assert (str(talk.error), talk.events, place.rollouts()) == ("no database", [], [])


def test_a_bug_of_an_extension_keeps_its_traceback_and_people_see_one_error(
    place: Workplace,
) -> None:
    def feature(_: Thread) -> Extension:
        async def before_request() -> Sequence[Note]:
            raise KeyError("mistake")

        return Extension(before_request=before_request)

    async def work(session: Session) -> None:
        with pytest.raises(KeyError, match="mistake"):
            await session.run_turn("go")

    talk = run(place, [says("hi")], feature, work=work)
    (end,) = talk.ends
    assert (end.error.code, end.error.message) == (
        "internal",
        "internal error: KeyError('mistake'); the extension"
        " `test_a_bug_of_an_extension_keeps_its_traceback_and_people_see_one_error"
        ".<locals>.feature` failed in `before_request`",
    )


PLACES = ["before_stop", "around_turn", "turn_facts", "sink"]


@pytest.mark.parametrize("place_of_end", PLACES)
def test_an_end_that_comes_late_does_not_cancel_the_caller(
    place: Workplace, place_of_end: str
) -> None:
    def feature(thread: Thread) -> Extension:
        def end(at: str) -> None:
            if at == place_of_end:
                thread.end(CodexError("too late", code="late"))

        async def before_stop(_: TurnStop) -> None:
            end("before_stop")

        @asynccontextmanager
        async def around_turn(_: TurnStart) -> AsyncGenerator[None]:
            yield
            end("around_turn")

        def turn_facts() -> dict[str, Any]:
            end("turn_facts")
            return {}

        def sink(event: Event) -> None:
            if event.type == "turn.completed":
                end("sink")

        return Extension(
            before_stop=before_stop,
            around_turn=around_turn,
            turn_facts=turn_facts,
            sink=sink,
        )

    async def work(session: Session) -> None:
        talk_result.append(await session.run_turn("go"))
        await asyncio.sleep(0)

    talk_result: list[TurnResult] = []
    talk = run(place, [says("done")], feature, work=work)
    (result,), (end,) = talk_result, talk.ends
    is_in_time = place_of_end in {"before_stop", "around_turn"}
    assert end.type == ("turn.failed" if is_in_time else "turn.completed")
    assert str(result.error) == ("too late" if is_in_time else "None")


@pytest.mark.parametrize(
    "error", [CodexError("no facts", code="facts"), ValueError("no facts")]
)
def test_a_turn_whose_facts_cannot_be_told_has_one_end(
    place: Workplace, error: Exception
) -> None:
    def feature(_: Thread) -> Extension:
        def turn_facts() -> dict[str, Any]:
            raise error

        return Extension(turn_facts=turn_facts)

    async def work(session: Session) -> None:
        if isinstance(error, CodexError):
            assert (await session.run_turn("go")).error is error
        else:
            with pytest.raises(ValueError, match="no facts"):
                await session.run_turn("go")

    (end,) = run(place, [says("done")], feature, work=work).ends
    assert end.type == "turn.failed"


def test_a_fact_does_not_change_the_type_of_the_last_event(place: Workplace) -> None:
    talk = run(
        place,
        [says("hi")],
        lambda _: Extension(turn_facts=lambda: {"type": "x", "a": 1}),
    )
    assert [(end.type, end.facts) for end in talk.ends] == [
        ("turn.completed", {"a": 1})
    ]


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({"exit_code": "3"}, "`exit_code` is '3', not a number from 0 to 255"),
        ({"exit_code": 256}, "`exit_code` is 256, not a number from 0 to 255"),
        ({"exit_code": True}, "`exit_code` is True, not a number from 0 to 255"),
        ({"diff": b"+x"}, "`diff` is b'+x', not a string"),
        ({"usage": 3}, "`usage` is 3, and that field of the event is a `Usage`"),
        ({"stop": None}, "`stop` is None, and that field of the event is a `Stop"),
        ({"facts": {}}, "`facts` is the name of no fact"),
        (
            {"words": {1, 2}},
            "`words` cannot be written as JSON: Object of type set is not JSON",
        ),
    ],
)
def test_a_fact_that_cannot_be_used_fails_the_turn(
    place: Workplace, facts: dict[str, Any], reason: str
) -> None:
    def feature(_: Thread) -> Extension:
        return Extension(turn_facts=lambda: facts)

    talk = run(place, [says("hi")], feature)
    assert [end.type for end in talk.ends] == ["turn.failed"]
    assert (talk.result.exit_code, talk.result.last_message) == (1, "hi")
    test = "test_a_fact_that_cannot_be_used_fails_the_turn"
    named = f"the extension `{test}.<locals>.feature`"
    text = f"{named} returned bad `turn_facts`: {reason}"
    assert str(talk.result.error).startswith(text)


def test_a_turn_fails_even_if_an_extension_suppresses_its_error(
    place: Workplace,
) -> None:
    @asynccontextmanager
    async def around_turn(_: TurnStart) -> AsyncGenerator[None]:
        with suppress(CodexError):
            yield

    refused = Reply(status=400, body=b'{"error":{"message":"no such model"}}')
    talk = run(place, [refused], lambda _: Extension(around_turn=around_turn))
    assert [end.type for end in talk.ends] == ["turn.failed"]
    assert "no such model" in str(talk.result.error)


def gives_nothing(_: Thread) -> None:
    """A feature that forgot to return its extension."""


@pytest.mark.parametrize(
    ("wrong", "name"),
    [(gives_nothing, "gives_nothing"), (Extension(), "Extension"), ("echo", "str")],
)
def test_an_object_that_is_no_feature_is_refused_in_one_sentence(
    place: Workplace, wrong: Any, name: str
) -> None:
    talk = run(place, [], wrong)
    assert isinstance(talk.error, ConfigError)
    assert str(talk.error) == (
        f"{name} is not a feature: a feature is a function that takes the session and returns an `Extension`"
    )
    assert place.rollouts() == []


def test_a_turn_that_still_runs_when_its_session_is_left_is_ended_and_written_down(
    place: Workplace,
) -> None:
    is_called = asyncio.Event()

    async def waits() -> None:
        is_called.set()
        await asyncio.Event().wait()

    turns: list[asyncio.Task[TurnResult]] = []

    async def work(session: Session) -> None:
        turns.append(asyncio.create_task(session.run_turn("go")))
        await asyncio.wait_for(is_called.wait(), 20)

    talk = run(place, [calls("waits")], tools=[waits], work=work)
    error = turns[0].result().error
    assert error is not None
    assert error.code == "aborted"
    assert ([end.type for end in talk.ends], talk.warnings) == (["turn.failed"], [])
    (rollout,) = place.rollouts()
    assert "aborted by user" in rollout.read_text("utf-8")


@pytest.mark.parametrize("name", ["exec_command", "echo", "mcp__files__read"])
def test_an_extension_does_not_offer_a_tool_under_a_name_that_is_taken(
    place: Workplace, name: str
) -> None:
    def feature(_: Thread) -> Extension:
        spec = FunctionSpec(name, "", {"type": "object", "properties": {}})
        return Extension(tools=[OfferedTool(name, lambda: pytest.fail("loaded"), spec)])

    with pytest.raises(ValueError, match="is taken"):
        run(place, [], feature, tools=[echo_text])
    assert place.rollouts() == []


@tool(name="echo")
def echo_text(text: str) -> str:
    return text

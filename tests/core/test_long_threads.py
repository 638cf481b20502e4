"""A thread does not end because it is long, whatever becomes of its summaries."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import lru_cache
from typing import Any

import pytest

from codex_py.core.session import Session
from codex_py.errors import (
    CodexError,
    CompactionFailed,
    ExitCode,
    ModelError,
    StreamError,
)
from codex_py.instructions import instruction_text
from codex_py.protocol.approval import ApprovalPolicy
from codex_py.protocol.event_items import ErrorItem
from codex_py.protocol.events import Event, ItemCompleted
from codex_py.protocol.extension import Compaction, Extension, Thread
from codex_py.protocol.messages import EncodedItem, estimated_tokens, message
from codex_py.protocol.prompts import Note, is_summary, user_prompt
from codex_py.protocol.stream import Prompt, ResponseEvent, Usage
from tests.core.sessions import SETTINGS, FakeRecorder, context, make_session, user
from tests.support.model import ScriptedModel, Step, calls, completed, says

WINDOW = 8_000
SMALL = replace(
    SETTINGS, context_window=WINDOW, auto_compact_token_limit=WINDOW * 9 // 10
)
ASKED = user(instruction_text("compact/prompt.md"))
MARK = instruction_text("compact/shortened.md")
TOO_LONG = ModelError("no room", code="context_length_exceeded")
NOTE: Sequence[Step] = [says("the note"), completed(0, 0)]


_decoded = lru_cache(5000)(json.loads)


class SmallModel:
    """Refuses what does not fit its window. `answer` says what it answers to the rest; a request for a summary is
    answered by `summary`."""

    def __init__(
        self,
        summary: Callable[[], Sequence[Step]] = lambda: NOTE,
        answer: Callable[["SmallModel"], Sequence[Step]] | None = None,
        window: int = WINDOW,
    ) -> None:
        self._summary = summary
        self._answer = answer or _calls_once
        self._window = window
        self.refused = self.summaries = self.sent = 0
        self.input: list[dict[str, Any]] = []
        """The last one that was answered."""

    @asynccontextmanager
    async def stream(
        self, prompt: Prompt
    ) -> AsyncGenerator[AsyncIterator[ResponseEvent]]:
        tokens = prompt.estimated_tokens
        data = list(map(_decoded, prompt.input))
        _check_pairs(data)
        is_summary = data[-1] == ASKED
        self.summaries += is_summary
        if is_summary:
            steps = self._summary() if tokens <= self._window else [TOO_LONG]
        elif tokens > self._window:
            self.refused += 1
            steps = [TOO_LONG]
        else:
            self.sent += 1
            self.input = data
            steps = [*self._answer(self), completed(tokens, 0)]
        yield self._play(steps)

    async def aclose(self) -> None:
        pass

    async def _play(self, steps: Sequence[Step]) -> AsyncIterator[ResponseEvent]:
        for step in steps:
            if isinstance(step, Exception):
                raise step
            assert not callable(step)
            yield step


def _calls_once(model: SmallModel) -> Sequence[Step]:
    last = model.input[-1]
    # A turn goes on behind a compaction.
    if last["type"].endswith("_output") or is_summary(message("user", last["content"])):
        return [says("an answer")]
    return [says("Look:"), calls(f"c{model.sent}", index=1)]


def _check_pairs(data: Sequence[dict[str, Any]]) -> None:
    ended = [each["call_id"] for each in data if each["type"].endswith("_output")]
    assert Counter(
        each["call_id"] for each in data if each["type"] == "function_call"
    ) == Counter(ended)


async def much(_: Any) -> str:
    return "line\n" * 300


class Talk:
    def __init__(self, model: SmallModel, **parts: Any) -> None:
        self.model = model
        self.warnings: list[str] = []
        self.recorder = FakeRecorder()
        defaults: dict[str, Any] = {
            "settings": SMALL,
            "tool": much,
            "recorder": self.recorder,
        }
        self.session: Session = make_session(
            model,  # type: ignore[arg-type]
            sink=self._see,
            **{**defaults, **parts},
        )

    def _see(self, event: Event) -> None:
        if isinstance(event, ItemCompleted) and isinstance(event.item, ErrorItem):
            self.warnings.append(event.item.message)

    def say(self, *prompts: str) -> CodexError | None:
        async def run() -> CodexError | None:
            error = None
            for prompt in prompts:
                error = error or (await self.session.run_turn(prompt)).error
            return error

        return asyncio.run(run())

    @property
    def prompts(self) -> list[str]:
        """The words of the user in the last request."""
        items = [json.dumps(item).encode() for item in self.model.input]
        return [
            found.text for item in items if (found := user_prompt(EncodedItem(item)))
        ]


def raising(error: Exception) -> Callable[[], Sequence[Step]]:
    return lambda: [error]


SUMMARIES: dict[str, Callable[[], Sequence[Step]]] = {
    "given": lambda: NOTE,
    "refused": raising(ModelError("bad request", code="bad_request", status=400)),
    "of no service": raising(
        StreamError("500", exit_code=ExitCode.UNAVAILABLE, status=500)
    ),
    "empty": lambda: [completed(0, 0)],
    "too long for ever": raising(TOO_LONG),
    "broken off": lambda: [says("the no"), StreamError("disconnected", started=True)],
    "filtered": raising(ModelError("filtered", code="content_filter")),
    "calls only": lambda: [calls("x"), completed(0, 0)],
}


@pytest.mark.parametrize(
    ("summary", "turns"),
    [
        (name, 300 if name in {"given", "refused", "of no service"} else 80)
        for name in SUMMARIES
    ],
)
def test_a_session_of_many_turns_ends_well(summary: str, turns: int) -> None:
    model = SmallModel(SUMMARIES[summary])
    talk = Talk(model)
    prompts = [f"prompt {n}" for n in range(turns)]
    assert talk.say(*prompts) is None
    compactions = talk.recorder.of_type("compacted")
    assert len(compactions) >= turns // 30
    assert 2 * turns - 10 < model.sent <= 2 * turns
    assert talk.prompts[-3:] == prompts[-3:]
    if summary == "given":
        assert (model.refused, talk.warnings) == (0, [])
        return
    shortened = [warning for warning in talk.warnings if "was shortened" in warning]
    assert len(shortened) == len(compactions)
    assert {text for text, _ in compactions} == {MARK}
    # What was refused for good is not asked for at each request.
    assert model.summaries <= 10 * len(compactions)


def test_the_dropped_items_are_reported_in_one_warning() -> None:
    talk = Talk(SmallModel(SUMMARIES["empty"]))
    assert talk.say(*"abcdefghijklmnopqrst") is None
    warning, *_ = talk.warnings
    assert warning.startswith(
        "The conversation was shortened without a summary (the model gave no summary of the conversation), from about 7"
    )
    assert "Outputs cut: 1" in warning


def test_the_context_and_the_notes_of_extensions_survive() -> None:
    def feature(_: Thread) -> Extension:
        @asynccontextmanager
        async def around_compaction(compaction: Compaction) -> AsyncGenerator[None]:
            compaction.keep(Note("a skill"))
            yield

        return Extension(
            around_compaction=around_compaction,
            context=lambda occasion: [Note(f"for {occasion}")],
        )

    talk = Talk(SmallModel(SUMMARIES["refused"]), features=[feature])
    assert talk.say(*map(str, range(30))) is None
    heads = [item["content"][0]["text"].split("\n")[0] for item in talk.model.input[:5]]
    assert heads == [
        *(
            "<permissions instructions>",
            "<environment_context>",
            "for compact",
            "a skill",
            "0",
        )
    ]
    texts = [json.dumps(item) for item in talk.model.input]
    assert sum("a skill" in text for text in texts) == 1
    assert sum(MARK[:40] in text for text in texts) == 1


def test_context_that_has_changed_meanwhile_is_told_once() -> None:
    talk = Talk(SmallModel(SUMMARIES["refused"]))
    assert talk.say("one") is None
    for policy in (ApprovalPolicy.ON_REQUEST, ApprovalPolicy.UNTRUSTED):
        talk.session.change(
            replace(talk.session.settings.choices, approval_policy=policy)
        )
        talk.session.settings = replace(SMALL, approval_policy=policy)
        assert talk.say(policy) is None
    blocks = [item for item in talk.model.input if "<permissions" in json.dumps(item)]
    assert len(blocks) == 3
    assert talk.say(*map(str, range(20))) is None
    assert talk.recorder.of_type("compacted")
    (block,) = [item for item in talk.model.input if "<permissions" in json.dumps(item)]
    assert "untrusted" in json.dumps(block)


def test_a_refusal_by_an_extension_stays_one() -> None:
    asked: list[str] = []

    def feature(_: Thread) -> Extension:
        @asynccontextmanager
        async def around_compaction(compaction: Compaction) -> AsyncGenerator[None]:
            asked.append(compaction.trigger)
            raise CompactionFailed("a hook says no")
            yield

        return Extension(around_compaction=around_compaction)

    talk = Talk(SmallModel(), features=[feature])
    error = talk.say(*map(str, range(100)))
    assert str(error) == "a hook says no"
    assert talk.recorder.of_type("compacted") == []
    # Until the window was really full, the thread went on in full length.
    assert talk.model.refused == 1
    assert len(asked) == len(talk.warnings) + 1


@pytest.mark.parametrize(
    "error",
    [
        ModelError("wrong key", status=401, exit_code=ExitCode.AUTHENTICATION),
        ModelError("no quota", code="insufficient_quota"),
        ModelError("no such model", code="not_found", status=404),
    ],
)
def test_nothing_is_lost_where_the_provider_would_refuse_anything(
    error: ModelError,
) -> None:
    talk = Talk(SmallModel(raising(error)))
    failed = talk.say(*map(str, range(100)))
    assert failed is error
    assert talk.recorder.of_type("compacted") == []


@pytest.mark.parametrize(
    "steps", [["p"], ["short", "p"], ["short", "short", "p", "short"]]
)
def test_a_huge_prompt_is_cut(steps: list[str]) -> None:
    prompts = [f"begin {'x' * 100_000} end" if step == "p" else step for step in steps]
    talk = Talk(SmallModel())
    assert talk.say(*prompts, "and now?") is None
    assert talk.prompts[-1] == "and now?"
    (cut,) = [prompt for prompt in talk.prompts if prompt.startswith("begin")]
    assert cut.endswith("x end")
    assert "characters cut…" in cut


def test_a_huge_output_in_the_running_turn_is_cut_as_often_as_it_comes() -> None:
    async def huge(_: Any) -> str:
        return "begin" + "x" * 60_000 + "end"

    def answer(model: SmallModel) -> Sequence[Step]:
        outputs = [item for item in model.input if item["type"].endswith("_output")]
        return [says("done")] if len(outputs) == 4 else [calls(f"c{model.sent}")]

    # Without a limit of its own, the program learns from the refusal alone.
    for settings in (SMALL, replace(SMALL, auto_compact_token_limit=None)):
        refusing = Talk(
            SmallModel(SUMMARIES["refused"], answer),
            tool=huge,
            settings=settings,
            output_tokens=50_000,
        )
        assert refusing.say("go") is None
        assert refusing.prompts == ["go"]
        outputs = [item["output"] for item in refusing.model.input if "output" in item]
        assert [output[:5] for output in outputs] == ["begin"] * 4
        assert len(refusing.recorder.of_type("compacted")) >= 3


def test_a_window_that_is_smaller_than_the_configuration_says_is_found() -> None:
    settings = replace(SMALL, context_window=200_000, auto_compact_token_limit=180_000)
    for summary in SUMMARIES.values():
        talk = Talk(SmallModel(summary), settings=settings)
        assert talk.say(*map(str, range(30))) is None
        assert talk.model.refused < 20


def test_a_server_that_limits_bytes_gets_fewer() -> None:
    error = ModelError("too large", code="payload_too_large", status=413)
    data = {"type": "input_image", "image_url": "data:image/png;base64," + "A" * 50_000}
    old = [
        user("look")["content"][0] | {"text": "first"},
        data,
    ]
    items = [
        *context(SETTINGS),
        EncodedItem(json.dumps({**user(""), "content": old}).encode()),
    ]

    class Limited(SmallModel):
        @asynccontextmanager
        async def stream(
            self, prompt: Prompt
        ) -> AsyncGenerator[AsyncIterator[ResponseEvent]]:
            size = sum(map(len, prompt.input))
            async with super().stream(prompt) as events:
                yield self._play([error]) if size > 40_000 else events

    talk = Talk(Limited(), items=items, told_model="m")
    assert talk.say("go") is None
    assert talk.prompts == ["first", "go"]
    assert len(talk.warnings) == 1


def test_a_model_without_room_for_anything_fails_the_turn_and_is_not_asked_for_ever() -> (
    None
):
    talk = Talk(SmallModel(window=10))
    assert talk.say("x" * 50_000) is TOO_LONG
    assert talk.model.refused < 12
    # With a model that has room, the thread goes on.
    talk.model._window = WINDOW  # pyright: ignore[reportPrivateUsage]
    assert talk.say("and now?") is None
    assert talk.prompts[-1] == "and now?"


def test_a_resumed_thread_that_is_too_long_for_its_model_is_compacted_before_its_first_request() -> (
    None
):
    long = Talk(SmallModel(window=100_000), settings=SETTINGS)
    assert long.say(*map(str, range(30))) is None
    items = long.session.items[1:]
    assert estimated_tokens(items) > WINDOW
    for summary in SUMMARIES.values():
        for usage in (Usage(input_tokens=20_000), Usage()):
            talk = Talk(
                SmallModel(summary), items=items, last_usage=usage, told_model="m"
            )
            assert talk.say("go on") is None
            assert talk.model.refused == 0
            assert talk.prompts[-2:] == ["29", "go on"]


def test_outputs_that_fill_the_window_are_noticed_before_the_next_request() -> None:
    async def huge(_: Any) -> str:
        return "x" * 30_000

    talk = Talk(SmallModel(), tool=huge, output_tokens=50_000)
    assert talk.say("go") is None
    assert (talk.model.refused, talk.model.summaries) == (0, 1)


def test_a_call_before_the_refusal_runs_once() -> None:
    ran: list[str] = []

    async def tool(call: Any) -> str:
        ran.append(call.call_id)
        return "x" * 20_000

    model = ScriptedModel(
        [calls("c1"), completed()],
        [calls("c2"), TOO_LONG],
        [ModelError("no summary", status=400)],
        [calls("c2"), completed()],
        [says("done"), completed()],
        check_prefix=False,
    )
    session = make_session(model, tool=tool, output_tokens=50_000)
    assert asyncio.run(session.run_turn("go")).last_message == "done"
    assert ran == ["c1", "c2"]
    _check_pairs(model.inputs[-1])
    assert [item.get("call_id") for item in model.inputs[-1][-5:]] == [
        *("c1", "c1", "c2", "c2", None)
    ]

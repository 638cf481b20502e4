"""Each function of an extension fails once, or returns a wrong value once.

The turn has one end, and the session goes on. Tests `protocol/extension.py` and `protocol/combined.py`.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any

import pytest

from codex_py import Agent
from codex_py.app.options import SessionOptions
from codex_py.app.session import Session, open_session
from codex_py.config.config import load_config
from codex_py.errors import CodexError
from codex_py.protocol.events import Event, TurnCompleted, TurnFailed, TurnStarted
from codex_py.protocol.extension import Extension, Feature, OfferedTool, Thread
from codex_py.protocol.prompts import Note
from codex_py.testing import (
    FakeModel,
    Pause,
    Reply,
    ev_completed,
    ev_created,
    ev_function_call,
    ev_message,
)
from tests.support.program import Workplace, environment
from tests.support.server import ScriptedServer

DONE = [*ev_message("done"), ev_completed()]
REFUSED = Reply(status=400, body=b'{"error":{"message":"no such thing"}}')
MAKE = "made with the session"
"""Functions that are called before there is a session."""
ACT = "called in each turn"
AWAIT = "awaited in each turn"
AROUND = "a context around a turn or a session"
IN_A_CALL = "called around a call"

KINDS = {
    "tools": IN_A_CALL,
    "find_tool": ACT,
    "wrap_model": MAKE,
    "recover": AWAIT,
    "wrap_dispatch": ACT,
    "wrap_approver": ACT,
    "context": ACT,
    "before_prompt": AWAIT,
    "before_request": AWAIT,
    "before_stop": AWAIT,
    "around_turn": AROUND,
    "around_compaction": AROUND,
    "around_session": AROUND,
    "turn_facts": ACT,
    "loaded": ACT,
    "sink": MAKE,
}
NO_SESSION = {"wrap_model", "around_session", "sink"}
"""Without them the session is not opened."""


@dataclass
class Talk:
    events: list[Event] = field(default_factory=list[Event])
    raised: list[Exception] = field(default_factory=list[Exception])
    thread_id: str | None = None

    @property
    def ends(self) -> list[str]:
        kinds = TurnCompleted | TurnFailed
        return [str(event.type) for event in self.events if isinstance(event, kinds)]

    @property
    def starts(self) -> int:
        return sum(isinstance(event, TurnStarted) for event in self.events)


class Once:
    """What happens instead of a function of the extension until the first turn is over."""

    def __init__(self, happens: Callable[[], Any]) -> None:
        self.happens = happens
        self.is_over = False

    def extension(self, name: str) -> Extension:
        return Extension(**{name: self._value(name)})

    def _value(self, name: str) -> Any:
        usual: Any = getattr(Extension(), name)
        if name == "tools":
            return [OfferedTool("fragile", self.happens)]

        def act(*arguments: Any) -> Any:
            if self.is_over:
                return usual(*arguments)
            return self.happens()

        async def wait(*arguments: Any) -> Any:
            if self.is_over:
                return await usual(*arguments)
            return self.happens()

        @asynccontextmanager
        async def around(*_: Any) -> AsyncGenerator[None]:
            if not self.is_over:
                self.happens()
            yield

        return {AWAIT: wait, AROUND: around}.get(KINDS[name], act)


def talk_about(place: Workplace, name: str, once: Once) -> Talk:
    """Two turns, the first with the mistake, and a third in the resumed session without the extension."""
    talk = Talk()
    called = {"tools": "fragile", "find_tool": "unknown"}.get(name, "exec_command")
    first: list[Any] = [
        [*ev_function_call("c1", called, {"cmd": "echo hi"}), ev_completed()]
    ]
    if name == "recover":
        first = [REFUSED]

    async def turn(session: Session) -> None:
        try:
            if name == "around_compaction":
                await session.run_turn("go")
                await session.compact()
            else:
                await asyncio.wait_for(session.run_turn("go"), 20)
        except Exception as error:
            if isinstance(error, TimeoutError):
                raise
            talk.raised.append(error)

    async def main(features: Sequence[Feature], turns: int) -> None:
        env = environment(place.home)
        config = load_config(
            cwd=place.cwd,
            environment=env,
            flags={"sandbox_mode": "danger-full-access"},
        )
        async with open_session(
            config,
            SessionOptions(resume=talk.thread_id),
            talk.events.append,
            environment=env,
            extensions=features,
        ) as session:
            talk.thread_id = session.thread_id
            for _ in range(turns):
                await turn(session)
                once.is_over = True

    def feature(_: Thread) -> Extension:
        return once.extension(name)

    with ScriptedServer([*first, *[DONE] * 6], check_prefix=False) as server:
        place.configure(server)
        try:
            asyncio.run(main([feature], 2))
        except Exception as error:  # noqa: BLE001 (a bug leaves as it is)
            talk.raised.append(error)
        if talk.thread_id is not None:
            asyncio.run(main([], 1))
    return talk


def fails() -> Any:
    raise KeyError("a mistake")


def test_every_field_of_an_extension_is_here() -> None:
    assert {each.name for each in fields(Extension)} == {*KINDS, "max_rounds"}


@pytest.mark.parametrize("name", KINDS)
def test_a_bug_in_a_function_of_an_extension_ends_one_turn_at_most(
    place: Workplace, name: str
) -> None:
    talk = talk_about(place, name, Once(fails))
    assert talk.starts == len(talk.ends)
    failed = f"the extension `talk_about.<locals>.feature` failed in `{name}`"
    if name != "tools":
        assert [each.__notes__ for each in talk.raised] == [[failed]]
    errors = [
        each.error.message for each in talk.events if isinstance(each, TurnFailed)
    ]
    assert all(failed in text for text in errors)
    if name in NO_SESSION:
        assert ([repr(each) for each in talk.raised], talk.ends) == (
            ["KeyError('a mistake')"],
            [],
        )
        return
    if name == "tools":
        assert talk.raised == []
    else:
        assert [repr(each) for each in talk.raised] == ["KeyError('a mistake')"]
        assert "turn.failed" in talk.ends
    assert talk.ends[-2:] == ["turn.completed", "turn.completed"]


@pytest.mark.parametrize("name", sorted({*KINDS} - NO_SESSION))
def test_an_error_that_an_extension_raises_on_purpose_fails_its_turn(
    place: Workplace, name: str
) -> None:
    def refuses() -> Any:
        raise CodexError("not today", code="mine")

    talk = talk_about(place, name, Once(refuses))
    assert talk.raised == []
    assert talk.starts == len(talk.ends)
    errors = [each.error for each in talk.events if isinstance(each, TurnFailed)]
    assert [(error.code, error.message) for error in errors] == [("mine", "not today")]
    assert talk.ends[-2:] == ["turn.completed", "turn.completed"]


WRONG = sorted({*KINDS} - {"wrap_model", "sink", "around_session", "tools"})


@pytest.mark.parametrize("value", [None, 42, "text", [None], ["text"], {"a": 1}])
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_value_of_an_extension_fails_one_turn_at_most(
    place: Workplace, name: str, value: object
) -> None:
    talk = talk_about(place, name, Once(lambda: value))
    assert talk.starts == len(talk.ends)
    # A wrapper that is none must not stay in the way of the next turn either.
    assert talk.ends[-2:] == ["turn.completed", "turn.completed"]
    named = "the extension `talk_about.<locals>.feature`"
    assert all(isinstance(each, TypeError) for each in talk.raised)
    assert all(f"{named}: `{name}`" in str(each) for each in talk.raised)


async def never_run(*_: object) -> None:
    raise AssertionError


class Asks:
    async def __call__(self, *_: object) -> None:
        raise AssertionError


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"max_rounds": "text"}, "`max_rounds` is an integer"),
        ({"max_rounds": []}, "`max_rounds` is an integer"),
        ({"max_rounds": None}, "`max_rounds` is an integer"),
        ({"tools": [42]}, "`tools` are a list of `OfferedTool`"),
        ({"tools": [len]}, "`tools` are a list of `OfferedTool`"),
        ({"tools": None}, "`tools` are a list of `OfferedTool`"),
        ({"before_stop": Note("x")}, "`before_stop` is a function"),
        ({"context": [Note("x")]}, "`context` is a function"),
        ({"sink": None}, "`sink` is a function"),
        ({"sink": never_run}, "`sink` is a function, and no `async def`"),
        ({"sink": Asks()}, "`sink` is a function, and no `async def`"),
        ({"loaded": never_run}, "`loaded` is a function, and no `async def`"),
    ],
)
def test_fields_of_a_wrong_type_open_no_session(
    place: Workplace, fields: dict[str, Any], text: str
) -> None:
    def feature(_: Thread) -> Extension:
        return Extension(**fields)

    async def main() -> None:
        env = environment(place.home)
        config = load_config(cwd=place.cwd, environment=env, flags={})
        async with open_session(
            config, SessionOptions(), environment=env, extensions=[feature]
        ):
            pass

    with ScriptedServer([]) as server:
        place.configure(server)
        with pytest.raises(TypeError) as caught:
            asyncio.run(main())
    assert str(caught.value) == (
        "the extension `test_fields_of_a_wrong_type_open_no_session.<locals>.feature`:"
        f" its feature returned Extension, not an `Extension` whose {text}"
    )
    assert place.rollouts() == []


class Fragile:
    def __init__(self) -> None:
        self.turns = 0

    def __call__(self, thread: Thread) -> Extension:
        return Extension(context=self._context)

    def _context(self, _: object) -> Any:
        return "text"


def of_two(name: str, thread: Thread) -> Extension:
    return Fragile()(thread)


FEATURES: list[tuple[Any, str]] = [
    (Fragile(), "Fragile"),
    (Fragile().__call__, "Fragile.__call__"),
    (partial(of_two, "x"), "of_two"),
]


@pytest.mark.parametrize(("feature", "name"), FEATURES)
def test_the_name_of_an_extension_is_that_of_its_function_or_class(
    place: Workplace, feature: Any, name: str
) -> None:
    async def main() -> None:
        env = environment(place.home)
        config = load_config(cwd=place.cwd, environment=env, flags={})
        async with open_session(
            config, SessionOptions(), environment=env, extensions=[feature]
        ) as session:
            found = session.feature(Fragile)
            if found is not None:
                # A caller finds the state of the object that it gave.
                found.turns = 3
                assert feature.turns == 3
            await session.run_turn("go")

    with ScriptedServer([]) as server:
        place.configure(server)
        with pytest.raises(TypeError) as caught:
            asyncio.run(main())
    assert str(caught.value) == (
        f"the extension `{name}`: `context` returned str, not a list of `Note`"
    )


def test_a_plain_function_that_gives_a_coroutine_fails_its_turn(
    place: Workplace,
) -> None:
    def feature(_: Thread) -> Extension:
        return Extension(loaded=lambda: never_run())

    async def main() -> None:
        env = environment(place.home)
        config = load_config(cwd=place.cwd, environment=env, flags={})
        async with open_session(
            config, SessionOptions(), environment=env, extensions=[feature]
        ) as session:
            await session.run_turn("go")

    call = [*ev_function_call("c1", "exec_command", {"cmd": "true"}), ev_completed()]
    with ScriptedServer([call]) as server:
        place.configure(server)
        with pytest.raises(TypeError, match="`loaded` returned coroutine, not None"):
            asyncio.run(main())


@pytest.mark.parametrize(
    "error",
    [KeyError("a mistake"), SystemExit(3), CodexError("not today", code="mine")],
    ids=repr,
)
@pytest.mark.parametrize("field_name", ["loaded", "find_tool"])
def test_a_failure_while_the_model_thinks_ends_the_turn_too(
    place: Workplace,
    error: BaseException,
    field_name: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The tools are loaded while the model thinks, and not in a step of the turn."""
    pause = Pause()

    def fails() -> Any:
        if not pause.until.is_set():
            pause.until.set()
            raise error
        return Extension().find_tool()

    extension: Extension = Extension(**{field_name: fails})  # pyright: ignore[reportArgumentType]

    async def main() -> str | None:
        env = environment(place.home)
        config = load_config(cwd=place.cwd, environment=env, flags={})
        async with open_session(
            config,
            SessionOptions(),
            environment=env,
            extensions=[lambda _: extension],
        ) as session:
            raised: BaseException | None = None
            try:
                raised = (await session.run_turn("go")).error
            except BaseException as bug:  # noqa: BLE001 - it is looked at below
                raised = bug
            assert raised is error
            return (await session.run_turn("go on")).last_message

    slow = [ev_created(), pause, *DONE]
    with ScriptedServer([slow, DONE]) as server:
        place.configure(server)
        assert asyncio.run(main()) == "done"
    assert caplog.messages == []


def test_a_feature_that_is_async_leaves_no_warning(place: Workplace) -> None:
    async def feature(_: Thread) -> Extension:
        return Extension()

    wrong: Any = feature
    agent = Agent(FakeModel(), cwd=place.cwd, extensions=[wrong])
    with pytest.raises(CodexError, match="feature is not a feature"):
        agent.run_sync("go")

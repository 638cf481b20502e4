"""An exception in a call is the output of that call: the turn, the session and the program go on.

Tests `app/transcript.py` and `protocol/bugs.py`.
"""

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import pytest

from codex_py import (
    CodexError,
    Dispatch,
    Event,
    Extension,
    OfferedTool,
    Session,
    SessionOptions,
    Thread,
    ToolContext,
    ToolError,
    ToolOutput,
    ToolUse,
    load_config,
    open_session,
)
from codex_py.app.transcript import past_items
from codex_py.protocol.event_items import ErrorItem, McpToolCall
from codex_py.protocol.events import BugFound, ItemCompleted, ItemStarted
from codex_py.protocol.messages import EncodedItem, encode_json, input_text, message
from codex_py.protocol.prompts import Note
from codex_py.testing import ev_completed, ev_function_call, ev_message
from tests.support.program import Workplace, environment
from tests.support.server import ScriptedServer

DONE = [*ev_message("done"), ev_completed()]


class Params:
    """The arguments of `Fragile`: any object."""

    @classmethod
    def model_validate_json(cls, text: str) -> "Params":
        json.loads(text)
        return cls()


class Fragile:
    """A stranger's tool, which raises at one place."""

    name = "fragile"
    params: type[Any] = Params
    parallel = True

    def __init__(self, place: str, fail: Callable[[], NoReturn]) -> None:
        self._place = place
        self._fail = fail
        if place == "arguments":

            class Broken(Params):
                @classmethod
                def model_validate_json(cls, text: str) -> Params:
                    fail()

            self.params = Broken

    def changes(self, params: Params, cwd: Path) -> Sequence[Path] | None:
        if self._place == "changes":
            self._fail()
        return None

    def show_refusal(
        self, params: Params, error: ToolError, context: ToolContext
    ) -> None:
        if self._place == "show_refusal":
            self._fail()

    async def run(self, params: Params, context: ToolContext) -> ToolOutput:
        if self._place == "start":
            self._fail()
        if self._place == "show_refusal":
            return ToolOutput("no", success=False, error_code="ApprovalDenied")
        item = McpToolCall(
            id=context.next_item_id(), server="s", tool=self.name, arguments={}
        )
        context.emit(ItemStarted(item))
        await asyncio.sleep(0)
        if self._place == "middle":
            self._fail()
        if self._place == "group":
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._fail_later())
        context.emit(ItemCompleted(item))
        return ToolOutput("fine")

    async def _fail_later(self) -> None:
        await asyncio.sleep(0)
        self._fail()


class Mute(ValueError):
    def __str__(self) -> str:
        raise RuntimeError("no words")

    __repr__ = __str__


class Panic(BaseException):
    """As the libraries raise that are written in Rust."""


def _recurse() -> NoReturn:
    _recurse()


def raises(error: BaseException | type[BaseException]) -> Callable[[], NoReturn]:
    def fail() -> NoReturn:
        raise error

    return fail


def _encode() -> NoReturn:
    "\ud800".encode()
    raise AssertionError


FAILURES: dict[str, Callable[[], NoReturn]] = {
    "AttributeError": raises(AttributeError("'X' object has no attribute 'y'")),
    "RecursionError": _recurse,
    "UnicodeEncodeError": _encode,
    "KeyError": raises(KeyError("x")),
    "Mute": raises(Mute()),
    "MemoryError": raises(MemoryError),
    "SystemExit": raises(SystemExit(3)),
    "StopIteration": raises(StopIteration(1)),
    "CancelledError": raises(asyncio.CancelledError),
    "Panic": raises(Panic("attempt to subtract with overflow")),
    "AssertionError": raises(AssertionError),
    "BaseExceptionGroup": raises(
        BaseExceptionGroup("several", [KeyError("a"), SystemExit(1)])
    ),
    "TimeoutError": raises(TimeoutError),
}


@dataclass
class Talk:
    events: list[Event] = field(default_factory=list[Event])
    outputs: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    """Of each request."""
    thread_id: str = ""

    @property
    def traces(self) -> list[str]:
        return [event.trace for event in self.events if isinstance(event, BugFound)]

    @property
    def errors(self) -> list[Any]:
        completed = [e.item for e in self.events if isinstance(e, ItemCompleted)]
        return [item for item in completed if item.type == "error"]


def run(
    place: Workplace,
    replies: Sequence[Any],
    *features: Callable[[Thread], Extension],
    tools: Sequence[Callable[..., Any]] = (),
    prompts: Sequence[str] = ("go",),
    resume: str | None = None,
) -> Talk:
    """Run turns, each of which has to complete."""
    talk = Talk()

    async def main() -> None:
        env = environment(place.home)
        flags = {"sandbox_mode": "danger-full-access"}
        config = load_config(cwd=place.cwd, environment=env, flags=flags)
        async with open_session(
            config,
            SessionOptions(resume=resume),
            talk.events.append,
            environment=env,
            extensions=features,
            tools=tools,
        ) as session:
            talk.thread_id = session.thread_id
            for prompt in prompts:
                await _complete(session, prompt)

    with ScriptedServer(replies) as server:
        place.configure(server)
        asyncio.run(main())
        for request in server.requests:
            outputs = [i for i in request.input if i["type"] == "function_call_output"]
            talk.outputs.append(
                {each["call_id"]: str(each["output"]) for each in outputs}
            )
            assert len(outputs) == len(talk.outputs[-1])
    return talk


async def _complete(session: Session, prompt: str) -> None:
    result = await asyncio.wait_for(session.run_turn(prompt), 20)
    assert result.error is None
    assert result.last_message == "done"


def offering(tool: Any) -> Callable[[Thread], Extension]:
    return lambda _: Extension(tools=[OfferedTool(tool.name, lambda: tool)])


def two_calls(name: str = "fragile", arguments: Any = None) -> list[dict[str, Any]]:
    return [
        *ev_function_call("bad", name, arguments or {}, index=0),
        *ev_function_call("good", "exec_command", {"cmd": "echo next"}, index=1),
        ev_completed(),
    ]


PLACES = ["arguments", "changes", "show_refusal", "start", "middle", "group"]


@pytest.mark.parametrize("at", PLACES)
def test_wherever_a_tool_raises_its_call_alone_fails(place: Workplace, at: str) -> None:
    tool = Fragile(at, raises(AttributeError("a mistake")))
    talk = run(place, [two_calls(), DONE], offering(tool))
    assert talk.outputs[1]["bad"] == (
        "[ERROR:UnknownError] internal error: AttributeError('a mistake')"
    )
    assert talk.outputs[1]["good"].endswith("next\n")
    (error,) = talk.errors
    assert (error.tool, error.call_id, error.code) == ("fragile", "bad", "UnknownError")
    (trace,) = talk.traces
    assert "test_crashing_calls.py" in trace


# A task group of the tool takes the last two for endings.
CASES = [
    *((name, at) for at in ("arguments", "start") for name in FAILURES),
    *(
        (name, "group")
        for name in FAILURES
        if name not in {"SystemExit", "CancelledError"}
    ),
]


@pytest.mark.parametrize(("name", "at"), CASES)
def test_whatever_a_tool_raises_the_turn_goes_on_and_the_session_resumes(
    place: Workplace, name: str, at: str
) -> None:
    talk = run(place, [two_calls(), DONE], offering(Fragile(at, FAILURES[name])))
    output = talk.outputs[1]["bad"]
    is_in_the_arguments = at == "arguments" and name in {
        "RecursionError",
        "UnicodeEncodeError",
    }
    code = "InvalidArgs" if is_in_the_arguments else "UnknownError"
    assert output.startswith(f"[ERROR:{code}] ")
    assert len(output) < 1_200
    assert talk.outputs[1]["good"].endswith("next\n")
    again = run(place, [DONE], resume=talk.thread_id)
    assert again.outputs == [talk.outputs[1]]


def test_an_exception_is_named_to_the_model(place: Workplace) -> None:
    named = {
        "KeyError": "KeyError('x')",
        "Mute": "Mute",
        "SystemExit": "SystemExit(3)",
        "Panic": "Panic('attempt to subtract with overflow')",
        "BaseExceptionGroup": "KeyError('a')",
    }
    for name, text in named.items():
        talk = run(
            place, [two_calls(), DONE], offering(Fragile("middle", FAILURES[name]))
        )
        assert talk.outputs[1]["bad"] == f"[ERROR:UnknownError] internal error: {text}"


class Odd:
    """A tool with an output that cannot be sent."""

    name = "fragile"
    params: type[Any] = Params
    parallel = True

    def __init__(self, output: Any) -> None:
        self._output = output

    async def run(self, params: Params, context: ToolContext) -> ToolOutput:
        return self._output


ODD: dict[str, Any] = {
    "none": None,
    "a text": "fine",
    "no text in it": ToolOutput(None),  # pyright: ignore[reportArgumentType]
    "bytes in it": ToolOutput(b"fine"),  # pyright: ignore[reportArgumentType]
    "content that is no JSON": ToolOutput(
        "", content=({"type": "input_text", "text": b"x"},)
    ),
    "content that is no list": ToolOutput("", content=5),  # pyright: ignore[reportArgumentType]
    "notes that are none": ToolOutput("", notes=("note",)),  # pyright: ignore[reportArgumentType]
    "a note that is no text": ToolOutput("", notes=(Note(object()),)),  # pyright: ignore[reportArgumentType]
}


@pytest.mark.parametrize("name", ODD)
def test_an_output_that_cannot_be_sent_is_a_failure_of_the_call(
    place: Workplace, name: str
) -> None:
    talk = run(place, [two_calls(), DONE], offering(Odd(ODD[name])))
    assert talk.outputs[1]["bad"].startswith("[ERROR:UnknownError] internal error: ")
    assert talk.outputs[1]["good"].endswith("next\n")


def test_half_a_character_in_an_output_is_replaced(place: Workplace) -> None:
    talk = run(place, [two_calls(), DONE], offering(Odd(ToolOutput("caf\ud800"))))
    assert talk.outputs[1]["bad"] == "caf\ufffd"


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("name", ["KeyError", "RecursionError", "SystemExit", "Mute"])
def test_a_bug_of_an_extension_around_a_call_costs_that_call(
    place: Workplace, name: str, moment: str
) -> None:
    def feature(_: Thread) -> Extension:
        def wrap(inner: Dispatch) -> Dispatch:
            async def run(use: ToolUse) -> ToolOutput:
                if use.call.call_id != "bad":
                    return await inner(use)
                if moment == "after":
                    await inner(use)
                return FAILURES[name]()

            return run

        return Extension(wrap_dispatch=wrap)

    talk = run(place, [two_calls("exec_command", {"cmd": "true"}), DONE], feature)
    assert talk.outputs[1]["bad"].startswith("[ERROR:UnknownError] internal error: ")
    assert talk.outputs[1]["good"].endswith("next\n")
    assert len(talk.traces) == 1


def test_an_error_that_ends_the_turn_still_ends_it(place: Workplace) -> None:
    async def main() -> CodexError | None:
        env = environment(place.home)
        config = load_config(cwd=place.cwd, environment=env)
        tool = Fragile(
            "middle",
            raises(ExceptionGroup("one", [CodexError("spent", code="budget")])),
        )
        async with open_session(
            config, SessionOptions(), environment=env, extensions=[offering(tool)]
        ) as session:
            return (await session.run_turn("go")).error

    with ScriptedServer([two_calls()]) as server:
        place.configure(server)
        error = asyncio.run(main())
    assert (str(error), error and error.code) == ("spent", "budget")


def test_a_turn_that_is_interrupted_is_not_kept_by_a_tool_that_fails_then(
    place: Workplace,
) -> None:
    class Clumsy(Fragile):
        async def run(self, params: Params, context: ToolContext) -> ToolOutput:
            runs.set()
            try:
                await asyncio.Event().wait()
            finally:
                self._fail()

    events: list[Event] = []
    runs = asyncio.Event()

    async def main() -> str:
        env = environment(place.home)
        config = load_config(cwd=place.cwd, environment=env)
        tool = Clumsy("", raises(KeyError("while it cleans up")))
        async with open_session(
            config,
            SessionOptions(),
            events.append,
            environment=env,
            extensions=[offering(tool)],
        ) as session:
            turn = asyncio.create_task(session.run_turn("go"))
            await asyncio.wait_for(runs.wait(), 20)
            session.abort()
            error = (await asyncio.wait_for(turn, 20)).error
            return "" if error is None else error.code

    replies = [[*ev_function_call("bad", "fragile", {}), ev_completed()]]
    with ScriptedServer(replies) as server:
        place.configure(server)
        assert asyncio.run(main()) == "aborted"
    (trace,) = [event.trace for event in events if isinstance(event, BugFound)]
    assert "while it cleans up" in trace


def _quit(code: int) -> str:
    raise SystemExit(code)


async def _grouped() -> str:
    raise BaseExceptionGroup("several", [KeyError("a")])


def _stops() -> str:
    raise StopIteration


def _mute() -> str:
    raise Mute


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (_quit, "SystemExit: 3"),
        (_grouped, "KeyError: 'a'"),
        (_stops, "RuntimeError: coroutine raised StopIteration"),
        (_mute, "Mute: <exception str() failed>"),
    ],
)
def test_an_exception_of_a_python_function_is_its_own_failure(
    place: Workplace, function: Any, text: str
) -> None:
    function.__name__ = "fragile"
    talk = run(place, [two_calls(arguments={"code": 3}), DONE], tools=[function])
    assert talk.outputs[1]["bad"].endswith(text)
    assert talk.outputs[1]["bad"].startswith("[ERROR:ToolFailed] ")
    assert len(talk.traces) == 1


def test_a_call_that_cannot_be_shown_is_answered_and_the_user_is_told(
    place: Workplace,
) -> None:
    seen: list[Event] = []

    def sink(event: Event) -> None:
        if isinstance(event, ItemCompleted) and isinstance(event.item, McpToolCall):
            raise TypeError("no cell for it")
        seen.append(event)

    talk = run(
        place,
        [two_calls(), DONE],
        offering(Fragile("", raises(KeyError))),
        lambda _: Extension(sink=sink),
    )
    assert talk.outputs[1]["bad"] == "fine"
    (warning,) = talk.errors
    assert warning.message.startswith(
        "A call could not be shown: internal error: TypeError('no cell for it'); the extension"
    )
    assert len(talk.traces) == 1


def test_a_past_call_that_cannot_be_read_back_is_an_error_among_the_others() -> None:
    arguments = json.dumps({"targets": 1})
    call = {
        "type": "function_call",
        "call_id": "c",
        "name": "wait_agent",
        "arguments": arguments,
    }
    history = [
        message("user", [input_text("go")]),
        encode_json(call),
        encode_json(
            {"type": "function_call_output", "call_id": "c", "output": '{"status": 1}'}
        ),
        message("user", [input_text("again")]),
    ]
    first, odd, last = past_items([EncodedItem(item) for item in history])
    assert (first.type, last.type) == ("user_message", "user_message")
    assert isinstance(odd, ErrorItem)
    assert odd.message.startswith(
        "wait_agent failed: it cannot be shown: internal error: TypeError("
    )


EMPTY: list[tuple[str, dict[str, Any], str]] = [
    ("exec_command", {"cmd": ""}, "Process exited with code 0"),
    ("exec_command", {"cmd": "", "login": False}, "Process exited with code 0"),
    ("exec_command", {"cmd": "", "tty": True}, "Process exited with code 0"),
    ("exec_command", {"cmd": "", "workdir": ""}, "Process exited with code 0"),
    ("exec_command", {"cmd": "", "shell": ""}, "Process exited with code 0"),
    ("exec_command", {"cmd": " "}, "Process exited with code 0"),
    ("shell_command", {"command": ""}, "Exit code: 0"),
    ("shell", {"command": ""}, "Exit code: 0"),
    ("shell", {"command": []}, "[ERROR:InvalidArgs] command args are empty"),
    ("shell", {"command": [""]}, "[ERROR:"),
    ("apply_patch", {"input": ""}, "[ERROR:PatchFailed]"),
    ("update_plan", {"plan": [], "explanation": ""}, "Plan updated"),
    ("view_image", {"path": ""}, "[ERROR:EISDIR]"),
]


@pytest.mark.parametrize(("name", "arguments", "text"), EMPTY)
def test_an_empty_argument_is_a_value(
    place: Workplace, name: str, arguments: dict[str, Any], text: str
) -> None:
    talk = run(place, [two_calls(name, arguments), DONE])
    assert text in talk.outputs[1]["bad"]
    assert talk.outputs[1]["good"].endswith("next\n")
    assert talk.traces == []

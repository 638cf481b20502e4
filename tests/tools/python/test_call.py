import asyncio
import base64
import json
import threading
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import count, repeat
from pathlib import Path
from typing import Any, Literal

import pytest

from codex_py import CodexError, tool
from codex_py.protocol.approval import ApprovalPolicy, ReviewDecision
from codex_py.protocol.calls import PastCall, PastItems
from codex_py.protocol.event_items import ErrorItem, McpToolCall
from codex_py.protocol.events import CallDenied, Event, ItemCompleted
from codex_py.protocol.image_rule import ImageRule
from codex_py.protocol.items import CustomToolCallOutput, FunctionCallOutput
from codex_py.protocol.prompts import Note
from codex_py.protocol.tools import FunctionPayload, ToolCall
from codex_py.tools.python.call import PythonTool
from tests.support.images import PNG
from tests.support.tool_calls import ScriptedApprover
from tests.support.tool_context import router_of, tool_context

PNG_URL = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
Answer = Sequence[Note | FunctionCallOutput | CustomToolCallOutput]


@dataclass
class Outcome:
    output: Any
    """What the model is given."""
    events: list[Event]

    @property
    def item(self) -> McpToolCall:
        (item,) = [e.item for e in self.events if isinstance(e, ItemCompleted)]
        assert isinstance(item, McpToolCall)
        assert (item.server, item.id) == ("python", "item_0")
        return item


def run(function: Callable[..., Any], arguments: Any = None, **options: Any) -> Outcome:
    """Call a function as a model does."""
    return asyncio.run(call(function, arguments, **options))


async def call(
    function: Callable[..., Any], arguments: Any = None, **options: Any
) -> Outcome:
    python = PythonTool(tool(function), image_rule=ImageRule("low"))
    events: list[Event] = []
    payload = FunctionPayload(json.dumps(arguments or {}))
    context = tool_context(Path("/repo"), events.append, **options)
    (output,) = await router_of(python).dispatch(
        ToolCall(python.name, "c", payload), context
    )
    assert isinstance(output, FunctionCallOutput)
    return Outcome(json.loads(output.encoded())["output"], events)


def test_a_function_is_called_with_converted_arguments_and_its_text_goes_to_the_model() -> (
    None
):
    def weather(city: str, days: int = 3, near: list[str] | None = None) -> str:
        return f"{city} {days!r} {near!r}"

    outcome = run(weather, {"city": "Ulm", "days": "2", "unknown": 1})
    assert outcome.output == "Ulm 2 None"
    assert outcome.item == McpToolCall(
        id="item_0",
        server="python",
        tool="weather",
        arguments={"city": "Ulm", "days": 2},
        result={
            "content": [{"type": "text", "text": "Ulm 2 None"}],
            "structured_content": None,
        },
        status="completed",
    )
    # Null stands for what is left out, where the type does not take it.
    assert (
        run(weather, {"city": "Ulm", "days": None, "near": None}).output == "Ulm 3 None"
    )


def test_arguments_are_shown_in_the_order_of_the_parameters() -> None:
    def many(
        one: int, two: int, three: int, four: int, five: int, six: int
    ) -> None: ...

    names = ["one", "two", "three", "four", "five", "six"]
    item = run(many, dict.fromkeys(reversed(names), 1)).item
    assert list(item.arguments) == names


def test_a_wrong_choice_names_the_choices_and_all_problems_are_told() -> None:
    def paint(
        colour: Literal["red", "blue"], layers: list[Literal["top", "bottom"]]
    ) -> None: ...

    assert run(paint, {"colour": "Bleu", "layers": ["top", "side"]}).output == (
        '[ERROR:InvalidArgs] failed to parse function arguments: invalid value "Bleu" for'
        " `colour`: Input should be 'red' or 'blue'; did you mean 'blue'?; invalid value \"side\""
        " for `layers.1`: Input should be 'top' or 'bottom'"
    )


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({}, "missing field `self`"),
        (
            {"self": "x"},
            'invalid value "x" for `self`: Input should be a valid integer',
        ),
    ],
)
def test_wrong_arguments_are_told_to_the_model_and_the_function_is_not_called(
    arguments: Any, reason: str
) -> None:
    def odd(self: int, model_config: int = 0, json: str = "", _a: int = 1) -> None:
        pytest.fail("called")

    outcome = run(odd, arguments)
    assert outcome.output.startswith(
        "[ERROR:InvalidArgs] failed to parse function arguments: "
    )
    assert reason in outcome.output
    (shown,) = [e.item for e in outcome.events if isinstance(e, ItemCompleted)]
    assert isinstance(shown, ErrorItem)


def test_any_name_of_a_parameter_will_do() -> None:
    def odd(self: int, model_config: int = 0, json: str = "", _a: int = 1) -> list[Any]:
        return [self, model_config, json, _a]

    values = {"self": 1, "model_config": 2, "json": "3", "_a": 4}
    assert run(odd, values).output == '[1,2,"3",4]'


@dataclass
class Point:
    x: int
    at: Path


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ("", ""),
        (None, "null"),
        ({"a": [1, "ü"]}, '{"a":[1,"ü"]}'),
        (Point(1, Path("/p")), '{"x":1,"at":"/p"}'),
        ({Point}, """["<class 'tests.tools.python.test_call.Point'>"]"""),
    ],
)
def test_results_that_are_no_text_go_to_the_model_as_json(
    result: Any, text: str
) -> None:
    def give() -> Any:
        return result

    assert run(give).output == text


def test_bytes_go_to_the_model_as_images() -> None:
    def plot() -> list[Any]:
        return ["Here:", PNG, {"a": 1}]

    image = {"type": "input_image", "image_url": PNG_URL, "detail": "low"}
    outcome = run(plot)
    text = [{"type": "input_text", "text": text} for text in ("Here:", '{"a":1}')]
    assert outcome.output == [text[0], image, text[1]]
    assert outcome.item.result is not None
    assert outcome.item.result["content"][1] == {
        "type": "image",
        "data": base64.b64encode(PNG).decode(),
        "mimeType": "image/png",
    }
    assert run(lambda_named("one", lambda: PNG)).output == [image]
    wrong = run(lambda_named("two", lambda: b"GIF?"))
    assert wrong.output == (
        "[ERROR:ToolFailed] it returned bytes that are no image for a model: it is not a PNG, JPEG,"
        " GIF or WebP image"
    )


def lambda_named(name: str, function: Callable[[], Any]) -> Callable[[], Any]:
    return tool(name=name)(function)


def test_long_results_are_cut_for_the_model_and_in_the_item() -> None:
    def long() -> str:
        return "x" * 2_000_000

    outcome = run(long)
    assert len(outcome.output) < 41_000
    assert "tokens truncated" in outcome.output
    assert len(str(outcome.item.result)) < 1_050_000


class Unprintable(Exception):
    def __str__(self) -> str:
        raise ValueError


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("no such city"), "ValueError: no such city"),
        (KeyError("k"), "KeyError: 'k'"),
        (
            FileNotFoundError(2, "No such file", "x"),
            "FileNotFoundError: [Errno 2] No such file: 'x'",
        ),
        (SystemExit(3), "SystemExit: 3"),
        (StopIteration(), "RuntimeError: coroutine raised StopIteration"),
        (asyncio.CancelledError(), "asyncio.exceptions.CancelledError"),
        (
            Unprintable(),
            "tests.tools.python.test_call.Unprintable: <exception str() failed>",
        ),
    ],
)
@pytest.mark.parametrize("is_async", [False, True])
def test_an_exception_is_told_to_the_model_by_type_and_text(
    error: BaseException, text: str, is_async: bool
) -> None:
    def fail() -> None:
        raise error

    async def fail_later() -> None:
        await asyncio.sleep(0)
        raise error

    outcome = run(fail_later if is_async else fail)
    assert outcome.output == f"[ERROR:ToolFailed] {text}"
    assert outcome.item.status == "failed"
    assert outcome.item.error == {"message": text}


def test_a_codex_error_ends_the_turn() -> None:
    def spent() -> None:
        raise CodexError("the budget is spent")

    with pytest.raises(CodexError, match="the budget is spent"):
        run(spent)


def test_a_coroutine_function_is_cancelled_with_its_call() -> None:
    ended: list[str] = []

    async def main() -> None:
        begun = asyncio.Event()

        async def forever() -> None:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.append("cleaned up")

        task = asyncio.create_task(call(forever))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert ended == ["cleaned up"]


def test_a_function_in_a_thread_is_left_alone_when_its_call_is_cancelled() -> None:
    release, begun = threading.Event(), threading.Event()

    def block() -> None:
        begun.set()
        release.wait()

    async def main() -> None:
        task = asyncio.create_task(call(block))
        assert await asyncio.to_thread(begun.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    # The loop ends although the thread does not.
    asyncio.run(main())
    release.set()


CITY: ContextVar[str] = ContextVar("CITY")


def test_a_function_sees_the_context_variables_of_its_caller() -> None:
    def city() -> str:
        return CITY.get()

    async def main() -> Outcome:
        CITY.set("Ulm")
        return await call(city)

    assert asyncio.run(main()).output == "Ulm"


def test_functions_that_return_an_awaitable_and_objects_that_can_be_called_are_awaited() -> (
    None
):
    async def later(n: int) -> int:
        return n + 1

    def wrapped(n: int) -> Any:
        return later(n)

    class Later:
        """Counts."""

        async def __call__(self, n: int) -> int:
            return n + 2

    assert run(wrapped, {"n": 1}).output == "2"
    assert run(tool(name="later")(Later()), {"n": 1}).output == "3"


@asynccontextmanager
async def _router(approver: ScriptedApprover) -> AsyncGenerator[Callable[[], Any]]:
    @tool(needs_approval=True)
    def pay(amount: int) -> str:
        return f"paid {amount}"

    router = router_of(PythonTool(tool(pay), image_rule=ImageRule("low")))
    context = tool_context(
        Path("/repo"),
        lambda _: None,
        policy=ApprovalPolicy.ON_REQUEST,
        approver=approver,
    )

    context = tool_context(
        Path("/repo"),
        lambda _: None,
        policy=ApprovalPolicy.ON_REQUEST,
        approver=approver,
    )

    async def dispatch() -> Any:
        payload = FunctionPayload('{"amount": 5}')
        (output,) = await router.dispatch(ToolCall("pay", "c", payload), context)
        return output.output  # type: ignore[union-attr]  # pyright: ignore[reportAttributeAccessIssue]

    yield dispatch


@pytest.mark.parametrize("name", ["caf\udce9", ["caf\udce9"]])
def test_the_name_of_a_file_that_is_not_utf_8_reaches_the_model(name: Any) -> None:
    def newest() -> Any:
        return name

    assert "caf\ufffd" in run(newest).output


def test_an_error_about_a_file_that_is_not_utf_8_reaches_the_model() -> None:
    def newest() -> None:
        raise ValueError("caf\udce9")

    assert run(newest).output == "[ERROR:ToolFailed] ValueError: caf\ufffd"


def test_a_function_in_a_thread_that_raises_keyboard_interrupt_does_not_end_the_loop() -> (
    None
):
    def stops() -> None:
        raise KeyboardInterrupt

    assert run(stops).output == "[ERROR:ToolFailed] KeyboardInterrupt"


@pytest.mark.parametrize(
    ("decision", "output", "questions"),
    [
        (ReviewDecision.APPROVED, "paid 5", 2),
        (ReviewDecision.APPROVED_FOR_SESSION, "paid 5", 1),
        (ReviewDecision.DENIED, "[ERROR:ApprovalDenied] user rejected the call", 2),
    ],
)
def test_a_function_that_needs_approval_is_asked_about(
    decision: ReviewDecision, output: str, questions: int
) -> None:
    approver = ScriptedApprover(decision)

    async def main() -> None:
        async with _router(approver) as dispatch:
            assert [await dispatch(), await dispatch()] == [output, output]

    asyncio.run(main())
    assert len(approver.asked) == questions
    request = approver.asked[0]
    assert (request.kind, request.summary) == ("mcp", 'python/pay {"amount": 5}')
    assert request.reason == "Allow the Python function `pay` to run?"


def test_a_call_is_refused_if_nobody_may_be_asked() -> None:
    @tool(needs_approval=True)
    def pay() -> None:
        pytest.fail("called")

    outcome = run(pay, policy=ApprovalPolicy.NEVER)
    assert outcome.output == (
        "[ERROR:ApprovalDenied] the tool pay requires approval, but the approval policy is never"
    )
    assert any(isinstance(event, CallDenied) for event in outcome.events)


def test_a_call_is_shown_again_as_it_was_live() -> None:
    def weather(city: str) -> str:
        return f"fine in {city}"

    live = run(weather, {"city": "Ulm"}).item
    past = PythonTool(tool(weather), image_rule=ImageRule("low")).replay(
        PastCall("c", "weather", {"city": "Ulm"}, "fine in Ulm", None), PastItems()
    )
    assert isinstance(past, McpToolCall)
    assert (past.server, past.tool, past.arguments, past.status) == (
        *(live.server, live.tool, live.arguments),
        live.status,
    )


def test_an_endless_iterator_is_bounded_wherever_it_is() -> None:
    def endless() -> Iterator[int]:
        yield from count()

    def within() -> Any:
        return {"lines": [(text for text in repeat("x" * 1_000_000))]}

    async def later() -> Any:
        return endless()

    def built_in() -> Any:
        return {"numbers": repeat(1)}

    for function in (endless, within, later, built_in):
        text = "[ERROR:ToolFailed] it returned an iterator of more than 64 MB"
        assert run(function).output == text


def test_a_generator_is_iterated_in_the_thread_of_the_function() -> None:
    def lines() -> Iterator[Any]:
        yield threading.current_thread() is threading.main_thread()
        yield from ("a", {"b": (n for n in range(2))})

    assert run(lines).output == '[false,"a",{"b":[0,1]}]'


def test_a_generator_that_does_not_end_is_left_alone_when_its_call_is_cancelled() -> (
    None
):
    begun, released = threading.Event(), threading.Event()

    def waits() -> Iterator[bool]:
        begun.set()
        yield released.wait(30)

    async def cancelled() -> None:
        task = asyncio.create_task(call(waits))
        await asyncio.to_thread(begun.wait, 10)
        task.cancel()
        async with asyncio.timeout(10):
            await asyncio.gather(task, return_exceptions=True)

    try:
        asyncio.run(cancelled())
    finally:
        released.set()

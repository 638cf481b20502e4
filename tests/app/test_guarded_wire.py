"""What a wire of a package does wrong is told with its name, and harms nothing."""

import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from codex_py import CodexError
from codex_py.app.guarded_extension import ExtensionBug
from codex_py.app.guarded_wire import GuardedWire
from codex_py.errors import ModelError, StreamError
from codex_py.protocol.bugs import bug_line
from codex_py.protocol.items import FunctionCall, Message, Reasoning, ReasoningText
from codex_py.protocol.stream import (
    Completed,
    Decoder,
    OutputItemDone,
    OutputTextDelta,
    Prompt,
    ResponseEvent,
    Usage,
)
from tests.app.test_installed_wires import answers, install, turn
from tests.support.program import Workplace
from tests.support.tcp_server import tcp_server

NAME = "the wire 'plain' (codex_py_plain:PlainWire)"
PROMPT = Prompt("m", [], cache_key="")
DONE = Completed(Usage(1, output_tokens=1))
SAID = Message(role="assistant", content="hello")


class ListedDecoder:
    """Returns the same value for every event."""

    def __init__(self, given: Any, at_end: Any = (), finished: Any = False) -> None:
        self._given = given
        self._at_end = at_end
        self.finished = finished

    def feed(self, data: str, name: str = "message") -> Sequence[ResponseEvent]:
        return _raised(self._given)

    def end(self) -> Sequence[ResponseEvent]:
        return _raised(self._at_end)


def _raised(value: Any) -> Any:
    if isinstance(value, Exception):
        raise value
    return value


class ListedWire:
    path = "/plain"
    headers: Mapping[str, str] = {}

    def __init__(self, decoder: Any, body: Any = b"{}") -> None:
        self._decoder = decoder
        self._body = body

    def body(self, prompt: Prompt) -> bytes:
        return _raised(self._body)

    def decoder(self, prompt: Prompt) -> Decoder:
        return _raised(self._decoder)


def guarded(decoder: Any, body: Any = b"{}") -> GuardedWire:
    return GuardedWire(ListedWire(decoder, body), NAME, ())


def fed(*events: Any) -> Sequence[ResponseEvent]:
    """The events of a decoder that returns these."""
    return guarded(ListedDecoder(list(events))).decoder(PROMPT).feed("")


def bug(run: Callable[[], object]) -> str:
    """The end of the turn by a bug, behind the name of the wire."""
    with pytest.raises(ExtensionBug) as raised:
        run()
    line = bug_line(raised.value)
    beginning = f"internal error: {NAME}"
    assert line.startswith(beginning)
    return line.removeprefix(beginning)


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (ValueError("boom"), " failed in `body`: ValueError('boom')"),
        (None, ": `body` returned None, not bytes"),
        ("{}", ": `body` returned str, not bytes"),
        ({"model": "m"}, ": `body` returned dict, not bytes"),
    ],
)
def test_a_body_that_is_none_is_no_request(body: Any, told: str) -> None:
    wire = guarded(None, body)
    assert bug(lambda: wire.body(PROMPT)) == told


@pytest.mark.parametrize(
    ("decoder", "told"),
    [
        (ValueError("boom"), " failed in `decoder`: ValueError('boom')"),
        (
            None,
            ": `decoder` returned None, not a `Decoder`, which has a function `feed`",
        ),
        (ListedDecoder(ValueError("boom")), " failed in `feed`: ValueError('boom')"),
        (ListedDecoder(None), ": `feed` returned None, not a list of events"),
        (ListedDecoder("abc"), ": `feed` returned str, not a list of events"),
        (ListedDecoder({}), ": `feed` returned dict, not a list of events"),
    ],
)
def test_a_decoder_that_does_not_decode(decoder: Any, told: str) -> None:
    # The client asks in advance, and outside of the turn.
    made = guarded(decoder).decoder(PROMPT)
    assert bug(lambda: made.feed("{}")) == told


@pytest.mark.parametrize(
    ("decoder", "told"),
    [
        (ListedDecoder([], ValueError("boom")), " failed in `end`: ValueError('boom')"),
        (ListedDecoder([], None), ": `end` returned None, not a list of events"),
        (
            ListedDecoder([]),
            ": the answer ended without `Completed`, and `end` raised no `StreamError`",
        ),
    ],
)
def test_an_end_that_is_none(decoder: Any, told: str) -> None:
    made = guarded(decoder).decoder(PROMPT)
    assert bug(made.end) == told


@pytest.mark.parametrize("value", [None, 1, len])
def test_finished_is_a_fact(value: Any) -> None:
    made = guarded(ListedDecoder([], finished=value)).decoder(PROMPT)
    assert bug(lambda: made.finished).startswith(": `finished` returned ")


def call(**changed: Any) -> OutputItemDone:
    given: dict[str, Any] = {"call_id": "c", "name": "n", "arguments": "{}"}
    return OutputItemDone(0, FunctionCall(**{**given, **changed}))


def said(content: Any) -> OutputItemDone:
    return OutputItemDone(0, Message(role="assistant", content=content))


@pytest.mark.parametrize(
    ("event", "told"),
    [
        (
            call(arguments={"cmd": "ls"}),
            'FunctionCall: invalid value {"cmd": "ls"} for `arguments`: it must be a string',
        ),
        (call(arguments=b"{}"), "FunctionCall: invalid value"),
        (call(arguments=None), "FunctionCall: missing field `arguments`"),
        (call(call_id=7), "FunctionCall: invalid value 7 for `call_id`"),
        (call(name=None), "FunctionCall: missing field `name`"),
        (call(type="message"), "FunctionCall: missing field `role`"),
        (said(5), "Message: invalid value 5 for `content`"),
        (said([{"type": "output_text"}]), "Message: missing field `content.0.text`"),
        (said(["hello"]), "Message: invalid value"),
        (OutputItemDone(0, None), "NoneType: invalid value"),  # pyright: ignore[reportArgumentType]
        (OutputItemDone("0", SAID), "Message: invalid value"),  # pyright: ignore[reportArgumentType]
        (OutputTextDelta(0, 5), "OutputTextDelta: invalid value 5 for `delta`"),  # pyright: ignore[reportArgumentType]
        (Completed(None), "Completed: missing field `usage`"),  # pyright: ignore[reportArgumentType]
        (Completed(Usage("3")), "Completed: invalid value"),  # pyright: ignore[reportArgumentType]
        (Completed(Usage(-3)), "Completed: invalid value -3 for `usage.input_tokens`"),
        (SAID, "Message: invalid value"),
        (None, "NoneType: invalid value"),
        ("text", "str: invalid value"),
        (Completed, "type: invalid value"),
    ],
)
def test_a_wrong_event_is_none(event: Any, told: str) -> None:
    text = bug(lambda: fed(event))
    assert text.startswith(f": `feed` returned a wrong {told}")


def test_nothing_comes_after_the_end() -> None:
    text = bug(lambda: fed(DONE, OutputItemDone(0, SAID)))
    assert text == ": `feed` returned OutputItemDone after `Completed`"


def test_right_events_are_passed_on() -> None:
    delta = OutputTextDelta(0, "hel")
    shown, done, end = fed(delta, OutputItemDone(0, SAID), DONE)
    assert (shown, end) == (delta, DONE)
    assert isinstance(done, OutputItemDone)
    assert isinstance(done.item, Message)
    assert done.item.text == "hello"
    assert done.item.encoded() == SAID.encoded()


def test_a_thought_may_be_written_with_its_class_or_as_json() -> None:
    text = ReasoningText(type="summary_text", text="hm")
    as_json: Any = {"type": "summary_text", "text": "hm"}
    for summary in ([text], [as_json]):
        (done,) = fed(OutputItemDone(0, Reasoning(summary=summary)))
        assert isinstance(done, OutputItemDone)
        assert isinstance(done.item, Reasoning)
        assert done.item.summary == [text]
        assert json.loads(done.item.encoded())["summary"] == [as_json]


@pytest.mark.parametrize("error", [StreamError("again"), ModelError("never")])
def test_what_a_wire_means_is_passed_on(error: ModelError) -> None:
    made = guarded(ListedDecoder(error, error)).decoder(PROMPT)
    for run in (lambda: made.feed(""), made.end):
        with pytest.raises(ModelError) as raised:
            run()
        assert raised.value is error


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "packages"
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    monkeypatch.delitem(sys.modules, "codex_py_plain", raising=False)
    return folder


HEAD = """
from codex_py.api.wires import ProfiledWire, StreamError

class Right(ProfiledWire):
    path = "/plain"

    def body(self, prompt):
        return b"{}"

    def decoder(self, prompt):
        return None

"""


@pytest.mark.parametrize(
    ("wire", "reason"),
    [
        (
            "class PlainWire:\n    pass\n",
            "TypeError('PlainWire() takes no arguments'); it is called with the keywords"
            " `deltas`, `maker`, `profile`",
        ),
        (
            "class PlainWire(ProfiledWire):\n    body = decoder = Right.body\n",
            "its entry point returned PlainWire, which has no `path`",
        ),
        (
            "class PlainWire(ProfiledWire):\n    path = '/p'\n    body = Right.body\n",
            "its entry point returned PlainWire, which has no `decoder`",
        ),
        (
            "def PlainWire(**_):\n    return None\n",
            "its entry point returned NoneType, which has no `path`",
        ),
        ("def PlainWire(**_):\n    1 / 0\n", "ZeroDivisionError('division by zero')"),
        ("def PlainWire(**_):\n    raise StreamError('no')\n", "no"),
        ("def PlainWire(**_):\n    raise SystemExit(0)\n", "SystemExit(0)"),
        (
            "class PlainWire(Right):\n    path = 'echo'\n",
            "`path` is 'echo', not a text such as '/chat' that begins with a slash",
        ),
        ("class PlainWire(Right):\n    path = None\n", "`path` is None, not a text"),
        ("class PlainWire(Right):\n    path = '/a\\n'\n", "`path` is '/a\\n', not a"),
        (
            "class PlainWire(Right):\n    headers = {'x': 1}\n",
            "`headers` are {'x': 1}, not a mapping of names to texts",
        ),
        (
            "class PlainWire(Right):\n    headers = {'a b': 'c'}\n",
            "`headers` are {'a b': 'c'}, not a",
        ),
        ("class PlainWire(Right):\n    headers = None\n", "`headers` are None, not"),
        ("class PlainWire(Right):\n    body = b'{}'\n", "`body` is bytes, not a"),
        (
            "class PlainWire(Right):\n    async def body(self, prompt): pass\n",
            "`body` must be no `async def`",
        ),
    ],
)
def test_what_is_no_wire_ends_the_start(
    place: Workplace, packages: Path, wire: str, reason: str
) -> None:
    install(packages, HEAD + wire)
    with pytest.raises(CodexError, match=re.escape(NAME)) as raised:
        turn(place, "http://127.0.0.1:9")
    text = str(raised.value)
    assert f"{NAME} cannot be used: {reason}" in text
    assert "\n" not in text
    assert str(place.home / "config.toml") in text
    assert raised.value.exit_code == 78


@pytest.mark.parametrize(
    ("wire", "told", "requests"),
    [
        (
            "class PlainWire(Right):\n    def body(self, prompt): pass\n",
            ": `body` returned None, not bytes",
            0,
        ),
        ("class PlainWire(Right): pass\n", ": `decoder` returned None, not a", 1),
        (
            "class PlainWire(Right):\n    def decoder(self, prompt): 1 / 0\n",
            " failed in `decoder`: ZeroDivisionError(",
            1,
        ),
    ],
)
def test_a_bug_ends_the_turn_at_once(
    place: Workplace,
    packages: Path,
    caplog: pytest.LogCaptureFixture,
    wire: str,
    told: str,
    requests: int,
) -> None:
    install(packages, HEAD + wire)
    with tcp_server(answers("{}")) as (address, sent):
        text = bug(lambda: turn(place, address))
    assert text.startswith(told)
    assert len(sent) == requests
    # A decoder that is made in advance could fail in the event loop, which would log it.
    assert not caplog.records


def test_a_model_that_calls_in_its_text_has_a_guarded_wire(
    place: Workplace, packages: Path
) -> None:
    install(packages, f"{HEAD}class PlainWire(Right): pass\n")
    with tcp_server(answers("{}")) as (address, _):
        text = bug(lambda: turn(place, address, key='profile = { tools = "text" }'))
    assert text.startswith(": `decoder` returned None, not a")

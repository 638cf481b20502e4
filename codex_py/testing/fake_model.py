"""A scripted model in the process of the test, for `Agent(FakeModel(…))`."""

import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from functools import partial
from itertools import count
from typing import Any, NamedTuple, TypeAlias, cast

import httpx

from codex_py.testing.events import (
    Event,
    ev_completed,
    ev_created,
    ev_function_call,
    ev_message,
    sse,
)
from codex_py.testing.reply import Pause, RenderedReply, Reply, require_type
from codex_py.testing.request import RecordedRequest
from codex_py.testing.script import Script, ScriptedModel
from codex_py.tools.threads import in_thread

_PIECES = 3
"""The number of deltas of a text."""
_PAUSE_S = 60.0
"""The longest pause: a test should fail rather than hang."""


class Call(NamedTuple):
    """A call of a tool, made by `call`."""

    name: str
    arguments: Mapping[str, Any]


def call(name: str, /, **arguments: Any) -> Call:
    """Make a call of a tool, for a `FakeModel`: `call("exec_command", cmd="ls")`."""
    require_type(name, str, "the name of a tool is a text")
    return Call(name, arguments)


Line: TypeAlias = str | Call
"""A text that the model says, or a call that it makes."""


class FakeModel(ScriptedModel, httpx.AsyncBaseTransport):
    """A model that plays a script, without a network, a key or a home: `Agent(FakeModel("Hello."))`.

    Each argument is one response: a text, a `call`, a list of texts and calls, or any reply that a
    `ScriptedServer` accepts, such as `Reply(status=429)` or a function of the request. `requests`
    has the requests that the model got. A request after the last response fails with the status
    400, and so does a request that violates the rules of `ScriptedModel`.

    >>> from codex_py import Agent
    >>> from codex_py.testing import FakeModel, call
    >>> def stock(part: str) -> int:
    ...     return 7
    >>> model = FakeModel(call("stock", part="bolts"), "Seven.")
    >>> Agent(model, tools=[stock]).run_sync("How many bolts?").text
    'Seven.'
    >>> model.requests[1].output("call_1")
    '7'
    """

    end_status = 400

    def __init__(self, *replies: Line | list[Line] | Script, **options: Any) -> None:
        """`options`: see `ScriptedModel`."""
        self._call_ids = (f"call_{number}" for number in count(1))
        super().__init__(cast("Sequence[Script]", replies), **options)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        headers = {name.lower(): value for name, value in request.headers.items()}
        path = request.url.raw_path.decode()
        raw = await request.aread()
        recorded = RecordedRequest(request.method, path, headers, raw, time.monotonic())
        reply = self._reply(recorded).reply
        kind = "text/event-stream"
        if reply.body is not None:
            kind = "application/json"
        headers = {"content-type": kind, **reply.headers}
        return httpx.Response(reply.status, headers=headers, content=_body(reply))

    def _rendered(self, script: object) -> RenderedReply:
        lines = script
        if isinstance(script, str | Call):
            lines = [script]
        if isinstance(lines, list) and lines and isinstance(lines[0], str | Call):
            script = self._response(cast("list[Line]", lines))
        return super()._rendered(cast("Any", script))

    def _response(self, lines: Sequence[Line]) -> list[Event]:
        """The events of a response. Each line is an item of it."""
        events = [ev_created()]
        for index, line in enumerate(lines):
            rule = "a line of a response is a text or a call"
            require_type(line, str | Call, rule)
            if isinstance(line, str):
                events += ev_message(line, index=index, pieces=_PIECES)
            else:
                call_id = next(self._call_ids)
                events += ev_function_call(
                    call_id, line.name, line.arguments, index=index
                )
        events.append(ev_completed())
        return events


async def _body(reply: Reply) -> AsyncGenerator[bytes]:
    """The bytes of a reply's body. A reply with `cut` ends with an error."""
    if reply.body is not None:
        yield reply.body
        return
    for part in reply.events:
        if isinstance(part, Pause):
            part.reached.set()
            await in_thread(partial(part.until.wait, _PAUSE_S))
        elif isinstance(part, bytes):
            yield part
        else:
            yield sse([part])
    if reply.cut:
        raise httpx.ReadError("the script drops the connection")

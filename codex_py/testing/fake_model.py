"""A scripted model in the process of the test, for `Agent(FakeModel(…))`."""

import time
from collections.abc import AsyncGenerator
from functools import partial
from typing import Any

import httpx

from codex_py.http.transport import ANSWERER
from codex_py.testing.events import sse
from codex_py.testing.reply import Pause, Reply
from codex_py.testing.request import RecordedRequest
from codex_py.testing.script import Script, ScriptedModel
from codex_py.tools.threads import in_thread

_PAUSE_S = 60.0
"""The longest pause: a test should fail rather than hang."""


class FakeModel(ScriptedModel, httpx.AsyncBaseTransport):
    """A model that plays a script, without a network, a key or a home: `Agent(FakeModel("Hello."))`.

    Each argument is one response: a text, a `call`, a list of texts and calls, or any other reply that a
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

    def __init__(self, *replies: Script, **options: Any) -> None:
        """`options`: see `ScriptedModel`."""
        super().__init__(replies, **options)

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
        return httpx.Response(
            reply.status,
            headers=headers,
            content=_body(reply),
            extensions={ANSWERER: type(self).__name__},
        )


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

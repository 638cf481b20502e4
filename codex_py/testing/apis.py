"""The APIs that the scripted server speaks: how each checks a request, answers it and says an error."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from codex_py.testing.events import Event, is_responses_event, sse
from codex_py.testing.rendering.anthropic import AnthropicStream, error_body, translated_error
from codex_py.testing.rendering.chat import ChatStream
from codex_py.testing.reply import Part, Pause, Reply
from codex_py.testing.request import RecordedRequest
from codex_py.testing.rules.anthropic import Signatures, check_anthropic
from codex_py.testing.rules.chat import check_chat
from codex_py.testing.rules.shape import JsonObject, objects, require
from codex_py.testing.rules.thread import anthropic_prefix, chat_prefix, pairing_problem


class ResponsesApi:
    """The API whose events a script has. The others say them, and check requests, in their own way."""

    path = "/responses"
    """The end of the paths where it is served."""

    def check(self, request: RecordedRequest) -> None:
        """Raises a `ValueError`, which says why, if the real service would refuse the request."""
        problem = pairing_problem(self.prefix(request.body))
        require(problem is None, str(problem))

    def prefix(self, body: JsonObject) -> list[Any]:
        """What of a request the next one of the thread must begin with.

        Raises:
            ValueError: the body has no such thing.
        """
        return objects(body.get("input"), "the input")

    def reply(self, reply: Reply, body: JsonObject) -> Reply:  # noqa: ARG002 - for the others
        """A reply in the events of this API, for a request. What are its own events already stays.

        Raises:
            ValueError: it cannot be said in this API.
        """
        return reply

    def error(self, status: int, message: str) -> bytes:  # noqa: ARG002 - for the others
        """The body of an HTTP error."""
        error = {"message": message, "type": "scripted_server", "code": None}
        return json.dumps({"error": error}).encode()


class ChatApi(ResponsesApi):
    path = "/chat/completions"

    def __init__(self, *, system_first: bool) -> None:
        self._system_first = system_first

    def check(self, request: RecordedRequest) -> None:
        check_chat(request.body, system_first=self._system_first)

    def prefix(self, body: JsonObject) -> list[Any]:
        return chat_prefix(body)

    def reply(self, reply: Reply, body: JsonObject) -> Reply:
        stream = ChatStream(body)
        return _rendered(reply, stream.render)


class AnthropicApi(ResponsesApi):
    path = "/messages"

    def __init__(self, secret: str) -> None:
        self._secret = secret
        self._signatures = Signatures()

    def check(self, request: RecordedRequest) -> None:
        check_anthropic(request.body, request.headers, self._signatures)

    def prefix(self, body: JsonObject) -> list[Any]:
        return anthropic_prefix(body)

    def reply(self, reply: Reply, body: JsonObject) -> Reply:
        events = [dict(part) for part in reply.events if is_responses_event(part)]
        stream = AnthropicStream(body, events, secret=self._secret)
        rendered = _rendered(reply, stream.render)
        self._signatures.read(b"".join(part for part in rendered.events if isinstance(part, bytes)))
        if rendered.body is not None and rendered.status >= 400:
            return replace(rendered, body=translated_error(rendered.status, rendered.body))
        return rendered

    def error(self, status: int, message: str) -> bytes:
        return error_body(status, message)


def _rendered(reply: Reply, render: Callable[[Event], bytes]) -> Reply:
    return replace(reply, events=[_part(part, render) for part in reply.events])


def _part(part: Part, render: Callable[[Event], bytes]) -> Part:
    if isinstance(part, bytes | Pause):
        return part
    return render(dict(part)) if is_responses_event(part) else sse([part])

"""The APIs that the scripted server speaks: how each answers a request and says an error."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

from codex_py.testing.events import Event, is_responses_event, sse
from codex_py.testing.rendering.anthropic import AnthropicStream, error_body, translated_error
from codex_py.testing.rendering.chat import ChatStream
from codex_py.testing.reply import Part, Pause, Reply

JsonObject: TypeAlias = dict[str, Any]


class ResponsesApi:
    """The API whose events a script has. The others say them in their own way."""

    path = "/responses"
    """The end of the paths where it is served."""

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

    def reply(self, reply: Reply, body: JsonObject) -> Reply:
        stream = ChatStream(body)
        return _rendered(reply, stream.render)


class AnthropicApi(ResponsesApi):
    path = "/messages"

    def __init__(self, secret: str) -> None:
        self._secret = secret

    def reply(self, reply: Reply, body: JsonObject) -> Reply:
        events = [dict(part) for part in reply.events if is_responses_event(part)]
        stream = AnthropicStream(body, events, secret=self._secret)
        rendered = _rendered(reply, stream.render)
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

"""The APIs of the scripted model: their paths, replies and errors."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, NamedTuple, TypeAlias

from codex_py.testing.events import Event, is_responses_event, sse
from codex_py.testing.rendering.anthropic import (
    AnthropicStream,
    error_body,
    translated_error,
)
from codex_py.testing.rendering.chat import ChatStream
from codex_py.testing.reply import Part, Pause, Reply

JsonObject: TypeAlias = dict[str, Any]


class Api(NamedTuple):
    path: str
    """The end of the paths that serve this API."""
    reply: Callable[[Reply, JsonObject, str], Reply]
    """Translates a reply to the events of this API; parts that are its own events already are
    unchanged. Gets the body of the request, and the `secret` of the model. Raises a `ValueError` if
    the API cannot express the reply."""
    error: Callable[[int, str], bytes]
    """Makes the body of an HTTP error from its status and a message."""


def _as_it_is(reply: Reply, *_: object) -> Reply:
    return reply


def _as_chat(
    reply: Reply,
    body: JsonObject,
    _: str,
) -> Reply:
    return _rendered(reply, ChatStream(body).render)


def _as_anthropic(
    reply: Reply,
    body: JsonObject,
    secret: str,
) -> Reply:
    events = [dict(part) for part in reply.events if is_responses_event(part)]
    rendered = _rendered(reply, AnthropicStream(body, events, secret=secret).render)
    if rendered.body is not None and rendered.status >= 400:
        return replace(rendered, body=translated_error(rendered.status, rendered.body))
    return rendered


def _rendered(reply: Reply, render: Callable[[Event], bytes]) -> Reply:
    def part(each: Part) -> Part:
        if isinstance(each, bytes | Pause):
            return each
        if is_responses_event(each):
            return render(dict(each))
        return sse([each])

    return replace(reply, events=[part(each) for each in reply.events])


def _openai_error(_: int, message: str) -> bytes:
    error = {"message": message, "type": "scripted_server", "code": None}
    return json.dumps({"error": error}).encode()


RESPONSES: Final = Api("/responses", _as_it_is, _openai_error)
"""The API whose events a script contains. Replies in the other APIs are translated."""
APIS: Final = (
    RESPONSES,
    Api("/chat/completions", _as_chat, _openai_error),
    Api("/messages", _as_anthropic, error_body),
)

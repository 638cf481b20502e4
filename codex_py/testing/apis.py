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
    """An API that a scripted model serves."""

    path: str
    """The end of the paths that serve this API."""
    reply: Callable[[Reply, JsonObject, str], Reply]
    """Translates a reply to the events of this API. It gets the body of the request, and the `secret`
    of the model. Parts that are events of this API already stay unchanged. Raises a `ValueError` if
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
    stream = AnthropicStream(body, events, secret=secret)
    rendered = _rendered(reply, stream.render)
    if rendered.body is not None and rendered.status >= 400:
        return replace(rendered, body=translated_error(rendered.status, rendered.body))
    return rendered


def _rendered(reply: Reply, render: Callable[[Event], bytes]) -> Reply:
    """Translate the events of the Responses API, and encode those of other APIs."""
    parts: list[Part] = []
    for part in reply.events:
        if isinstance(part, bytes | Pause):
            parts.append(part)
        elif is_responses_event(part):
            parts.append(render(dict(part)))
        else:
            parts.append(sse([part]))
    return replace(reply, events=parts)


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

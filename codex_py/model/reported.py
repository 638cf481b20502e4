"""Finds failures that a server reports with HTTP status 200, in place of an answer or within it.

Servers and gateways name the fields of a failure in many ways, and often give it no type.
"""

import re
from typing import Final

from codex_py.errors import ModelError, StreamError
from codex_py.model.error_body import page_title, plain_line, server_error
from codex_py.model.failures import is_known_failure, stream_failure
from codex_py.protocol.json_fields import JsonObject, json_or, object_field, text_field

_ERROR_NAME: Final = re.compile(r"(?i)(?:error|exception|failure|fault)$")
_MAX_SHOWN: Final = 300
"""The number of characters of an unusable body that a message shows."""


def reported_failure(event: JsonObject) -> ModelError | None:
    """Return the failure that an event reports; None if it reports none.

    Call it only for an event that is no part of an answer.
    """
    if not _is_report(event):
        return None
    headers: dict[str, str] = {}
    for source in (event, object_field(event, "error")):
        for name, value in object_field(source, "headers").items():
            headers[name.lower()] = str(value)
    return stream_failure(event, headers=headers)


def _is_report(event: JsonObject) -> bool:
    """True if the event reports a failure.

    A text alone does not show that, since events of progress have texts too. Its class must be
    known, or it must be in a field for errors.
    """
    kind = text_field(event, "type")
    names = (kind, text_field(event, "object"))
    is_named_error = any(map(_ERROR_NAME.search, names))
    if event.get("error") or is_named_error:
        return True
    if not server_error(event).message:
        return False
    if is_known_failure(event):
        return True
    in_error_field = event.get("detail") or event.get("errors")
    return not kind and bool(in_error_field)


def no_answer(
    failure: StreamError, body: str, *, content_type: str, address: str, advice: str
) -> ModelError:
    """Return the error for a response that has no event of its wire.

    Args:
        failure: the decoder's error at the end of the response.
        body: the last event of the response, or the whole body if it has no events.
        content_type: the content type of the response.
        address: the URL of the request, for messages.
        advice: what the user should look at, as the end of a message.
    """
    if failure.code != "disconnected":
        return failure
    place = f"the answer of {address}"
    kind = plain_line(content_type)
    is_event_stream = "event-stream" in kind
    text = body.strip()
    if not text and is_event_stream:
        return failure
    if not text:
        # A server in trouble may answer with nothing, and another attempt may succeed.
        return StreamError.broke_off(f"{place} is empty ({kind}){advice}")
    if text.startswith("<"):
        shown = _shown(page_title(text) or text)
        return _not_a_stream(f"{place} is a web page ({kind}): {shown}{advice}")
    document: object = json_or(text, None)
    if isinstance(document, str):
        text = document
    reported = _failure_in_body(document, text)
    if reported is not None:
        return reported
    shown = _shown(text)
    if is_event_stream:
        failure.args = (f"{failure}; the last event was: {shown}",)
        return failure
    message = f"{place} is no stream ({kind}): {shown}{advice}"
    if "json" in kind and not isinstance(document, str):
        return _not_a_stream(message)
    return StreamError.broke_off(message)


def _failure_in_body(document: object, text: str) -> ModelError | None:
    """Return the failure that a body reports; None if it reports none.

    Args:
        document: the decoded body; None if it is no JSON.
        text: the words of the body, if it is a string or no JSON.
    """
    if document is None or isinstance(document, str):
        if is_known_failure(text):
            return stream_failure(text)
        return None
    if server_error(document).message:
        return stream_failure(document)
    return None


def _not_a_stream(message: str) -> ModelError:
    return ModelError(message, code="not_a_stream", status=200)


def _shown(text: str) -> str:
    line = plain_line(text)
    if len(line) > _MAX_SHOWN:
        return f"{line[:_MAX_SHOWN]}…"
    return line

"""Finds failures that a server reports with HTTP status 200, in place of an answer or within it.

Servers and gateways put them into fields of many names, and often without any type.
"""

import re
from typing import Final

from codex_py.errors import ModelError, StreamError
from codex_py.model.error_body import page_title, plain_line, server_error
from codex_py.model.failures import is_known_failure, stream_failure
from codex_py.protocol.json_fields import JsonObject, json_or, object_field, text_field

_ERROR_NAME: Final = re.compile(r"(?i)(?:error|exception|failure|fault)$")
_MAX_SHOWN: Final = 300
"""The number of characters that a message shows of a body that is no answer."""


def reported_failure(event: JsonObject) -> ModelError | None:
    """The failure that an event reports; None if it reports none.

    The event must not be a part of an answer. Events of progress have texts too. So a text alone is
    only a failure if its class is known, or if it is in a field for errors.
    """
    if not _is_report(event):
        return None
    sources = (event, object_field(event, "error"))
    fields = [
        field for each in sources for field in object_field(each, "headers").items()
    ]
    headers = {name.lower(): str(value) for name, value in fields}
    return stream_failure(event, headers=headers)


def _is_report(event: JsonObject) -> bool:
    kind = text_field(event, "type")
    names = (kind, text_field(event, "object"))
    if event.get("error") or any(map(_ERROR_NAME.search, names)):
        return True
    if not server_error(event).message:
        return False
    if is_known_failure(event):
        return True
    return not kind and bool(event.get("detail") or event.get("errors"))


def no_answer(
    failure: StreamError, body: str, *, content_type: str, address: str, advice: str
) -> ModelError:
    """The error for a response without any event of its wire.

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
    text = body.strip()
    if not text and "event-stream" not in kind:
        # A server in trouble may answer with nothing, and another attempt may succeed.
        return StreamError.broke_off(f"{place} is empty ({kind}){advice}")
    if not text:
        return failure
    if text.startswith("<"):
        shown = _shown(page_title(text) or text)
        return _not_a_stream(f"{place} is a web page ({kind}): {shown}{advice}")
    document: object = json_or(text, None)
    if isinstance(document, str):
        text = document
    is_words = document is None or isinstance(document, str)
    if is_words and is_known_failure(text):
        return stream_failure(text)
    if not is_words and server_error(document).message:
        return stream_failure(document)
    shown = _shown(text)
    if "event-stream" in kind:
        failure.args = (f"{failure}; the last event was: {shown}",)
        return failure
    if "json" in kind and not isinstance(document, str):
        return _not_a_stream(f"{place} is no stream ({kind}): {shown}{advice}")
    return StreamError.broke_off(f"{place} is no stream ({kind}): {shown}{advice}")


def _not_a_stream(message: str) -> ModelError:
    return ModelError(message, code="not_a_stream", status=200)


def _shown(text: str) -> str:
    line = plain_line(text)
    if len(line) > _MAX_SHOWN:
        return f"{line[:_MAX_SHOWN]}…"
    return line

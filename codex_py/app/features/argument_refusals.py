"""Repairs calls in the history whose arguments are no JSON object, for servers that refuse them.

A model may write such arguments. OpenAI accepts them in the history as they are, but stricter
servers refuse every later request of the session.
"""

import json
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Final

from codex_py.errors import ModelError
from codex_py.model.wordings import means
from codex_py.protocol.json_fields import (
    JsonObject,
    arguments_object,
    strict_json_object,
    text_field,
)
from codex_py.protocol.messages import EncodedItem, encode_json

_STATUSES: Final = {
    None,
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.UNPROCESSABLE_ENTITY,
    # Some servers crash on such arguments.
    HTTPStatus.INTERNAL_SERVER_ERROR,
}
"""The statuses of a refusal that may be about arguments; None: the server gave none."""


def refuses_arguments(error: ModelError) -> bool:
    """True if the server seems to refuse the arguments of a call in the history."""
    if error.status not in _STATUSES or error.is_too_long:
        return False
    return means("arguments", error.words or str(error))


def broken_calls(items: Iterable[EncodedItem]) -> Mapping[EncodedItem, EncodedItem]:
    """Map each call whose arguments are no JSON object to the call to send in its place."""
    found: dict[EncodedItem, EncodedItem] = {}
    for item in items:
        if b'"function_call"' not in item:
            continue
        call: JsonObject = json.loads(item)
        arguments = text_field(call, "arguments")
        is_call = call.get("type") == "function_call"
        if is_call and strict_json_object(arguments) is None:
            repaired = arguments_object(arguments)
            call["arguments"] = encode_json(repaired).decode()
            found[item] = EncodedItem(encode_json(call))
    return found

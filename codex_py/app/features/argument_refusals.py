"""Calls whose arguments a server refuses, because they are no JSON object.

The model wrote them so, and OpenAI takes them back as they are. Strict servers refuse every later
request of the session.
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

_STATUSES: Final = {None, HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY}
"""The statuses of a refusal that may be about arguments. Some servers crash instead, with 500."""


def refuses_arguments(error: ModelError) -> bool:
    """True if the server seems to refuse the arguments of a call in the history."""
    is_possible = (
        error.status in _STATUSES or error.status == HTTPStatus.INTERNAL_SERVER_ERROR
    )
    if not is_possible or error.is_too_long:
        return False
    return means("arguments", error.words or str(error))


def broken_calls(items: Iterable[EncodedItem]) -> Mapping[EncodedItem, EncodedItem]:
    """The calls whose arguments are no JSON object, each with the call to send in its place."""
    found: dict[EncodedItem, EncodedItem] = {}
    for item in items:
        if b'"function_call"' not in item:
            continue
        call: JsonObject = json.loads(item)
        arguments = text_field(call, "arguments")
        is_call = call.get("type") == "function_call"
        if is_call and strict_json_object(arguments) is None:
            call["arguments"] = encode_json(arguments_object(arguments)).decode()
            found[item] = EncodedItem(encode_json(call))
    return found

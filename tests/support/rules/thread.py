"""What the requests of a thread have in common in other APIs than the Responses API."""

from typing import Any

from tests.support.rules.anthropic import blocks
from tests.support.rules.shape import JsonObject, objects


def chat_prefix(body: JsonObject) -> list[Any]:
    """The messages, a user's as its lines and images: it grows where templates want roles to alternate."""
    entries: list[Any] = []
    for message in objects(body.get("messages"), "`messages`"):
        if message.get("role") != "user":
            entries.append(message)
            continue
        for part in blocks(message["content"]):
            is_text = part.get("type") == "text"
            pieces = filter(None, part["text"].split("\n")) if is_text else [part]
            entries += [("user", piece) for piece in pieces]
    return entries


def anthropic_prefix(body: JsonObject) -> list[Any]:
    """The blocks with the role of their message. A message may grow: it is the same text for the model."""
    told = [("system", block) for block in blocks(body.get("system", []))]
    said = [
        (message["role"], block)
        for message in body["messages"]
        for block in blocks(message["content"])
    ]
    return [(role, _without_mark(block)) for role, block in told + said]


def _without_mark(block: JsonObject) -> JsonObject:
    """Cache marks move on with every request."""
    rest = {key: value for key, value in block.items() if key != "cache_control"}
    if isinstance(rest.get("content"), list):
        rest["content"] = [_without_mark(inner) for inner in rest["content"]]
    return rest

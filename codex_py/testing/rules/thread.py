"""Rules on the requests of a thread in any API: every call has its output, and each begins with the last, which the
provider caches."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from codex_py.testing.rules.anthropic import blocks
from codex_py.testing.rules.shape import JsonObject, objects


def prefix_problem(before: Sequence[object], items: Sequence[object]) -> str | None:
    """The first difference, if an input does not begin with the one before it, or None."""
    for place, (old, new) in enumerate(zip(before, items, strict=False)):
        if old != new:
            return (
                f"the input does not begin with the last one: item {place} was {old!r}, is {new!r}"
            )
    if len(items) < len(before):
        return f"the input is shorter than the last one: {len(items)} items, {len(before)} before"
    return None


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


CALLS = frozenset({"function_call", "custom_tool_call", "local_shell_call"})
OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output"})


def pairing_problem(items: Iterable[Mapping[str, Any]]) -> str | None:
    """A problem with the calls and outputs of an input, or None.

    Each call has exactly one output, behind it, and each output its call. Ids may come again in later
    turns: an output answers an open call of its id.
    """
    open_calls: list[str] = []
    for item in items:
        # The oldest form of a local shell call is answered under its `id`.
        call_id = str(item.get("call_id") or item.get("id"))
        if item.get("type") in CALLS:
            open_calls.append(call_id)
        elif item.get("type") in OUTPUTS:
            if call_id not in open_calls:
                return f"an output without its call: {call_id!r}"
            open_calls.remove(call_id)
    return f"calls without output: {open_calls!r}" if open_calls else None

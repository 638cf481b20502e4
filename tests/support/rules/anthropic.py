"""What Anthropic's Messages API refuses.

Specification: https://docs.anthropic.com/en/api/messages. Two messages of one role in a row, which it merges, are
refused too, as by gateways that speak it.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from codex_py.protocol.json_fields import as_object, json_or
from tests.support.rules.shape import (
    JsonObject,
    check_tool_name,
    duplicates,
    objects,
    require,
)

_MAX_CACHE_MARKS = 4
_MIN_BUDGET = 1024
_FIELDS = {
    *(
        "model",
        "max_tokens",
        "messages",
        "system",
        "tools",
        "tool_choice",
        "thinking",
        "stream",
    ),
    *(
        "output_config",
        "stop_sequences",
        "metadata",
        "service_tier",
        "speed",
        "temperature",
    ),
    *("top_p", "top_k", "cache_control", "container", "inference_geo", "diagnostics"),
    *("context_management", "mcp_servers"),
}
_BLOCK_FIELDS: Mapping[str, set[str]] = {
    "text": {"text", "citations"},
    "image": {"source"},
    "document": {"source", "title", "context", "citations"},
    "search_result": {"source", "title", "content", "citations"},
    "tool_result": {"tool_use_id", "content", "is_error"},
    "tool_use": {"id", "name", "input", "caller"},
    "thinking": {"thinking", "signature"},
    "redacted_thinking": {"data"},
}
_THOUGHTS = {"thinking", "redacted_thinking"}
_USER_BLOCKS = {"text", "image", "document", "search_result", "tool_result"}
_MODEL_BLOCKS = {"text", "tool_use", *_THOUGHTS}
_SERVER_TOOL_BLOCK = re.compile(
    r"(server|mcp)_tool_use|.+_tool_result|container_upload|compaction"
)
_CALL_ID = re.compile(r"[a-zA-Z0-9_-]+")


def check_anthropic(
    body: JsonObject, headers: Mapping[str, str], signatures: Mapping[str, str]
) -> None:
    """
    Args:
        headers: names in lower case.
        signatures: what the server gave out: the thinking of each signature, and an empty text for
            the data of each redacted block.

    Raises:
        ValueError: the request breaks a rule; the text says which and where.
    """
    require(
        headers.get("anthropic-version"), "the header `anthropic-version` is missing"
    )
    unknown = sorted(body.keys() - _FIELDS)
    require(not unknown, f"extra inputs are not permitted: {unknown}")
    max_tokens = body.get("max_tokens")
    require(isinstance(max_tokens, int) and max_tokens > 0, "`max_tokens` is missing")
    messages = objects(body.get("messages"), "`messages`")
    _check_settings(body)
    _check_roles(messages)
    history = [(message["role"], blocks(message["content"])) for message in messages]
    for place, (role, content) in enumerate(history):
        for block in content:
            _check_block(role, block, f"messages[{place}]")
        _check_thinking(content, signatures, f"messages[{place}]")
    _check_pairs(history)
    if body.get("thinking", {}).get("type") == "enabled":
        _check_last_calls(history)
    has_calls = any(
        block["type"] in {"tool_use", "tool_result"} for _, c in history for block in c
    )
    require(body.get("tools") or not has_calls, "calls in the messages, and no `tools`")
    _check_cache_marks(body)
    role, content = history[-1]
    last = content[-1].get("text", "") if role == "assistant" else ""
    require(last == last.rstrip(), "the final assistant message ends in white space")


def blocks(content: object, where: str = "`content`") -> list[JsonObject]:
    """The blocks of a message or of a result; a text alone is one.

    Raises:
        ValueError: it is neither a text nor a list of objects.
    """
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return objects(content, where)


def _check_settings(body: JsonObject) -> None:
    tools = objects(body.get("tools", []), "`tools`")
    for place, tool in enumerate(tools):
        check_tool_name(tool.get("name"), f"tools[{place}]")
        if tool.get("type", "custom") == "custom":
            schema: JsonObject = tool.get("input_schema") or {}
            is_object = schema.get("type") == "object"
            require(
                is_object, f"tools[{place}]: `input_schema` is no schema of an object"
            )
    twice = duplicates([tool["name"] for tool in tools])
    require(not twice, f"several tools have the name {twice[:1]!r}")
    choice: JsonObject = body.get("tool_choice", {})
    require(
        tools or not choice, "`tool_choice` is only allowed when `tools` are specified"
    )
    thinking: JsonObject = body.get("thinking", {})
    is_forced = choice.get("type") in {"any", "tool"}
    is_thinking = thinking.get("type") in {"enabled", "adaptive"}
    require(
        not (is_forced and is_thinking),
        "thinking may not be on when a tool must be called",
    )
    if thinking.get("type") == "enabled":
        budget = thinking.get("budget_tokens", 0)
        is_legal = _MIN_BUDGET <= budget < body["max_tokens"]
        require(
            is_legal, f"`budget_tokens` is not from {_MIN_BUDGET} to below `max_tokens`"
        )
    for place, block in enumerate(blocks(body.get("system", []), "`system`")):
        _check_block("system", block, f"system[{place}]")


def _check_roles(messages: Sequence[JsonObject]) -> None:
    require(messages, "`messages` is empty")
    before = "assistant"
    for place, message in enumerate(messages):
        role, where = message.get("role"), f"messages[{place}]"
        require(role in {"user", "assistant"}, f"{where}: unknown role {role!r}")
        unknown = sorted(message.keys() - {"role", "content"})
        require(not unknown, f"{where}: extra inputs are not permitted: {unknown}")
        problem = (
            "two messages of one role in a row"
            if place
            else "the first message is no user's"
        )
        require(role != before, f"{where}: {problem}")
        require(message.get("content"), f"{where}: a message without content")
        before = role


def _check_block(role: str, block: JsonObject, where: str) -> None:
    kind = str(block.get("type"))
    known = {"system": {"text"}, "user": _USER_BLOCKS}.get(role, _MODEL_BLOCKS)
    is_server_tool = role == "assistant" and _SERVER_TOOL_BLOCK.fullmatch(kind)
    require(
        kind in known or is_server_tool,
        f"{where}: {role} messages have no blocks {kind!r}",
    )
    if kind in known:
        unknown = sorted(block.keys() - {"type", "cache_control"} - _BLOCK_FIELDS[kind])
        require(
            not unknown, f"{where}.{kind}: extra inputs are not permitted: {unknown}"
        )
    match kind:
        case "text":
            text = block.get("text")
            require(
                isinstance(text, str) and text.strip(), f"{where}: an empty text block"
            )
        case "image":
            require(
                isinstance(block.get("source"), dict),
                f"{where}: an image without a source",
            )
        case "tool_use":
            _check_call_id(block.get("id"), where)
            check_tool_name(block.get("name"), where)
            require(
                isinstance(block.get("input"), dict),
                f"{where}: an input that is no object",
            )
        case "tool_result":
            _check_result(block, where)
        case _:
            pass


def _check_call_id(call_id: object, where: str) -> None:
    is_legal = isinstance(call_id, str) and _CALL_ID.fullmatch(call_id)
    require(is_legal, f"{where}: {call_id!r} is no legal id of a call")


def _check_result(block: JsonObject, where: str) -> None:
    _check_call_id(block.get("tool_use_id"), where)
    content = block.get("content")
    is_empty = content is None or content in ("", [])
    require(
        not (is_empty and block.get("is_error")), f"{where}: an error without content"
    )
    # A text alone may be empty, a block of text may not.
    if not isinstance(content, str | None):
        for inner in blocks(content, f"{where}.tool_result"):
            is_nested = inner.get("type") == "tool_result"
            require(not is_nested, f"{where}: a result in a result")
            _check_block("user", inner, f"{where}.tool_result")


def _check_thinking(
    content: Sequence[JsonObject], signatures: Mapping[str, str], where: str
) -> None:
    for block in content:
        if block["type"] == "redacted_thinking":
            require(
                block.get("data") in signatures,
                f"{where}: unknown data of redacted thinking",
            )
        if block["type"] == "thinking":
            signature = block.get("signature")
            require(signature, f"{where}: a thinking block without a signature")
            is_same = signatures.get(str(signature)) == block.get("thinking")
            require(
                is_same,
                f"{where}: the signature of a thinking block is not that of its text",
            )
    require(
        content[-1]["type"] not in _THOUGHTS,
        f"{where}: the final block cannot be thinking",
    )


def _check_last_calls(history: Sequence[tuple[str, Sequence[JsonObject]]]) -> None:
    """The message that results are sent for begins with thinking."""
    for (_, said), (_, told) in zip(history[-2:], history[-1:], strict=False):
        is_thought = said[0]["type"] in _THOUGHTS or told[0]["type"] != "tool_result"
        require(is_thought, "thinking is on, and there is none before the last calls")


def _check_pairs(history: Sequence[tuple[str, Sequence[JsonObject]]]) -> None:
    """The message after one with calls begins with one result for each of them."""
    seen: list[str] = []
    open_ids: list[str] = []
    for place, (_, content) in enumerate(history):
        where = f"messages[{place}]"
        _check_results(content, open_ids, where)
        open_ids = [block["id"] for block in content if block["type"] == "tool_use"]
        seen += open_ids
        twice = duplicates(seen)
        require(not twice, f"{where}: the ids of calls are not unique: {twice!r}")
    require(
        not open_ids, f"`tool_use` without a `tool_result` right after it: {open_ids!r}"
    )


def _check_results(
    content: Sequence[JsonObject], call_ids: Sequence[str], where: str
) -> None:
    answered: list[str] = []
    for number, block in enumerate(content):
        if block["type"] != "tool_result":
            continue
        require(
            number == len(answered), f"{where}: a `tool_result` behind other content"
        )
        call_id = block["tool_use_id"]
        require(
            call_id in call_ids,
            f"{where}: a `tool_result` without its call: {call_id!r}",
        )
        require(
            call_id not in answered,
            f"{where}: several results for the call {call_id!r}",
        )
        answered.append(call_id)
    missing = [call_id for call_id in call_ids if call_id not in answered]
    require(not missing, f"{where}: no `tool_result` at its beginning for {missing!r}")


def _check_cache_marks(body: JsonObject) -> None:
    marked = [block for block in _cacheable(body) if "cache_control" in block]
    count = len(marked) + ("cache_control" in body)
    require(
        count <= _MAX_CACHE_MARKS,
        f"{count} cache marks, {_MAX_CACHE_MARKS} are allowed",
    )
    is_short = False
    for block in marked:
        require(
            block.get("type") not in _THOUGHTS,
            "a cache mark on a thinking block",
        )
        mark: JsonObject = block["cache_control"] or {}
        require(mark.get("type") == "ephemeral", f"{mark!r} is no cache mark")
        is_long = mark.get("ttl") == "1h"
        require(not (is_long and is_short), "a cache mark of 1h behind one of 5m")
        is_short = is_short or not is_long


def _cacheable(body: JsonObject) -> Iterator[JsonObject]:
    """All that may have a cache mark, in the order of the cache."""
    yield from body.get("tools", ())
    yield from blocks(body.get("system", []))
    for message in body["messages"]:
        for block in blocks(message["content"]):
            yield block
            if block["type"] == "tool_result":
                yield from blocks(block.get("content", []))


class Signatures(dict[str, str]):
    """What a server gave out, read from the streams that it sends: the thinking of each signature, and an empty text
    for the data of each redacted block."""

    def read(self, stream: bytes) -> None:
        """Remember those of a response of Anthropic's API."""
        thinking: dict[Any, str] = {}
        for event in _events(stream):
            index = event.get("index")
            block: Mapping[str, Any] = event.get("content_block", {})
            if block.get("type") == "redacted_thinking":
                self[block["data"]] = ""
            elif block.get("type") == "thinking":
                thinking[index] = block.get("thinking", "")
                if block.get("signature"):
                    self[block["signature"]] = thinking[index]
            delta: Mapping[str, Any] = event.get("delta", {})
            if delta.get("type") == "thinking_delta":
                thinking[index] = thinking.get(index, "") + delta["thinking"]
            elif delta.get("type") == "signature_delta":
                self[delta["signature"]] = thinking.get(index, "")


def _events(stream: bytes) -> Iterator[dict[str, Any]]:
    for line in stream.splitlines():
        if line.startswith(b"data:"):
            yield as_object(json_or(line[5:], None))

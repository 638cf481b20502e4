"""A history as the messages of the Anthropic API."""

import re
from collections.abc import Sequence
from typing import TypeAlias, cast

from codex_py.model import dialogue
from codex_py.model.provider_data import Maker
from codex_py.protocol.frozen import frozen
from codex_py.protocol.json_fields import JsonObject, json_or, objects, text_field
from codex_py.protocol.messages import encode_json
from codex_py.protocol.stream import Prompt

Message: TypeAlias = tuple[str, list[bytes]]
"""Role and blocks."""
_CACHE_MARK = b',"cache_control":{"type":"ephemeral"}}'
_CONTINUE = encode_json({"type": "text", "text": "Continue."})
_THOUGHTS = ("thinking", "redacted_thinking")
_UNMARKED = tuple(b'{"type":"%b"' % kind.encode() for kind in _THOUGHTS)
_BYTES_OF_DATA_URL = re.compile(r"data:([^;,]+);base64,(.*)", re.DOTALL)


@frozen
class AnthropicHistory:
    system: Sequence[bytes]
    """Text blocks."""
    messages: Sequence[Message]
    called: Sequence[str]
    """Names of the tools in it."""
    may_think: bool
    """False if the message with the last calls has no thinking block: then a request that asks for thinking is
    refused."""

    def encoded(self, *, last_marks: int) -> list[bytes]:
        """The messages as JSON. The last ones get a mark for the cache, each at its last block."""
        encoded: list[bytes] = []
        unmarked = len(self.messages) - last_marks
        for index, (role, blocks) in enumerate(self.messages):
            last = blocks[-1]
            if index >= unmarked and not last.startswith(_UNMARKED):
                blocks = [*blocks[:-1], marked(last)]
            encoded.append(b'{"role":"%b","content":[%b]}' % (role.encode(), b",".join(blocks)))
        return encoded


class AnthropicMessages:
    """The messages of one thread. A turn is translated once."""

    def __init__(self, maker: Maker) -> None:
        self._dialogue = dialogue.Dialogue(maker, "anthropic")

    def of(self, prompt: Prompt) -> AnthropicHistory:
        turns = list(self._dialogue.of(prompt.input, prompt.model, images=prompt.abilities.images))
        texts = [prompt.instructions] if prompt.instructions.strip() else []
        while turns and isinstance(first := turns[0], dialogue.Told) and first.role != "user":
            texts.append(first.text)
            del turns[0]
        messages: list[Message] = []
        called: dict[str, None] = {}
        may_think = True
        for turn in turns:
            if isinstance(turn, dialogue.Told):
                _append(messages, "user", _told(turn))
                continue
            if turn.encoded is None:
                turn.encoded = _said(turn)
            blocks, results = turn.encoded
            _append(messages, "assistant", blocks)
            if blocks:
                may_think = not results or messages[-1][1][0].startswith(_UNMARKED)
            _append(messages, "user", results)
            called.update((call.name, None) for call in turn.calls)
        if messages and messages[0][0] != "user":
            messages.insert(0, ("user", [_CONTINUE]))
        system = [encode_json({"type": "text", "text": text}) for text in texts if text.strip()]
        return AnthropicHistory(system, messages, list(called), may_think)


def marked(block: bytes) -> bytes:
    """A block of JSON with a mark: the prompt up to here is cached."""
    return block.removesuffix(b"}") + _CACHE_MARK


def _append(messages: list[Message], role: str, blocks: Sequence[bytes]) -> None:
    """Add blocks. Roles alternate: those of one role in a row are one message."""
    if blocks and messages and messages[-1][0] == role:
        messages[-1] = (role, _with_legal_thoughts([*messages[-1][1], *blocks]))
    elif blocks:
        messages.append((role, list(blocks)))


def _with_legal_thoughts(blocks: list[bytes]) -> list[bytes]:
    """A message has thoughts only if it begins with one: a model may have gone on where another broke off."""
    if not blocks or blocks[0].startswith(_UNMARKED):
        return blocks
    return [block for block in blocks if not block.startswith(_UNMARKED)]


def _told(told: dialogue.Told) -> Sequence[bytes]:
    if told.encoded is None:
        told.encoded = [encode_json(part) for part in map(_part, told.parts) if part is not None]
    return told.encoded


def _said(turn: dialogue.ModelTurn) -> tuple[list[bytes], list[bytes]]:
    """The blocks of the assistant, and those of the user with the results."""
    blocks = [block for each in turn.blocks for block in _blocks(each)]
    while blocks and blocks[-1].get("type") in _THOUGHTS:
        # A message that ends with one is refused.
        blocks.pop()
    if blocks and blocks[-1].get("type") == "text":
        # The last message may not end in white space, and each is the last one at a time.
        blocks[-1] = {**blocks[-1], "text": text_field(blocks[-1], "text").rstrip()}
    results = [encode_json(_result(result)) for result in turn.complete_results()]
    return _with_legal_thoughts([encode_json(block) for block in blocks]), results


def _blocks(block: dialogue.Block) -> Sequence[JsonObject]:
    match block:
        case dialogue.Text(text):
            # Blank text is refused, and white space at the end of the last message.
            return [{"type": "text", "text": text.rstrip()}] if text.strip() else []
        case dialogue.Thought(text, data):
            # Without its signature, a thought is not accepted: it may be another model's.
            if data and (redacted := text_field(data, "redacted")):
                return [{"type": "redacted_thinking", "data": redacted}]
            if data and (signature := text_field(data, "signature")):
                return [{"type": "thinking", "thinking": text, "signature": signature}]
            return []
        case dialogue.Opaque(data):
            return objects(data.get("blocks"))
        case dialogue.Call():
            use: JsonObject = {"type": "tool_use", "id": block.call_id}
            return [{**use, "name": block.name, "input": _input(block)}]


def _input(call: dialogue.Call) -> JsonObject:
    if call.is_freeform:
        return {"input": call.arguments}
    value = json_or(call.arguments or "{}", None)
    return cast("JsonObject", value) if isinstance(value, dict) else {"_raw": call.arguments}


def _result(result: dialogue.Result) -> JsonObject:
    parts = [part for part in map(_part, result.parts) if part is not None]
    content = parts if result.images else result.text
    fields: JsonObject = {"type": "tool_result", "tool_use_id": result.call.call_id}
    fields["content"] = content or "(no output)"
    return {**fields, "is_error": True} if result.failed else fields


def _part(part: JsonObject) -> JsonObject | None:
    """A part as a block; None for blank text, which is refused."""
    if part["type"] == "input_text":
        return {"type": "text", "text": part["text"]} if part["text"].strip() else None
    url = part["image_url"]
    found = _BYTES_OF_DATA_URL.fullmatch(url)
    source = {"type": "url", "url": url}
    if found is not None:
        source = {"type": "base64", "media_type": found[1], "data": found[2]}
    return {"type": "image", "source": source}

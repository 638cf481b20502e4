"""Builds the requests of Anthropic Messages.

Specification: https://docs.anthropic.com/en/api/messages. `model/providers.py` adds the `/v1` of a
base URL.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, TypeAlias

from codex_py.model import dialogue
from codex_py.model.anthropic.decoder import AnthropicDecoder
from codex_py.model.freeform import function_specs
from codex_py.model.profile import ProfiledWire
from codex_py.protocol.frozen import frozen
from codex_py.protocol.json_fields import (
    JsonObject,
    arguments_object,
    objects,
    text_field,
)
from codex_py.protocol.messages import encode_json
from codex_py.protocol.stream import Decoder, Prompt, ToolChoice

_MAX_TOKENS = 32_000
"""The limit for an unknown model, because the API requires one."""
_MIN_BUDGET = 1024
_BUDGETS = {"minimal": 1024, "low": 4096, "medium": 10_000, "high": 20_000}
"""The thinking tokens by effort, for models that require a budget; any higher effort gets
`_MOST`."""
_MOST = 31_999

_Message: TypeAlias = tuple[str, list[bytes]]
"""A role and its blocks."""
_CACHE_MARK = b',"cache_control":{"type":"ephemeral"}}'
_CONTINUE = encode_json({"type": "text", "text": "Continue."})
_THOUGHTS = ("thinking", "redacted_thinking")
_UNMARKED = tuple(b'{"type":"%b"' % kind.encode() for kind in _THOUGHTS)
"""The beginnings of thinking blocks as JSON. The API refuses a cache mark at such a block."""
_BYTES_OF_DATA_URL = re.compile(r"data:([^;,]+);base64,(.*)", re.DOTALL)


@frozen
class _History:
    system: Sequence[bytes]
    """The text blocks of the system prompt."""
    messages: Sequence[_Message]
    called: Sequence[str]
    """The names of the tools that the history calls."""
    may_think: bool
    """False if the message with the last calls has no thinking block.

    The API then refuses a request for thinking.
    """

    def encoded(self, *, last_marks: int) -> list[bytes]:
        """The messages as JSON.

        Each of the last `last_marks` messages gets a cache mark at its last block.
        """
        encoded: list[bytes] = []
        unmarked = len(self.messages) - last_marks
        for index, (role, blocks) in enumerate(self.messages):
            last = blocks[-1]
            if index >= unmarked and not last.startswith(_UNMARKED):
                blocks = [*blocks[:-1], _marked(last)]
            content = b",".join(blocks)
            encoded.append(b'{"role":"%b","content":[%b]}' % (role.encode(), content))
        return encoded


def _marked(block: bytes) -> bytes:
    """The JSON block with a cache mark: the provider caches the prompt up to it."""
    return block.removesuffix(b"}") + _CACHE_MARK


def _append(
    messages: list[_Message],
    role: str,
    blocks: Sequence[bytes],
) -> None:
    """Add blocks. Roles alternate, so consecutive blocks of one role make one message."""
    if not blocks:
        return
    last_role, last_blocks = messages[-1] if messages else ("", [])
    if last_role == role:
        both = [*last_blocks, *blocks]
        messages[-1] = (role, _with_legal_thoughts(both))
    else:
        messages.append((role, list(blocks)))


def _with_legal_thoughts(blocks: list[bytes]) -> list[bytes]:
    """Drop thoughts from a message that does not begin with one.

    Such a message arises when a model continues where another one broke off.
    """
    if not blocks or blocks[0].startswith(_UNMARKED):
        return blocks
    return [block for block in blocks if not block.startswith(_UNMARKED)]


def _input_blocks(told: dialogue.InputMessage) -> Sequence[bytes]:
    """The blocks of a message to the model, encoded once."""
    if told.encoded is None:
        told.encoded = [encode_json(block) for block in _parts(told.parts)]
    return told.encoded


def _turn_blocks(turn: dialogue.ModelTurn) -> tuple[list[bytes], list[bytes]]:
    """The assistant's blocks, and the user's blocks with the results."""
    blocks: list[JsonObject] = []
    for each in turn.blocks:
        blocks += _blocks(each)
    while blocks and blocks[-1].get("type") in _THOUGHTS:
        # The API refuses a message that ends with a thought.
        blocks.pop()
    if blocks and blocks[-1].get("type") == "text":
        # The last message must not end in white space, and each message is the last one at some
        # time.
        text = text_field(blocks[-1], "text").rstrip()
        blocks[-1] = {**blocks[-1], "text": text}
    said = [encode_json(block) for block in blocks]
    results = [encode_json(_result(result)) for result in turn.complete_results()]
    return _with_legal_thoughts(said), results


def _blocks(block: dialogue.Block) -> Sequence[JsonObject]:
    match block:
        case dialogue.DialogueText(text):
            # The API refuses blank text, and white space at the end of the last message.
            if text.strip():
                return [{"type": "text", "text": text.rstrip()}]
            return []
        case dialogue.Thought(text, data):
            return _thinking_blocks(text, data or {})
        case dialogue.Opaque(data):
            return objects(data.get("blocks"))
        case dialogue.DialogueCall(call_id, name):
            use: JsonObject = {"type": "tool_use", "id": call_id, "name": name}
            return [{**use, "input": _input(block)}]


def _thinking_blocks(
    text: str,
    data: Mapping[str, Any],
) -> Sequence[JsonObject]:
    """The block of a thought. The API accepts it only with a signature, or if it is redacted.

    A thought of another model has neither.
    """
    redacted = text_field(data, "redacted")
    if redacted:
        return [{"type": "redacted_thinking", "data": redacted}]
    signature = text_field(data, "signature")
    if signature:
        return [{"type": "thinking", "thinking": text, "signature": signature}]
    return []


def _input(call: dialogue.DialogueCall) -> JsonObject:
    if call.is_freeform:
        return {"input": call.arguments}
    return arguments_object(call.arguments)


def _result(result: dialogue.DialogueResult) -> JsonObject:
    content = _parts(result.parts) if result.images else result.text
    fields: JsonObject = {"type": "tool_result", "tool_use_id": result.call.call_id}
    fields["content"] = content or "(no output)"
    if result.failed:
        fields["is_error"] = True
    return fields


def _parts(parts: Sequence[JsonObject]) -> list[JsonObject]:
    """The parts of a message or a result as blocks."""
    return [block for block in map(_part, parts) if block is not None]


def _part(part: JsonObject) -> JsonObject | None:
    """A part as a block; None for blank text, which the API refuses."""
    if part["type"] == "input_text":
        if part["text"].strip():
            return {"type": "text", "text": part["text"]}
        return None
    url = part["image_url"]
    found = _BYTES_OF_DATA_URL.fullmatch(url)
    source = {"type": "url", "url": url}
    if found is not None:
        source = {"type": "base64", "media_type": found[1], "data": found[2]}
    return {"type": "image", "source": source}


class AnthropicWire(ProfiledWire):
    """A `Wire`."""

    path = "/messages"
    headers: Mapping[str, str] = {"anthropic-version": "2023-06-01"}

    @cached_property
    def _dialogue(self) -> dialogue.Dialogue:
        return dialogue.Dialogue(self.maker, "anthropic")

    def body(self, prompt: Prompt) -> bytes:
        """The request as JSON, in the provider's caching order.

        Settings come first, then tools, system blocks and messages.
        """
        history = self._history(prompt)
        tools = _tools(prompt, history.called)
        settings = self._settings(
            prompt, may_think=history.may_think, has_tools=bool(tools)
        )
        marks = self.profile.cache_marks
        fragments = [
            encode_json(self.profile.adjusted(settings)).removesuffix(b"}"),
            _array(b"tools", tools, mark=marks),
            _array(b"system", history.system, mark=marks),
        ]
        messages = history.encoded(last_marks=2 if marks else 0)
        fragments += (b',"messages":[', b",".join(messages), b"]}")
        return b"".join(fragments)

    def decoder(self, prompt: Prompt) -> Decoder:
        return AnthropicDecoder(prompt, self.maker, deltas=self.deltas)

    def _settings(
        self, prompt: Prompt, *, may_think: bool, has_tools: bool
    ) -> dict[str, Any]:
        """The fields of a request besides tools, system blocks and messages."""
        choice = prompt.tool_choice
        max_tokens = prompt.max_output_tokens or _MAX_TOKENS
        settings: dict[str, Any] = {
            "model": prompt.model,
            "max_tokens": max_tokens,
            "stream": True,
        }
        if may_think and choice.mode != "required":
            settings.update(self._thinking(prompt, max_tokens))
        if prompt.output_schema is not None:
            form = {"type": "json_schema", "schema": prompt.output_schema}
            config = settings.get("output_config", {})
            settings["output_config"] = {**config, "format": form}
        if has_tools:
            if not prompt.tools:
                choice = ToolChoice("none")
            settings["tool_choice"] = self._tool_choice(
                choice, parallel=prompt.parallel_tool_calls
            )
        return settings

    def _history(self, prompt: Prompt) -> _History:
        """The history of a thread. Each turn is translated once."""
        images = prompt.abilities.images
        turns = self._dialogue.of(prompt.input, prompt.model, images=images)
        texts, turns = dialogue.split_system_texts(turns)
        texts.insert(0, prompt.instructions)
        messages: list[_Message] = []
        called: dict[str, None] = {}
        may_think = True
        for turn in turns:
            if isinstance(turn, dialogue.InputMessage):
                _append(messages, "user", _input_blocks(turn))
                continue
            if turn.encoded is None:
                turn.encoded = _turn_blocks(turn)
            blocks, results = turn.encoded
            _append(messages, "assistant", blocks)
            if blocks:
                _, last_blocks = messages[-1]
                begins_with_thought = last_blocks[0].startswith(_UNMARKED)
                may_think = begins_with_thought or not results
            _append(messages, "user", results)
            called.update((call.name, None) for call in turn.calls)
        if messages and messages[0][0] != "user":
            messages.insert(0, ("user", [_CONTINUE]))
        system = [
            encode_json({"type": "text", "text": text})
            for text in texts
            if text.strip()
        ]
        return _History(system, messages, list(called), may_think)

    def _thinking(self, prompt: Prompt, max_tokens: int) -> Mapping[str, Any]:
        """The fields that ask for the effort of the prompt."""
        effort: str = (prompt.reasoning or {}).get("effort") or "none"
        if effort == "none":
            return {}
        style = self.profile.thinking
        if style == "adaptive" and prompt.abilities.thinking is not None:
            style = prompt.abilities.thinking
        match style:
            case "adaptive":
                effort = "low" if effort == "minimal" else effort
                return {
                    "thinking": {"type": "adaptive"},
                    "output_config": {"effort": effort},
                }
            case "budget":
                budget = min(_BUDGETS.get(effort, _MOST), max_tokens * 3 // 4)
                if budget < _MIN_BUDGET:
                    return {}
                return {"thinking": {"type": "enabled", "budget_tokens": budget}}
            case "none":
                return {}

    def _tool_choice(
        self,
        choice: ToolChoice,
        *,
        parallel: bool,
    ) -> Mapping[str, Any]:
        """The field `tool_choice`.

        It cannot express a set of allowed tools, which is enforced at dispatch.
        """
        if choice.mode == "none":
            return {"type": "none"}
        fields: dict[str, Any] = {"type": "auto"}
        if choice.mode == "required":
            fields["type"] = "any"
            if len(choice.names) == 1:
                fields = {"type": "tool", "name": choice.names[0]}
        if not parallel:
            fields["disable_parallel_tool_use"] = True
        return fields


def _array(
    name: bytes,
    blocks: Sequence[bytes],
    *,
    mark: bool,
) -> bytes:
    """A field with blocks as a part of the request's JSON; empty if there are none.

    `mark`: its last block gets a cache mark.
    """
    if not blocks:
        return b""
    entries = list(blocks)
    if mark:
        entries[-1] = _marked(entries[-1])
    return b',"%b":[%b]' % (name, b",".join(entries))


def _tools(
    prompt: Prompt,
    called: Sequence[str],
) -> list[bytes]:
    """The tools of a request. A history with calls needs some, even if none may be called."""
    entries: list[dict[str, Any]] = []
    for spec in function_specs(prompt.tools):
        entry = {"name": spec.name, "description": spec.description}
        entries.append({**entry, "input_schema": spec.parameters})
    if not entries:
        schema = {"type": "object"}
        entries = [{"name": name, "input_schema": schema} for name in called]
    return [encode_json(entry) for entry in entries]

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
            encoded.append(
                b'{"role":"%b","content":[%b]}' % (role.encode(), b",".join(blocks))
            )
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
    if messages:
        last_role, last_blocks = messages[-1]
        if last_role == role:
            both = [*last_blocks, *blocks]
            messages[-1] = (role, _with_legal_thoughts(both))
            return
    messages.append((role, list(blocks)))


def _with_legal_thoughts(blocks: list[bytes]) -> list[bytes]:
    """Drop thoughts from a message that does not begin with one.

    Such a message arises when a model continues where another one broke off.
    """
    if not blocks or blocks[0].startswith(_UNMARKED):
        return blocks
    return [block for block in blocks if not block.startswith(_UNMARKED)]


def _told(told: dialogue.InputMessage) -> Sequence[bytes]:
    if told.encoded is None:
        told.encoded = [
            encode_json(part) for part in map(_part, told.parts) if part is not None
        ]
    return told.encoded


def _said(turn: dialogue.ModelTurn) -> tuple[list[bytes], list[bytes]]:
    """The assistant's blocks, and the user's blocks with the results."""
    blocks = [block for each in turn.blocks for block in _blocks(each)]
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
            # The API accepts a thought only with a signature; another model's has none.
            if data and (redacted := text_field(data, "redacted")):
                return [{"type": "redacted_thinking", "data": redacted}]
            if data and (signature := text_field(data, "signature")):
                return [{"type": "thinking", "thinking": text, "signature": signature}]
            return []
        case dialogue.Opaque(data):
            return objects(data.get("blocks"))
        case dialogue.DialogueCall():
            use: JsonObject = {"type": "tool_use", "id": block.call_id}
            return [{**use, "name": block.name, "input": _input(block)}]


def _input(call: dialogue.DialogueCall) -> JsonObject:
    if call.is_freeform:
        return {"input": call.arguments}
    return arguments_object(call.arguments)


def _result(result: dialogue.DialogueResult) -> JsonObject:
    parts = [part for part in map(_part, result.parts) if part is not None]
    content = parts if result.images else result.text
    fields: JsonObject = {"type": "tool_result", "tool_use_id": result.call.call_id}
    fields["content"] = content or "(no output)"
    if result.failed:
        return {**fields, "is_error": True}
    return fields


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
        return dialogue.Dialogue(self._maker, "anthropic")

    def body(self, prompt: Prompt) -> bytes:
        """The request as JSON, in the provider's caching order.

        Settings come first, then tools, system blocks and messages.
        """
        history = self._history(prompt)
        choice = prompt.tool_choice
        max_tokens = prompt.max_output_tokens or _MAX_TOKENS
        is_thinking = history.may_think and choice.mode != "required"
        settings: dict[str, Any] = {
            "model": prompt.model,
            "max_tokens": max_tokens,
            "stream": True,
        }
        if is_thinking:
            settings.update(self._thinking(prompt, max_tokens))
        if prompt.output_schema is not None:
            form = {"type": "json_schema", "schema": prompt.output_schema}
            settings["output_config"] = {
                **settings.get("output_config", {}),
                "format": form,
            }
        tools = _tools(prompt, history.called)
        if tools:
            settings["tool_choice"] = self._tool_choice(
                choice if prompt.tools else ToolChoice("none"),
                parallel=prompt.parallel_tool_calls,
            )
        mark = self._profile.cache_marks
        fragments = [encode_json(self._profile.adjusted(settings)).removesuffix(b"}")]
        for name, blocks in ((b"tools", tools), (b"system", history.system)):
            if blocks:
                last = _marked(blocks[-1]) if mark else blocks[-1]
                fragments.append(
                    b',"%b":[%b]' % (name, b",".join([*blocks[:-1], last]))
                )
        messages = history.encoded(last_marks=2 if mark else 0)
        fragments += (b',"messages":[', b",".join(messages), b"]}")
        return b"".join(fragments)

    def decoder(self, prompt: Prompt) -> Decoder:
        return AnthropicDecoder(prompt, self._maker, deltas=self._deltas)

    def _history(self, prompt: Prompt) -> _History:
        """The history of a thread. Each turn is translated once."""
        turns = list(
            self._dialogue.of(
                prompt.input, prompt.model, images=prompt.abilities.images
            )
        )
        if prompt.instructions.strip():
            texts = [prompt.instructions]
        else:
            texts = []
        while (
            turns
            and isinstance(first := turns[0], dialogue.InputMessage)
            and first.role != "user"
        ):
            texts.append(first.text)
            del turns[0]
        messages: list[_Message] = []
        called: dict[str, None] = {}
        may_think = True
        for turn in turns:
            if isinstance(turn, dialogue.InputMessage):
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
        system = [
            encode_json({"type": "text", "text": text})
            for text in texts
            if text.strip()
        ]
        return _History(system, messages, list(called), may_think)

    def _thinking(self, prompt: Prompt, max_tokens: int) -> Mapping[str, Any]:
        effort: str = (prompt.reasoning or {}).get("effort") or "none"
        if effort == "none":
            return {}
        style = self._profile.thinking
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

    def _tool_choice(self, choice: ToolChoice, *, parallel: bool) -> Mapping[str, Any]:
        """The field `tool_choice`.

        It cannot express a set of allowed tools, which is enforced at dispatch.
        """
        if choice.mode == "none":
            return {"type": "none"}
        if parallel:
            serial = {}
        else:
            serial = {"disable_parallel_tool_use": True}
        if choice.mode == "required" and len(choice.names) == 1:
            return {"type": "tool", "name": choice.names[0], **serial}
        return {"type": "any" if choice.mode == "required" else "auto", **serial}


def _tools(prompt: Prompt, called: Sequence[str]) -> list[bytes]:
    """The tools of a request. A history with calls needs some, even if none may be called."""
    entries: list[dict[str, Any]] = [
        {
            "name": spec.name,
            "description": spec.description,
            "input_schema": spec.parameters,
        }
        for spec in function_specs(prompt.tools)
    ]
    if not entries:
        entries = [
            {"name": name, "input_schema": {"type": "object"}} for name in called
        ]
    return [encode_json(entry) for entry in entries]

"""Builds the requests of Chat Completions.

Specification: https://platform.openai.com/docs/api-reference/chat. Other makers' servers support a
part of it; a request has only the fields that all of them accept, and those that the provider's
profile adds.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from codex_py.model.chat.decoder import THINK_TAG, ChatDecoder
from codex_py.model.dialogue import (
    Dialogue,
    DialogueCall,
    DialogueResult,
    DialogueText,
    InputMessage,
    ModelTurn,
    Thought,
    split_system_texts,
)
from codex_py.model.freeform import function_specs, wrapped
from codex_py.model.profile import ProfiledWire
from codex_py.protocol.json_fields import (
    JsonObject,
    arguments_object,
    objects,
    strict_json_object,
    text_field,
)
from codex_py.protocol.messages import encode_json
from codex_py.protocol.stream import Decoder, Prompt, ToolChoice
from codex_py.protocol.tools import FunctionSpec

_IMAGES_FOLLOW = "(the result is the image in the next message)"


class ChatWire(ProfiledWire):
    """A `Wire`."""

    path = "/chat/completions"

    @cached_property
    def _dialogue(self) -> Dialogue:
        return Dialogue(self.maker, self.profile.tool_ids)

    def body(self, prompt: Prompt) -> bytes:
        """The request as JSON.

        The messages come last, so that each request of a thread begins like the one before.
        """
        profile = self.profile
        settings: dict[str, Any] = {"model": prompt.model, "stream": True}
        if profile.stream_usage:
            settings["stream_options"] = {"include_usage": True}
        if prompt.max_output_tokens is not None:
            settings[profile.max_tokens_field] = prompt.max_output_tokens
        settings |= self._reasoning(prompt)
        if prompt.output_schema is not None:
            schema = {
                "name": "codex_output_schema",
                "strict": True,
                "schema": prompt.output_schema,
            }
            settings["response_format"] = {"type": "json_schema", "json_schema": schema}
        if prompt.service_tier is not None:
            settings["service_tier"] = prompt.service_tier
        if profile.openai_fields:
            settings["prompt_cache_key"] = prompt.cache_key
            if prompt.verbosity is not None:
                settings["verbosity"] = prompt.verbosity
        tools = function_specs(prompt.tools)
        if tools:
            settings |= self._tools(prompt, tools)
        head = encode_json(profile.adjusted(settings)).removesuffix(b"}")
        messages = b",".join(self._messages(prompt))
        return b"".join((head, b',"messages":[', messages, b"]}"))

    def decoder(self, prompt: Prompt) -> Decoder:
        return ChatDecoder(prompt, self.maker, deltas=self.deltas)

    def _reasoning(self, prompt: Prompt) -> Mapping[str, Any]:
        """The field that asks for the effort of the prompt."""
        effort = (prompt.reasoning or {}).get("effort")
        if effort is None:
            return {}
        match self.profile.reasoning:
            case "effort":
                return {"reasoning_effort": effort}
            case "object":
                return {"reasoning": {"effort": effort}}
            case "thinking":
                kind = "disabled" if effort == "none" else "enabled"
                return {"thinking": {"type": kind}}
            case "none":
                return {}

    def _tools(
        self,
        prompt: Prompt,
        specs: list[FunctionSpec],
    ) -> Mapping[str, Any]:
        """The fields that offer tools, and say which of them may be called."""
        choice = prompt.tool_choice
        style = self.profile.tool_choice
        entries = [{"type": "function", "function": spec.described()} for spec in specs]
        settings: dict[str, Any] = {"tools": entries}
        if not prompt.parallel_tool_calls and self.profile.parallel_tool_calls:
            settings["parallel_tool_calls"] = False
        if style == "openai" and choice.names:
            settings["tool_choice"] = _named_choice(choice)
        elif style != "ignored" and choice.mode != "auto":
            is_any = style == "any" and choice.mode == "required"
            settings["tool_choice"] = "any" if is_any else choice.mode
        return settings

    def _messages(self, prompt: Prompt) -> list[bytes]:
        """The messages as JSON. Each turn is translated once.

        Templates of local models accept one system message, at the beginning; so later developer
        and system messages become user messages.
        """
        images = prompt.abilities.images and not self.profile.text_content_only
        turns = self._dialogue.of(prompt.input, prompt.model, images=images)
        texts, turns = split_system_texts(turns)
        if prompt.instructions:
            texts.insert(0, prompt.instructions)
        messages: list[bytes] = []
        if texts:
            role = "developer" if self.profile.openai_fields else "system"
            system = {"role": role, "content": "\n\n".join(texts)}
            messages.append(encode_json(system))
        # Messages to the model that follow each other become one user message. These are its parts, and
        # the last one of these messages.
        user_parts: list[JsonObject] = []
        last: InputMessage | None = None
        is_after_tool = False
        for turn in turns:
            if isinstance(turn, InputMessage):
                user_parts += turn.parts
                last = turn
                continue
            messages += self._user(user_parts, last, is_after_tool=is_after_tool)
            of_model, result_images = self._said(turn)
            messages += of_model
            user_parts = list(result_images)
            last = None
            is_after_tool = bool(turn.calls)
        end = self._user(user_parts, last, is_after_tool=is_after_tool)
        return [*messages, *end]

    def _user(
        self,
        parts: Sequence[JsonObject],
        last: InputMessage | None,
        *,
        is_after_tool: bool,
    ) -> list[bytes]:
        """The user message with these parts, if there are any.

        Text alone is a plain string: some servers accept nothing else.

        Args:
            last: the last message that the parts are from; it caches the translation.
            is_after_tool: True if the message before is a tool's result.
        """
        if not parts:
            return []
        # A history only grows. So as many parts before `last` are the same ones.
        key = (len(parts), is_after_tool)
        if last is not None and last.encoded is not None:
            known_key, known = last.encoded
            if known_key == key:
                return known
        content: Any
        if all(part["type"] == "input_text" for part in parts):
            content = "\n\n".join(part["text"] for part in parts)
        else:
            content = [_part(part) for part in parts]
        messages = [encode_json({"role": "user", "content": content})]
        if is_after_tool and self.profile.assistant_after_tool:
            messages.insert(0, encode_json({"role": "assistant", "content": "OK."}))
        if last is not None:
            last.encoded = (key, messages)
        return messages

    def _said(self, turn: ModelTurn) -> tuple[list[bytes], Sequence[JsonObject]]:
        """The messages of a turn, and its results' images, which only a user message can have."""
        if turn.encoded is None:
            results = turn.complete_results()
            images: list[JsonObject] = []
            for result in results:
                images += result.images
            messages = [self._assistant(turn), *map(self._tool, results)]
            encoded = [encode_json(each) for each in messages if each is not None]
            turn.encoded = (encoded, images)
        return turn.encoded

    def _assistant(self, turn: ModelTurn) -> JsonObject | None:
        """The assistant message of a turn; None if it would be empty."""
        texts = [block.text for block in turn.blocks if isinstance(block, DialogueText)]
        text = "\n\n".join(texts)
        calls = [_call(call) for call in turn.calls]
        if not text and not calls:
            return None
        thoughts = [block for block in turn.blocks if isinstance(block, Thought)]
        fields = self._past_reasoning(thoughts)
        # That is no field of the API: the reasoning came within the text, and goes back there.
        thought = fields.pop(THINK_TAG, "")
        if thought:
            text = f"<think>{thought}</think>\n\n{text}"
        message: JsonObject = {"role": "assistant", "content": text or None, **fields}
        if calls:
            message["tool_calls"] = calls
        return message

    def _past_reasoning(self, thoughts: Sequence[Thought]) -> JsonObject:
        """The fields with past reasoning, under the names that it came with."""
        policy = self.profile.replay_reasoning
        fields: JsonObject = {}
        if policy == "never":
            return fields
        for thought in thoughts:
            if thought.data is None:
                continue
            name = text_field(thought.data, "field") or self.profile.reasoning_field
            if thought.text:
                fields[name] = fields.get(name, "") + thought.text
            details = objects(thought.data.get("details"))
            if details:
                earlier = fields.get("reasoning_details", ())
                fields["reasoning_details"] = [*earlier, *details]
        if policy == "required" and self.profile.reasoning_field not in fields:
            text = "\n\n".join(thought.text for thought in thoughts if thought.text)
            # Servers that require the field do not accept it empty.
            fields[self.profile.reasoning_field] = text or " "
        return fields

    def _tool(self, result: DialogueResult) -> JsonObject:
        """The message with a result, without its images."""
        text = result.text
        if result.images:
            text = f"{text}\n{_IMAGES_FOLLOW}".strip()
        message = {"role": "tool", "tool_call_id": result.call.call_id, "content": text}
        if self.profile.name_on_tool_message:
            message["name"] = result.call.name
        return message


def _named_choice(choice: ToolChoice) -> JsonObject:
    """The field `tool_choice` for a choice of named tools, as OpenAI has it."""
    tools = [{"type": "function", "function": {"name": name}} for name in choice.names]
    if choice.mode == "required" and len(tools) == 1:
        return tools[0]
    allowed = {"mode": choice.mode, "tools": tools}
    return {"type": "allowed_tools", "allowed_tools": allowed}


def _call(call: DialogueCall) -> JsonObject:
    """The entry of a call in `tool_calls`."""
    function = {"name": call.name, "arguments": _arguments(call)}
    entry: JsonObject = {"id": call.call_id, "type": "function", "function": function}
    extra = call.data.get("extra_content")
    if extra is not None:
        entry["extra_content"] = extra
    return entry


def _arguments(call: DialogueCall) -> str:
    """The arguments as a JSON object.

    Templates of local models parse it, and strict servers accept nothing else.
    """
    if call.is_freeform:
        return wrapped(call.arguments)
    if strict_json_object(call.arguments) is not None:
        return call.arguments
    return encode_json(arguments_object(call.arguments)).decode()


def _part(part: JsonObject) -> JsonObject:
    """A text or image part in the form of Chat Completions."""
    if part["type"] == "input_text":
        return {"type": "text", "text": part["text"]}
    image = {"url": part["image_url"]}
    if part.get("detail") in {"low", "high", "auto"}:
        image["detail"] = part["detail"]
    return {"type": "image_url", "image_url": image}

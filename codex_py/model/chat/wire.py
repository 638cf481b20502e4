"""Chat Completions: how a request is put together.

Specification: https://platform.openai.com/docs/api-reference/chat. Servers of others know a part of it; a request has
only what every one of them takes, and what the profile of the provider adds.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from codex_py.model.chat.decoder import ChatDecoder
from codex_py.model.chat.messages import ChatMessages
from codex_py.model.freeform import function_specs
from codex_py.model.profile import ProfiledWire
from codex_py.protocol.messages import encode_json
from codex_py.protocol.stream import Decoder, Prompt
from codex_py.protocol.tools import FunctionSpec


class ChatWire(ProfiledWire):
    """A `Wire`."""

    path = "/chat/completions"

    @cached_property
    def _messages(self) -> ChatMessages:
        return ChatMessages(self._maker, self._profile)

    def body(self, prompt: Prompt) -> bytes:
        """The request as JSON. The messages come last, so that each request of a thread begins with the one before."""
        profile = self._profile
        settings: dict[str, Any] = {"model": prompt.model, "stream": True}
        if profile.stream_usage:
            settings["stream_options"] = {"include_usage": True}
        if prompt.max_output_tokens is not None:
            settings[profile.max_tokens_field] = prompt.max_output_tokens
        settings |= self._reasoning(prompt)
        if prompt.output_schema is not None:
            schema = {"name": "codex_output_schema", "strict": True, "schema": prompt.output_schema}
            settings["response_format"] = {"type": "json_schema", "json_schema": schema}
        if prompt.service_tier is not None:
            settings["service_tier"] = prompt.service_tier
        if profile.openai_fields:
            settings["prompt_cache_key"] = prompt.cache_key
            if prompt.verbosity is not None:
                settings["verbosity"] = prompt.verbosity
        if tools := function_specs(prompt.tools):
            settings |= self._tools(prompt, tools)
        head = encode_json(profile.adjusted(settings)).removesuffix(b"}")
        messages = b",".join(self._messages.of(prompt))
        return b"".join((head, b',"messages":[', messages, b"]}"))

    def decoder(self, prompt: Prompt) -> Decoder:
        return ChatDecoder(prompt, self._maker, deltas=self._deltas)

    def _reasoning(self, prompt: Prompt) -> Mapping[str, Any]:
        effort = (prompt.reasoning or {}).get("effort")
        if effort is None:
            return {}
        match self._profile.reasoning:
            case "effort":
                return {"reasoning_effort": effort}
            case "object":
                return {"reasoning": {"effort": effort}}
            case "thinking":
                return {"thinking": {"type": "disabled" if effort == "none" else "enabled"}}
            case "none":
                return {}

    def _tools(self, prompt: Prompt, specs: list[FunctionSpec]) -> Mapping[str, Any]:
        choice, style = prompt.tool_choice, self._profile.tool_choice
        entries = [{"type": "function", "function": spec.described()} for spec in specs]
        settings: dict[str, Any] = {"tools": entries}
        if not prompt.parallel_tool_calls and self._profile.parallel_tool_calls:
            settings["parallel_tool_calls"] = False
        if style == "openai" and choice.names:
            tools = [{"type": "function", "function": {"name": name}} for name in choice.names]
            is_named = choice.mode == "required" and len(tools) == 1
            allowed = {"mode": choice.mode, "tools": tools}
            settings["tool_choice"] = (
                tools[0] if is_named else {"type": "allowed_tools", "allowed_tools": allowed}
            )
        elif style != "ignored" and choice.mode != "auto":
            is_any = style == "any" and choice.mode == "required"
            settings["tool_choice"] = "any" if is_any else choice.mode
        return settings

"""Anthropic Messages: how a request is put together.

Specification: https://docs.anthropic.com/en/api/messages. `model/providers.py` sees to the `/v1` of a base URL.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from codex_py.model.anthropic.decoder import AnthropicDecoder
from codex_py.model.anthropic.messages import AnthropicMessages, marked
from codex_py.model.freeform import function_specs
from codex_py.model.profile import ProfiledWire
from codex_py.protocol.messages import encode_json
from codex_py.protocol.stream import Decoder, Prompt, ToolChoice

_MAX_TOKENS = 32_000
"""If nothing is known of the model; the API wants a limit."""
_MIN_BUDGET = 1024
_BUDGETS = {"minimal": 1024, "low": 4096, "medium": 10_000, "high": 20_000}
"""Tokens of thinking by effort, for models that want a budget; any higher effort gets the most."""
_MOST = 31_999


class AnthropicWire(ProfiledWire):
    """A `Wire`."""

    path = "/messages"
    headers: Mapping[str, str] = {"anthropic-version": "2023-06-01"}

    @cached_property
    def _messages(self) -> AnthropicMessages:
        return AnthropicMessages(self._maker)

    def body(self, prompt: Prompt) -> bytes:
        """The request as JSON: settings, tools, system blocks and messages, in the order in which the provider caches
        them."""
        history = self._messages.of(prompt)
        choice = prompt.tool_choice
        max_tokens = prompt.max_output_tokens or _MAX_TOKENS
        is_thinking = history.may_think and choice.mode != "required"
        settings: dict[str, Any] = {
            "model": prompt.model,
            "max_tokens": max_tokens,
            "stream": True,
            **(self._thinking(prompt, max_tokens) if is_thinking else {}),
        }
        if prompt.output_schema is not None:
            form = {"type": "json_schema", "schema": prompt.output_schema}
            settings["output_config"] = {**settings.get("output_config", {}), "format": form}
        tools = _tools(prompt, history.called)
        if tools:
            settings["tool_choice"] = self._tool_choice(
                choice if prompt.tools else ToolChoice("none"), parallel=prompt.parallel_tool_calls
            )
        mark = self._profile.cache_marks
        fragments = [encode_json(self._profile.adjusted(settings)).removesuffix(b"}")]
        for name, blocks in ((b"tools", tools), (b"system", history.system)):
            if blocks:
                last = marked(blocks[-1]) if mark else blocks[-1]
                fragments.append(b',"%b":[%b]' % (name, b",".join([*blocks[:-1], last])))
        messages = history.encoded(last_marks=2 if mark else 0)
        fragments += (b',"messages":[', b",".join(messages), b"]}")
        return b"".join(fragments)

    def decoder(self, prompt: Prompt) -> Decoder:
        return AnthropicDecoder(prompt, self._maker, deltas=self._deltas)

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
                return {"thinking": {"type": "adaptive"}, "output_config": {"effort": effort}}
            case "budget":
                budget = min(_BUDGETS.get(effort, _MOST), max_tokens * 3 // 4)
                if budget < _MIN_BUDGET:
                    return {}
                return {"thinking": {"type": "enabled", "budget_tokens": budget}}
            case "none":
                return {}

    def _tool_choice(self, choice: ToolChoice, *, parallel: bool) -> Mapping[str, Any]:
        """A set of allowed tools cannot be said; it is enforced when a call is dispatched."""
        if choice.mode == "none":
            return {"type": "none"}
        serial = {} if parallel else {"disable_parallel_tool_use": True}
        if choice.mode == "required" and len(choice.names) == 1:
            return {"type": "tool", "name": choice.names[0], **serial}
        return {"type": "any" if choice.mode == "required" else "auto", **serial}


def _tools(prompt: Prompt, called: Sequence[str]) -> list[bytes]:
    """The tools of a request. A history with calls must define some, also where none may be called."""
    entries: list[dict[str, Any]] = [
        {"name": spec.name, "description": spec.description, "input_schema": spec.parameters}
        for spec in function_specs(prompt.tools)
    ]
    if not entries:
        entries = [{"name": name, "input_schema": {"type": "object"}} for name in called]
    return [encode_json(entry) for entry in entries]

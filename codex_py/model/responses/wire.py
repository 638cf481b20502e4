"""The Responses API: how a request is put together.

Specification: https://platform.openai.com/docs/api-reference/responses. The keys are those that Codex
0.169 sends, less its telemetry; strict servers refuse keys that they do not know.
"""

from collections.abc import Collection
from typing import Any

from codex_py.model.responses.assembler import ResponsesDecoder
from codex_py.protocol.messages import encode_json
from codex_py.protocol.stream import (
    Decoder,
    OutputTextDelta,
    Prompt,
    ReasoningDelta,
    ResponseEvent,
)
from codex_py.protocol.tools import FreeformSpec, FunctionSpec, HostedSpec, ToolSpec

_SERVICE_TIERS = {"fast": "priority"}
"""What the configuration calls a tier, and what the API does, where they differ."""


class ResponsesWire:
    """A `Wire`. The base prompt travels as the first item of the input, not as `instructions`."""

    path = "/responses"

    def __init__(
        self, watched: Collection[type[ResponseEvent]] = (OutputTextDelta, ReasoningDelta)
    ) -> None:
        """`watched` are the deltas that somebody listens to, see `ResponsesDecoder`."""
        self._watched = watched

    def body(self, prompt: Prompt) -> bytes:
        """The request as JSON.

        The items of the prompt are copied as they are. They come last, so that each request of a
        thread begins with the bytes of the one before.
        """
        settings: dict[str, Any] = {
            "model": prompt.model,
            "tool_choice": "auto",
            "parallel_tool_calls": prompt.parallel_tool_calls,
            "store": False,
            "stream": True,
            "include": ["reasoning.encrypted_content"],
            "prompt_cache_key": prompt.cache_key,
        }
        if prompt.reasoning is not None:
            settings["reasoning"] = prompt.reasoning
        if text := _text_settings(prompt):
            settings["text"] = text
        if prompt.service_tier is not None:
            tier = prompt.service_tier
            settings["service_tier"] = _SERVICE_TIERS.get(tier, tier)
        fragments = [encode_json(settings).removesuffix(b"}")]
        if prompt.tools:
            specs = b",".join(encode_json(tool_entry(spec)) for spec in prompt.tools)
            fragments.append(b',"tools":[' + specs + b"]")
        fragments += (b',"input":[', b",".join(prompt.input), b"]}")
        return b"".join(fragments)

    def decoder(self) -> Decoder:
        return ResponsesDecoder(self._watched)


def tool_entry(spec: ToolSpec) -> dict[str, Any]:
    """One entry of a request's `tools`."""
    match spec:
        case FunctionSpec(name, description, parameters):
            return {
                "type": "function",
                "name": name,
                "description": description,
                "strict": False,
                "parameters": parameters,
            }
        case FreeformSpec(name, description, grammar):
            return {
                "type": "custom",
                "name": name,
                "description": description,
                "format": {"type": "grammar", "syntax": "lark", "definition": grammar},
            }
        case HostedSpec(name, options):
            return {"type": name, **options}


def _text_settings(prompt: Prompt) -> dict[str, Any]:
    text: dict[str, Any] = {}
    if prompt.verbosity is not None:
        text["verbosity"] = prompt.verbosity
    if prompt.output_schema is not None:
        text["format"] = {
            "type": "json_schema",
            "strict": True,
            "name": "codex_output_schema",
            "schema": prompt.output_schema,
        }
    return text

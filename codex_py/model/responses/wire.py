"""Builds the requests of the Responses API.

Specification: https://platform.openai.com/docs/api-reference/responses. The keys are the ones that
Codex 0.169 sends, without its telemetry; strict servers refuse keys that they do not know.
"""

from collections.abc import Collection, Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import groupby
from typing import Any

from codex_py.instructions import instruction_text
from codex_py.model.freeform import freeform_names, function_specs
from codex_py.model.profile import ProfiledWire
from codex_py.model.provider_data import OwnItems
from codex_py.protocol.messages import EncodedItem, encode_json, input_text, message
from codex_py.protocol.stream import Decoder, Prompt
from codex_py.protocol.tools import FreeformSpec, FunctionSpec, HostedSpec, ToolSpec

_SERVICE_TIERS = {"fast": "priority"}
"""The names of a tier in the configuration and in the API, if they differ."""
_NO_BASE_PROMPT = "Follow the instructions in the input."
"""The `instructions` of a request without a base prompt, because a server that wants them refuses an
empty text."""


class ResponsesWire(ProfiledWire):
    """A `Wire`. The base prompt is sent as the first item of the input, unless the profile wants it in
    `instructions`."""

    path = "/responses"
    _encoded: tuple[tuple[ToolSpec, ...], bytes] | None = None
    """The tools of the last request, and their entries as JSON."""

    @cached_property
    def _own(self) -> OwnItems:
        profile = self.profile
        return OwnItems(
            self.maker,
            functions_only=profile.function_tools_only,
            tool_ids=profile.tool_ids,
        )

    def body(self, prompt: Prompt) -> bytes:
        """The request as JSON.

        The items of the prompt are copied as they are. They come last, so that each request of a
        thread begins like the one before.
        """
        settings: dict[str, Any] = {
            "model": prompt.model,
            "tool_choice": self._tool_choice(prompt),
            "parallel_tool_calls": prompt.parallel_tool_calls,
            "store": False,
            "stream": True,
            "include": ["reasoning.encrypted_content"],
            "prompt_cache_key": prompt.cache_key,
        }
        if prompt.reasoning is not None:
            settings["reasoning"] = prompt.reasoning
        is_in_input = self.profile.base_prompt == "input"
        if not is_in_input:
            settings["instructions"] = prompt.instructions or _NO_BASE_PROMPT
        text = _text_settings(prompt)
        if text:
            settings["text"] = text
        if prompt.service_tier is not None:
            tier = prompt.service_tier
            settings["service_tier"] = _SERVICE_TIERS.get(tier, tier)
        if prompt.max_output_tokens is not None:
            settings["max_output_tokens"] = prompt.max_output_tokens
        fragments = [encode_json(self.profile.adjusted(settings)).removesuffix(b"}")]
        if prompt.tools:
            fragments.append(b',"tools":[' + self._tools(prompt.tools) + b"]")
        items = list(self._own.of(prompt.input, images=prompt.abilities.images))
        if prompt.instructions and is_in_input:
            items.insert(0, _base_item(prompt.instructions))
        # Join the settings to the first item and the end to the last one, so that a long history is
        # copied once.
        first, *rest = items or [EncodedItem(b"")]
        head = b"".join((*fragments, b',"input":[', first))
        pieces = [head, *rest]
        pieces[-1] += b"]}"
        return b",".join(pieces)

    def _tool_choice(self, prompt: Prompt) -> str | dict[str, Any]:
        """The field `tool_choice`."""
        choice = prompt.tool_choice
        if not choice.names:
            return choice.mode
        freeform: Collection[str] = ()
        if not self.profile.function_tools_only:
            freeform = freeform_names(prompt)
        tools: list[dict[str, Any]] = []
        for name in choice.names:
            kind = "custom" if name in freeform else "function"
            tools.append({"type": kind, "name": name})
        if choice.mode == "required" and len(tools) == 1:
            return tools[0]
        return {"type": "allowed_tools", "mode": choice.mode, "tools": tools}

    def _tools(self, specs: Sequence[ToolSpec]) -> bytes:
        """The entries of `tools`, which are encoded once for requests with the same tools."""
        specs = tuple(specs)
        if self._encoded is not None:
            known, encoded = self._encoded
            if known == specs:
                return encoded
        profile = self.profile
        flat = profile.function_tools_only or not profile.tool_namespaces
        tools: Sequence[ToolSpec] = specs
        if profile.function_tools_only:
            tools = function_specs(specs)
        encoded = b",".join(map(encode_json, _tool_entries(tools, flat=flat)))
        self._encoded = (specs, encoded)
        return encoded

    def decoder(self, prompt: Prompt) -> Decoder:
        from codex_py.model.responses.decoder import ResponsesDecoder  # 9 ms

        wrapped: Collection[str] = ()
        if self.profile.function_tools_only:
            wrapped = freeform_names(prompt)
        return ResponsesDecoder(deltas=self.deltas, maker=self.maker, wrapped=wrapped)


def _tool_entries(
    tools: Sequence[ToolSpec],
    *,
    flat: bool,
) -> Iterator[dict[str, Any]]:
    """The entries of a request's `tools`. `flat`: the provider knows no namespaces."""
    for namespace, specs in groupby(tools, _namespace):
        entries = map(tool_entry, specs)
        if namespace is None or flat:
            yield from entries
        else:
            description = instruction_text(f"namespaces/{namespace}.md")
            fields = {
                "type": "namespace",
                "name": namespace,
                "description": description,
            }
            yield {**fields, "tools": list(entries)}


def _namespace(spec: ToolSpec) -> str | None:
    if isinstance(spec, FunctionSpec):
        return spec.namespace
    return None


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


@lru_cache(maxsize=1)
def _base_item(instructions: str) -> EncodedItem:
    return message("developer", [input_text(instructions)])


def _text_settings(prompt: Prompt) -> dict[str, Any]:
    """The field `text`: how long the answer may be, and its schema."""
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

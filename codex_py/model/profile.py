"""The quirks of a provider's API: `[model_providers.<id>.profile]`.

Wires read the profile, and know no provider by name.
"""

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal, cast

from codex_py.model.provider_data import Maker
from codex_py.protocol.frozen import frozen


@frozen(kw_only=True)
class Profile:
    """A provider's differences from OpenAI's API.

    The defaults fit a server that behaves like OpenAI's API and refuses unknown fields.
    """

    tools: Literal["native", "text"] = "native"
    """`text`: calls are written into the text of messages, for models that cannot call tools."""
    function_tools_only: bool = False
    """Freeform tools are offered as functions, and hosted ones not at all."""
    tool_namespaces: bool = True
    """Responses: the server knows tools in a namespace. If not, they have flat names."""
    base_prompt: Literal["input", "instructions"] = "input"
    """Responses: the place of the base prompt: the first item of the input, or `instructions`."""
    openai_fields: bool = False
    """Chat: the server knows the role `developer`, `verbosity` and `prompt_cache_key`, as OpenAI's
    own server does."""
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = (
        "max_completion_tokens"
    )
    """Chat: the name of the limit on the output."""
    reasoning: Literal["effort", "object", "thinking", "none"] = "effort"
    """Chat: how an effort is asked for: by `reasoning_effort`, by `reasoning: {effort}`, by
    `thinking: {type}`, or not at all."""
    replay_reasoning: Literal["never", "same_model", "required"] = "same_model"
    """Chat: past reasoning is sent again never, to the model that made it, or always. With
    `required`, every message with calls has some, at least a blank."""
    reasoning_field: str = "reasoning_content"
    """Chat: the field for reasoning that did not come in a field of its own."""
    tool_choice: Literal["openai", "any", "ignored"] = "openai"
    """`any`: the server says `any` for `required`, and no tool can be named. `ignored`: the server
    has no such field."""
    parallel_tool_calls: bool = True
    """The server honours `parallel_tool_calls`."""
    tool_ids: Literal["verbatim", "openai", "mistral", "anthropic"] = "verbatim"
    """The ids of calls that the server accepts. `verbatim`: any. `openai`: 40 of `[a-zA-Z0-9_-]`.
    `mistral`: 9 letters and digits. `anthropic`: 64 of `[a-zA-Z0-9_-]`."""
    text_content_only: bool = False
    """Chat: the content of messages is a string, and images are left out."""
    name_on_tool_message: bool = False
    """Chat: a result names the tool that was called."""
    assistant_after_tool: bool = False
    """Chat: a user message may not follow a tool message; an assistant message is put between."""
    stream_usage: bool = True
    """Chat: the server knows `stream_options.include_usage`."""
    cache_marks: bool = True
    """Anthropic: the server knows `cache_control`."""
    thinking: Literal["adaptive", "budget", "none"] = "adaptive"
    """Anthropic: how an effort is asked for."""
    extra_body: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Fields of every request; they replace those of the wire."""
    left_out: list[str] = field(default_factory=list[str])
    """Fields that the server refuses, such as `parallel_tool_calls` or `text.verbosity`. No request
    has them."""

    def adjusted(self, settings: dict[str, Any]) -> dict[str, Any]:
        """The fields of a request as the server wants them."""
        settings = {**settings, **self.extra_body}
        for name in self.left_out:
            outer, _, inner = name.partition(".")
            value = settings.pop(outer, None)
            if inner and isinstance(value, dict):
                rest = dict(cast("dict[str, Any]", value))
                rest.pop(inner, None)
                if rest:
                    settings[outer] = rest
        return settings


class ProfiledWire:
    """The common part of the wires that implement an API.

    Attributes:
        headers: headers of every request. The program's own and those of the provider's settings
            replace them.
        deltas: True to emit deltas, see `ResponsesDecoder`.
        maker: tells which items of the history the provider has made itself.
        profile: the quirks of the provider.
    """

    headers: Mapping[str, str] = {}

    def __init__(
        self,
        *,
        deltas: bool = True,
        maker: Maker | None = None,
        profile: Profile | None = None,
    ) -> None:
        """
        Args:
            deltas: see the attribute.
            maker: the provider that gets the requests; None: the provider that made every item of
                the history.
        """
        self.deltas = deltas
        self.maker = maker or Maker()
        self.profile = profile or Profile()

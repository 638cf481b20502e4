"""Tries the abilities of a provider's API with a few tiny requests, for `codex-py providers test`
and `doctor --provider`."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from codex_py.app.providers.first_answer import (
    MAX_OUTPUT_TOKENS,
    FirstAnswer,
    asked,
    model_clients,
)
from codex_py.config.config import Config
from codex_py.errors import CodexError, ModelError, StreamError
from codex_py.model.providers import Provider
from codex_py.protocol.frozen import frozen
from codex_py.protocol.items import CustomToolCall, FunctionCall
from codex_py.protocol.stream import ModelClient, ToolChoice
from codex_py.protocol.tools import FreeformSpec, FunctionSpec

_WEATHER = FunctionSpec(
    "weather",
    "Tells the weather in one city.",
    {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    },
)
_OF_TOOLS = re.compile("tool|function|custom", re.IGNORECASE)
"""Matches a message about tools."""
_NOTE = FreeformSpec("note", "Writes down a line of text.", "start: /[^\\n]+/")


@frozen
class TrialFinding:
    ability: str
    works: bool | None
    """True if the ability works, False if not, None if the trial could not tell."""
    note: str = ""
    """One clause about it, perhaps a message of the server."""


def _cities(answer: FirstAnswer) -> int:
    """The number of correct calls of the tool `weather`."""
    calls = [item for item in answer.items if isinstance(item, FunctionCall)]
    return sum(
        call.name == _WEATHER.name and "city" in call.arguments for call in calls
    )


@frozen
class _Check:
    """A request, and what a good answer to it is."""

    ability: str
    is_fine: Callable[[FirstAnswer], bool]
    otherwise: str
    """The finding if the answer is wrong."""
    text: str
    request: Mapping[str, Any]
    """Fields of the `Prompt`."""


_TOOLS = _Check(
    "tools",
    lambda answer: _cities(answer) > 0,
    "the model did not call the tool",
    "What is the weather in Oslo?",
    {"tools": [_WEATHER]},
)
_OTHERS = (
    _Check(
        "parallel calls",
        lambda answer: _cities(answer) > 1,
        "the model called one tool at a time",
        "What is the weather in Oslo and in Rome? Call the tool for both at once.",
        {"tools": [_WEATHER]},
    ),
    _Check(
        "freeform tools",
        lambda answer: any(isinstance(item, CustomToolCall) for item in answer.items),
        "the model did not call the tool",
        "Write down: hello",
        {"tools": [_NOTE]},
    ),
    _Check(
        "tool_choice",
        lambda answer: _cities(answer) > 0,
        "the model did not call the tool that it had to",
        "Say hello.",
        {
            "tools": [_WEATHER, _NOTE],
            "tool_choice": ToolChoice("required", (_WEATHER.name,)),
        },
    ),
    _Check(
        "images",
        lambda answer: "red" in answer.text.lower(),
        "the model did not see what is in the image",
        "Which colour is this image? Answer with one word.",
        {},
    ),
    _Check(
        "reasoning",
        lambda answer: answer.has_reasoned or answer.usage.reasoning_output_tokens > 0,
        "an effort was accepted, but no reasoning came back",
        "What is 17 times 23?",
        {"reasoning": {"effort": "low"}},
    ),
)


async def tried(
    config: Config,
    provider: Provider,
    model: str,
    environment: Mapping[str, str],
) -> Sequence[TrialFinding]:
    """Try a model of a provider. The first finding is `streaming`.

    Raises:
        CodexError: not even the first request was answered.
    """
    async with model_clients(config, provider, environment) as clients:
        client = clients.connect(provider)
        answer = await asked(client, model, "Count from one to twenty in words.", {})
        findings = [_streaming(answer)]
        tools = await _found(client, model, _TOOLS)
        findings.append(tools)
        checks = _OTHERS
        if not tools.works:
            checks = [check for check in _OTHERS if "tools" not in check.request]
        findings += [await _found(client, model, check) for check in checks]
        if tools.works is False and provider.profile.tools == "native":
            profile = replace(provider.profile, tools="text")
            as_text = clients.connect(replace(provider, profile=profile))
            check = replace(_TOOLS, ability="text tools")
            findings.append(await _found(as_text, model, check))
    return findings


async def _found(
    client: ModelClient,
    model: str,
    check: _Check,
) -> TrialFinding:
    """Try one ability."""
    shows_image = check.ability == "images"
    try:
        answer = await asked(client, model, check.text, check.request, shows_image)
    except StreamError as error:
        return TrialFinding(check.ability, None, str(error))
    except ModelError as error:
        text = str(error)
        if "tools" in check.request and _OF_TOOLS.search(text) is None:
            # A refusal for another reason, such as a limit, says nothing about tools.
            return TrialFinding(check.ability, None, text)
        return TrialFinding(check.ability, False, text)
    if check.is_fine(answer):
        return TrialFinding(check.ability, True)
    if answer.is_cut:
        text = f"the answer was longer than {MAX_OUTPUT_TOKENS} tokens"
        return TrialFinding(check.ability, None, text)
    return TrialFinding(check.ability, False, check.otherwise)


def _streaming(answer: FirstAnswer) -> TrialFinding:
    """Tell from the first answer whether the text comes in pieces."""
    if answer.is_cut:
        works = answer.text_deltas > 0 or answer.has_reasoned
        note = f"cut off after {MAX_OUTPUT_TOKENS} tokens"
        return TrialFinding("streaming", works, note)
    if not answer.text.strip():
        return TrialFinding("streaming", False, "the answer has no text")
    notes: list[str] = []
    if answer.text_deltas <= 1:
        notes.append("the text came in one piece")
    if not answer.usage.total_tokens:
        notes.append("the server reports no usage")
    return TrialFinding("streaming", answer.text_deltas > 0, "; ".join(notes))


def advice(error: CodexError, provider: Provider) -> str | None:
    """Advice about a request that was not answered; None if the error contains the advice."""
    match error.code:
        case "endless":
            return "The model does not stop by itself, or is slow: `--model` names another one."
        case "connection" | "timeout":
            return f"Look at `base_url`, and whether a server runs there: {provider.shown_url}"
        case "not_found" | "redirect" | "unexpected_status":
            return (
                "Look at `base_url`, which usually ends in /v1, and at `wire_api`:"
                f" {provider.shown_url} is asked in `{provider.wire_api}`."
            )
        case "model_not_found" | "not_found_error":
            return "Look at the name of the model."
        case "authentication" | "invalid_api_key" | "authentication_error" if (
            provider.env_key
        ):
            return f"Look at the key in the variable `{provider.env_key}`."
        case _:
            return None

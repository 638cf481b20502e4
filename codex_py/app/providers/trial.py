"""Tries what a provider's API can do, with a few tiny requests, for `codex-py providers test` and `doctor --provider`."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from codex_py.app.model import ModelClients
from codex_py.app.options import SessionOptions, SessionSetup
from codex_py.config.config import Config
from codex_py.errors import CodexError, ExitCode, ModelError, StreamError
from codex_py.model.providers import Provider
from codex_py.protocol.frozen import frozen
from codex_py.protocol.ids import new_thread_id
from codex_py.protocol.items import CustomToolCall, FunctionCall, Message, Reasoning, ResponseItem
from codex_py.protocol.mcp import DecliningElicitor
from codex_py.protocol.messages import input_text, message
from codex_py.protocol.stream import (
    Completed,
    ModelClient,
    OutputItemDone,
    OutputTextDelta,
    Prompt,
    ReasoningDelta,
    ResponseEvent,
    ToolChoice,
    Usage,
)
from codex_py.protocol.tools import FreeformSpec, FunctionSpec

_REQUEST_S = 60.0
_RED_PNG = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAACAAAAAgCAIAAAD8GO2jAAAAJ0lEQVR42u3NsQkAAAjAsP7/tF7h"
    "IASyp6lTCQQCgUAgEAgEgi/BAjLD/C5w/SM9AAAAAElFTkSuQmCC"
)
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
_NOTE = FreeformSpec("note", "Writes down a line of text.", "start: /[^\\n]+/")


@frozen
class Finding:
    ability: str
    works: bool | None
    """None: it could not be found out."""
    note: str = ""


@dataclass(slots=True)
class _Answer:
    text: str = ""
    text_deltas: int = 0
    items: list[ResponseItem] = field(default_factory=list[ResponseItem])
    has_reasoned: bool = False
    usage: Usage = field(default_factory=Usage)

    def take(self, event: ResponseEvent) -> None:
        match event:
            case OutputTextDelta():
                self.text_deltas += 1
            case ReasoningDelta():
                self.has_reasoned = True
            case OutputItemDone(item=item):
                self.items.append(item)
                self.has_reasoned |= isinstance(item, Reasoning)
                self.text += item.text if isinstance(item, Message) else ""
            case Completed(usage=usage):
                self.usage = usage
            case _:
                pass

    def cities(self) -> int:
        """How many calls of the tool `weather` are right."""
        calls = [item for item in self.items if isinstance(item, FunctionCall)]
        return sum(call.name == _WEATHER.name and "city" in call.arguments for call in calls)


@frozen
class _Check:
    ability: str
    is_fine: Callable[[_Answer], bool]
    otherwise: str
    """The finding if the answer is not fine."""
    text: str
    request: Mapping[str, Any]
    """Fields of the `Prompt`."""


_TOOLS = _Check(
    "tools",
    lambda answer: answer.cities() > 0,
    "the model did not call the tool",
    "What is the weather in Oslo?",
    {"tools": [_WEATHER]},
)
_WITH_TOOLS = (
    _Check(
        "parallel calls",
        lambda answer: answer.cities() > 1,
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
        lambda answer: answer.cities() > 0,
        "the model did not call the tool that it had to",
        "Say hello.",
        {"tools": [_WEATHER, _NOTE], "tool_choice": ToolChoice("required", (_WEATHER.name,))},
    ),
)
_WITHOUT_TOOLS = (
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


async def first_answer(
    config: Config, provider: Provider, model: str, environment: Mapping[str, str]
) -> None:
    """Send one tiny request. Raises a `CodexError` if it was not answered."""
    async with _clients(config, provider, environment) as clients:
        await _asked(clients.connect(provider), model, "Say OK.", {})


async def tried(
    config: Config, provider: Provider, model: str, environment: Mapping[str, str]
) -> Sequence[Finding]:
    """What works with a model of a provider; the first finding is `streaming`.

    Raises:
        CodexError: not even the first request was answered.
    """
    async with _clients(config, provider, environment) as clients:
        client = clients.connect(provider)
        answer = await _asked(client, model, "Count from one to twenty in words.", {})
        findings = [_streaming(answer)]
        tools = await _found(client, model, _TOOLS)
        findings.append(tools)
        checks = (*_WITH_TOOLS, *_WITHOUT_TOOLS) if tools.works else _WITHOUT_TOOLS
        findings += [await _found(client, model, check) for check in checks]
        if tools.works is False and provider.profile.tools == "native":
            as_text = replace(provider, profile=replace(provider.profile, tools="text"))
            check = replace(_TOOLS, ability="text tools")
            findings.append(await _found(clients.connect(as_text), model, check))
    return findings


@asynccontextmanager
async def _clients(
    config: Config, provider: Provider, environment: Mapping[str, str]
) -> AsyncGenerator[ModelClients]:
    setup = SessionSetup(
        config, SessionOptions(), environment, None, DecliningElicitor(), lambda _: None
    )
    clients = ModelClients(setup, new_thread_id(), home=provider.id)
    try:
        yield clients
    finally:
        await clients.aclose()


async def _found(client: ModelClient, model: str, check: _Check) -> Finding:
    try:
        answer = await _asked(client, model, check.text, check.request, check.ability == "images")
    except StreamError as error:
        return Finding(check.ability, None, str(error))
    except ModelError as error:
        return Finding(check.ability, False, str(error))
    works = check.is_fine(answer)
    return Finding(check.ability, works, "" if works else check.otherwise)


async def _asked(
    client: ModelClient, model: str, text: str, request: Mapping[str, Any], with_image: bool = False
) -> _Answer:
    """The whole answer; a `ModelError` if there was none."""
    image = {"type": "input_image", "image_url": _RED_PNG, "detail": "auto"}
    prompt = Prompt(
        model=model,
        input=[message("user", [input_text(text), *([image] if with_image else [])])],
        cache_key=new_thread_id(),
        instructions="Be brief. Use a tool if one fits.",
        **request,
    )
    answer = _Answer()
    try:
        async with asyncio.timeout(_REQUEST_S), client.stream(prompt) as events:
            async for event in events:
                answer.take(event)
    except TimeoutError as error:
        text = f"there was no whole answer within {_REQUEST_S:.0f} s"
        raise StreamError(text, code="timeout", exit_code=ExitCode.UNAVAILABLE) from error
    return answer


def _streaming(answer: _Answer) -> Finding:
    if not answer.text.strip():
        return Finding("streaming", False, "the answer has no text")
    notes = [] if answer.text_deltas > 1 else ["the text came in one piece"]
    if not answer.usage.total_tokens:
        notes.append("the server reports no usage")
    return Finding("streaming", answer.text_deltas > 0, "; ".join(notes))


def advice(error: CodexError, provider: Provider) -> str | None:
    """What to do about a request that was not answered; None if the error says so itself."""
    match error.code:
        case "connection" | "timeout":
            return f"Look at `base_url`, and whether a server runs there: {provider.shown_url}"
        case "not_found" | "redirect" | "unexpected_status":
            return f"Look at `base_url`, which usually ends in /v1, and at `wire_api`: {provider.shown_url} is asked in `{provider.wire_api}`."
        case "model_not_found" | "not_found_error":
            return "Look at the name of the model."
        case "authentication" | "invalid_api_key" | "authentication_error" if provider.env_key:
            return f"Look at the key in the variable `{provider.env_key}`."
        case _:
            return None

"""Sends a provider one tiny request, as `codex-py providers test` and `doctor --provider` do."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from codex_py.app.model import ModelClients
from codex_py.app.options import SessionOptions, SessionSetup
from codex_py.config.config import Config
from codex_py.errors import ExitCode, StreamError
from codex_py.model.providers import Provider
from codex_py.protocol.ids import new_thread_id
from codex_py.protocol.items import Message, Reasoning, ResponseItem
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
    Usage,
)

_REQUEST_S = 60.0
_RED_PNG = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAACAAAAAgCAIAAAD8GO2jAAAAJ0lEQVR42u3NsQkAAAjAsP7/tF7h"
    "IASyp6lTCQQCgUAgEAgEgi/BAjLD/C5w/SM9AAAAAElFTkSuQmCC"
)


@dataclass(slots=True)
class Answer:
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


async def first_answer(
    config: Config, provider: Provider, model: str, environment: Mapping[str, str]
) -> None:
    """Send one tiny request. Raises a `CodexError` if it was not answered."""
    async with model_clients(config, provider, environment) as clients:
        await asked(clients.connect(provider), model, "Say OK.", {})


@asynccontextmanager
async def model_clients(
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


async def asked(
    client: ModelClient, model: str, text: str, request: Mapping[str, Any], with_image: bool = False
) -> Answer:
    """The whole answer; a `ModelError` if there was none."""
    image = {"type": "input_image", "image_url": _RED_PNG, "detail": "auto"}
    prompt = Prompt(
        model=model,
        input=[message("user", [input_text(text), *([image] if with_image else [])])],
        cache_key=new_thread_id(),
        instructions="Be brief. Use a tool if one fits.",
        **request,
    )
    answer = Answer()
    try:
        async with asyncio.timeout(_REQUEST_S), client.stream(prompt) as events:
            async for event in events:
                answer.take(event)
    except TimeoutError as error:
        text = f"there was no whole answer within {_REQUEST_S:.0f} s"
        raise StreamError(text, code="timeout", exit_code=ExitCode.UNAVAILABLE) from error
    return answer

"""Sends a provider one tiny request, as `codex-py providers test` and `doctor --provider` do."""

import asyncio
import re
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any, Final

from codex_py.app.model import ModelClients
from codex_py.app.options import SessionOptions, SessionSetup
from codex_py.config.config import Config
from codex_py.errors import ExitCode, ModelError, StreamError
from codex_py.model.providers import Provider
from codex_py.model.retry import Retries
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

MAX_OUTPUT_TOKENS: Final = 1_500
"""The tokens for an answer of a few words after some reasoning. A local model may never end by
itself."""
_REQUEST_S = 60.0
"""The time limit for one attempt."""
_LOADING_S = 30.0
"""The time after which no further attempt begins."""
_LOADING_PAUSE_S = 2.0
_MAX_RETRIES = 4
"""The number of retries after other temporary refusals."""
_LIMIT_FIELD: Final = re.compile("max_(?:completion_|output_)?tokens")
"""Matches the name of the limit on the output."""
_RED_PNG = (
    "data:image/png;base64,"
    "iVBORw0KGgoAAAANSUhEUgAAACAAAAAgCAIAAAD8GO2jAAAAJ0lEQVR42u3NsQkAAAjAsP7/tF7h"
    "IASyp6lTCQQCgUAgEAgEgi/BAjLD/C5w/SM9AAAAAElFTkSuQmCC"
)


@dataclass(slots=True)
class FirstAnswer:
    """An answer, with facts about how it came."""

    text: str = ""
    text_deltas: int = 0
    """The number of pieces in which the text came."""
    items: list[ResponseItem] = field(default_factory=list[ResponseItem])
    has_reasoned: bool = False
    is_cut: bool = False
    """True if the answer was longer than the limit."""
    usage: Usage = field(default_factory=Usage)

    @property
    def has_begun(self) -> bool:
        return bool(self.text_deltas or self.items or self.has_reasoned)

    def take(self, event: ResponseEvent) -> None:
        """Add what an event tells."""
        match event:
            case OutputTextDelta():
                self.text_deltas += 1
            case ReasoningDelta():
                self.has_reasoned = True
            case OutputItemDone(item=item):
                self.items.append(item)
                self.has_reasoned |= isinstance(item, Reasoning)
                if isinstance(item, Message):
                    self.text += item.text
            case Completed(usage=usage):
                self.usage = usage
            case _:
                pass


async def first_answer(
    config: Config,
    provider: Provider,
    model: str,
    environment: Mapping[str, str],
) -> None:
    """Send one tiny request. Raises a `CodexError` if it was not answered."""
    async with model_clients(config, provider, environment) as clients:
        await asked(clients.connect(provider), model, "Say OK.", {})


@asynccontextmanager
async def model_clients(
    config: Config, provider: Provider, environment: Mapping[str, str]
) -> AsyncGenerator[ModelClients]:
    """Make the clients of a thread that is never kept, and close them at the end."""
    setup = SessionSetup(
        config, SessionOptions(), environment, None, DecliningElicitor(), lambda _: None
    )
    clients = ModelClients(setup, new_thread_id(), first_provider=provider.id)
    try:
        yield clients
    finally:
        await clients.aclose()


async def asked(
    client: ModelClient,
    model: str,
    text: str,
    request: Mapping[str, Any],
    with_image: bool = False,
) -> FirstAnswer:
    """Return the answer, which is cut off at `MAX_OUTPUT_TOKENS`.

    A server that still loads its model is asked again for some seconds. A server that refuses the
    limit is asked again without it. After other temporary refusals, the request is retried as in a
    session, within the same time.

    Raises:
        ModelError: there was no answer.
    """
    content = [input_text(text)]
    if with_image:
        image = {"type": "input_image", "image_url": _RED_PNG, "detail": "auto"}
        content.append(image)
    prompt = Prompt(
        model=model,
        input=[message("user", content)],
        cache_key=new_thread_id(),
        instructions="Be brief. Use a tool if one fits.",
        max_output_tokens=MAX_OUTPUT_TOKENS,
        **request,
    )
    give_up = time.monotonic() + _LOADING_S
    retries = Retries(_MAX_RETRIES, 0)
    while True:
        try:
            return await _answered(client, prompt)
        except ModelError as error:
            if prompt.max_output_tokens is not None and _refuses_limit(error):
                prompt = replace(prompt, max_output_tokens=None)
                continue
            wait_s = _wait_s(error, retries)
            if wait_s is None:
                raise
            if time.monotonic() + wait_s > give_up:
                raise _given_up(error) from error
            await asyncio.sleep(wait_s)


def _wait_s(error: ModelError, retries: Retries) -> float | None:
    """Return the time to wait before the next attempt; None if the failure is final."""
    if _is_loading(error):
        return _LOADING_PAUSE_S
    if error.status is None:
        # No server answers there.
        return None
    retry = retries.next(error)
    if retry is None:
        return None
    return retry.delay_s


def _given_up(error: ModelError) -> ModelError:
    """The error to raise when the time for further attempts is over."""
    if not _is_loading(error):
        return error
    return StreamError(
        f"the server is still loading the model: {error}",
        code=error.code,
        exit_code=ExitCode.UNAVAILABLE,
        status=error.status,
    )


async def _answered(client: ModelClient, prompt: Prompt) -> FirstAnswer:
    """Make one attempt."""
    answer = FirstAnswer()
    try:
        async with asyncio.timeout(_REQUEST_S), client.stream(prompt) as events:
            async for event in events:
                answer.take(event)
    except TimeoutError as error:
        code = "timeout"
        text = f"there was no answer within {_REQUEST_S:.0f} s"
        if answer.has_begun:
            code = "endless"
            text = f"it streams, but did not end within {_REQUEST_S:.0f} s"
        raise StreamError(text, code=code, exit_code=ExitCode.UNAVAILABLE) from error
    except ModelError as error:
        is_longer_than_limit = error.code == "incomplete" and answer.has_begun
        if not is_longer_than_limit:
            raise
        answer.is_cut = True
    return answer


def _refuses_limit(error: ModelError) -> bool:
    """True if the server does not know, or does not accept, the limit on the output."""
    refusals = {HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY}
    if error.status not in refusals:
        return False
    return _LIMIT_FIELD.search(str(error)) is not None


def _is_loading(error: ModelError) -> bool:
    """True if the server still loads its model."""
    if error.status is None or error.status < HTTPStatus.INTERNAL_SERVER_ERROR:
        return False
    return "loading" in str(error).lower()

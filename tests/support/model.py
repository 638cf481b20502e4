"""A model that says what a test wrote down, and looks at what it is sent."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from codex_py.protocol.events import Reconnecting
from codex_py.protocol.items import FunctionCall, Message, ResponseItem
from codex_py.protocol.messages import input_text, message
from codex_py.protocol.stream import (
    Completed,
    OutputItemDone,
    Prompt,
    ResponseEvent,
    Usage,
)

Step = ResponseEvent | Exception | Callable[[], Awaitable[None]]


class ScriptedModel:
    """Plays one list of steps for each request: events are given out, exceptions raised, and
    functions awaited. Keeps the prompts it was sent, decoded, and checks that each begins with the
    one before, unless `check_prefix` is off: where the history is replaced on purpose."""

    def __init__(self, *responses: Sequence[Step], check_prefix: bool = True) -> None:
        self._responses = list(responses)
        self._check_prefix = check_prefix
        self.inputs: list[list[dict[str, Any]]] = []
        self.prompts: list[Prompt] = []

    @asynccontextmanager
    async def stream(
        self, prompt: Prompt
    ) -> AsyncGenerator[AsyncIterator[ResponseEvent]]:
        base = [message("developer", [input_text(prompt.instructions)])]
        sent = [
            json.loads(item)
            for item in (*(base if prompt.instructions else ()), *prompt.input)
        ]
        if self.inputs and self._check_prefix:
            assert sent[: len(self.inputs[-1])] == self.inputs[-1]
        self.inputs.append(sent)
        self.prompts.append(prompt)
        yield self._play(self._responses.pop(0))

    async def aclose(self) -> None:
        pass

    async def _play(self, steps: Sequence[Step]) -> AsyncIterator[ResponseEvent]:
        for step in steps:
            if isinstance(step, Exception):
                raise step
            if callable(step):
                await step()
            else:
                yield step
            await asyncio.sleep(0)


def says(text: str, index: int = 0) -> OutputItemDone:
    item = Message(role="assistant", content=[{"type": "output_text", "text": text}])
    return OutputItemDone(index, item)


def calls(
    call_id: str, name: str = "echo", arguments: str = "{}", index: int = 0
) -> OutputItemDone:
    return OutputItemDone(
        index, FunctionCall(call_id=call_id, name=name, arguments=arguments)
    )


def done(index: int, item: ResponseItem) -> OutputItemDone:
    return OutputItemDone(index, item)


def completed(
    input_tokens: int = 10, output_tokens: int = 5, **extra: Any
) -> Completed:
    return Completed(
        Usage(input_tokens=input_tokens, output_tokens=output_tokens), **extra
    )


def reconnecting(
    cause: str,
    code: str = "stream",
    status: int | None = None,
    *,
    wait_s: float = 0.0,
    attempt: int = 1,
) -> Reconnecting:
    """The first of two retries is announced."""
    return Reconnecting(
        f"Reconnecting... 1/2 ({cause})",
        code,
        status,
        cause=cause,
        attempt=attempt,
        max_attempts=2,
        wait_s=wait_s,
    )

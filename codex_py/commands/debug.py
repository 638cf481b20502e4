"""`codex-py debug prompt-input` shows a session's next request, `debug wrappers` the wrappers.

Nothing is sent, and no session file is written or changed.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import httpx

from codex_py.app.options import SessionOptions
from codex_py.app.session import made_session, open_session
from codex_py.app.settings import configured_choices
from codex_py.app.wrappers import (
    Wrapper,
    approval_wrappers,
    call_wrappers,
    request_wrappers,
)
from codex_py.command_line.arguments import Arguments
from codex_py.command_line.configuration import read_config
from codex_py.command_line.parser import CommandParser, given
from codex_py.config.config import Config
from codex_py.config.declared.section import changed
from codex_py.errors import CodexError, UsageError
from codex_py.protocol.event_items import ErrorItem
from codex_py.protocol.events import Event, ItemCompleted
from codex_py.protocol.extension import Extension, Thread
from codex_py.protocol.messages import EncodedItem
from codex_py.protocol.prompts import prompt_of
from codex_py.protocol.stream import ModelStream, Prompt, ResponseEvent
from codex_py.streams.standard import print_json, print_out, tell
from codex_py.streams.terminal import printable

_OPTIONS: Final = {
    "overrides",
    "model",
    "profile",
    "sandbox",
    "cd",
    "image",
    "last",
    "plan",
}
_OPTIONS_OF_WRAPPERS: Final = {"overrides", "model", "profile", "sandbox", "cd"}
_NO_PROMPT = "There is no prompt."


def run_prompt_input(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Print the input of the next request, or its whole body. Returns the exit code."""
    parser = CommandParser(Arguments, only=_OPTIONS)
    parser.add_argument("--resume")
    parser.add_argument("--body", action="store_true")
    parser.add_argument("prompt", nargs="?")
    options = given(parser.parse_args(list(argv)))
    resume = options.pop("resume", None)
    body = options.pop("body")
    prompt: str | None = options.pop("prompt", None)
    if body and not prompt:
        raise UsageError("--body needs a prompt: without one, there is no next request")
    arguments = Arguments(**options)
    config = read_config(arguments, environment)
    choices = None
    if arguments.plan:
        choices = replace(configured_choices(config, ()), mode="plan")
    target = SessionOptions(
        resume=resume,
        resume_last=arguments.last,
        choices=choices,
    )
    images = [Path(name).absolute() for name in arguments.image]
    request = next_request(
        config,
        target,
        prompt,
        images=images,
        environment=environment,
        starts_servers=body,
    )
    seen, sent = asyncio.run(request)
    shown = sent if body else seen
    return print_json(shown, indent=2, ensure_ascii=False)


def run_wrappers(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Print the wrappers of a call, an approval and a request. Returns the exit code."""
    parser = CommandParser(Arguments, only=_OPTIONS_OF_WRAPPERS)
    arguments = Arguments(**given(parser.parse_args(list(argv))))
    config = read_config(arguments, environment)
    return print_out(asyncio.run(wrapper_report(config, environment)))


async def wrapper_report(config: Config, environment: Mapping[str, str]) -> str:
    """Describe the wrapper chains of a session with this configuration, without starting it.

    Raises:
        CodexError: the session cannot be made.
    """
    options = SessionOptions(ephemeral=True)
    async with made_session(config, options, environment=environment) as session:
        chains = [
            _chain("A call of the model passes", call_wrappers(session)),
            _chain("A request for an approval passes", approval_wrappers(session)),
            _chain("A request to the model passes", request_wrappers(session)),
        ]
    return "\n".join(chains)


def _chain(title: str, wrappers: Sequence[Wrapper]) -> str:
    """Describe the wrappers of one kind, outermost first, in lines under a title."""
    lines = [f"{title}, in this order:"]
    for number, wrapper in enumerate(wrappers, 1):
        lines.append(f"{number:>3}. {wrapper.name} ({wrapper.module})")
        if wrapper.what:
            lines.append(f"       {wrapper.what}")
    # Foreign extensions write a part of the text.
    return "".join(f"{printable(line)}\n" for line in lines)


async def next_request(
    config: Config,
    options: SessionOptions,
    prompt: str | None,
    *,
    images: Sequence[Path] = (),
    environment: Mapping[str, str],
    starts_servers: bool,
) -> tuple[Sequence[Any], Any]:
    """Build the first request of a turn, and print the warnings of the session.

    If the history is full, the first request asks for its summary. Hooks do not run.

    Returns the items that the model would see, always in the form of the Responses API, and the
    JSON of the request in the provider's API.

    Args:
        prompt: the user's prompt; None leaves it out of the input.
        starts_servers: start the MCP servers. Their tools are in the body, not in the input.

    Raises:
        CodexError: the session cannot be opened, or the turn ended before its request.
    """
    capture = _Capture()
    features = changed(config.features, hooks=False)
    config = replace(config, features=features, notify=None)
    if not starts_servers:
        config = replace(config, mcp_servers={})
    options = replace(options, ephemeral=True, transport=capture)

    def sink(event: Event) -> None:
        if isinstance(event, ItemCompleted) and isinstance(event.item, ErrorItem):
            tell(f"Warning: {event.item.message}")

    opening = open_session(
        config, options, sink, environment=environment, extensions=[capture.feature]
    )
    text = _NO_PROMPT if prompt is None else prompt
    async with opening as session:
        result = await session.run_turn(text, images=images)
    if capture.body is None:
        result.raise_for_error()
        raise CodexError("the turn ended before its first request", code="no_request")
    items = [json.loads(item) for item in capture.input]
    if prompt is None:
        items = [item for item in items if not _is_placeholder(item)]
    return items, json.loads(capture.body)


def _is_placeholder(item: Any) -> bool:
    """True for the prompt that stands in for a missing one, without which no turn begins."""
    prompt = prompt_of(item)
    return prompt is not None and prompt.text == _NO_PROMPT


class _Capture(httpx.AsyncBaseTransport):
    """Keeps the first request instead of sending it, and ends the turn.

    It is the transport of the session, and makes an extension that sees the items of the request.
    """

    input: Sequence[EncodedItem] = ()
    """The items of the first request, in the form of the Responses API."""
    body: bytes | None = None
    """The bytes of the first request; None if there was none."""

    def feature(self, _: Thread) -> Extension:
        """Make the extension that keeps `input`."""
        return Extension(wrap_model=self._wrap_model)

    def _wrap_model(self, inner: ModelStream) -> ModelStream:
        @asynccontextmanager
        async def stream(
            prompt: Prompt,
        ) -> AsyncGenerator[AsyncIterator[ResponseEvent]]:
            self.input = self.input or prompt.input
            async with inner(prompt) as events:
                yield events

        return stream

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.body = self.body or request.content
        raise CodexError("the request is not sent", code="not_sent")

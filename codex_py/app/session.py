"""The composition root: a configuration becomes a session, in the steps of `app.opening`. LIGHT."""

import os
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from inspect import iscoroutinefunction
from logging import getLogger
from typing import Any

from codex_py.app.opening import Given, Opening, Warnings
from codex_py.app.options import SessionOptions, SessionSetup
from codex_py.config.config import Config
from codex_py.core.session import Session
from codex_py.core.session_turn import TurnResult
from codex_py.errors import ConfigError
from codex_py.protocol.approval import Approver
from codex_py.protocol.event_items import ErrorItem
from codex_py.protocol.events import Event, EventSink, ItemCompleted
from codex_py.protocol.extension import Feature
from codex_py.protocol.mcp import DecliningElicitor, Elicitor

__all__ = ["Session", "TurnResult", "open_session"]


@asynccontextmanager
async def open_session(
    config: Config,
    options: SessionOptions,
    sink: EventSink | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    approver: Approver | None = None,
    elicitor: Elicitor | None = None,
    extensions: Sequence[Feature] = (),
    tools: Sequence[Callable[..., Any]] = (),
) -> AsyncGenerator[Session]:
    """Open a session that is ready for its first turn.

    Emits `ThreadStarted` and the warnings. Leaving the context stops the processes of the session,
    and closes its file and its connections.

    Args:
        sink: takes every event; a plain function, which is never awaited. None: warnings go to the
            logger `codex_py`, and other events are dropped.
        environment: None: the environment of the program.
        approver: decides what the approval policy leaves to the user; None denies it.
        elicitor: answers the questions of MCP servers and of the model to the user. None: questions
            of servers are declined, and the model is not offered `request_user_input`.
        extensions: see `protocol.extension`; the first is the outermost.
        tools: Python functions that the model may call; see `codex_py.tool`.

    Raises:
        TypeError: the sink is a coroutine function, the approver has no coroutine function
            `review`, or a function cannot be a tool.
        ValueError: two tools have the same name, or one has the name of a tool of the program.
        CodexError: the configuration is wrong, or a feature cannot start. Nothing was emitted.
    """
    config.require_enforced()
    if sink is None:
        sink = log_warnings
    _check_sink(sink)
    _check_approver(approver)
    if environment is None:
        environment = os.environ
    warnings = Warnings()
    for text in config.warnings:
        warnings(text)
    elicitor = elicitor or DecliningElicitor()
    setup = SessionSetup(config, options, environment, approver, elicitor, warnings)
    given = _given_by_caller(extensions, tools)
    async with AsyncExitStack() as stack:
        try:
            opening = Opening(setup, given, warnings).opened(sink)
            session = await stack.enter_async_context(opening)
        except ConfigError as error:
            raise config.layers.located(error) from None
        yield session


@asynccontextmanager
async def made_session(
    config: Config, options: SessionOptions, *, environment: Mapping[str, str]
) -> AsyncGenerator[Session]:
    """Make a session with its features and start nothing, to find out facts about it.

    Raises the errors of `open_session`.
    """
    config.require_enforced()
    warnings = Warnings()
    setup = SessionSetup(
        config, options, environment, None, DecliningElicitor(), warnings
    )
    async with AsyncExitStack() as stack:
        try:
            making = Opening(setup, Given((), ()), warnings).made()
            session = await stack.enter_async_context(making)
        except ConfigError as error:
            raise config.layers.located(error) from None
        yield session


def _given_by_caller(
    extensions: Sequence[Feature], tools: Sequence[Callable[..., Any]]
) -> Given:
    """Return the features of the caller. Raises a `TypeError` if a function cannot be a tool."""
    if not (extensions or tools):
        return Given((), ())
    from codex_py.app.caller_features import guarded, offered  # 5 ms

    return Given(guarded(extensions), offered(tools))


def _check_sink(sink: EventSink) -> None:
    """Raise a `TypeError` for a coroutine function."""
    if iscoroutinefunction(sink) or iscoroutinefunction(type(sink).__call__):
        raise TypeError(
            "the sink must be a plain function: an `async def` would never be awaited"
        )


def _check_approver(approver: Approver | None) -> None:
    """Raise a `TypeError` unless `review` is a coroutine function."""
    review: Any = getattr(approver, "review", None)
    if approver is not None and not iscoroutinefunction(review):
        raise TypeError(
            f"the approver must have an `async def review(request)`: {approver!r}"
        )


def log_warnings(event: Event) -> None:
    """Pass warnings on to the logger `codex_py`; for use as an `EventSink`."""
    if isinstance(event, ItemCompleted) and isinstance(event.item, ErrorItem):
        getLogger("codex_py").warning(event.item.message)

"""The composition root: a configuration becomes a session. The one module that knows every part. LIGHT."""

import os
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from inspect import iscoroutinefunction
from typing import Any

from codex_py.app.features.table import configured_features
from codex_py.app.loading import load
from codex_py.app.model import configured_provider, model_client
from codex_py.app.options import SessionOptions, SessionSetup
from codex_py.app.session_tools import SessionTools
from codex_py.app.settings import configured_choices, turn_settings
from codex_py.app.thread import (
    OpenThread,
    ThreadOrigin,
    new_thread,
    session_to_resume,
    thread_context,
)
from codex_py.config.config import Config
from codex_py.core.session import Session
from codex_py.core.thread_log import ThreadLog
from codex_py.model.catalog import model_info
from codex_py.model.providers import Provider
from codex_py.model.retry import Retries
from codex_py.protocol.approval import Approver
from codex_py.protocol.elicitation import DecliningElicitor, Elicitor
from codex_py.protocol.events import EventSink
from codex_py.protocol.extension import Extension, Feature, OfferedTool, Thread
from codex_py.protocol.frozen import frozen
from codex_py.protocol.settings import Choices, TurnSettings
from codex_py.protocol.tools import MCP_PREFIX, called_tool
from codex_py.rollout.writer import RolloutEvents
from codex_py.tools.offered import own_names

_UNKNOWN_MODEL = (
    "Model metadata for `{}` not found. Defaulting to fallback metadata; this can degrade"
    " performance and cause issues."
)


@asynccontextmanager
async def open_session(
    config: Config,
    options: SessionOptions,
    sink: EventSink,
    *,
    environment: Mapping[str, str] | None = None,
    approver: Approver | None = None,
    elicitor: Elicitor | None = None,
    extensions: Sequence[Feature] = (),
    tools: Sequence[Callable[..., Any]] = (),
) -> AsyncGenerator[Session]:
    """Open a session that is ready for its first turn.

    Emits `ThreadStarted` and the warnings. Leaving the context stops the processes of the session, and
    closes its file and its connections.

    Args:
        sink: takes every event; a plain function, which is never awaited.
        environment: None: that of the program.
        approver: decides what the approval policy leaves to the user; None denies it.
        elicitor: answers the questions of MCP servers to the user; None declines them.
        extensions: see `protocol.extension`; the first is the outermost.
        tools: Python functions that the model may call; see `codex_py.tool`.

    Raises:
        TypeError: the sink is a coroutine function, or a function cannot be a tool.
        ValueError: two tools have the same name, or one has the name of a tool of the program.
        CodexError: the configuration is wrong, or a feature cannot start. Nothing was emitted.
    """
    config.require_enforced()
    _check_sink(sink)
    environment = os.environ if environment is None else environment
    warnings = _Warnings(list(config.warnings))
    setup = SessionSetup(config, options, environment, elicitor or DecliningElicitor(), warnings)
    root = _Root(setup, configured_provider(config, environment))
    toolbox = SessionTools(setup, approver)
    settings = root.settings_for(options.choices or configured_choices(config, options.add_dirs))
    thread = root.open_thread(settings)
    async with AsyncExitStack() as stack:
        stack.callback(thread.file.close)
        try:
            functions = [load("codex_py.app.features.functions:functions")(tools)] if tools else []
            features = [
                warnings.feature,
                _watching(RolloutEvents(thread.file.event_msg)),
                *extensions,
            ]
            features += [*configured_features(setup), *functions, toolbox, _watching(sink)]
            session = root.session(thread, settings, features, toolbox, stack)
            await stack.enter_async_context(session.opened())
        except BaseException:
            # `resume --last` should find the previous session, not an empty one.
            thread.file.discard()
            raise
        untouched = len(session.items)
        try:
            yield session
        finally:
            # A new thread without a prompt is not worth resuming.
            if (thread.state.model, len(session.items), session.name) == (None, untouched, None):
                thread.file.discard()


@frozen
class _Root:
    """Makes the parts of a session."""

    setup: SessionSetup
    provider: Provider

    def settings_for(self, choices: Choices) -> TurnSettings:
        config = self.setup.config
        info = model_info(choices.model, config.model_catalog_json)
        if not info.known:
            self.setup.warn(_UNKNOWN_MODEL.format(info.slug))
        return turn_settings(config, self.provider.id, info, choices)

    def open_thread(self, settings: TurnSettings) -> OpenThread:
        """
        Raises:
            SessionError: there is no such thread, or its file cannot be read or written.
        """
        setup = self.setup
        config, options = setup.config, setup.options
        origin = ThreadOrigin(
            config, options.originator, options.source, options.ephemeral, setup.warn
        )
        path = session_to_resume(
            config, options.resume, last=options.resume_last, anywhere=options.resume_all
        )
        thread: OpenThread
        if path is None:
            thread = new_thread(origin, settings, setup.environment)
        else:
            thread = load("codex_py.app.resumed:resumed_thread")(
                origin, settings, setup.environment, path, asked=options.resume, fork=options.fork
            )
        for warning in thread.warnings:
            setup.warn(warning)
        return thread

    def session(
        self,
        thread: OpenThread,
        settings: TurnSettings,
        features: Sequence[Feature],
        toolbox: SessionTools,
        stack: AsyncExitStack,
    ) -> Session:
        """
        Args:
            stack: closes the connections to the model.

        Raises:
            ConfigError: `auth.json` cannot be read.
            ValueError: the name of a tool is taken.
        """
        config, environment = self.setup.config, self.setup.environment
        options = self.setup.options
        model = model_client(
            config,
            self.provider,
            thread.state.id,
            environment,
            home=thread.state.provider,
            originator=options.originator,
            record=options.record,
            replay=options.replay,
            text_deltas=options.text_deltas,
        )
        stack.push_async_callback(model.aclose)
        session = Session(
            ThreadLog(
                thread.state, thread.file, lambda s: thread_context(config, s, environment)[0]
            ),
            settings,
            settings_for=self.settings_for,
            model=model,
            load_handlers=toolbox.handlers,
            retries=self._retries,
            features=features,
            answer_check=lambda schema: load("codex_py.app.output_schema:answer_check")(schema),
        )
        _check_names(session.extension.tools)
        return session

    def _retries(self) -> Retries:
        request, stream = self.provider.request_max_retries, self.provider.stream_max_retries
        return Retries(
            4 if request is None else request,
            self.setup.options.stream_retries if stream is None else stream,
        )


def _check_sink(sink: EventSink) -> None:
    if iscoroutinefunction(sink) or iscoroutinefunction(type(sink).__call__):
        raise TypeError("the sink must be a plain function: an `async def` would never be awaited")


def _check_names(tools: Sequence[OfferedTool]) -> None:
    for name, count in Counter(called_tool(None, tool.name) for tool in tools).items():
        if count > 1 or name in own_names() or name.startswith(MCP_PREFIX):
            raise ValueError(f"the tool {name!r} needs another name: this one is taken")


def _watching(sink: EventSink) -> Feature:
    return lambda _: Extension(sink=sink)


@dataclass(slots=True)
class _Warnings:
    """Collects warnings until there is a thread, then passes them on. Each text is passed on once."""

    waiting: list[str]
    _taken: set[str] = field(default_factory=set[str])
    _send: Callable[[str], None] | None = field(default=None)

    def __call__(self, text: str) -> None:
        if text in self._taken:
            return
        self._taken.add(text)
        if self._send is None:
            self.waiting.append(text)
        else:
            self._send(text)

    def feature(self, thread: Thread) -> Extension:
        self._send = thread.warn
        for text in self.waiting:
            thread.warn(text)
        return Extension()

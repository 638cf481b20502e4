"""The composition root: a configuration becomes a session. The one module that knows every part. LIGHT."""

import os
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import replace
from functools import partial
from inspect import iscoroutinefunction
from logging import getLogger
from typing import Any

from codex_py.app.child_events import ChildEvents
from codex_py.app.features.output_schema import output_schema
from codex_py.app.features.recovery import Recovery
from codex_py.app.features.table import configured_features
from codex_py.app.model import ModelClients, configured_provider
from codex_py.app.options import OpenChild, SessionOptions, SessionSetup
from codex_py.app.session_tools import SessionTools
from codex_py.app.settings import configured_choices, turn_settings
from codex_py.app.thread import (
    OpenThread,
    new_thread,
    session_to_resume,
    thread_context,
)
from codex_py.app.user_commands import UserCommands
from codex_py.config.config import Config
from codex_py.config.paths import worktrees_folder
from codex_py.core.session import Session
from codex_py.core.session_turn import TurnResult
from codex_py.core.thread_log import ThreadLog
from codex_py.errors import ConfigError
from codex_py.filesystem.git import for_another_tree
from codex_py.model.providers import Provider
from codex_py.model.retry import Retries
from codex_py.protocol.approval import Approver
from codex_py.protocol.event_items import ErrorItem
from codex_py.protocol.events import Event, EventSink, ItemCompleted
from codex_py.protocol.extension import (
    Extension,
    Feature,
    NewChild,
    OfferedTool,
    ParentThread,
    Thread,
)
from codex_py.protocol.frozen import frozen
from codex_py.protocol.mcp import DecliningElicitor, Elicitor
from codex_py.protocol.prompts import Note, UserPrompt
from codex_py.protocol.settings import TurnSettings
from codex_py.protocol.tools import MCP_PREFIX, called_tool
from codex_py.rollout.writer import RolloutEvents
from codex_py.tools.offered import own_names

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

    Emits `ThreadStarted` and the warnings. Leaving the context stops the processes of the session, and
    closes its file and its connections.

    Args:
        sink: takes every event; a plain function, which is never awaited. None: warnings go to the logger
            `codex_py`, and nothing else is told.
        environment: None: that of the program.
        approver: decides what the approval policy leaves to the user; None denies it.
        elicitor: answers the questions of MCP servers and of the model to the user. None: those of servers are
            declined, and the model is not offered `request_user_input`.
        extensions: see `protocol.extension`; the first is the outermost.
        tools: Python functions that the model may call; see `codex_py.tool`.

    Raises:
        TypeError: the sink is a coroutine function, the approver has no coroutine function `review`, or a
            function cannot be a tool.
        ValueError: two tools have the same name, or one has the name of a tool of the program.
        CodexError: the configuration is wrong, or a feature cannot start. Nothing was emitted.
    """
    config.require_enforced()
    sink = log_warnings if sink is None else sink
    _check_sink(sink)
    _check_approver(approver)
    if environment is None:
        environment = os.environ
    else:
        environment = environment
    warnings = _Warnings(config.warnings)
    elicitor = elicitor or DecliningElicitor()
    setup = SessionSetup(config, options, environment, approver, elicitor, warnings)
    functions = _functions(tools) if tools else ()
    async with AsyncExitStack() as stack:
        try:
            opener = _Opener([*extensions, *_installed(config)], functions)
            session = await stack.enter_async_context(
                opener.opened(setup, sink, warnings.feature)
            )
        except ConfigError as error:
            raise config.layers.located(error) from None
        yield session


@frozen
class _Opener:
    """Opens a session, and its children with what they have from it."""

    extensions: Sequence[Feature]
    """Given by the caller, as `functions` are."""
    functions: Sequence[Feature]
    clients: ModelClients | None = None
    """Of the parent; None if there is none."""
    configured: Sequence[Feature | None] = ()
    """Of the parent, see `configured_features`."""
    further: Sequence[Feature] = ()
    """Given with the session by the one that opened it, or by one above."""

    @asynccontextmanager
    async def opened(
        self, setup: SessionSetup, sink: EventSink, warnings: Feature
    ) -> AsyncGenerator[Session]:
        config = setup.config
        options = setup.options
        # If a hook of git started us, its variables lead to the tree of the hook.
        if config.cwd.is_relative_to(worktrees_folder(config.home)):
            setup = replace(setup, environment=for_another_tree(setup.environment))
        provider = configured_provider(config, setup.environment)
        if provider.warning is not None:
            setup.warn(provider.warning)
        settings_for = partial(turn_settings, setup, provider)
        settings = settings_for(
            options.choices or configured_choices(config, options.add_dirs)
        )
        thread, file = _opened_thread(setup, settings)
        async with AsyncExitStack() as stack:
            stack.callback(file.close)
            try:
                home = thread.provider or provider.id
                toolbox = SessionTools(setup)
                clients = ModelClients(
                    setup,
                    thread.id,
                    home=home,
                    of_parent=self.clients,
                    sent=toolbox.load_soon,
                )
                stack.push_async_callback(clients.aclose)
                commands = stack.enter_context(closing(UserCommands(setup, toolbox)))
                configured: list[Feature | None] = []
                open_child = self._child_opener(setup, clients, configured)
                full = replace(setup, connect=clients.connect, open_child=open_child)
                configured += configured_features(full, self.configured)
                session = Session(
                    ThreadLog(thread, file, lambda s: thread_context(setup, s)[0]),
                    settings,
                    settings_for=settings_for,
                    model=clients.connect(provider),
                    tools=toolbox,
                    retries=lambda: _retries(provider, options),
                    features=[
                        _watching(RolloutEvents(file.event_msg)),
                        warnings,
                        *self._features(full, configured),
                        toolbox,
                        _watching(sink),
                    ],
                    run_command=commands.run,
                    open_child=lambda parent, child: open_child(
                        parent, child, config, None
                    ),
                )
                toolbox.attach(session)
                _check_names(session.extension.tools)
                await stack.enter_async_context(session.opened())
            except BaseException:
                # `resume --last` should find the previous session, not an empty one.
                file.discard()
                raise
            untouched = len(session.items)
            try:
                yield session
            finally:
                # A new thread without a prompt is not worth resuming.
                if (thread.model, len(session.items), session.name) == (
                    None,
                    untouched,
                    None,
                ):
                    file.discard()

    def _features(
        self, setup: SessionSetup, configured: Sequence[Feature | None]
    ) -> Sequence[Feature]:
        """The features in their order, the outermost first."""
        return [
            _image_warning,
            *self.extensions,
            *filter(None, configured),
            *self.functions,
            *self.further,
            # The innermost: what the others wrap holds for every model.
            Recovery(setup),
            # It wraps nothing, and is asked last: another may still want more of the model.
            output_schema,
        ]

    def _child_opener(
        self,
        setup: SessionSetup,
        clients: ModelClients,
        configured: Sequence[Feature | None],
    ) -> OpenChild:
        """`configured`: features of the parent, complete when a child is opened."""

        @asynccontextmanager
        async def open_child(
            thread: Thread, new: NewChild, config: Config, resume: str | None
        ) -> AsyncGenerator[Session]:
            above = thread.parent
            parent = ParentThread(
                thread_id=thread.thread_id,
                root_id=thread.thread_id if above is None else above.root_id,
                depth=1 if above is None else above.depth + 1,
                nickname=new.nickname,
                role=new.role,
                session_file=thread.session_file,
            )
            options = replace(
                setup.options,
                parent=parent,
                choices=new.choices or thread.settings.choices,
                history=tuple(new.history),
                resume=resume,
                resume_last=False,
                fork=False,
                suspension=None,
                text_deltas=False,
            )
            warnings = _Warnings(config.warnings, of_parent=setup.warn)
            child = replace(setup, config=config, options=options, warn=warnings)
            further = (*self.further, *new.features)
            opener = replace(
                self, clients=clients, configured=configured, further=further
            )
            events = ChildEvents(thread, new)
            async with opener.opened(child, events, warnings.feature) as session:
                events.counted = session.token_usage.total
                yield session

        return open_child


def _opened_thread(setup: SessionSetup, settings: TurnSettings) -> OpenThread:
    path = session_to_resume(setup)
    if path is None:
        return new_thread(setup, settings)
    from codex_py.app.resumed import resumed_thread  # 4 ms

    return resumed_thread(setup, settings, path)


def _installed(config: Config) -> Sequence[Feature]:
    tables = config.settings.extensions
    if not tables:
        return ()
    from codex_py.app.installed import installed_features  # 39 ms

    return installed_features(tables)


def _functions(tools: Sequence[Callable[..., Any]]) -> Sequence[Feature]:
    from codex_py.app.features.functions import functions  # 1 ms

    return [functions(tools)]


def _retries(provider: Provider, options: SessionOptions) -> Retries:
    request = provider.request_max_retries
    stream = provider.stream_max_retries
    return Retries(
        4 if request is None else request,
        options.stream_retries if stream is None else stream,
    )


def _check_sink(sink: EventSink) -> None:
    if iscoroutinefunction(sink) or iscoroutinefunction(type(sink).__call__):
        raise TypeError(
            "the sink must be a plain function: an `async def` would never be awaited"
        )


def _check_approver(approver: Approver | None) -> None:
    review: Any = getattr(approver, "review", None)
    if approver is not None and not iscoroutinefunction(review):
        raise TypeError(
            f"the approver must have an `async def review(request)`: {approver!r}"
        )


def log_warnings(event: Event) -> None:
    """An `EventSink` that gives warnings to the logger `codex_py`."""
    if isinstance(event, ItemCompleted) and isinstance(event.item, ErrorItem):
        getLogger("codex_py").warning(event.item.message)


def _check_names(tools: Sequence[OfferedTool]) -> None:
    for name, count in Counter(called_tool(None, tool.name) for tool in tools).items():
        if count > 1 or name in own_names() or name.startswith(MCP_PREFIX):
            raise ValueError(f"the tool {name!r} needs another name: this one is taken")


def _watching(sink: EventSink) -> Feature:
    return lambda _: Extension(sink=sink)


def _image_warning(thread: Thread) -> Extension:
    async def before_prompt(prompt: UserPrompt) -> Sequence[Note]:
        if prompt.images and not thread.settings.abilities.images:
            thread.warn(
                f"{thread.settings.model!r} takes no images: it only reads that there are some."
            )
        return ()

    return Extension(before_prompt=before_prompt)


class _Warnings:
    """Collects warnings until there is a thread, then passes them on. Each text is passed on once, to the session or to
    one of its children."""

    def __init__(
        self, texts: Iterable[str], *, of_parent: Callable[[str], None] | None = None
    ) -> None:
        self._known: dict[str, None] = (
            of_parent._known if isinstance(of_parent, _Warnings) else {}
        )
        self._unsent: list[str] = []
        self._send = self._unsent.append
        for text in texts:
            self(text)

    def __call__(self, text: str) -> None:
        if text not in self._known:
            self._known[text] = None
            self._send(text)

    def feature(self, thread: Thread) -> Extension:
        self._send = thread.warn
        for text in self._unsent:
            thread.warn(text)
        return Extension()

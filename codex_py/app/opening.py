"""Opens a session. Each step makes a part of it from the parts before. LIGHT."""

from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import replace
from functools import partial
from typing import Final

from codex_py.app.child_events import ChildEvents
from codex_py.app.features.output_schema import output_schema
from codex_py.app.features.recovery import ModelChain
from codex_py.app.features.table import Slot, configured_features
from codex_py.app.model import ModelClients, configured_provider
from codex_py.app.options import SessionOptions, SessionSetup
from codex_py.app.session_tools import SessionTools
from codex_py.app.settings import configured_choices, turn_settings
from codex_py.app.thread import (
    OpenThread,
    continued_thread,
    new_thread,
    session_to_resume,
    thread_context,
)
from codex_py.app.user_commands import UserCommands
from codex_py.config.config import Config
from codex_py.config.paths import worktrees_folder
from codex_py.core.session import Session
from codex_py.core.thread_log import ThreadLog, ThreadState
from codex_py.filesystem.git import for_another_tree
from codex_py.model.providers import Provider
from codex_py.model.retry import Retries
from codex_py.protocol.events import EventSink
from codex_py.protocol.extension import (
    Extension,
    Feature,
    NewChild,
    OfferedTool,
    ParentThread,
    Thread,
)
from codex_py.protocol.frozen import frozen
from codex_py.protocol.messages import EncodedItem
from codex_py.protocol.prompts import Note, UserPrompt
from codex_py.protocol.settings import TurnSettings
from codex_py.protocol.tools import MCP_PREFIX, called_tool
from codex_py.rollout.writer import RolloutEvents
from codex_py.tools.offered import own_names

_REQUEST_RETRIES: Final = 4
"""The retries of a request without an answer, unless the provider's settings give a number."""


class Warnings:
    """Keeps warnings until there is a thread, then passes them on.

    Each text is passed on once, to the session or to one of its children.
    """

    def __init__(self, known: set[str] | None = None) -> None:
        """`known`: the texts that were passed on already; a child adds to its parent's."""
        self._known: set[str] = set() if known is None else known
        self._unsent: list[str] = []
        self._thread: Thread | None = None

    def __call__(self, text: str) -> None:
        if text in self._known:
            return
        self._known.add(text)
        if self._thread is None:
            self._unsent.append(text)
        else:
            self._thread.warn(text)

    def child(self) -> "Warnings":
        """Return warnings for a child session, without those that were already passed on."""
        return Warnings(self._known)

    def feature(self, thread: Thread) -> Extension:
        """The feature that hands over the thread; pass it to the session."""
        self._thread = thread
        for text in self._unsent:
            thread.warn(text)
        return Extension()


@frozen
class Given:
    """The parts that a session gets from its caller, or from the session above it."""

    extensions: Sequence[Feature]
    """Features from the caller, outside of the configured ones."""
    functions: Sequence[Feature]
    """Features from the caller, inside of the configured ones."""
    further: Sequence[Feature] = ()
    """Features that came with the session, from the session that opened it or from one above."""
    clients: ModelClients | None = None
    """The clients of the parent; None without a parent."""
    configured: Sequence[Slot] = ()
    """The features of the parent; see `configured_features`."""


class Opening:
    """Opens one session. Its children are opened by further `Opening`s."""

    _clients: ModelClients
    """The clients for the children. They and `_configured` are set before the first child is
    opened."""
    _configured: Sequence[Slot]

    def __init__(
        self,
        setup: SessionSetup,
        given: Given,
        warnings: Warnings,
    ) -> None:
        """`warnings`: the warnings of the setup."""
        config = setup.config
        # If a git hook started us, its variables lead to the work tree of the hook.
        if config.cwd.is_relative_to(worktrees_folder(config.home)):
            setup = replace(setup, environment=for_another_tree(setup.environment))
        self._setup = setup
        self._given = given
        self._warnings = warnings

    @asynccontextmanager
    async def opened(self, sink: EventSink) -> AsyncGenerator[Session]:
        """Open the session and announce it. It is then ready for its first turn."""
        async with AsyncExitStack() as stack:
            provider, settings = self._choices()
            thread, file = self._thread(settings)
            stack.callback(file.close)
            try:
                session = self._session((thread, file), provider, settings, sink, stack)
                await stack.enter_async_context(session.opened())
            except BaseException:
                # `resume --last` should find the previous session, not an empty one.
                file.discard()
                raise
            untouched = len(session.items)
            try:
                yield session
            finally:
                is_new = thread.model is None and session.name is None
                is_worthless = is_new and not session.keeps_file
                if is_worthless and len(session.items) == untouched:
                    # A new thread without a prompt is not worth resuming.
                    file.discard()

    @asynccontextmanager
    async def made(self) -> AsyncGenerator[Session]:
        """Make the session without announcing it.

        No feature starts anything, and no request can be sent.
        """
        async with AsyncExitStack() as stack:
            provider, settings = self._choices()
            open_thread = new_thread(self._setup, settings)
            _, file = open_thread
            stack.callback(file.discard)
            yield self._session(open_thread, provider, settings, lambda _: None, stack)

    def _choices(self) -> tuple[Provider, TurnSettings]:
        """The provider, and the settings of the first turn."""
        setup = self._setup
        options = setup.options
        provider = configured_provider(setup.config, setup.environment)
        if provider.warning is not None:
            setup.warn(provider.warning)
        choices = options.choices
        if choices is None:
            choices = configured_choices(setup.config, options.add_dirs)
        return provider, turn_settings(setup, provider, choices)

    def _thread(self, settings: TurnSettings) -> OpenThread:
        """The thread to resume, or a new one, with its file."""
        continued = self._setup.options.continued
        if continued is not None:
            return continued_thread(continued, settings)
        path = session_to_resume(self._setup)
        if path is None:
            return new_thread(self._setup, settings)
        from codex_py.app.resumed import resumed_thread  # 4 ms

        return resumed_thread(self._setup, settings, path)

    def _session(
        self,
        open_thread: OpenThread,
        provider: Provider,
        settings: TurnSettings,
        sink: EventSink,
        stack: AsyncExitStack,
    ) -> Session:
        """Make the session. `stack`: closes the parts that the session needs."""
        setup = self._setup
        thread, file = open_thread
        tools = SessionTools(setup)
        self._clients = self._make_clients(thread, provider, tools)
        stack.push_async_callback(self._clients.aclose)
        commands = stack.enter_context(closing(UserCommands(setup, tools)))
        full = replace(
            setup, connect=self._clients.connect, open_child=self._open_child
        )
        self._configured = configured_features(full, self._given.configured)
        features = [
            _watching(RolloutEvents(file.event_msg)),
            self._warnings.feature,
            *self._features(full),
            tools,
            _watching(sink),
        ]
        session = Session(
            ThreadLog(thread, file, partial(_context_items, setup)),
            settings,
            settings_for=partial(turn_settings, setup, provider),
            model=self._clients.connect(provider),
            tools=tools,
            retries=lambda: _retries(provider, setup.options),
            features=features,
            run_command=commands.run,
            open_child=lambda parent, child: self._open_child(
                parent, child, setup.config, None
            ),
        )
        tools.attach(session)
        _check_names(session.extension.tools)
        return session

    def _make_clients(
        self, thread: ThreadState, provider: Provider, tools: SessionTools
    ) -> ModelClients:
        """Make the clients, which load the tools as soon as a request is sent."""
        return ModelClients(
            self._setup,
            thread.id,
            first_provider=thread.provider or provider.id,
            of_parent=self._given.clients,
            sent=tools.load_soon,
        )

    def _features(self, setup: SessionSetup) -> Sequence[Feature]:
        """Return the features in their order, the outermost first."""
        given = self._given
        return [
            _image_warning,
            *given.extensions,
            *(feature for slot in self._configured for feature in slot),
            *given.functions,
            *given.further,
            # The innermost: the features around it apply to every model.
            ModelChain(setup),
            # It wraps nothing, and is asked last: another feature may want more from the model.
            output_schema,
        ]

    @asynccontextmanager
    async def _open_child(
        self,
        thread: Thread,
        new: NewChild,
        config: Config,
        resume: str | None,
    ) -> AsyncGenerator[Session]:
        """Open a child session of a thread; see `Thread.open_child`."""
        options = replace(
            self._setup.options,
            parent=_parent(thread, new),
            choices=new.choices or thread.settings.choices,
            history=tuple(new.history),
            new_id=None,
            resume=resume,
            resume_last=False,
            fork=False,
            begins_with_call=False,
            continued=None,
            text_deltas=False,
            # The commands of a child are not shown.
            starts_outside=None,
        )
        warnings = self._warnings.child()
        for text in config.warnings:
            warnings(text)
        setup = replace(self._setup, config=config, options=options, warn=warnings)
        given = replace(
            self._given,
            further=(*self._given.further, *new.features),
            clients=self._clients,
            configured=self._configured,
        )
        events = ChildEvents(thread, new)
        async with Opening(setup, given, warnings).opened(events) as session:
            events.counted = session.token_usage.total
            yield session


def _parent(thread: Thread, new: NewChild) -> ParentThread:
    """Describe the thread as the parent of a new child."""
    above = thread.parent
    root_id = thread.thread_id
    depth = 1
    if above is not None:
        root_id = above.root_id
        depth = above.depth + 1
    return ParentThread(
        thread_id=thread.thread_id,
        root_id=root_id,
        depth=depth,
        nickname=new.nickname,
        role=new.role,
        session_file=thread.session_file,
    )


def _retries(provider: Provider, options: SessionOptions) -> Retries:
    """The retries of a turn: as the provider is configured, else by default."""
    request_max = provider.request_max_retries
    if request_max is None:
        request_max = _REQUEST_RETRIES
    stream_max = provider.stream_max_retries
    if stream_max is None:
        stream_max = options.stream_retries
    return Retries(request_max, stream_max)


def _context_items(
    setup: SessionSetup, settings: TurnSettings
) -> Sequence[EncodedItem]:
    items, _ = thread_context(setup, settings)
    return items


def _check_names(tools: Sequence[OfferedTool]) -> None:
    """Raise a `ValueError` if an extension's tool has the name of another tool."""
    counts = Counter(called_tool(None, tool.name) for tool in tools)
    for name, count in counts.items():
        if count > 1 or name in own_names() or name.startswith(MCP_PREFIX):
            raise ValueError(f"the tool {name!r} needs another name: this one is taken")


def _watching(sink: EventSink) -> Feature:
    """A feature that only watches events."""
    return lambda _: Extension(sink=sink)


def _image_warning(thread: Thread) -> Extension:
    """Warns the user of images in a prompt for a model that takes none."""

    async def before_prompt(prompt: UserPrompt) -> Sequence[Note]:
        if prompt.images and not thread.settings.abilities.images:
            thread.warn(
                f"{thread.settings.model!r} takes no images: it only reads that there are some."
            )
        return ()

    return Extension(before_prompt=before_prompt)

"""The composition root: a configuration becomes a session. The one module that knows every part."""

import os
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from inspect import iscoroutinefunction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from codex_py.app.loaded import Toolbox, command_rules
from codex_py.app.model import configured_provider, model_client, secret_names
from codex_py.app.settings import configured_choices, turn_settings
from codex_py.app.thread import (
    ThreadOrigin,
    new_thread,
    resumed_thread,
    session_to_resume,
    thread_context,
)
from codex_py.config.config import Config
from codex_py.core.session import Session
from codex_py.errors import CodexError, ConfigError
from codex_py.model.catalog import model_info
from codex_py.model.retry import Retries
from codex_py.protocol.approval import Approver
from codex_py.protocol.elicitation import Elicitor, NobodyToAsk
from codex_py.protocol.events import Event, EventSink
from codex_py.protocol.frozen import frozen
from codex_py.protocol.ids import new_thread_id
from codex_py.protocol.settings import Choices, TurnSettings
from codex_py.rollout.events import RolloutEvents

if TYPE_CHECKING:
    from codex_py.app.features.mcp import Patience, SessionServers


_UNKNOWN_MODEL = (
    "Model metadata for `{}` not found. Defaulting to fallback metadata; this can degrade"
    " performance and cause issues."
)


@frozen
class SessionOptions:
    """How a session is opened, beside its configuration."""

    source: Literal["exec", "cli", "mcp"] = "exec"
    originator: str = "codex_exec"
    ephemeral: bool = False
    """Write no session file."""
    resume: str | None = None
    """Id or name of the thread to go on with."""
    resume_last: bool = False
    """Go on with the newest session of this working directory and provider."""
    resume_all: bool = False
    """With `resume_last`: of any working directory."""
    fork: bool = False
    """Go on in a copy with an id of its own; with `resume` or `resume_last`."""
    choices: Choices | None = None
    """Run with these in place of those of the configuration and of `add_dirs`."""
    add_dirs: tuple[Path, ...] = ()
    """Writable roots beside those of the configuration; absolute."""
    record: Path | None = None
    """Write the exchange with the model to this tape."""
    replay: Path | None = None
    """Answer from this tape instead of the model's service."""
    stream_retries: int = 5
    """Retries of an answer that broke off or did not begin, where the provider's settings do not say."""
    ignore_rules: bool = False
    """Leave out the files of command rules."""


@asynccontextmanager
async def open_session(
    config: Config,
    options: SessionOptions,
    sink: EventSink,
    *,
    environment: Mapping[str, str] | None = None,
    approver: Approver | None = None,
    elicitor: Elicitor | None = None,
    patience: "Patience | None" = None,
) -> AsyncGenerator[Session]:
    """A session that is ready for its first turn.

    Emits `ThreadStarted` and the warnings. Leaving the context ends the processes of the session, and
    closes its file and its connections.

    Args:
        sink: takes every event; a plain function, which is never awaited.
        environment: that of the program where none is given.
        approver: decides what the approval policy leaves to a user; None refuses it.
        elicitor: answers what MCP servers ask the user; None declines.
        patience: waits with a request until MCP servers have started, or less long; None waits.

    Raises:
        ConfigError, SessionError: before anything is emitted.
        TypeError: the sink is a coroutine function.
        CodexError: as early, a required MCP server is not to be had.
    """
    config.require_enforced()
    _check_sink(sink)
    environment = os.environ if environment is None else environment
    provider = configured_provider(config, environment)
    info = model_info(config.model, config.model_catalog_json)
    warnings = _Warnings(list(config.warnings))

    def settings_for(choices: Choices) -> TurnSettings:
        info = model_info(choices.model, config.model_catalog_json)
        if not info.known:
            warnings(_UNKNOWN_MODEL.format(info.slug))
        return turn_settings(config, provider.id, info, choices)

    rules = None if options.ignore_rules else command_rules(config)
    for warning in () if rules is None else rules.warnings:
        warnings(warning)
    settings = settings_for(options.choices or configured_choices(config, options.add_dirs))
    origin = ThreadOrigin(config, options.originator, options.source, options.ephemeral, warnings)
    path = session_to_resume(
        config, options.resume, last=options.resume_last, anywhere=options.resume_all
    )
    if path is None:
        thread = new_thread(origin, settings, environment)
    else:
        thread = resumed_thread(
            origin, settings, environment, path, asked=options.resume, fork=options.fork
        )
    try:
        model = model_client(
            config,
            provider,
            thread.state.id,
            environment,
            originator=options.originator,
            record=options.record,
            replay=options.replay,
        )
    except ConfigError:
        # `resume --last` should find the session before, not one in which nothing was said.
        thread.file.discard()
        raise
    async with AsyncExitStack() as stack:
        stack.callback(thread.file.close)
        stack.push_async_callback(model.aclose)
        servers = _mcp_servers(config, options, environment, elicitor or NobodyToAsk(), warnings)
        if servers is not None:
            stack.push_async_callback(servers.aclose)
            try:
                await servers.require()
            except CodexError:
                thread.file.discard()
                raise
            model = servers.offered_by(model, patience)
        tools = Toolbox(
            config=config,
            secret_names=secret_names(config),
            structured_shell=not info.freeform_apply_patch,
            image_detail=info.image_detail,
            output_token_limit=config.tool_output_token_limit or info.truncation_limit_tokens,
            environment=environment,
            keep_processes=options.source == "cli",
            rules=rules,
            approver=approver,
            servers=servers,
        )
        stack.push_async_callback(tools.aclose)
        frontend = sink
        session = Session(
            thread=thread.state,
            settings=settings,
            settings_for=settings_for,
            context=lambda settings: thread_context(config, settings, environment)[0],
            compact_prompt=config.compact_prompt,
            model=model,
            recorder=thread.file,
            load_handlers=tools.handlers,
            retries=lambda: Retries(
                _either(provider.request_max_retries, 4),
                _either(provider.stream_max_retries, options.stream_retries),
            ),
            end_turn=tools.end_turn,
            sink=_both(RolloutEvents(thread.file), lambda event: frontend(event)),
            extra_context=lambda text: _skills_in(text, config, environment, warnings),
            mcp_servers=tuple if servers is None else servers.statuses,
            stop_commands=tools.stop_commands,
            answer_check=_answer_check,
        )
        if config.notify:
            notifier = _notifier(config, config.notify, session, options, environment, warnings)
            frontend = _both(sink, notifier)
        session.start()
        for warning in thread.warnings:
            warnings(warning)
        warnings.send_to(session.warn)
        untouched = len(session.items)
        try:
            yield session
        finally:
            session.close()
            if path is None and len(session.items) == untouched and session.name is None:
                # Nothing was said: there is nothing to come back to.
                thread.file.discard()


def _either(configured: int | None, default: int) -> int:
    return default if configured is None else configured


def _check_sink(sink: EventSink) -> None:
    if iscoroutinefunction(sink) or iscoroutinefunction(type(sink).__call__):
        raise TypeError("the sink must be a plain function: an `async def` would never be awaited")


def _answer_check(schema: Any) -> Callable[[str], str | None]:
    # Few turns have a schema.
    from codex_py.app.output_schema import answer_check  # noqa: PLC0415

    return answer_check(schema)


def _mcp_servers(
    config: Config,
    options: SessionOptions,
    environment: Mapping[str, str],
    elicitor: Elicitor,
    warn: Callable[[str], None],
) -> "SessionServers | None":
    """The servers of the session, started; None where it has none."""
    if not any(server.enabled for server in config.mcp_servers.values()):
        return None
    # 5 ms, which no other session needs to spend.
    from codex_py.app.features.mcp import SessionServers  # noqa: PLC0415

    servers = SessionServers(
        config, environment, elicitor=elicitor, warn=warn, add_dirs=options.add_dirs
    )
    servers.start()
    return servers


def _skills_in(
    prompt: str, config: Config, environment: Mapping[str, str], warn: Callable[[str], None]
) -> list[str]:
    """What the skills say that a prompt mentions."""
    if "$" not in prompt:
        return []
    # Few prompts mention one.
    from codex_py.config.skills import find_skills, skill_message  # noqa: PLC0415

    skills = find_skills(config, environment)
    for warning in skills.warnings:
        warn(warning)
    return [skill_message(skill) for skill in skills.mentioned(prompt)]


def _notifier(
    config: Config,
    argv: Sequence[str],
    session: Session,
    options: SessionOptions,
    environment: Mapping[str, str],
    warn: Callable[[str], None],
) -> EventSink:
    # Few configure one.
    from codex_py.app.features.notify import TurnNotifier, missing_program  # noqa: PLC0415
    from codex_py.app.user_programs import user_programs  # noqa: PLC0415

    programs = user_programs(config, environment, options.add_dirs)
    if (problem := missing_program(argv, environment, programs)) is not None:
        warn(problem)
    return TurnNotifier(
        argv,
        thread_id=session.thread_id,
        cwd=session.settings.cwd,
        client=options.originator,
        environment=environment,
        programs=programs,
        prompts=lambda: [past.prompt.text for past in session.past_prompts()],
        new_id=new_thread_id,
    )


def _both(first: EventSink, second: EventSink) -> EventSink:
    def sink(event: Event) -> None:
        first(event)
        second(event)

    return sink


@dataclass(slots=True)
class _Warnings:
    """Takes warnings from the start on, and gives each out once, when there is someone to read it."""

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

    def send_to(self, send: Callable[[str], None]) -> None:
        self._send = send
        for text in self.waiting:
            send(text)

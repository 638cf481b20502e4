"""The composition root: a configuration becomes a session. The one module that knows every part."""

import os
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import httpx

from codex_py import __version__
from codex_py.config.config import Config
from codex_py.core.session import Session
from codex_py.core.settings import Choices, TurnSettings
from codex_py.errors import CodexError, ConfigError, ModelError
from codex_py.model.auth import find_key
from codex_py.model.catalog import ModelInfo, listed_models, model_info
from codex_py.model.client import HttpModelClient, UnavailableClient
from codex_py.model.providers import Provider, resolve_provider
from codex_py.model.responses import ResponsesWire
from codex_py.model.retry import Retries
from codex_py.model.tape import RecordingTransport, ReplayTransport
from codex_py.model.transport import http_client, http_transport
from codex_py.protocol.approval import ApprovalPolicy, Approver
from codex_py.protocol.elicitation import Elicitor, NobodyToAsk
from codex_py.protocol.events import Event, EventSink
from codex_py.protocol.stream import ModelClient
from codex_py.rollout.events import RolloutEvents
from codex_py.thread import (
    ThreadOrigin,
    new_thread,
    resumed_thread,
    session_to_resume,
    thread_context,
)
from codex_py.toolbox import Toolbox, command_rules
from codex_py.tools.specs import tool_specs

if TYPE_CHECKING:
    from codex_py.mcp_servers import SessionServers

_COMPACT_AT_PERCENT = 90
"""Of the model's window, as in Codex: a limit of the user's own only counts below."""


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """How a session is opened, beside its configuration."""

    source: Literal["exec", "cli"] = "exec"
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
    add_dirs: tuple[Path, ...] = ()
    """Writable roots beside those of the configuration; absolute."""
    record: Path | None = None
    """Write the exchange with the model to this tape."""
    replay: Path | None = None
    """Answer from this tape instead of the model's service."""
    ignore_rules: bool = False
    """Leave out the files of command rules."""


@asynccontextmanager
async def open_session(
    config: Config,
    options: SessionOptions,
    sink: EventSink,
    *,
    environment: Mapping[str, str],
    approver: Approver | None = None,
    elicitor: Elicitor | None = None,
) -> AsyncGenerator[Session]:
    """A session that is ready for its first turn.

    Emits `ThreadStarted` and the warnings. Leaving the context ends the processes of the session, and
    closes its file and its connections.

    Args:
        approver: decides what the approval policy leaves to a user; None refuses it.
        elicitor: answers what MCP servers ask the user; None declines.

    Raises:
        ConfigError, SessionError: before anything is emitted.
        CodexError: as early, a required MCP server is not to be had.
    """
    provider = resolve_provider(
        config.model_provider,
        config.model_providers,
        openai_base_url=config.openai_base_url,
        environment=environment,
    )
    info = model_info(config.model, config.model_catalog_json)
    warnings = _Warnings(list(config.warnings))

    def settings_for(choices: Choices) -> TurnSettings:
        info = model_info(choices.model, config.model_catalog_json)
        for warning in _unknown_model(info):
            warnings(warning)
        return _settings(config, provider, info, choices)

    rules = None if options.ignore_rules else command_rules(config)
    for warning in () if rules is None else rules.warnings:
        warnings(warning)
    settings = settings_for(_configured_choices(config, options))
    origin = ThreadOrigin(config, options.originator, options.source, options.ephemeral, warnings)
    path = session_to_resume(
        config, options.resume, last=options.resume_last, anywhere=options.resume_all
    )
    if path is None:
        thread = new_thread(origin, settings, environment)
    else:
        thread = resumed_thread(origin, settings, environment, path, fork=options.fork)
    try:
        model = _model(config, options, provider, thread.state.id, environment)
    except ConfigError:
        # `resume --last` should find the session before, not one in which nothing was said.
        thread.file.discard()
        raise
    async with AsyncExitStack() as stack:
        stack.callback(thread.file.close)
        stack.push_async_callback(model.aclose)
        servers = _mcp_servers(config, environment, elicitor or NobodyToAsk(), warnings)
        if servers is not None:
            stack.push_async_callback(servers.aclose)
            try:
                await servers.require()
            except CodexError:
                thread.file.discard()
                raise
            model = servers.offered_by(model)
        tools = Toolbox(
            config=config,
            secret_names=_secret_names(config, provider),
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
        session = Session(
            thread=thread.state,
            settings=settings,
            settings_for=settings_for,
            context=lambda settings: thread_context(config, settings, environment)[0],
            compact_prompt=config.compact_prompt,
            model=model,
            recorder=thread.file,
            load_handlers=tools.handlers,
            retries=lambda: Retries(provider.request_max_retries, provider.stream_max_retries),
            end_turn=tools.end_turn,
            sink=_both(RolloutEvents(thread.file), sink),
            told_with=lambda text: _skills_in(text, config, environment, warnings),
        )
        session.start()
        for warning in thread.warnings:
            warnings(warning)
        warnings.send_to(session.warn)
        yield session


def known_models(config: Config) -> list[str]:
    """The models that a user may choose from, the configured one first.

    Raises:
        ConfigError: the configured catalogue can not be read.
    """
    return list(dict.fromkeys([config.model, *listed_models(config.model_catalog_json)]))


def missing_key(config: Config, environment: Mapping[str, str]) -> str | None:
    """Which key the model's service asks for and is not there; None if all is well.

    Raises:
        ConfigError: there is no such provider, or `auth.json` can not be read.
    """
    provider = resolve_provider(
        config.model_provider,
        config.model_providers,
        openai_base_url=config.openai_base_url,
        environment=environment,
    )
    if provider.auth is not None:
        # A program gives the key; it is run when it is needed.
        return None
    try:
        find_key(provider, environment=environment, home=config.home)
    except ModelError as error:
        return str(error)
    return None


def _configured_choices(config: Config, options: SessionOptions) -> Choices:
    return Choices(
        model=config.model,
        reasoning_effort=config.model_reasoning_effort,
        reasoning_summary=config.model_reasoning_summary,
        approval_policy=config.approval_policy or ApprovalPolicy.ON_REQUEST,
        sandbox_policy=config.sandbox_policy(options.add_dirs),
    )


def _settings(
    config: Config, provider: Provider, info: ModelInfo, choices: Choices
) -> TurnSettings:
    effort = choices.reasoning_effort or info.default_reasoning_effort
    summary = choices.reasoning_summary or (None if info.known else "auto")
    reasoning = {
        "effort": info.ultra_effort if effort == "ultra" else effort,
        "summary": summary,
    }
    reasoning = {
        k: v for k, v in reasoning.items() if v is not None and (k, v) != ("summary", "none")
    }
    window = config.model_context_window or info.context_window
    return TurnSettings(
        model=info.slug,
        provider=provider.id,
        cwd=config.cwd,
        approval_policy=choices.approval_policy,
        sandbox_policy=choices.sandbox_policy,
        context_window=window * info.effective_context_window_percent // 100,
        reasoning_effort=choices.reasoning_effort,
        reasoning_summary=choices.reasoning_summary,
        reasoning=reasoning or None,
        verbosity=info.default_verbosity and (config.model_verbosity or info.default_verbosity),
        service_tier=config.service_tier,
        image_detail=info.image_detail,
        tools=tool_specs(
            shell="disabled" if config.features.get("shell_tool") is False else info.shell_tool,
            freeform_patch=info.freeform_apply_patch,
            update_plan=config.update_plan_enabled is not False,
            view_image=config.features.get("view_image") is not False,
            web_search=_web_search(config, info),
        ),
        parallel_tool_calls=info.parallel_tool_calls,
        auto_compact_token_limit=min(
            window * _COMPACT_AT_PERCENT // 100,
            config.model_auto_compact_token_limit or window,
        ),
    )


def _secret_names(config: Config, provider: Provider) -> set[str]:
    """The variables from which keys are sent, to the provider and to MCP servers."""
    names = {"CODEX_API_KEY", "OPENAI_API_KEY", *provider.env_http_headers.values()}
    if provider.env_key is not None:
        names.add(provider.env_key)
    for server in config.mcp_servers.values():
        names.update(server.env_http_headers.values())
        if server.bearer_token_env_var is not None:
            names.add(server.bearer_token_env_var)
    return names


def _web_search(config: Config, info: ModelInfo) -> dict[str, Any] | None:
    if config.web_search == "disabled":
        return None
    search: dict[str, Any] = {"external_web_access": config.web_search == "live"}
    if info.known:
        search["search_content_types"] = ["text", "image"]
    configured = config.web_search_options
    if domains := configured.get("allowed_domains"):
        search["filters"] = {"allowed_domains": domains}
    if location := configured.get("location"):
        search["user_location"] = {"type": "approximate", **location}
    if size := configured.get("context_size"):
        search["search_context_size"] = size
    return search


def _unknown_model(info: ModelInfo) -> list[str]:
    if info.known:
        return []
    return [
        f"Model metadata for `{info.slug}` not found. Defaulting to fallback metadata; this can degrade"
        " performance and cause issues."
    ]


def _model(
    config: Config,
    options: SessionOptions,
    provider: Provider,
    thread_id: str,
    environment: Mapping[str, str],
) -> ModelClient:
    try:
        # A tape needs no key, and none should be read for it.
        key = (
            None
            if options.replay
            else find_key(provider, environment=environment, home=config.home)
        )
    except ModelError as error:
        return UnavailableClient(error)
    system = os.uname()
    headers = {
        "originator": options.originator,
        "user-agent": f"{options.originator}/{__version__} ({system.sysname}; {system.machine})",
        "session-id": thread_id,
        "thread-id": thread_id,
        "x-client-request-id": thread_id,
    }
    return HttpModelClient(
        provider=provider,
        wire=ResponsesWire(),
        http=http_client(environment=environment, transport=_transport(options, environment)),
        key=key,
        headers=headers,
        environment=environment,
    )


def _mcp_servers(
    config: Config,
    environment: Mapping[str, str],
    elicitor: Elicitor,
    warn: Callable[[str], None],
) -> "SessionServers | None":
    """The servers of the session, started; None where it has none."""
    if not any(server.enabled for server in config.mcp_servers.values()):
        return None
    # 5 ms, which no other session needs to spend.
    from codex_py.mcp_servers import SessionServers  # noqa: PLC0415

    servers = SessionServers(config, environment, elicitor=elicitor, warn=warn)
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


def _transport(
    options: SessionOptions, environment: Mapping[str, str]
) -> httpx.AsyncBaseTransport | None:
    if options.replay is not None:
        return ReplayTransport(options.replay)
    if options.record is not None:
        return RecordingTransport(http_transport(environment), options.record)
    return None


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

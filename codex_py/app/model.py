"""The model of a session: its provider, the key, and the client.

Part of the composition root.
"""

import subprocess
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

import httpx

from codex_py import registry
from codex_py.app.loading import load
from codex_py.app.options import SessionOptions, SessionSetup
from codex_py.app.providers.findings import fitted
from codex_py.app.user_programs import user_programs
from codex_py.config.config import Config
from codex_py.config.declared.section import is_set
from codex_py.config.declared.settings import Settings
from codex_py.errors import ConfigError, ModelError
from codex_py.http.transport import http_client, http_transport
from codex_py.model.auth import (
    ProviderKey,
    TokenSource,
    find_key,
    unusable_command,
)
from codex_py.model.catalog import EFFORTS, model_info
from codex_py.model.client import HttpModelClient, UnavailableClient
from codex_py.model.program_names import own_names, program_names
from codex_py.model.provider_data import Maker
from codex_py.model.providers import (
    TEXT_TOOLS,
    WIRES,
    Provider,
    TokenCommand,
    resolve_provider,
)
from codex_py.protocol.provider_ids import BUILT_IN_PROVIDERS, LOCAL_PROVIDERS
from codex_py.protocol.stream import ModelClient, Wire

_DEFAULT: Final = Settings.model
_WITHOUT_DEFAULT: Final = {*BUILT_IN_PROVIDERS} - {"openai", "azure", "openrouter"}
"""Providers that do not serve the default model."""
_WITHOUT_PATHS: Final = {*BUILT_IN_PROVIDERS} - {*LOCAL_PROVIDERS}
"""The providers that name no model by a path."""
_TOKEN_SOURCE: Final = "codex_py.model.chatgpt.sources:token_source"
"""The function that makes the source of tokens of a ChatGPT plan. Most sessions send a key."""
_INSTALLED_WIRE: Final = "codex_py.app.guarded_wire:installed_wire"
"""The function that makes the wire of an installed package. Most sessions use one of the program."""


def configured_provider(
    config: Config,
    environment: Mapping[str, str],
) -> Provider:
    """Return the provider of a session, fitted to the known facts about its model.

    Raises:
        ConfigError: the provider is unknown, none of its models is named, or the model has no such
            effort.
    """
    name = config.model_provider
    if not _names_model(config.model, name):
        raise ConfigError(f"`model`: {config.model!r} names no model", key=("model",))
    _require_known_efforts(config)
    is_default = config.model == _DEFAULT and not is_set(config.settings, "model")
    if is_default and name in _WITHOUT_DEFAULT:
        raise ConfigError(
            f"the provider {name!r} has no model {_DEFAULT!r}: say which with -m {name}/MODEL"
            " (codex-py models list)"
        )
    provider = named_provider(config, name, environment)
    table = config.model_providers.get(name, {})
    own = table.get("profile", {})
    return fitted(provider, config.model, config.home, own)


def _names_model(model: str, provider: str) -> bool:
    """False if the name of a model is blank, or only a path to a provider without paths."""
    first, slash, rest = model.rpartition("/")
    if not rest.strip():
        return False
    # A server of the user's own may name a model by its path.
    is_path = bool(slash) and not first
    return not (is_path and provider in _WITHOUT_PATHS)


def _require_known_efforts(config: Config) -> None:
    """Raise a `ConfigError` for an effort that no model has."""
    has_own_catalog = config.settings.model_catalog_json is not None
    if has_own_catalog or not model_info(config.model).known:
        # Such a model may have other efforts.
        return
    efforts = {
        "model_reasoning_effort": config.model_reasoning_effort,
        "plan_mode_reasoning_effort": config.settings.plan_mode_reasoning_effort,
    }
    for key, effort in efforts.items():
        if effort not in (None, *EFFORTS):
            raise ConfigError(
                f"`{key}`: {config.model} has no effort {effort!r}; use one of"
                f" {', '.join(EFFORTS)}",
                key=(key,),
            )


def named_provider(
    config: Config, name: str, environment: Mapping[str, str]
) -> Provider:
    """Return the provider with this name. Raises a `ConfigError` if it is unknown."""
    layers = config.layers
    key = ("model_providers", name, "env_key")
    try:
        provider = resolve_provider(
            name,
            config.model_providers,
            openai_base_url=config.settings.openai_base_url,
            chatgpt_base_url=config.settings.chatgpt_base_url,
            environment=environment,
        )
    except ConfigError as error:
        raise layers.located(error) from None
    own = config.settings.model_providers.get(name)
    if own is not None and own.env_key is not None:
        return replace(provider, env_key_place=layers.where(key))
    return provider


def missing_key(
    config: Config,
    environment: Mapping[str, str],
) -> str | None:
    """Name the key that the provider needs and that cannot be found.

    Returns None if no key is missing.

    Raises:
        ConfigError: there is no such provider, or `auth.json` cannot be read.
    """
    provider = configured_provider(config, environment)
    if provider.auth is not None:
        # A program prints the key, and is run when the key is needed.
        return None
    try:
        provider_key(config, provider, environment)
    except ModelError as error:
        return str(error)
    return None


def provider_key(
    config: Config, provider: Provider, environment: Mapping[str, str]
) -> ProviderKey | None:
    """Find the key of a provider; see `find_key`.

    A command that prints the key is one of the user's programs.
    """

    def start(auth: TokenCommand) -> subprocess.Popen[bytes]:
        programs = user_programs(config, environment)
        argv = [auth.command, *auth.args]
        try:
            found = programs.outside(argv, environment, auth.cwd, "PYTHONPATH")
        except FileNotFoundError as error:
            raise unusable_command(auth, str(error.strerror)) from error
        return found.detached(stdout=subprocess.PIPE)

    try:
        return find_key(
            provider,
            environment=environment,
            home=config.home,
            start=start,
            allowed=config.settings.forced_login_method,
        )
    except ModelError as error:
        if error.code != "missing_key" or provider.id != "openai":
            raise
        from codex_py.app.providers.set_keys import advice  # 1 ms

        with_advice = f"{error} {advice(config, environment)}".rstrip()
        raise ModelError(
            with_advice, code=error.code, exit_code=error.exit_code
        ) from None


def pays_by_plan(
    config: Config, provider: Provider, environment: Mapping[str, str]
) -> bool:
    """True if the requests to a provider go to a ChatGPT plan. Runs no program that prints a key.

    Raises a `ConfigError` if `auth.json` cannot be read.
    """
    if provider.tokens_url is None or provider.auth is not None:
        return False
    try:
        key = provider_key(config, provider, environment)
    except ModelError:
        # The first request raises it.
        return False
    return key is not None and key.is_token


def token_source(
    config: Config,
    key: ProviderKey,
    environment: Mapping[str, str],
    warn: Callable[[str], None],
) -> TokenSource:
    """Make what gives the tokens in place of a key. Loads the code of logins."""
    workspaces = config.settings.forced_chatgpt_workspace_id
    return load(_TOKEN_SOURCE)(key, environment, warn, workspaces)


class ModelClients:
    """Makes the clients of a thread, which share their connections."""

    def __init__(
        self,
        setup: SessionSetup,
        thread_id: str,
        *,
        first_provider: str,
        of_parent: "ModelClients | None" = None,
        sent: Callable[[], None] = lambda: None,
    ) -> None:
        """Prepare to make clients.

        Args:
            first_provider: the provider that the thread begins with.
            of_parent: the clients of the parent thread, which have the connections.
            sent: see `HttpModelClient`.
        """
        self._setup = setup
        self._of_parent = of_parent
        self._thread_id = thread_id
        self._first_provider = first_provider
        self._sent = sent
        self._http: httpx.AsyncClient | None = None
        self._logins: dict[Any, TokenSource] = {}
        """The logins in use by their origin, which renew themselves. Shared with the parent."""
        self._answered: set[bytes] = set()
        """The hosts that have answered; see `HttpModelClient`. Shared with the parent."""
        if of_parent is not None:
            self._answered = of_parent._answered
            self._logins = of_parent._logins

    def connect(self, provider: Provider) -> ModelClient:
        """Make the client for a provider.

        Without a key, the requests of the client raise the reason.

        Raises:
            ConfigError: `auth.json` cannot be read, or the provider is configured wrongly.
        """
        setup = self._setup
        options = setup.options
        key: ProviderKey | None = None
        # Without the network no key is needed, and none should be read.
        if options.transport is None:
            try:
                key = provider_key(setup.config, provider, setup.environment)
            except ModelError as error:
                return UnavailableClient(error)
        provider = in_region(setup.config, provider)
        maker = Maker(provider.id, self._first_provider)
        headers = self._headers()
        tokens: TokenSource | None = None
        if key is not None and key.is_token:
            provider = provider.for_tokens()
            headers |= own_names()
            tokens = self._token_source(key)
        return HttpModelClient(
            provider=provider,
            wire=_wire(provider, maker, headers["session-id"], options),
            http=self._connections(),
            key=key,
            tokens=tokens,
            headers=headers,
            environment=setup.environment,
            sent=self._sent,
            answered=self._answered,
        )

    def _token_source(self, key: ProviderKey) -> TokenSource:
        """Return what gives the tokens for requests, one for all clients.

        A login that is renewed is one for all sessions with the same options.
        """
        setup = self._setup
        logins = self._logins
        if key.login_file is not None:
            logins = setup.options.logins
        workspaces = setup.config.settings.forced_chatgpt_workspace_id
        name = (key.source, workspaces)
        if name not in logins:
            logins[name] = token_source(
                setup.config, key, setup.environment, setup.warn
            )
        return logins[name]

    async def aclose(self) -> None:
        if self._http is not None:
            await self._http.aclose()

    def _headers(self) -> dict[str, str]:
        """The headers that name the program and the thread, as Codex sends them."""
        options = self._setup.options
        thread_id = self._thread_id
        headers = {
            **program_names(options.originator),
            "session-id": thread_id,
            "thread-id": thread_id,
            "x-client-request-id": thread_id,
        }
        parent = options.parent
        if parent is not None:
            kind = "review" if parent.role == "review" else "collab_spawn"
            headers["session-id"] = parent.root_id
            headers["x-openai-subagent"] = kind
            headers["x-codex-parent-thread-id"] = parent.thread_id
        return headers

    def _connections(self) -> httpx.AsyncClient:
        """The connections of the thread and its parents."""
        if self._of_parent is not None:
            return self._of_parent._connections()
        if self._http is None:
            transport = _transport(self._setup)
            self._http = http_client(
                environment=self._setup.environment, transport=transport
            )
        return self._http


def in_region(config: Config, provider: Provider) -> Provider:
    """Return the provider with the header that keeps the data of requests in the demanded region.

    The header's name is Codex's. No header of the provider replaces it.
    """
    region = config.requirements.keys.enforce_residency
    if region is None:
        return provider
    name = "x-openai-internal-codex-residency"
    fixed = _without_header(provider.http_headers, name)
    return replace(
        provider,
        http_headers={**fixed, name: region},
        env_http_headers=_without_header(provider.env_http_headers, name),
    )


def _without_header(
    headers: Mapping[str, str],
    name: str,
) -> dict[str, str]:
    return {key: value for key, value in headers.items() if key.lower() != name}


def _wire(
    provider: Provider, maker: Maker, session_id: str, options: SessionOptions
) -> Wire:
    """The wire of a provider, loaded now."""
    make = _wire_class(provider)
    wire = make(
        deltas=options.text_deltas,
        maker=maker,
        profile=provider.profile,
    )
    if provider.profile.tools != "text":
        return wire
    is_recording = getattr(options.transport, "is_recording", False)
    return load(TEXT_TOOLS)(
        wire, session_id=session_id, maker=maker, replayed=is_recording
    )


def _wire_class(provider: Provider) -> Callable[..., Wire]:
    """The class of a wire, or the function that makes the wire of an installed package.

    The function raises a `ConfigError` if that wire cannot be used.
    """
    wire_api = provider.wire_api
    if wire_api in WIRES:
        class_path, _ = WIRES[wire_api]
        return load(class_path)
    point = registry.find(registry.WIRES, wire_api)
    if point is None:
        raise ConfigError(f"no installed package has a wire {wire_api!r}")
    key = ("model_providers", provider.id, "wire_api")
    return partial(load(_INSTALLED_WIRE), point, key)


def _transport(setup: SessionSetup) -> httpx.AsyncBaseTransport | None:
    """The transport that the options ask for; None for the network alone."""
    options = setup.options
    if options.wrap_transport is None:
        return options.transport
    inner = options.transport or http_transport(setup.environment)
    return options.wrap_transport(inner)

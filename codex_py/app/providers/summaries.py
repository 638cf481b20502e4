"""Describes the providers that sessions can use, without their keys."""

from collections.abc import Mapping
from typing import Literal, TypeAlias

from codex_py.app.model import named_provider
from codex_py.config.config import Config
from codex_py.errors import ConfigError
from codex_py.model.providers import Provider
from codex_py.protocol.frozen import frozen
from codex_py.protocol.provider_ids import BUILT_IN_PROVIDERS

KeyPlace: TypeAlias = Literal["none", "variable", "elsewhere"]
"""The place of a provider's key: it needs none, a variable, or a file, a command and so on."""


@frozen
class ProviderSummary:
    id: str
    name: str
    base_url: str | None
    """None if the address has credentials."""
    key_place: KeyPlace
    env_key: str | None
    """The name of the variable with the key, if there is one."""
    searches_web: bool
    """True if the server of the provider searches the web for a model."""


def provider_summaries(
    config: Config, environment: Mapping[str, str]
) -> list[ProviderSummary]:
    """Describe all usable providers, built-in ones and those of the configuration, by id."""
    found: list[ProviderSummary] = []
    for name in sorted({*BUILT_IN_PROVIDERS, *config.model_providers}):
        try:
            found.append(provider_summary(config, name, environment))
        except ConfigError:
            # It lacks an address, for instance.
            continue
    return found


def provider_summary(
    config: Config, name: str, environment: Mapping[str, str]
) -> ProviderSummary:
    """Describe a provider. Raises a `ConfigError` if it is unknown or cannot be used."""
    provider = named_provider(config, name, environment)
    base_url = None
    if provider.shown_url == provider.base_url:
        base_url = provider.base_url
    profile = provider.profile
    searches_web = provider.wire_api == "responses" and not profile.function_tools_only
    return ProviderSummary(
        provider.id,
        provider.name,
        base_url,
        _key_place(provider),
        provider.env_key,
        searches_web,
    )


def _key_place(provider: Provider) -> KeyPlace:
    headers = {**provider.http_headers, **provider.env_http_headers}
    is_elsewhere = (
        provider.bearer_token is not None
        or provider.auth is not None
        or provider.requires_openai_auth
    )
    if is_elsewhere or headers or provider.query_params:
        return "elsewhere"
    if provider.env_key is not None:
        return "variable"
    return "none"

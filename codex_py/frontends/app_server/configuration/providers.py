"""Answers the methods about the providers of models, and changes them."""

import asyncio
from pathlib import Path

from codex_py.app.providers.summaries import (
    KeyPlace,
    ProviderSummary,
    provider_summaries,
    provider_summary,
)
from codex_py.config.config import Config
from codex_py.errors import ConfigError
from codex_py.frontends.app_server import params
from codex_py.frontends.app_server.configuration import config_params
from codex_py.frontends.app_server.configuration.config_edits import (
    INVALID,
    invalid,
    write_error,
)
from codex_py.frontends.app_server.configuration.config_layers import (
    setting_layer,
    shown_layers,
)
from codex_py.frontends.app_server.configuration.config_writer import (
    write_settings,
    write_user_file,
)
from codex_py.frontends.app_server.configuration.provider_patches import patched
from codex_py.frontends.app_server.methods import MethodGroup, serves
from codex_py.frontends.app_server.turn_items.items import Fields
from codex_py.protocol.provider_ids import BUILT_IN_PROVIDERS


class ProviderMethods(MethodGroup):
    """Answers `modelProvider/…`."""

    @serves("modelProvider/list", params.Nothing)
    async def list_all(self, _: params.Nothing) -> Fields:
        """List the usable providers."""
        config = await asyncio.to_thread(self.server.user_configuration)
        found = provider_summaries(config, self.server.environment)
        return {
            "data": [_provider(provider, config) for provider in found],
            "defaultProviderId": config.model_provider,
            "canChangeDefault": _can_change_default(config),
        }

    @serves("modelProvider/capabilities/read", params.Nothing)
    async def capabilities(self, _: params.Nothing) -> Fields:
        """Tell what the server of the configured provider does by itself."""
        config = await asyncio.to_thread(self.server.user_configuration)
        name = config.model_provider
        provider = provider_summary(config, name, self.server.environment)
        return {"imageGeneration": False, "webSearch": provider.searches_web}

    @serves("modelProvider/default/set", config_params.DefaultProvider)
    async def set_default(self, asked: config_params.DefaultProvider) -> Fields:
        """Set the provider of new threads."""
        name = asked.provider_id
        config = await asyncio.to_thread(self.server.user_configuration)
        if name not in {*BUILT_IN_PROVIDERS, *config.model_providers}:
            # The words are Codex's.
            raise write_error(INVALID, f"Model provider `{name}` is not configured.")
        edit = config_params.ConfigEdit(
            key_path="model_provider", value=name, merge_strategy="replace"
        )
        return await asyncio.to_thread(write_settings, self.server, [edit])

    @serves("modelProvider/config/write", config_params.ProviderWrite)
    async def write(self, asked: config_params.ProviderWrite) -> Fields:
        """Add a provider of the user's, or change one."""
        return await asyncio.to_thread(self._write, asked.settings)

    def _write(self, patch: config_params.ProviderPatch) -> Fields:
        names: list[str] = []

        def change(text: str, path: Path) -> str:
            key_place = self._key_place(text, patch.provider_id)
            text, name = patched(text, path, patch, key_place)
            names.append(name)
            # The change must leave a usable provider.
            self._summary(self.server.user_configuration(text), name)
            return text

        config = write_user_file(self.server, change)
        return {"provider": _provider(self._summary(config, names[0]), config)}

    def _key_place(self, text: str, name: str | None) -> KeyPlace | None:
        """The place of a provider's key; None for a new provider, or one that is not usable.

        Args:
            text: the text of the user's file.
        """
        if name is None:
            return None
        try:
            config = self.server.user_configuration(text)
            return provider_summary(config, name, self.server.environment).key_place
        except ConfigError:
            return None

    def _summary(self, config: Config, name: str) -> ProviderSummary:
        """Describe a provider. Raises an `RpcError` if it cannot be used."""
        try:
            return provider_summary(config, name, self.server.environment)
        except ConfigError as error:
            raise invalid(error) from error


def _can_change_default(config: Config) -> bool:
    """True unless a layer above the user's file sets the provider."""
    setting = setting_layer(shown_layers(config), ("model_provider",))
    return setting is None or setting.name in {"user", "system"}


def _can_edit(name: str, config: Config) -> bool:
    """True for a provider of the user's file, unless a stronger layer has settings of it too."""
    setting = setting_layer(shown_layers(config), ("model_providers", name))
    is_users = setting is not None and setting.name == "user"
    return is_users and name not in BUILT_IN_PROVIDERS


def _provider(provider: ProviderSummary, config: Config) -> Fields:
    settings: Fields = {"type": "openai"}
    base_url = None
    if provider.id != "openai":
        settings = {"type": "customGateway", "auth": _auth(provider)}
        base_url = provider.base_url
    return {
        "id": provider.id,
        "name": provider.name,
        "canEdit": _can_edit(provider.id, config),
        "baseUrl": base_url,
        "settings": settings,
    }


def _auth(provider: ProviderSummary) -> Fields:
    match provider.key_place:
        case "none":
            return {"mode": "none"}
        case "variable":
            return {"mode": "environmentVariable", "envKey": provider.env_key}
        case "elsewhere":
            return {"mode": "externallyConfigured", "envKey": provider.env_key}

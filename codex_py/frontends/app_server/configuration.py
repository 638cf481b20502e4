"""Answers the methods about the configuration."""

import asyncio
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from codex_py.config.config import Config
from codex_py.config.edit import edit_config
from codex_py.errors import ConfigError
from codex_py.frontends.app_server import config_params, params
from codex_py.frontends.app_server.config_edits import (
    INVALID,
    READ_ONLY,
    edited,
    invalid,
    require_unpinned,
    write_error,
    written,
)
from codex_py.frontends.app_server.config_layers import (
    described,
    effective,
    origins,
    shown_layers,
)
from codex_py.frontends.app_server.items import Fields
from codex_py.frontends.app_server.methods import MethodGroup, serves
from codex_py.frontends.app_server.requirement_facts import requirement_facts
from codex_py.frontends.app_server.skill_switches import (
    disables,
    skill_selector,
    with_skill,
)
from codex_py.protocol.provider_ids import BUILT_IN_PROVIDERS


class ConfigMethods(MethodGroup):
    """Answers `config/…` and `configRequirements/read`, and changes single settings."""

    @serves("config/read", config_params.ConfigRead)
    async def read(self, asked: config_params.ConfigRead) -> Fields:
        """Tell the settings, and which layer sets each; without a folder, those of no project."""
        return await asyncio.to_thread(self._read, asked)

    def _read(self, asked: config_params.ConfigRead) -> Fields:
        config = self.server.configuration_of(asked.cwd)
        layers = shown_layers(config)
        answer: Fields = {
            "config": effective(config),
            "origins": origins(layers),
            "layers": None,
        }
        if asked.include_layers:
            answer["layers"] = [described(layer) for layer in layers]
        return answer

    @serves("config/value/write", config_params.ValueWrite)
    async def write_value(self, asked: config_params.ValueWrite) -> Fields:
        return await self._written([asked], asked.file_path, asked.expected_version)

    @serves("config/batchWrite", config_params.BatchWrite)
    async def write_batch(self, asked: config_params.BatchWrite) -> Fields:
        """Make all changes or none."""
        answer = await self._written(
            asked.edits, asked.file_path, asked.expected_version
        )
        if asked.reload_user_config:
            self.threads.reload()
        return answer

    @serves("configRequirements/read", params.Nothing)
    async def requirements(self, _: params.Nothing) -> Fields:
        config = await asyncio.to_thread(self.server.user_configuration)
        return {"requirements": requirement_facts(config)}

    @serves("modelProvider/default/set", config_params.DefaultProvider)
    async def set_default_provider(
        self, asked: config_params.DefaultProvider
    ) -> Fields:
        """Set the provider of new threads."""
        name = asked.provider_id
        config = await asyncio.to_thread(self.server.user_configuration)
        if name not in {*BUILT_IN_PROVIDERS, *config.model_providers}:
            # The words are Codex's.
            raise write_error(INVALID, f"Model provider `{name}` is not configured.")
        edit = config_params.ConfigEdit(
            key_path="model_provider", value=name, merge_strategy="replace"
        )
        return await self._written([edit])

    @serves("skills/config/write", config_params.SkillWrite)
    async def switch_skill(self, asked: config_params.SkillWrite) -> Fields:
        """Switch a skill on or off, by its name or by its file."""
        return await asyncio.to_thread(self._switch_skill, asked)

    def _switch_skill(self, asked: config_params.SkillWrite) -> Fields:
        selector = skill_selector(asked)

        def change(text: str, path: Path) -> str:
            return with_skill(text, path, selector, is_enabled=asked.enabled)

        config = self._write(change)
        return {"effectiveEnabled": not disables(config, selector)}

    async def _written(
        self,
        edits: Sequence[config_params.ConfigEdit],
        file_path: str | None = None,
        expected_version: str | None = None,
    ) -> Fields:
        """Make changes, and return the answer to the request."""
        user_file = self.server.home / "config.toml"
        if file_path is not None and not _is_same(file_path, user_file):
            raise write_error(READ_ONLY, "Only writes to the user config are allowed")

        def change(text: str, path: Path) -> str:
            return edited(text, path, edits, expected_version)

        config = await asyncio.to_thread(self._write, change, edits)
        return written(user_file, config, edits)

    def _write(
        self,
        change: Callable[[str, Path], str],
        edits: Sequence[config_params.ConfigEdit] = (),
    ) -> Config:
        """Change the user's file unless no session could start then.

        Args:
            change: see `edit_config`.
            edits: the changes, which may not set a feature against the requirements.

        Returns:
            The configuration after the change.
        """
        after: list[Config] = []

        def checked(text: str, path: Path) -> str:
            text = change(text, path)
            try:
                config = self.server.user_configuration(text)
                config.require_enforced()
            except ConfigError as error:
                raise invalid(error) from error
            require_unpinned(config, edits)
            after.append(config)
            return text

        edit_config(self.server.home, checked)
        return after[0]


def _is_same(file_path: str, path: Path) -> bool:
    """True if a client means this file. A relative path means none."""
    if not Path(file_path).is_absolute() or "\0" in file_path:
        return False
    return os.path.realpath(file_path) == os.path.realpath(path)

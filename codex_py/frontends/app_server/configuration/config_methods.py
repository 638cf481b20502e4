"""Answers the methods about the configuration."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

from codex_py.frontends.app_server import params
from codex_py.frontends.app_server.configuration import config_params
from codex_py.frontends.app_server.configuration.config_edits import (
    READ_ONLY,
    write_error,
)
from codex_py.frontends.app_server.configuration.config_layers import (
    described,
    effective,
    origins,
    shown_layers,
)
from codex_py.frontends.app_server.configuration.config_writer import (
    write_settings,
    write_user_file,
)
from codex_py.frontends.app_server.configuration.requirement_facts import (
    requirement_facts,
)
from codex_py.frontends.app_server.configuration.skill_switches import (
    disables,
    skill_selector,
    with_skill,
)
from codex_py.frontends.app_server.methods import MethodGroup, serves
from codex_py.frontends.app_server.turn_items.items import Fields


class ConfigMethods(MethodGroup):
    """Answers `config/…`, `configRequirements/read` and `skills/config/write`."""

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

    @serves("skills/config/write", config_params.SkillWrite)
    async def switch_skill(self, asked: config_params.SkillWrite) -> Fields:
        """Switch a skill on or off, by its name or by its file."""
        return await asyncio.to_thread(self._switch_skill, asked)

    def _switch_skill(self, asked: config_params.SkillWrite) -> Fields:
        selector = skill_selector(asked)

        def change(text: str, path: Path) -> str:
            return with_skill(text, path, selector, is_enabled=asked.enabled)

        config = write_user_file(self.server, change)
        return {"effectiveEnabled": not disables(config, selector)}

    async def _written(
        self,
        edits: Sequence[config_params.ConfigEdit],
        file_path: str | None,
        expected_version: str | None,
    ) -> Fields:
        user_file = self.server.home / "config.toml"
        if file_path is not None and not _is_same(file_path, user_file):
            raise write_error(READ_ONLY, "Only writes to the user config are allowed")
        return await asyncio.to_thread(
            write_settings, self.server, edits, expected_version
        )


def _is_same(file_path: str, path: Path) -> bool:
    """True if a client means this file. A relative path means none."""
    if not Path(file_path).is_absolute() or "\0" in file_path:
        return False
    return os.path.realpath(file_path) == os.path.realpath(path)

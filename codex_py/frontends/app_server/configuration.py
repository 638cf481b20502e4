"""Answers the methods about the configuration."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

from codex_py.config.config import Config
from codex_py.config.edit import edit_config
from codex_py.errors import ConfigError
from codex_py.frontends.app_server import config_params, params
from codex_py.frontends.app_server.config_edits import (
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


class ConfigMethods(MethodGroup):
    """Answers `config/…` and `configRequirements/read`."""

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

    async def _written(
        self,
        edits: Sequence[config_params.ConfigEdit],
        file_path: str | None,
        expected_version: str | None,
    ) -> Fields:
        return await asyncio.to_thread(self._write, edits, file_path, expected_version)

    def _write(
        self,
        edits: Sequence[config_params.ConfigEdit],
        file_path: str | None,
        expected_version: str | None,
    ) -> Fields:
        home = self.server.home
        user_file = home / "config.toml"
        if file_path is not None and not _is_same(file_path, user_file):
            raise write_error(READ_ONLY, "Only writes to the user config are allowed")
        after: list[Config] = []

        def change(text: str, path: Path) -> str:
            text = edited(text, path, edits, expected_version)
            try:
                config = self.server.user_configuration(text)
                config.require_enforced()
            except ConfigError as error:
                raise invalid(error) from error
            require_unpinned(config, edits)
            after.append(config)
            return text

        edit_config(home, change)
        return written(user_file, after[0], edits)


def _is_same(file_path: str, path: Path) -> bool:
    """True if a client means this file. A relative path means none."""
    if not Path(file_path).is_absolute() or "\0" in file_path:
        return False
    return os.path.realpath(file_path) == os.path.realpath(path)

"""What all methods of the app server share, apart from the open threads."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from codex_py.app.json_rpc import JsonRpc
from codex_py.command_line.arguments import Arguments
from codex_py.command_line.configuration import config_sources, folder_config
from codex_py.command_line.serving import served_options
from codex_py.config.config import Config, load_config
from codex_py.config.paths import codex_home
from codex_py.frontends.app_server.turn_items.items import Fields


class Server:
    """The connection of one client, and the settings of the server.

    Attributes:
        rpc: the connection.
        environment: the environment of the server.
        home: `$CODEX_HOME`, absolute.
        options: the options of every session.
        skill_folders: the folders in which the client has skills too.
    """

    def __init__(
        self,
        rpc: JsonRpc,
        arguments: Arguments,
        environment: Mapping[str, str],
    ) -> None:
        self._arguments = arguments
        self._answers_largely = asyncio.Lock()
        self.rpc = rpc
        self.environment = environment
        self.home = codex_home(environment)
        self.skill_folders: tuple[Path, ...] = ()
        self.options = replace(
            served_options(arguments),
            source="vscode",
            can_review=True,
            may_add_servers=True,
        )

    def name_client(self, name: str) -> None:
        """Set the client's name as the originator of all threads from now on."""
        name = self.environment.get("CODEX_INTERNAL_ORIGINATOR_OVERRIDE") or name
        self.options = replace(self.options, originator=name)

    def configuration(
        self,
        cwd: str | None = None,
        table: Mapping[str, Any] | None = None,
    ) -> Config:
        """Read the configuration of a folder from its files.

        Args:
            cwd: the folder; None for the one that the server was started for.
            table: settings of the client, as in `config.toml`. They win over the files.

        Raises:
            ConfigError: the settings cannot be used.
        """
        config = folder_config(self._arguments, self.environment, cwd, table or {})
        return replace(config, skill_folders=self.skill_folders)

    @asynccontextmanager
    async def large_answer(self) -> AsyncGenerator[None]:
        """Hold back other large answers until the client has read nearly everything.

        Return the answer within the context. Without this, a client that asks for much at once
        would be taken for one that does not read.

        Raises:
            RpcError: the client left.
        """
        async with self._answers_largely:
            await self.rpc.drained()
            yield

    def configuration_of(self, cwd: str | None) -> Config:
        """Read the configuration of a folder with its project; None: the one without a project.

        Raises:
            ConfigError: the settings cannot be used, or there is no such folder.
        """
        if cwd is None:
            return self.user_configuration()
        return self.configuration(cwd)

    def user_configuration(self, user_text: str | None = None) -> Config:
        """Read the configuration without that of a project.

        Args:
            user_text: the text to read in place of the user's file.

        Raises:
            ConfigError: the settings cannot be used.
        """
        return load_config(
            **config_sources(self._arguments, self.environment),
            strict=self._arguments.strict_config,
            with_project=False,
            user_text=user_text,
        )

    def later(self, method: str, params: Fields) -> None:
        """Send a notification after the answer to the running request."""
        asyncio.get_running_loop().call_soon(self.rpc.notify, method, params)

"""Asks groups of methods of the app server without a process, with an administrator's folder of the test's own."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from codex_py.app.json_rpc import JsonRpc, RpcError
from codex_py.command_line.arguments import Arguments
from codex_py.config.config import Config, load_config
from codex_py.frontends.app_server.methods import MethodGroup
from codex_py.frontends.app_server.params import read_params
from codex_py.frontends.app_server.server import Server
from codex_py.frontends.app_server.threads.open_threads import OpenThreads
from tests.support.program import environment


class _Server(Server):
    def __init__(self, home: Path, cwd: Path, system: Path) -> None:
        self.told: list[tuple[str, Mapping[str, Any]]] = []
        self._cwd = cwd
        self._system = system
        super().__init__(
            cast("JsonRpc", self), Arguments(cd=str(cwd)), environment(home)
        )

    def notify(self, method: str, fields: Mapping[str, Any]) -> None:
        """Take a notification in place of the connection."""
        self.told.append((method, fields))

    def configuration(
        self, cwd: str | None = None, table: Mapping[str, Any] | None = None
    ) -> Config:
        config = load_config(
            cwd=self._cwd / (cwd or "."),
            environment=self.environment,
            flags=table or {},
            system=self._system,
        )
        return replace(config, skill_folders=self.skill_folders)

    def user_configuration(self, user_text: str | None = None) -> Config:
        return load_config(
            cwd=self._cwd,
            environment=self.environment,
            system=self._system,
            with_project=False,
            user_text=user_text,
        )


class Groups:
    """The groups of one client.

    Attributes:
        told: the notifications.
    """

    def __init__(
        self, home: Path, cwd: Path, system: Path, *kinds: type[MethodGroup]
    ) -> None:
        server = _Server(home, cwd, system)
        threads = OpenThreads(server)
        self.told = server.told
        self._groups = [kind(server, threads) for kind in kinds]

    def ask(self, method: str, **params: Any) -> Any:
        """The result of a request."""
        for group in self._groups:
            served = group.methods.get(method)
            if served is not None:
                asked = read_params(served.params, params)
                return asyncio.run(_answer(served.answer(group, asked)))
        raise AssertionError(f"no group has {method}")

    def refused(self, method: str, **params: Any) -> RpcError:
        """The error that a request is answered with."""
        with pytest.raises(RpcError) as caught:
            self.ask(method, **params)
        return caught.value


async def _answer(answer: Any) -> Any:
    return await answer

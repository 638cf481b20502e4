"""Runs the logins to MCP servers that a client starts. The client shows the user the page."""

import asyncio
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final
from uuid import uuid4

from codex_py.app.features.mcp import server_headers
from codex_py.app.json_rpc import INTERNAL_ERROR, OVERLOADED, RpcError
from codex_py.app.mcp_login import log_in
from codex_py.config.config import Config
from codex_py.errors import CodexError
from codex_py.frontends.app_server.client_screen import ClientScreen
from codex_py.frontends.app_server.turn_items.items import Fields

_CANCELLED: Final = "the login was not completed"
_MAX_RUNNING: Final = 16
"""The number of logins that may run at once. Each listens on a port."""
_TIMEOUT_S: Final = 300
_MAX_TIMEOUT_S: Final = 24 * 60 * 60


class McpLogins:
    """Runs one login for each server at a time: a new one ends the one before.

    Args:
        tell: sends a notification.
        logged_in: called after each login that has succeeded.
    """

    def __init__(
        self,
        environment: Mapping[str, str],
        tell: Callable[[str, Fields], None],
        logged_in: Callable[[], None],
    ) -> None:
        self._environment = environment
        self._tell = tell
        self._logged_in = logged_in
        self._running: dict[str, asyncio.Task[None]] = {}
        """The logins by the names of their servers."""

    async def start(
        self,
        config: Config,
        name: str,
        scopes: Sequence[str],
        timeout_s: int | None,
        thread_id: str | None,
    ) -> Fields:
        """Begin a login. Returns the answer, with the address to open.

        Args:
            scopes: these replace the configured ones.
            timeout_s: as the client asks for it: any number.
            thread_id: the id that the client wants to be told in the end.

        Raises:
            RpcError: the login failed before there was an address, or too many logins run.
        """
        await self._stop(name)
        if len(self._running) >= _MAX_RUNNING:
            text = f"more than {_MAX_RUNNING} logins at once; wait for one to end"
            raise RpcError(OVERLOADED, text)
        if timeout_s is None:
            timeout_s = _TIMEOUT_S
        screen = ClientScreen()
        headers = server_headers(
            name, config.mcp_servers[name], self._environment, lambda _: None
        )
        running = log_in(
            config,
            name,
            screen,
            headers=headers,
            scopes=scopes,
            timeout_s=min(max(timeout_s, 1), _MAX_TIMEOUT_S),
        )
        task = asyncio.create_task(running)
        self._running[name] = task
        task.add_done_callback(partial(self._forget, name))
        await asyncio.wait({task, screen.address}, return_when=asyncio.FIRST_COMPLETED)
        if not screen.address.done():
            raise _failure(name, task)
        login: Fields = {
            "name": name,
            "threadId": thread_id,
            "loginId": str(uuid4()),
        }
        task.add_done_callback(partial(self._tell_end, login))
        address = await screen.address
        return {"authorizationUrl": address, "loginId": login["loginId"]}

    async def stop(self) -> None:
        """Cancel the running logins, and wait for their end."""
        for name in list(self._running):
            await self._stop(name)

    async def _stop(self, name: str) -> None:
        task = self._running.get(name)
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    def _forget(self, name: str, task: asyncio.Task[None]) -> None:
        if self._running.get(name) is task:
            del self._running[name]

    def _tell_end(self, login: Fields, task: asyncio.Task[None]) -> None:
        """Tell the client how a login has ended."""
        problem = _problem(task)
        if problem is None:
            self._tell("mcpServer/oauthLogin/completed", {**login, "success": True})
            self._logged_in()
        else:
            ended = {**login, "success": False, "error": problem}
            self._tell("mcpServer/oauthLogin/completed", ended)


def _failure(name: str, task: asyncio.Task[None]) -> RpcError:
    """The error for a login that has ended before there was an address."""
    problem = _problem(task) or "the server wants no login"
    return RpcError(
        INTERNAL_ERROR, f"failed to login to MCP server '{name}': {problem}"
    )


def _problem(task: asyncio.Task[None]) -> str | None:
    """The reason why a login has failed; None if it has succeeded."""
    if task.cancelled():
        return _CANCELLED
    error = task.exception()
    if error is None:
        return None
    if isinstance(error, CodexError):
        return str(error)
    traceback.print_exception(error, file=sys.stderr)
    return f"internal error: {error!r}"

"""Runs the logins with ChatGPT that a client starts. The client shows the user the page."""

import asyncio
import sys
import traceback
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Any, Final, TypeVar
from uuid import uuid4

from codex_py.app.chatgpt_login import SignIn
from codex_py.app.json_rpc import INVALID_REQUEST, RpcError
from codex_py.app.stored_login import require_chatgpt
from codex_py.config.config import Config
from codex_py.errors import CodexError
from codex_py.frontends.app_server.account.plan_facts import plan_type
from codex_py.frontends.app_server.client_screen import ClientScreen
from codex_py.frontends.app_server.turn_items.items import Fields

_CANCELLED: Final = "Login was not completed"
"""The words are Codex's."""
_PageT = TypeVar("_PageT")


class ChatGPTLogins:
    """Runs one login at a time: a new one ends the one before.

    Args:
        later: sends a notification after the answer to the running request.
    """

    def __init__(
        self, environment: Mapping[str, str], later: Callable[[str, Fields], None]
    ) -> None:
        self._environment = environment
        self._later = later
        self._login_id = ""
        self._running: asyncio.Task[None] | None = None

    async def start_in_browser(self, config: Config) -> Fields:
        """Wait for a browser on this machine. Returns the answer, with the address to open."""
        login = await self._login(config)
        screen = ClientScreen()
        running = login.with_browser(screen)
        login_id, address = await self._begun(login, running, screen.address)
        return {"type": "chatgpt", "loginId": login_id, "authUrl": address}

    async def start_with_code(self, config: Config) -> Fields:
        """Wait until the user has typed a code. Returns the answer, with the code."""
        login = await self._login(config)
        loop = asyncio.get_running_loop()
        shown: asyncio.Future[tuple[str, str]] = loop.create_future()

        def show(address: str, code: str) -> None:
            shown.set_result((address, code))

        running = login.with_code(show)
        login_id, page = await self._begun(login, running, shown)
        address, code = page
        return {
            "type": "chatgptDeviceCode",
            "loginId": login_id,
            "verificationUrl": address,
            "userCode": code,
        }

    def cancel(self, login_id: str) -> bool:
        """Cancel a login. False if no login with this id is running."""
        running = self._running
        if running is None or running.done() or login_id != self._login_id:
            return False
        running.cancel()
        return True

    async def stop(self) -> None:
        """Cancel the running login, and wait for its end."""
        if self._running is not None and not self._running.done():
            self._running.cancel()
            await asyncio.wait([self._running])

    async def _login(self, config: Config) -> SignIn:
        """Make the next login. The port of the one before is free then."""
        require_chatgpt(config, "ChatGPT")
        await self.stop()
        return SignIn(config, self._environment, None)

    async def _begun(
        self,
        login: SignIn,
        running: Coroutine[Any, Any, None],
        shown: asyncio.Future[_PageT],
    ) -> tuple[str, _PageT]:
        """Begin a login. Returns its id, and what the user has to be shown.

        Raises:
            CodexError: the login failed before.
            RpcError: another request has ended the login before.
        """
        login_id = str(uuid4())
        task = asyncio.create_task(running)
        self._login_id = login_id
        self._running = task
        await asyncio.wait({task, shown}, return_when=asyncio.FIRST_COMPLETED)
        if not shown.done():
            if task.cancelled():
                raise RpcError(INVALID_REQUEST, _CANCELLED)
            await task
        task.add_done_callback(partial(self._tell_end, login_id, login))
        return login_id, await shown

    def _tell_end(self, login_id: str, login: SignIn, task: asyncio.Task[None]) -> None:
        """Tell the client how a login has ended."""
        problem: str | None = None
        if task.cancelled():
            problem = _CANCELLED
        else:
            error = task.exception()
            if isinstance(error, CodexError):
                problem = str(error)
            elif error is not None:
                problem = f"internal error: {error!r}"
                traceback.print_exception(error, file=sys.stderr)
        if login.is_stored:
            # What came later does not take the login away.
            problem = None
        is_signed_in = problem is None
        done = {"loginId": login_id, "success": is_signed_in, "error": problem}
        self._later("account/login/completed", done)
        if is_signed_in:
            account = {"authMode": "chatgpt", "planType": plan_type(login.plan)}
            self._later("account/updated", account)

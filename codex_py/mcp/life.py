"""One connection to a server, from when it is opened until it is known why it ended. LIGHT."""

import asyncio
from collections.abc import Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from codex_py.mcp.request import OnProgress, RequestFailed

if TYPE_CHECKING:
    from codex_py.mcp.connection import Connection


class Life:
    """What belongs to one connection, and is not to touch the one after it."""

    def __init__(self) -> None:
        self.connection: Connection | None = None
        """Set when it is up."""
        self.over = asyncio.Event()
        """Set when it is to end, or has."""
        self.is_lost = False
        self.because: str | None = None
        """Why it was lost, where that is not for the process to say."""
        self.login_problem: str | None = None
        """Why the server turns us away."""
        self._http_status: str | None = None
        self._epitaph = ""
        self._buried = asyncio.Event()

    async def request(
        self, method: str, params: Mapping[str, Any], on_progress: OnProgress | None
    ) -> dict[str, Any]:
        assert self.connection is not None
        self._http_status = None
        try:
            return await self.connection.request(method, params, on_progress)
        except RequestFailed as error:
            if error.code in {"ConnectionLost", "SessionLost"}:
                await self._buried.wait()
                raise RequestFailed(self._epitaph, error.code) from error
            if self.refusal is None:
                raise
            raise RequestFailed(f"{error} ({self.refusal})") from error

    @property
    def refusal(self) -> str | None:
        """How the latest request that was refused came back: `HTTP 404 Not Found`."""
        if self._http_status is None or self.login_problem is None:
            return self._http_status
        return f"{self._http_status}; {self.login_problem}"

    def lose(self, because: str | None) -> None:
        self.is_lost = True
        self.because = because or self.because
        self.over.set()

    def answered(self, status: int) -> None:
        if status < HTTPStatus.BAD_REQUEST:
            # What was refused before has been signed anew.
            self._http_status = None
            return
        try:
            phrase = f" {HTTPStatus(status).phrase}"
        except ValueError:
            phrase = ""
        self._http_status = f"HTTP {status}{phrase}"

    def has_login_problem(self, problem: str | None) -> None:
        self.login_problem = problem

    def bury(self, epitaph: str) -> None:
        """Tell those whose requests it took along."""
        if not self._buried.is_set():
            self._epitaph = epitaph
            self._buried.set()

"""The state of one connection to a server, and the time limits of requests. LIGHT.

A connection lives until the reason for its end is known.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, TypeAlias

from codex_py.protocol.mcp import (
    Elicitation,
    ElicitationAnswer,
    RequestFailed,
    ServerAbout,
    WantedLogin,
)

_OF_SESSIONS: Final = {-32001, -32000, -32600}
"""JSON-RPC error codes that servers send for an unknown session."""
_FORGOTTEN: Final = (
    r"(?i)\bsession\b.*\b"
    r"(?:not found|not initialized|expired|unknown|invalid|not exist|no longer|terminated)\b"
    r"|\b(?:no|invalid|unknown|expired|no valid|no such)\b (?:\w+ )?session\b"
)
"""Matches the messages of servers for an unknown session."""

OnProgress: TypeAlias = Callable[[float, float | None, str | None], None]
"""Takes a report of progress: the progress, the total if known, and the server's message."""


@dataclass(frozen=True, slots=True)
class McpSession:
    """An initialised MCP session."""

    software: str
    about: ServerAbout
    protocol_version: str
    has_tools: bool
    has_resources: bool
    send: Callable[
        [str, Mapping[str, Any], OnProgress | None], Awaitable[dict[str, Any]]
    ]
    """Send one request and return its result, or raise `RequestFailed`. On cancellation, the server
    is notified."""


class ServerConnection:
    """One connection. A restarted server gets a new one, so that no state of the old one is left.

    Args:
        elicit: asks the user a question from the server.
        stray_output: takes each line on stdout that is not a message.
        lost: is called when the connection is lost, possibly several times.
    """

    def __init__(
        self,
        *,
        elicit: Callable[[Elicitation], Awaitable[ElicitationAnswer]],
        stray_output: Callable[[str], None],
        lost: Callable[["ServerConnection"], None],
    ) -> None:
        self.elicit = elicit
        self.stray_output = stray_output
        self._on_lost = lost
        self.session: McpSession | None = None
        """Set once the server is ready."""
        self.has_new_tools = False
        """True if the server has announced a new list of tools."""
        self.closing = asyncio.Event()
        """Set when the connection should be closed, or was lost."""
        self.is_lost = False
        self.reason: str | None = None
        """The reason why the connection was lost; None if only the exit of the process can explain
        it."""
        self._login_problem: str | None = None
        """The reason why the server refuses our login."""
        self._had_login = False
        """True if there was a login that the server refuses."""
        self._refused: int | None = None
        """The HTTP status of the latest refused request."""
        self._is_in_session = False
        """True if the latest request named a session."""
        self._end: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        """Has the message for the lost requests, once the reason for the end is known."""

    async def request(
        self, method: str, params: Mapping[str, Any], on_progress: OnProgress | None
    ) -> dict[str, Any]:
        """Send one request, and return its result.

        Raises:
            RequestFailed: there is no result. If the connection is lost, the message is the reason,
                which this waits for.
        """
        assert self.session is not None
        self._refused = None
        try:
            return await self.session.send(method, params, on_progress)
        except RequestFailed as error:
            if error.code in {"ConnectionLost", "SessionLost"}:
                reason = await asyncio.shield(self._end)
                raise RequestFailed(reason, error.code) from error
            refusal = self.refusal
            if refusal is None:
                raise
            raise RequestFailed(f"{error} ({refusal})") from error

    @property
    def refusal(self) -> str | None:
        """The status of the latest request if it was refused, such as `HTTP 404 Not Found`.

        The reason follows if it is known.
        """
        if self._refused is None:
            return None
        try:
            status = f"HTTP {self._refused} {HTTPStatus(self._refused).phrase}"
        except ValueError:
            status = f"HTTP {self._refused}"
        if self._login_problem is None:
            return status
        return f"{status}; {self._login_problem}"

    @property
    def wanted_login(self) -> WantedLogin | None:
        """The login that the latest request lacked, if it was refused for that."""
        if self._refused != HTTPStatus.UNAUTHORIZED:
            return None
        if self._had_login:
            return "again"
        return "first"

    def answered(self, status: int, in_session: bool) -> None:
        """Note the HTTP status of a request.

        A refused request may have been signed again and resent since.
        """
        if status >= HTTPStatus.BAD_REQUEST:
            self._refused = status
        else:
            self._refused = None
        self._is_in_session = in_session

    def is_session_forgotten(self, code: int, message: str) -> bool:
        """True if the server refused the latest request because it no longer knows the session.

        The call did not run then.

        The specification demands 404. Servers modelled on the SDK's first examples answer 400, and
        some 200, with an error message. Most of them send a code that also means a timeout, so the
        message decides.

        Args:
            code: the code of the JSON-RPC error.
            message: its message.
        """
        if not self._is_in_session:
            return False
        match self._refused:
            case HTTPStatus.NOT_FOUND:
                return True
            case HTTPStatus.BAD_REQUEST:
                words = re.search("session|not initialized", message, re.IGNORECASE)
                return words is not None
            case None if code in _OF_SESSIONS:
                return re.search(_FORGOTTEN, message) is not None
            case _:
                return False

    def report_login(self, problem: str | None, had_login: bool) -> None:
        """Note the reason why the server refuses our login; None once it accepts the login.

        Args:
            had_login: True if there was a login that the server refuses.
        """
        self._login_problem = problem
        self._had_login = had_login

    def lose(self, reason: str | None = None) -> None:
        """Note that the connection is lost. This may be called again, with a better reason."""
        self.is_lost = True
        self.reason = reason or self.reason
        self.closing.set()
        self._on_lost(self)

    def end(self, message: str) -> None:
        """Fail the requests that were lost with the connection.

        The message of the first call counts.
        """
        if not self._end.done():
            self._end.set_result(message)


class Deadlines:
    """The time limits of the requests to one server.

    They are paused while the user answers its question.
    """

    def __init__(self) -> None:
        self._left_s: dict[asyncio.Timeout, float | None] = {}
        """Maps each limit to its remaining time if it is paused, else to None."""
        self._pauses = 0

    @asynccontextmanager
    async def limit(self, seconds: float) -> AsyncGenerator[None]:
        """Limit the time that the context may last. Raises a `TimeoutError` when it is up."""
        async with asyncio.timeout(seconds) as timeout:
            self._left_s[timeout] = None
            try:
                yield
            finally:
                del self._left_s[timeout]

    @contextmanager
    def paused(self) -> Generator[None]:
        """Pause the limits that are running now, until the last of the pauses ends."""
        loop = asyncio.get_running_loop()
        self._pauses += 1
        for timeout, left_s in self._left_s.items():
            deadline = timeout.when()
            if left_s is not None or deadline is None or timeout.expired():
                continue
            self._left_s[timeout] = deadline - loop.time()
            timeout.reschedule(None)
        try:
            yield
        finally:
            self._pauses -= 1
            for timeout, left_s in self._left_s.items():
                if left_s is not None and self._pauses == 0:
                    self._left_s[timeout] = None
                    timeout.reschedule(loop.time() + left_s)

"""One MCP server, from its start to its end, with a restart if it crashes. LIGHT."""

import asyncio
import signal
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from typing import Any, cast

from codex_py.mcp.connection import Deadlines, McpSession, OnProgress, ServerConnection
from codex_py.mcp.sdk import load_client
from codex_py.mcp.settings import (
    HttpTransport,
    ServerProcess,
    ServerSettings,
    Spawn,
    StdioTransport,
)
from codex_py.mcp.tools import ServerTool, listed_tools
from codex_py.protocol.mcp import (
    Elicitation,
    ElicitationAnswer,
    Elicitor,
    McpFailure,
    McpServerStatus,
    McpToolSummary,
    RequestFailed,
    WantedLogin,
)

_QUOTED_CHARS = 1_000
"""The limit for stderr or a message quoted in an error."""
_CLOSE_TIMEOUT_S = 2.0
_STOPPED_BY_US = frozenset({-signal.SIGTERM, -signal.SIGKILL})
"""The exit codes of a process that `ServerProcess.stop` had to end."""


class McpServer:
    """A server that one task runs from `start` to `aclose`.

    A server that ends after it was ready is restarted, unless no request has succeeded since the
    last restart.

    Args:
        warn: gets the reason if the server fails, and one warning if it prints to stdout.

    Attributes:
        changed: called when the server starts, is ready, or has failed.
    """

    def __init__(
        self,
        settings: ServerSettings,
        *,
        spawn: Spawn,
        elicitor: Elicitor,
        warn: Callable[[str], None],
    ) -> None:
        self.settings = settings
        self.name = settings.name
        self.tools: tuple[ServerTool, ...] = ()
        """The tools that the configuration allows. They are kept when the server ends."""
        self.has_resources = False
        self.error: str | None = None
        """The reason why the server is not available, as a sentence that names it."""
        self._failure: McpFailure | None = None
        self._status = McpServerStatus(self.name, "starting")
        """The facts from the last handshake."""
        self._spawn = spawn
        self._elicitor = elicitor
        self._warn = warn
        self._deadlines = Deadlines()
        self._task: asyncio.Task[None] | None = None
        self._connection: ServerConnection | None = None
        """Set while the server is ready."""
        self._settled = asyncio.Event()
        self._is_closing = False
        self._may_restart = True
        self._warned: set[str] = set()
        self._wanted_login: WantedLogin | None = None
        self._requests = 0
        """The number of requests that wait for their answers."""
        self._unused = asyncio.Event()
        """Set while there are none."""
        self._unused.set()
        self.changed: Callable[[], None] = lambda: None

    def start(self) -> None:
        """Start the task that starts the process, loads the SDK and connects."""
        self._task = asyncio.create_task(self._run(), name=f"mcp-{self.name}")

    def status(self) -> McpServerStatus:
        failure = None
        wanted_login = None
        if self.error is not None:
            state = "failed"
            failure = self._failure
            wanted_login = self._wanted_login
        elif self._connection is not None and self._settled.is_set():
            state = "ready"
        else:
            state = "starting"
        return replace(
            self._status,
            state=state,
            tools=tuple(
                McpToolSummary(tool.name, tool.description) for tool in self.tools
            ),
            failure=failure,
            wanted_login=wanted_login,
            error=self.error,
        )

    @property
    def is_settled(self) -> bool:
        """True if the server is ready or has failed."""
        return self._settled.is_set()

    async def settled(self) -> None:
        """Wait until the server is ready or has failed, then fetch a changed list of tools.

        The list is fetched once, because a server may announce a change with every answer.
        """
        await self._settled.wait()
        connection = self._connection
        if (
            connection is not None
            and connection.has_new_tools
            and connection.session is not None
        ):
            # Without an answer, the old list is kept.
            with suppress(RequestFailed, TimeoutError):
                async with asyncio.timeout(self.settings.startup_timeout_s):
                    await self._list_tools(connection, connection.session)

    async def request(
        self,
        method: str,
        params: Mapping[str, Any],
        on_progress: OnProgress | None = None,
    ) -> dict[str, Any]:
        """Send a request and return its result as the server wrote it.

        The request is sent once, and again in a new session only if an HTTP server no longer knows
        the first session. Waits for a server that is starting. On cancellation, the server is
        notified.

        Raises:
            RequestFailed
        """
        limit_s = self.settings.tool_timeout_s
        self._requests += 1
        self._unused.clear()
        try:
            async with self._deadlines.limit(limit_s):
                try:
                    result = await self._request(method, params, on_progress)
                except RequestFailed as failure:
                    if failure.code != "SessionLost":
                        raise
                    result = await self._request(method, params, on_progress)
        except TimeoutError as error:
            raise RequestFailed(
                f"timed out awaiting {method} after {limit_s:g}s", "Timeout"
            ) from error
        finally:
            self._requests -= 1
            if not self._requests:
                self._unused.set()
        self._may_restart = True
        return result

    async def retire(self) -> None:
        """Wait for the answers to all requests, and end the server."""
        await self._unused.wait()
        await self.aclose()

    async def _request(
        self, method: str, params: Mapping[str, Any], on_progress: OnProgress | None
    ) -> dict[str, Any]:
        await self._settled.wait()
        if self._connection is None:
            raise RequestFailed(self.error or "the server has ended", "ConnectionLost")
        return await self._connection.request(method, params, on_progress)

    async def aclose(self) -> None:
        """End the server and its process. May be called at any time."""
        if self._task is None:
            return
        self._is_closing = True
        if self._connection is None:
            self._task.cancel()
        else:
            self._connection.closing.set()
        try:
            await asyncio.wait([self._task], timeout=_CLOSE_TIMEOUT_S)
        finally:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        try:
            while await self._serve_once():
                # Only a request that succeeds makes another restart possible.
                self._may_restart = False
        finally:
            self._settled.set()

    async def _serve_once(self) -> bool:
        """Serve one connection to its end. True if the server should be restarted."""
        self._settled.clear()
        self.changed()
        connection = ServerConnection(
            elicit=self._elicit, stray_output=self._stray_output, lost=self._lost
        )
        try:
            end = await self._serve(connection)
            if self._is_closing:
                return False
            restarts = self._connection is not None and self._may_restart
            connection.end(_end_message(self.name, end, restarts=restarts))
        finally:
            # The first reason holds.
            connection.end(f"MCP server `{self.name}` was shut down")
            self._connection = None
        if not restarts:
            self.error = f"MCP server `{self.name}` {end}"
            self._warn(self.error)
            self.changed()
        return restarts

    async def _serve(self, connection: ServerConnection) -> str:
        """Start the server if it is a process, and serve a connection.

        Returns a predicate that says how it ended, such as `exited with code 1`.
        """
        transport = self.settings.transport
        if isinstance(transport, HttpTransport):
            end = await self._connect(transport, connection)
            if connection.refusal is None:
                return end
            self._failure = "refused"
            self._wanted_login = connection.wanted_login
            return f"answered with {connection.refusal}"
        try:
            process = self._spawn(transport)
        except (OSError, ValueError) as error:
            self._failure = "not_started"
            return f"could not be started: {_spawn_problem(error, transport)}"
        try:
            end = await self._connect(process, connection)
        finally:
            has_exited = process.exited.is_set()
            await process.stop()
        if connection.reason is not None:
            return connection.reason
        # A server that only closed its output, and that we then had to stop, has not exited.
        if connection.is_lost and process.exit_code not in _STOPPED_BY_US:
            has_exited = True
        if has_exited:
            self._failure = "exited"
            end = _exit_text(process.exit_code or 0)
        tail = process.stderr_tail().strip()[-_QUOTED_CHARS:]
        if tail:
            return f"{end}; the end of its stderr:\n{tail}"
        return end

    async def _connect(
        self, server: HttpTransport | ServerProcess, connection: ServerConnection
    ) -> str:
        """Connect, and wait for the end of the connection.

        Returns a predicate, as `_serve` does.
        """
        loop = asyncio.get_running_loop()
        started = loop.time()
        # Let the other servers start first, so that their start overlaps the 250 ms of loading.
        await asyncio.sleep(0)
        kind = "http" if isinstance(server, HttpTransport) else "stdio"
        connect = await load_client(kind)
        try:
            async with AsyncExitStack() as stack:
                async with asyncio.timeout_at(
                    started + self.settings.startup_timeout_s
                ):
                    opening = connect(self.name, server, connection)
                    session = await stack.enter_async_context(opening)
                    connected = loop.time()
                    self._status = replace(
                        self._status,
                        software=session.software,
                        protocol_version=session.protocol_version,
                        connect_s=connected - started,
                        about=session.about,
                    )
                    self.has_resources = session.has_resources
                    await self._list_tools(connection, session)
                self._status = replace(self._status, list_s=loop.time() - connected)
                connection.session = session
                self._connection = connection
                self._settled.set()
                self.changed()
                await connection.closing.wait()
            return "closed the connection"
        except Exception as error:  # noqa: BLE001
            # A server's messages can make the SDK raise anything. It ends this server with a
            # warning, not the session.
            return self._why(error)

    def _lost(self, connection: ServerConnection) -> None:
        if self._connection is connection:
            # New requests wait until the restart succeeds or fails.
            self._settled.clear()

    def _why(self, error: Exception) -> str:
        """Return a predicate about a failed connection, and note the kind of the failure."""
        # The SDK's task groups wrap every error.
        while isinstance(error, ExceptionGroup):
            error = cast("ExceptionGroup[Exception]", error).exceptions[0]
        match error:
            case TimeoutError():
                self._failure = "timed_out"
                limit_s = self.settings.startup_timeout_s
                return f"did not come up within {limit_s:g} s (`startup_timeout_sec`)"
            case RequestFailed():
                self._failure = "protocol"
                return str(error)[:_QUOTED_CHARS]
            case _:
                reason = str(error) or type(error).__name__
                is_local = isinstance(self.settings.transport, StdioTransport)
                if is_local or self._connection is not None:
                    self._failure = "protocol"
                    return f"failed: {reason}"
                self._failure = "unreachable"
                return f"could not be reached: {reason}"

    async def _list_tools(
        self, connection: ServerConnection, session: McpSession
    ) -> None:
        connection.has_new_tools = False
        tools, trouble = await listed_tools(session)
        kept = tuple(tool for tool in tools if self.settings.offers(tool.name))
        if kept != self.tools:
            self.tools = kept
        if trouble is not None:
            self._warn_once("tools", trouble)

    async def _elicit(self, elicitation: Elicitation) -> ElicitationAnswer:
        with self._deadlines.paused():
            return await self._elicitor.elicit(elicitation)

    def _stray_output(self, line: str) -> None:
        text = (
            f"prints lines to stdout that are not messages, and are skipped: {line!r}"
        )
        self._warn_once("output", text)

    def _warn_once(self, kind: str, text: str) -> None:
        if kind not in self._warned:
            self._warned.add(kind)
            self._warn(f"MCP server `{self.name}` {text}")


def _spawn_problem(error: OSError | ValueError, transport: StdioTransport) -> str:
    if not isinstance(error, OSError):
        return str(error)
    what = transport.argv[0]
    if error.filename == transport.cwd:
        # The working directory is missing, not the program.
        what = str(error.filename)
    return f"{what!r}: {error.strerror}"


def _exit_text(code: int) -> str:
    if code < 0:
        return f"exited with signal {-code}"
    return f"exited with code {code}"


def _end_message(
    name: str,
    end: str,
    *,
    restarts: bool,
) -> str:
    if restarts:
        after = "It is started again for the next call."
    else:
        after = "It is not started again."
    return (
        f"MCP server `{name}` {end}\n{after} This call was not repeated:"
        " it may have done part of its work, so check before you call it again."
    )

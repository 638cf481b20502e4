"""One MCP server from its start to its end; in between it may crash, and come back. LIGHT."""

import asyncio
import signal
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, Any, cast

from codex_py.mcp.deadlines import Deadlines
from codex_py.mcp.life import Life
from codex_py.mcp.process import ServerProcess, Spawn
from codex_py.mcp.request import OnProgress, RequestFailed
from codex_py.mcp.sdk import load_client
from codex_py.mcp.settings import ServerSettings, StdioTransport
from codex_py.mcp.tools import ServerTool
from codex_py.protocol.elicitation import Elicitation, ElicitationAnswer, Elicitor
from codex_py.protocol.mcp import McpFailure, McpServerStatus, McpToolSummary

if TYPE_CHECKING:
    from codex_py.mcp.connection import Connection

_QUOTED_CHARS = 1_000
"""Of stderr, in an error."""
_CLOSE_TIMEOUT_S = 2.0
_OUR_SIGNALS = frozenset({-signal.SIGTERM, -signal.SIGKILL})


class McpServer:
    """A server. One task is its life, from `start` to `aclose`.

    A server that ends after it was up is started again, unless no request has succeeded since it was
    last started again.

    Args:
        warn: told why it is not to be had, and once that it prints where it should not.
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
        """Those that the configuration lets through. They stay when the server goes."""
        self.revision = 0
        """Grows whenever `tools` change."""
        self.has_resources = False
        self.error: str | None = None
        """Why it is not to be had, as a sentence that names it."""
        self._failure: McpFailure | None = None
        self._software: str | None = None
        self._protocol_version: str | None = None
        self._connect_s: float | None = None
        self._list_s: float | None = None
        self._spawn = spawn
        self._elicitor = elicitor
        self._warn = warn
        self._deadlines = Deadlines()
        self._process: ServerProcess | None = None
        self._deadline = 0.0
        self._task: asyncio.Task[None] | None = None
        self._up: Life | None = None
        """The one that answers."""
        self._settled = asyncio.Event()
        self._is_closing = False
        self._list_is_old = False
        self._may_restart = True
        self._noise_is_told = False

    def start(self) -> None:
        """Start its process, and the task that does the rest; the SDK is loaded when that first runs."""
        failure = self._start_process()
        self._task = asyncio.create_task(self._live(failure), name=f"mcp-{self.name}")

    def status(self) -> McpServerStatus:
        is_ready = self._up is not None and self._settled.is_set()
        return McpServerStatus(
            name=self.name,
            state="failed" if self.error is not None else "ready" if is_ready else "starting",
            tools=tuple(McpToolSummary(tool.name, tool.description) for tool in self.tools),
            software=self._software,
            protocol_version=self._protocol_version,
            connect_s=self._connect_s,
            list_s=self._list_s,
            failure=None if self.error is None else self._failure,
            error=self.error,
        )

    @property
    def is_settled(self) -> bool:
        """Whether it is up, or not to be had."""
        return self._settled.is_set()

    async def settled(self) -> None:
        """Wait until it is up, or not to be had; then fetch its list of tools if that has changed.

        Once: a server may well announce a change whenever it is asked.
        """
        await self._settled.wait()
        if self._list_is_old and self._up is not None and self._up.connection is not None:
            # Without an answer, the old list stays.
            with suppress(RequestFailed, TimeoutError):
                async with asyncio.timeout(self.settings.startup_timeout_s):
                    await self._list_tools(self._up.connection)

    async def request(
        self, method: str, params: Mapping[str, Any], on_progress: OnProgress | None = None
    ) -> dict[str, Any]:
        """Send a request and give its result as the server wrote it.

        It is sent once, unless a server at an address says that it no longer knows our session: then once
        more, in a new one. Waits for a server that is just being started. Cancelled, it tells the server.

        Raises:
            RequestFailed
        """
        limit_s = self.settings.tool_timeout_s
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
        self._may_restart = True
        return result

    async def _request(
        self, method: str, params: Mapping[str, Any], on_progress: OnProgress | None
    ) -> dict[str, Any]:
        await self._settled.wait()
        if self._up is None:
            raise RequestFailed(self.error or "the server has ended", "ConnectionLost")
        return await self._up.request(method, params, on_progress)

    async def aclose(self) -> None:
        """End it and its process, at any time."""
        if self._task is None:
            return
        self._is_closing = True
        if self._up is None:
            self._task.cancel()
        else:
            self._up.over.set()
        try:
            await asyncio.wait([self._task], timeout=_CLOSE_TIMEOUT_S)
        finally:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
            if self._process is not None:
                # The task ended before it took charge of it.
                await self._process.stop()

    def _start_process(self) -> str | None:
        """Why it cannot be started, or None."""
        self._deadline = asyncio.get_running_loop().time() + self.settings.startup_timeout_s
        transport = self.settings.transport
        if not isinstance(transport, StdioTransport):
            return None
        try:
            self._process = self._spawn(transport)
        except OSError as error:
            self._failure = "not_started"
            what = error.filename if error.filename == transport.cwd else transport.argv[0]
            return f"could not be started: {str(what)!r}: {error.strerror}"
        except ValueError as error:
            self._failure = "not_started"
            return f"could not be started: {error}"
        return None

    async def _live(self, failure: str | None) -> None:
        life = Life()
        try:
            while failure is None:
                end = await self._one_life(life)
                if self._is_closing:
                    return
                comes_back = self._up is not None and self._may_restart
                life.bury(_epitaph(self.name, end, comes_back=comes_back))
                self._up = None
                if not comes_back:
                    failure = end
                    break
                self._may_restart = False
                self._settled.clear()
                life = Life()
                failure = self._start_process()
            self.error = f"MCP server `{self.name}` {failure}"
            self._warn(self.error)
        finally:
            life.bury(f"MCP server `{self.name}` was shut down")
            self._up = None
            self._settled.set()

    async def _one_life(self, life: "Life") -> str:
        """Connect, and serve until it ends; how it did."""
        # Some 250 ms, which the server needs as well to come up.
        await load_client()
        from codex_py.mcp.connection import Listener, connect  # noqa: PLC0415

        def lost(because: str | None) -> None:
            life.lose(because)
            if self._up is life:
                # Whoever calls from now on waits for what becomes of it.
                self._settled.clear()

        listener = Listener(
            elicit=self._elicit,
            tools_changed=self._tools_changed,
            lost=lost,
            noise=self._noise,
            answered=life.answered,
            login_problem=life.has_login_problem,
        )
        process, has_exited = self._process, False
        loop = asyncio.get_running_loop()
        began = self._deadline - self.settings.startup_timeout_s
        try:
            async with AsyncExitStack() as stack:
                async with asyncio.timeout_at(self._deadline):
                    connection = await stack.enter_async_context(
                        connect(self.name, self.settings.transport, process, listener)
                    )
                    self._software = connection.software
                    self._protocol_version = connection.protocol_version
                    connected = loop.time()
                    self._connect_s = connected - began
                    await self._list_tools(connection)
                    self._list_s = loop.time() - connected
                life.connection = connection
                self._up = life
                self._settled.set()
                await life.over.wait()
            end = "closed the connection"
        except Exception as error:  # noqa: BLE001
            # Whatever a server, or the SDK because of it, comes up with is no reason for us to end.
            end = self._why(error)
        finally:
            if process is not None:
                has_exited = process.exited.is_set()
                self._process = None
                await process.stop()
        if process is None:
            if life.refusal is None:
                return end
            self._failure = "refused"
            return f"answered with {life.refusal}"
        if life.because is not None:
            return life.because
        # One that ended its output without us, and itself only with our help, has not exited.
        if has_exited or (life.is_lost and process.exit_code not in _OUR_SIGNALS):
            self._failure = "exited"
            end = f"exited with {_exit_text(process.exit_code)}"
        tail = process.stderr_tail().strip()[-_QUOTED_CHARS:]
        return f"{end}; the end of its stderr:\n{tail}" if tail else end

    def _why(self, error: Exception) -> str:
        # The task groups of the SDK wrap what passes through them.
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
                was_reached = self._process is not None or self._up is not None
                self._failure = "protocol" if was_reached else "unreachable"
                verb = "failed" if was_reached else "could not be reached"
                return f"{verb}: {error or type(error).__name__}"

    async def _list_tools(self, connection: "Connection") -> None:
        self._list_is_old = False
        tools, trouble = await connection.tools()
        self.has_resources = connection.has_resources
        kept = tuple(tool for tool in tools if self.settings.offers(tool.name))
        if kept != self.tools:
            self.tools = kept
            self.revision += 1
        if trouble is not None:
            self._warn(f"MCP server `{self.name}` {trouble}")

    async def _elicit(self, elicitation: Elicitation) -> ElicitationAnswer:
        with self._deadlines.paused():
            return await self._elicitor.elicit(elicitation)

    def _tools_changed(self) -> None:
        self._list_is_old = True

    def _noise(self, line: str) -> None:
        if not self._noise_is_told:
            self._noise_is_told = True
            self._warn(
                f"MCP server `{self.name}` prints to stdout what is no message, which is skipped:"
                f" {line!r}"
            )


def _epitaph(name: str, end: str, *, comes_back: bool) -> str:
    after = "It is started again for the next call." if comes_back else "It is not started again."
    return (
        f"MCP server `{name}` {end}\n{after} This call was not repeated: it may have done part of its"
        " work, so check before you call it again."
    )


def _exit_text(code: int | None) -> str:
    return f"signal {-code}" if code is not None and code < 0 else f"code {code}"

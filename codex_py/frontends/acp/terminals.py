"""Runs commands in the terminals of a client.

Source: https://agentclientprotocol.com/protocol/terminals.
"""

import asyncio
import errno
import os
import re
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Final

from codex_py.app.json_rpc import JsonRpc, RpcError
from codex_py.config.config import Config
from codex_py.errors import CodexError, ToolError
from codex_py.filesystem.own_folder import own_folder
from codex_py.frontends.acp import terminal_job
from codex_py.process.hosted import HostedCommands
from codex_py.process.process import SpawnOutside
from codex_py.process.sessions import ProcessSessions
from codex_py.protocol.json_fields import as_object
from codex_py.protocol.terminals import TerminalState

_TIMEOUT_S: Final = 20.0
_CODE: Final = "EditorFailed"
_SIGNALLED: Final = 128
_MAX_NAME: Final = 40


class EditorTerminals:
    """The terminals of one session, as `CommandTerminals`.

    Args:
        timeout_s: the time for one answer, except for the end of a command.

    Attributes:
        session_id: the client's id of the session, set when it is known.
    """

    def __init__(
        self, rpc: JsonRpc, config: Config, *, timeout_s: float = _TIMEOUT_S
    ) -> None:
        self.session_id = ""
        self.timeout_s = timeout_s
        self._rpc = rpc
        self._home = config.home
        self._count = 0
        self._folder: Path | None = None
        """The folder of the commands that the client has not started yet."""
        self._opened = ExitStack()
        """Removes the folder when it closes."""
        self._sending: set[asyncio.Task[Any]] = set()
        """The requests that nobody waits for."""

    def hosting(self, sessions: ProcessSessions) -> SpawnOutside:
        """Return what starts commands of the session in these terminals."""
        return HostedCommands(sessions, self).spawn

    async def close(self) -> None:
        """Forget what was not answered yet. No terminal may be in use."""
        # The last requests are sent first.
        await asyncio.sleep(0)
        for task in self._sending:
            task.cancel()
        if self._sending:
            await asyncio.wait(self._sending)
        self._folder = None
        await asyncio.to_thread(self._opened.close)

    async def open(
        self,
        argv: Sequence[str],
        *,
        title: str,
        cwd: Path,
        environment: Mapping[str, str],
        marks: Mapping[str, str],
        max_output_bytes: int,
    ) -> "EditorTerminal":
        job = await asyncio.to_thread(self._write_job, argv, title, cwd, environment)
        params = {
            "command": sys.executable,
            "args": ["-I", "-S", terminal_job.__file__, str(job)],
            "env": [{"name": name, "value": value} for name, value in marks.items()],
            "cwd": str(cwd),
            "outputByteLimit": max_output_bytes,
        }
        creating = asyncio.create_task(self._create(params))
        try:
            async with asyncio.timeout(self.timeout_s):
                return await asyncio.shield(creating)
        except TimeoutError as error:
            self._release_late(creating)
            text = f"the editor did not open a terminal within {self.timeout_s:g} s"
            raise ToolError(text, code=_CODE) from error
        except asyncio.CancelledError:
            self._release_late(creating)
            raise
        finally:
            if not creating.done() or creating.exception() is not None:
                job.unlink(missing_ok=True)

    async def ask(self, method: str, **params: object) -> Any:
        """Ask the client.

        Raises:
            ToolError: the client answered with an error, or left.
        """
        try:
            return await self._rpc.request(
                method, {"sessionId": self.session_id, **params}
            )
        except RpcError as error:
            text = f"the editor could not answer `{method}`: {error}"
            raise ToolError(text, code=_CODE) from error

    def send(self, method: str, terminal_id: str) -> None:
        """Send a request whose answer changes nothing."""
        self._keep(asyncio.create_task(self._send(method, terminal_id)))

    async def _send(self, method: str, terminal_id: str) -> None:
        with suppress(ToolError, TimeoutError):
            async with asyncio.timeout(self.timeout_s):
                await self.ask(method, terminalId=terminal_id)

    async def _create(self, params: Mapping[str, object]) -> "EditorTerminal":
        answer = await self.ask("terminal/create", **params)
        terminal_id = as_object(answer).get("terminalId")
        if not isinstance(terminal_id, str) or not terminal_id:
            text = "the editor answered without the id of its terminal"
            raise ToolError(text, code=_CODE)
        return EditorTerminal(self, terminal_id)

    def _release_late(self, creating: "asyncio.Task[EditorTerminal]") -> None:
        """Give a terminal back as soon as the client names it. Its command finds no job."""

        def release(done: "asyncio.Task[EditorTerminal]") -> None:
            if not done.cancelled() and done.exception() is None:
                done.result().release()

        creating.add_done_callback(release)
        self._keep(creating)

    def _keep(self, task: asyncio.Task[Any]) -> None:
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    def _write_job(
        self,
        argv: Sequence[str],
        title: str,
        cwd: Path,
        environment: Mapping[str, str],
    ) -> Path:
        """Write the file of a command; see `terminal_job`. Blocks.

        Raises:
            ToolError: there is no such folder, or the file cannot be written.
        """
        if not os.path.isdir(cwd):
            reason = os.strerror(errno.ENOENT)
            text = f"working directory {str(cwd)!r}: {reason}"
            raise ToolError(text, code="ENOENT")
        data = terminal_job.job_bytes(
            [os.fsencode(word) for word in argv],
            os.fsencode(cwd),
            {os.fsencode(k): os.fsencode(v) for k, v in environment.items()},
        )
        try:
            if self._folder is None:
                folder = own_folder(self._home, "terminals")
                self._folder = self._opened.enter_context(folder)
            self._count += 1
            job = self._folder / f"{self._count}-{_file_name(title)}"
            job.write_bytes(data)
        except (OSError, CodexError) as error:
            text = f"the command cannot be given to the editor: {error}"
            raise ToolError(text, code=_CODE) from error
        return job


class EditorTerminal:
    """A terminal of the client, as `CommandTerminal`."""

    def __init__(self, terminals: EditorTerminals, terminal_id: str) -> None:
        self.id = terminal_id
        self._terminals = terminals

    async def wait(self) -> int:
        answer = await self._terminals.ask("terminal/wait_for_exit", terminalId=self.id)
        return _exit_code(answer)

    async def state(self) -> TerminalState:
        try:
            async with asyncio.timeout(self._terminals.timeout_s):
                answer = await self._terminals.ask(
                    "terminal/output", terminalId=self.id
                )
        except TimeoutError as error:
            text = f"the editor did not give the output within {self._terminals.timeout_s:g} s"
            raise ToolError(text, code=_CODE) from error
        fields = as_object(answer)
        output = fields.get("output")
        if not isinstance(output, str):
            raise ToolError("the editor answered without the output", code=_CODE)
        exit_code = None
        if fields.get("exitStatus") is not None:
            exit_code = _exit_code(fields["exitStatus"])
        return TerminalState(output, fields.get("truncated") is True, exit_code)

    def kill(self) -> None:
        self._terminals.send("terminal/kill", self.id)

    def release(self) -> None:
        self._terminals.send("terminal/release", self.id)


def _exit_code(status: Any) -> int:
    """Read the exit code, which is 128 + n after signal n.

    Raises:
        ToolError: there is none.
    """
    match as_object(status):
        case {"exitCode": int(code)} if not isinstance(code, bool) and code >= 0:
            return code
        case {"signal": str(name)} if name:
            return _SIGNALLED + _signal_number(name)
        case _:
            text = "the editor answered without the exit code"
            raise ToolError(text, code=_CODE)


def _signal_number(name: str) -> int:
    """The number of a signal: `SIGTERM`, `TERM` or `15`; 0 if the name is unknown."""
    if name.isdecimal():
        return int(name)
    full = name.upper()
    if not full.startswith("SIG"):
        full = f"SIG{full}"
    known = signal.Signals.__members__.get(full)
    return known.value if known is not None else 0


def _file_name(title: str) -> str:
    """Part of a file name by which people recognize a command. No shell reads anything into it."""
    words = re.sub(r"[^A-Za-z0-9]+", "-", title[:_MAX_NAME])
    return words.strip("-") or "command"

"""Answers the methods that run commands outside of any thread, in the sandbox of the model's commands.

Errors and limits are those of Codex 0.171.
"""

import asyncio
import base64
import json
from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

from codex_py.app.json_rpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    OVERLOADED,
    RpcError,
)
from codex_py.app.standalone_command import StandaloneCommand
from codex_py.config.config import Config
from codex_py.config.permission_profiles import BUILT_IN, chosen_profile
from codex_py.errors import ConfigError, ToolError, cause
from codex_py.execpolicy.rules import forbidding
from codex_py.frontends.app_server.machine import command_params as params
from codex_py.frontends.app_server.methods import MethodGroup, serves
from codex_py.frontends.app_server.server import Server
from codex_py.frontends.app_server.threads.open_threads import OpenThreads
from codex_py.frontends.app_server.turn_items.items import Fields
from codex_py.process.streamed import (
    StreamedOutput,
    StreamedProcess,
    StreamedProcesses,
)
from codex_py.protocol.approval import SandboxPolicy

_Stream: TypeAlias = Literal["stdout", "stderr"]
_MAX_RUNNING: Final = 64
_DEFAULT_TIMEOUT_MS: Final = 10_000
_DEFAULT_CAP_BYTES: Final = 1 << 20
_MAX_ANSWERED_BYTES: Final = 5 << 20
"""The output of a stream in one answer. As JSON, a byte takes up to six, and a client is taken for
gone when it leaves 64 MB unread."""
_DEFAULT_SIZE: Final = (80, 24)
_TIMED_OUT: Final = 124
"""The exit code of a command that had no more time."""


class CommandMethods(MethodGroup):
    """Answers `command/exec…`."""

    def __init__(self, server: Server, threads: OpenThreads) -> None:
        super().__init__(server, threads)
        self._processes = StreamedProcesses()
        self._running: dict[str, StreamedProcess] = {}
        """The commands that run, by the client's ids."""
        self._count = 0
        """The number of all commands that run."""
        self._problems: dict[str, str | None] = {}
        self._releases: set[asyncio.Task[None]] = set()

    async def aclose(self) -> None:
        """Kill every command, and all that they have started."""
        await self._processes.aclose()
        if self._releases:
            await asyncio.wait(self._releases)

    @serves("command/exec", params.Exec)
    async def exec(self, asked: params.Exec) -> Fields:
        """Run a command. The answer comes after its end, and after all of its output."""
        _check(asked)
        if asked.process_id in self._running:
            name = json.dumps(asked.process_id)
            text = f"duplicate active command/exec process id: {name}"
            raise RpcError(INVALID_REQUEST, text)
        if self._count >= _MAX_RUNNING:
            text = f"more than {_MAX_RUNNING} commands run; use fewer at once"
            raise RpcError(OVERLOADED, text)
        prepared = self._prepared(asked)
        try:
            process = self._started(asked, prepared)
            self._count += 1
            if asked.process_id is not None:
                self._running[asked.process_id] = process
            try:
                answer = await _Command(self.server, asked, process).run()
            finally:
                self._count -= 1
                if asked.process_id is not None:
                    del self._running[asked.process_id]
                self._processes.prune()
        finally:
            release = asyncio.create_task(asyncio.to_thread(prepared.release))
            self._releases.add(release)
            release.add_done_callback(self._releases.discard)
        async with self.server.large_answer():
            return answer

    @serves("command/exec/write", params.Write)
    async def write(self, asked: params.Write) -> Fields:
        """Write to the input of a command. Answered when the command has taken nearly all of it."""
        if asked.delta_base64 is None and not asked.close_stdin:
            text = "command/exec/write requires deltaBase64 or closeStdin"
            raise RpcError(INVALID_PARAMS, text)
        try:
            data = base64.b64decode(asked.delta_base64 or "", validate=True)
        except ValueError as error:
            text = f"invalid deltaBase64: {error}"
            raise RpcError(INVALID_PARAMS, text) from error
        stdin = self._find(asked.process_id).stdin
        if stdin is None:
            text = "stdin streaming is not enabled for this command/exec"
            raise RpcError(INVALID_REQUEST, text)
        if not stdin.is_open:
            raise RpcError(INVALID_REQUEST, "stdin is already closed")
        try:
            await stdin.write(data, ends=asked.close_stdin)
        except BufferError as error:
            text = "the command does not read its input: more than 64 MB are waiting"
            raise RpcError(INVALID_REQUEST, text) from error
        return {}

    @serves("command/exec/resize", params.Resize)
    async def resize(self, asked: params.Resize) -> Fields:
        columns, rows = _size(asked.size)
        process = self._find(asked.process_id)
        if not process.has_terminal:
            text = "failed to resize PTY: process is not attached to a PTY"
            raise RpcError(INVALID_REQUEST, text)
        process.resize(columns, rows)
        return {}

    @serves("command/exec/terminate", params.OneCommand)
    async def terminate(self, asked: params.OneCommand) -> Fields:
        """Kill a command, which is answered then."""
        self._find(asked.process_id).kill()
        return {}

    def _find(self, process_id: str) -> StreamedProcess:
        process = self._running.get(process_id)
        if process is None:
            name = json.dumps(process_id)
            text = f"no active command/exec for process id {name}"
            raise RpcError(INVALID_REQUEST, text)
        return process

    def _prepared(self, asked: params.Exec) -> StandaloneCommand:
        """Decide what the command may do.

        Raises:
            RpcError: the permissions are not allowed, or the administrator forbids the command.
            CodexError: the folder does not exist, or its configuration cannot be used.
        """
        server = self.server
        try:
            config = server.configuration(asked.cwd, asked.table())
        except ConfigError as error:
            if asked.permission_profile is None:
                raise
            text = f"invalid permission profile: {error}"
            raise RpcError(INVALID_REQUEST, text) from error
        config.require_enforced()
        add_dirs = server.options.add_dirs
        policy = config.sandbox_policy(add_dirs)
        _check_allowed(asked, config, policy)
        _check_rules(asked.command, config)
        return StandaloneCommand(
            config, policy, server.environment, add_dirs, self._problems
        )

    def _started(
        self,
        asked: params.Exec,
        prepared: StandaloneCommand,
    ) -> StreamedProcess:
        environment = dict(prepared.environment)
        changes = asked.env or {}
        for name, value in changes.items():
            if value is None:
                environment.pop(name, None)
            else:
                environment[name] = value
        size = None
        if asked.size is not None:
            size = _size(asked.size)
        elif asked.tty:
            size = _DEFAULT_SIZE
        try:
            return self._processes.spawn(
                prepared.argv(asked.command, changes),
                cwd=prepared.cwd,
                environment=environment,
                has_input=asked.has_input,
                size=size,
            )
        except ToolError as error:
            raise RpcError(INTERNAL_ERROR, f"exec failed: {error}") from error
        except (OSError, ValueError) as error:
            text = f"failed to spawn command: {cause(error)}"
            raise RpcError(INTERNAL_ERROR, text) from error


class _Command:
    """Passes on what one command prints, until it ends."""

    def __init__(
        self,
        server: Server,
        asked: params.Exec,
        process: StreamedProcess,
    ) -> None:
        self._rpc = server.rpc
        self._asked = asked
        self._process = process
        self._is_expired = False
        self._is_too_large = False
        self._cap: int | None = _DEFAULT_CAP_BYTES
        if asked.disable_output_cap:
            self._cap = None
        elif asked.output_bytes_cap is not None:
            self._cap = asked.output_bytes_cap

    async def run(self) -> Fields:
        """Wait for the end of the command, and return the answer.

        The command has ended afterwards, or was killed.

        Raises:
            RpcError: there is more output than fits into an answer.
        """
        process = self._process
        timer = None
        timeout_ms = self._asked.timeout_ms
        if timeout_ms is None:
            timeout_ms = _DEFAULT_TIMEOUT_MS
        if not self._asked.disable_timeout:
            loop = asyncio.get_running_loop()
            timer = loop.call_later(timeout_ms / 1000, self._expire)
        try:
            stdout, stderr = await asyncio.gather(
                self._passed_on("stdout", process.stdout),
                self._passed_on("stderr", process.stderr),
            )
            await process.exited.wait()
        finally:
            if timer is not None:
                timer.cancel()
            process.kill()
        if self._is_too_large:
            most = f"{_MAX_ANSWERED_BYTES >> 20} MB"
            text = f"the command was ended: it printed more than {most} without streamStdoutStderr"
            raise RpcError(INVALID_REQUEST, text)
        code = process.exit_code
        if self._is_expired:
            code = _TIMED_OUT
        return {"exitCode": code, "stdout": stdout, "stderr": stderr}

    def _expire(self) -> None:
        if not self._process.exited.is_set():
            self._is_expired = True
            self._process.kill()

    async def _passed_on(
        self,
        stream: _Stream,
        output: StreamedOutput | None,
    ) -> str:
        """Read a stream to its end. Returns the text for the answer.

        A command that prints faster than the client reads has to wait.
        """
        if output is None:
            return ""
        kept = bytearray()
        count = 0
        is_full = False
        data = await output.read()
        while data:
            if not is_full:
                if self._cap is not None:
                    data = data[: self._cap - count]
                count += len(data)
                is_full = count == self._cap
                if self._asked.is_streamed:
                    await self._tell(stream, data, is_last=is_full)
                else:
                    kept += data
                    self._bound(kept)
            # Once there is enough, the rest is dropped: the command must not wait for ever.
            data = await output.read()
        return kept.decode(errors="replace")

    def _bound(self, kept: bytearray) -> None:
        """Kill the command if it has printed too much for an answer."""
        if len(kept) > _MAX_ANSWERED_BYTES:
            self._is_too_large = True
            self._process.kill()
            kept.clear()

    async def _tell(
        self,
        stream: _Stream,
        data: bytes,
        *,
        is_last: bool,
    ) -> None:
        """Tell the client what was printed, and wait until it has read nearly everything."""
        fields = {
            "processId": self._asked.process_id,
            "stream": stream,
            "deltaBase64": base64.b64encode(data).decode(),
            "capReached": is_last,
        }
        self._rpc.notify("command/exec/outputDelta", fields)
        try:
            await self._rpc.drained()
        except RpcError:
            # The client has left.
            self._process.kill()


def _check(asked: params.Exec) -> None:
    """Raise an `RpcError` if the params do not fit together."""
    if not asked.command:
        raise RpcError(INVALID_REQUEST, "command must not be empty")
    if asked.sandbox_policy is not None and asked.permission_profile is not None:
        text = "`permissionProfile` cannot be combined with `sandboxPolicy`"
        raise RpcError(INVALID_REQUEST, text)
    if asked.size is not None:
        if not asked.tty:
            raise RpcError(INVALID_PARAMS, "command/exec size requires tty: true")
        _size(asked.size)
    if asked.disable_output_cap and asked.output_bytes_cap is not None:
        text = "command/exec cannot set both outputBytesCap and disableOutputCap"
        raise RpcError(INVALID_PARAMS, text)
    if asked.timeout_ms is not None:
        if asked.disable_timeout:
            text = "command/exec cannot set both timeoutMs and disableTimeout"
            raise RpcError(INVALID_PARAMS, text)
        if asked.timeout_ms < 0:
            reason = f"must be non-negative, got {asked.timeout_ms}"
            raise RpcError(INVALID_PARAMS, f"command/exec timeoutMs {reason}")
    is_named = asked.process_id is not None
    if not is_named and (asked.has_input or asked.is_streamed):
        text = "command/exec tty or streaming requires a client-supplied processId"
        raise RpcError(INVALID_REQUEST, text)


def _check_allowed(
    asked: params.Exec,
    config: Config,
    policy: SandboxPolicy,
) -> None:
    """Raise an `RpcError` if the administrator does not allow the permissions."""
    wanted = asked.table()
    mode = wanted.get("sandbox_mode")
    if mode is not None and policy.mode != mode:
        reason = f"the administrator does not allow `{mode}`"
        raise RpcError(INVALID_REQUEST, f"invalid sandbox policy: {reason}")
    profile = asked.permission_profile
    if profile is not None:
        chosen, _ = chosen_profile(config.layers)
        is_held = policy.mode == BUILT_IN.get(profile, policy.mode)
        if chosen != profile or not is_held:
            reason = f"the administrator does not allow `{profile}`"
            raise RpcError(INVALID_REQUEST, f"invalid permission profile: {reason}")


def _check_rules(command: Sequence[str], config: Config) -> None:
    """Raise an `RpcError` if a rule of the administrator forbids the command."""
    required = config.requirements.file.values.get("rules", {})
    tables = required.get("prefix_rules", ())
    if not tables:
        return
    reason = forbidding(tables, command)
    if reason is not None:
        text = f"the administrator forbids the command: {reason}"
        raise RpcError(INVALID_REQUEST, text)


def _size(size: params.TerminalSize) -> tuple[int, int]:
    """The columns and rows of a terminal."""
    if size.cols == 0 or size.rows == 0:
        text = "command/exec size rows and cols must be greater than 0"
        raise RpcError(INVALID_PARAMS, text)
    return size.cols, size.rows

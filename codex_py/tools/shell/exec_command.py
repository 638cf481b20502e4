"""`exec_command` and `write_stdin`: commands that may outlive the call that started them."""

import os
import secrets
import time
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Annotated, Any, TypeAlias

from codex_py.errors import ToolError
from codex_py.execpolicy.place import SYSTEM_FOLDERS
from codex_py.process.process import Process
from codex_py.process.sessions import ProcessSessions
from codex_py.programs import find_program
from codex_py.protocol.calls import PastCall, PastItems, read_report
from codex_py.protocol.dispatch import ToolContext
from codex_py.protocol.event_items import CommandExecution, ThreadItem
from codex_py.protocol.frozen import frozen
from codex_py.protocol.tools import ToolOutput
from codex_py.tools.base import ToolParams
from codex_py.tools.shell.command import CommandParams, CommandTool, Login, Workdir
from codex_py.tools.truncate import token_count, truncate_output

_MIN_YIELD_MS = 250
_MAX_YIELD_MS = 30_000
_MIN_POLL_MS = 5_000
_MAX_POLL_MS = 300_000
_INTERRUPTED_MS = 2_000
"""The default wait for the end of an interrupted command."""
_INTERRUPT = "\x03"
_SHELLS = {"bash", "zsh", "sh", "dash", "ksh", "fish"}

OutputLimit: TypeAlias = Annotated[
    int | None,
    "How much output to return, in tokens. Longer output is cut in the middle.",
]


@frozen(kw_only=True)
class ExecCommandParams(CommandParams):
    cmd: Annotated[str, "The command line."]
    workdir: Workdir = None
    shell: Annotated[str | None, "The shell to run it in. Default: the user's."] = None
    """Name or path."""
    login: Login = None
    tty: Annotated[
        bool,
        "Give the command a terminal, so that it can be written to. Default: false.",
    ] = False
    yield_time_ms: Annotated[
        int, "How long to wait for the end, in milliseconds. Default: 10000."
    ] = 10_000
    max_output_tokens: OutputLimit = None


class ExecCommand(CommandTool):
    """Runs a command line in a shell.

    The output of the call is there when the command ends, or when the wait is over.
    """

    name = "exec_command"
    params: type[Any] = ExecCommandParams
    command_field = "cmd"

    async def run(self, params: ExecCommandParams, context: ToolContext) -> ToolOutput:
        """Run the command line, or apply the patch in it."""
        started = time.monotonic()
        shell = None
        if params.shell:
            shell = _shell_path(params.shell, self.shell)
        argv = self._in_shell(params.cmd, params.login, shell)
        patched = await self.runner.patch_output(argv, params.cwd(context), context)
        if patched is not None:
            if patched.error_code is not None:
                return patched
            wall_s = time.monotonic() - started
            text = f"Wall time: {wall_s:.4f} seconds\nOutput:\n{patched.text}"
            return replace(patched, text=text)

        yield_ms = _within(params.yield_time_ms, _MIN_YIELD_MS, _MAX_YIELD_MS)
        process = await self.runner.run(
            argv, params, context, yield_ms / 1000, tty=params.tty
        )
        if process.finished.is_set():
            session_id = None
        else:
            session_id = self.runner.sessions.keep(process)
        return session_report(
            process, session_id, started, params.max_output_tokens, context
        )


@frozen(kw_only=True)
class WriteStdinParams(ToolParams):
    session_id: Annotated[int, "The session that `exec_command` named."]
    chars: Annotated[
        str,
        "What to write, with `tty`. \\u0003 interrupts, also without. Empty: only wait for output.",
    ] = ""
    yield_time_ms: Annotated[
        int | None, "How long to wait for output, in milliseconds."
    ] = None
    max_output_tokens: OutputLimit = None


@dataclass(eq=False)
class WriteStdin:
    """Writes to a session of `exec_command`, or only waits for its next output.

    The session continues if the call is cancelled.
    """

    name = "write_stdin"
    params = WriteStdinParams
    parallel = True

    sessions: ProcessSessions
    max_poll_ms: int = _MAX_POLL_MS
    """The longest wait of a call that writes nothing."""

    async def run(self, params: WriteStdinParams, context: ToolContext) -> ToolOutput:
        """Write, interrupt or neither, then wait for output.

        Raises:
            ToolError: there is no such session, or it cannot be written to.
        """
        started = time.monotonic()
        process = self.sessions.find(params.session_id)
        if process is None:
            raise ToolError(
                f"write_stdin failed: Unknown process id {params.session_id}",
                code="ESRCH",
            )
        if _only_interrupts(process, params.chars):
            process.interrupt(params.chars.count(_INTERRUPT))
            wait_ms = params.yield_time_ms or _INTERRUPTED_MS
            wait_ms = _within(wait_ms, _MIN_YIELD_MS, _MAX_YIELD_MS)
        elif params.chars:
            _write(process, params.chars)
            wait_ms = params.yield_time_ms or _MIN_YIELD_MS
            wait_ms = _within(wait_ms, _MIN_YIELD_MS, _MAX_YIELD_MS)
        else:
            wait_ms = params.yield_time_ms or _MIN_POLL_MS
            wait_ms = _within(wait_ms, _MIN_POLL_MS, self.max_poll_ms)
        await process.wait(wait_ms / 1000)
        if process.finished.is_set():
            self.sessions.forget(params.session_id)
            session_id = None
        else:
            session_id = params.session_id
        return session_report(
            process, session_id, started, params.max_output_tokens, context
        )

    def replay(self, call: PastCall, past: PastItems) -> ThreadItem | None:
        """Add the new output to the item of the command, and the exit code if it has ended."""
        session_id = call.arguments.get("session_id")
        item_id = past.noted.get(f"process {session_id}", "")
        item = past.items.get(item_id)
        report = read_report(call.output)
        if not isinstance(item, CommandExecution) or not report.has_header:
            return None
        status = "failed" if report.exit_code else "completed"
        return replace(
            item,
            aggregated_output=item.aggregated_output + report.text,
            exit_code=report.exit_code,
            status=status,
        )


def _within(wait_ms: int, least_ms: int, most_ms: int) -> int:
    return min(max(wait_ms, least_ms), most_ms)


def _only_interrupts(process: Process, chars: str) -> bool:
    """True if the command has no terminal, and the input ends with an interrupt.

    Input before the interrupt is dropped, as a terminal would discard it too. Newlines after the
    interrupt do not count.
    """
    return not process.has_input and chars.rstrip("\r\n").endswith(_INTERRUPT)


def _write(process: Process, chars: str) -> None:
    if not process.has_input:
        raise ToolError(
            "write_stdin failed: stdin is closed for this session;"
            " rerun exec_command with tty=true to keep stdin open",
            code="EPIPE",
        )
    try:
        process.write(chars.encode(errors="replace"))
    except BufferError as error:
        raise ToolError(
            "write_stdin failed: the process does not read its input", code="EAGAIN"
        ) from error


def session_report(
    process: Process,
    session_id: int | None,
    started: float,
    max_output_tokens: int | None,
    context: ToolContext,
) -> ToolOutput:
    """The output since the last report, with the header of Codex 0.98 and newer.

    Args:
        session_id: None if the process has ended.
        started: when the call began, by `time.monotonic`.
        max_output_tokens: the limit that the model asks for; None if it asks for none.
    """
    output = process.take_output()
    limit = context.output_token_limit
    if max_output_tokens is not None:
        limit = min(max(max_output_tokens, 0), limit)
    text = truncate_output(
        output.text(), limit, total_bytes=output.total_bytes, total_lines=output.lines
    )
    if session_id is None:
        state = f"Process exited with code {process.exit_code}"
    else:
        state = f"Process running with session ID {session_id}"
    return ToolOutput(
        f"Chunk ID: {secrets.token_hex(3)}\n"
        f"Wall time: {time.monotonic() - started:.4f} seconds\n"
        f"{state}\n"
        f"Original token count: {token_count(output.total_bytes)}\n"
        f"Output:\n{text}",
        success=not process.exit_code,
    )


def _shell_path(wanted: str, own_shell: str) -> str:
    """The user's or the system's shell with the name of `wanted`; `/bin/sh` if neither exists.

    The folder in `wanted` is ignored, because the model may have put a program there.
    """
    name = PurePath(wanted).name
    if name == PurePath(own_shell).name:
        return own_shell
    found = None
    if name in _SHELLS:
        found = find_program(name, os.pathsep.join(SYSTEM_FOLDERS))
    return found or "/bin/sh"

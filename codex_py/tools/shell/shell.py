"""`shell`, `shell_command` and `local_shell`: commands that end within their call.

The user may move one to the background; then it may end later.
"""

from typing import Annotated, Any, TypeAlias

from codex_py.errors import ToolError
from codex_py.process.process import Process
from codex_py.protocol.annotations import Aliases
from codex_py.protocol.checked import WrongValue
from codex_py.protocol.dispatch import ToolContext
from codex_py.protocol.frozen import frozen
from codex_py.protocol.messages import encode_json
from codex_py.protocol.tools import ToolOutput
from codex_py.tools.base import command_report, invalid_arguments
from codex_py.tools.shell.command import CommandParams, CommandTool, Login, Workdir
from codex_py.tools.shell.exec_command import session_report
from codex_py.tools.truncate import truncate_middle, truncate_output

_TIMED_OUT = 124
"""The exit code of `timeout(1)`."""
_MAX_TIMEOUT_MS = 24 * 60 * 60 * 1000

_Timeout: TypeAlias = Annotated[
    int,
    "Milliseconds until the command is killed. Default: 10000.",
    Aliases(["timeout"]),
]


@frozen(kw_only=True)
class TimedCommandParams(CommandParams):
    timeout_ms: _Timeout = 10_000


@frozen(kw_only=True)
class ShellParams(TimedCommandParams):
    command: Annotated[list[str] | str, "The program and its arguments."]
    """An argv. A line of text, which some models write instead, is for the user's shell."""
    workdir: Workdir = None


@frozen(kw_only=True)
class ShellCommandParams(TimedCommandParams):
    command: Annotated[str, "The command line."]
    workdir: Workdir = None
    timeout_ms: _Timeout = 10_000
    login: Login = None


@frozen(kw_only=True)
class LocalShellParams(TimedCommandParams):
    command: list[str]


class _TimedCommand(CommandTool):
    async def run(self, params: Any, context: ToolContext) -> ToolOutput:
        """Run an argv, or a line of text in a shell."""
        argv: list[str] | str = params.command
        if isinstance(argv, str):
            argv = self._in_shell(argv, getattr(params, "login", None))
        if not argv:
            raise ToolError("command args are empty", code="InvalidArgs")
        if params.timeout_ms < 0:
            error = WrongValue(["timeout_ms"], "it is negative", params.timeout_ms)
            raise invalid_arguments(error)
        patched = await self.runner.patch_output(argv, params.cwd(context), context)
        if patched is not None:
            return patched

        wait_s = min(params.timeout_ms, _MAX_TIMEOUT_MS) / 1000
        process = await self.runner.run(argv, params, context, wait_s)
        has_ended = process.finished.is_set()
        if not has_ended and process.was_let_go:
            session_id = self.runner.sessions.keep(process)
            return session_report(
                process, session_id, process.started_at, None, context
            )
        if not has_ended:
            await process.stop(exit_code=_TIMED_OUT)
        report = self._report(
            process, context.output_token_limit, timed_out=not has_ended
        )
        return ToolOutput(report, success=process.exit_code == 0)

    def _report(self, process: Process, limit: int, *, timed_out: bool) -> str:
        """The report on an ended process, with at most `limit` tokens of its output."""
        output = process.take_output()
        text = output.text()
        lines = output.lines
        duration_s = process.duration_s
        if timed_out:
            duration_ms = round(duration_s * 1000)
            text = f"command timed out after {duration_ms} milliseconds\n{text}"
            lines += 1
        if self.structured:
            shown = truncate_output(text, limit, total_lines=lines)
            metadata = {
                "exit_code": process.exit_code,
                "duration_seconds": round(duration_s, 1),
            }
            return encode_json({"output": shown, "metadata": metadata}).decode()
        shown = truncate_middle(text, limit)
        total = ""
        if shown is not text:
            total = f"Total output lines: {lines}\n"
        return command_report(process.exit_code, duration_s, shown, total)


class Shell(_TimedCommand):
    name = "shell"
    params: type[Any] = ShellParams


class ShellCommand(_TimedCommand):
    name = "shell_command"
    params: type[Any] = ShellCommandParams


class LocalShell(_TimedCommand):
    """Runs a `local_shell_call`, a type of item of the Responses API."""

    name = "local_shell"
    params: type[Any] = LocalShellParams

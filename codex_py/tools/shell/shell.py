"""`shell`, `shell_command` and `local_shell`: commands that end within the call that started them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, TypeAlias

from pydantic import AliasChoices, Field
from pydantic.json_schema import SkipJsonSchema

from codex_py.errors import ToolError
from codex_py.protocol.dispatch import ToolContext
from codex_py.protocol.messages import encode_json
from codex_py.protocol.tools import ToolOutput
from codex_py.tools.shell.command import (
    CommandParams,
    CommandTool,
    Login,
    Workdir,
)
from codex_py.tools.truncate import truncate_middle, truncate_output

# What `timeout(1)` exits with.
_TIMED_OUT = 124
_MAX_TIMEOUT_MS = 24 * 60 * 60 * 1000


_Timeout: TypeAlias = Annotated[
    int,
    Field(
        ge=0,
        validation_alias=AliasChoices("timeout_ms", "timeout"),
        description="Milliseconds until the command is killed. Default: 10000.",
    ),
]


class TimedCommandParams(CommandParams):
    timeout_ms: _Timeout = 10_000


class ShellParams(TimedCommandParams):
    command: list[str] | str = Field(description="The program and its arguments.")
    """An argv. A line of text, which some models write instead, is for the user's shell."""
    workdir: Workdir = None
    prefix_rule: SkipJsonSchema[tuple[str, ...]] = ()


class ShellCommandParams(TimedCommandParams):
    command: str = Field(description="The command line.")
    workdir: Workdir = None
    timeout_ms: _Timeout = 10_000
    login: Login = None


class LocalShellParams(TimedCommandParams):
    command: list[str]


@dataclass(frozen=True, slots=True)
class CommandResult:
    """How a command ended, in the forms that Codex 0.80 to 0.98 give it."""

    text: str
    lines: int
    """Of the whole output, including what was not kept."""
    exit_code: int | None
    duration_s: float

    def freeform(self, limit_tokens: int) -> str:
        shown = truncate_middle(self.text, limit_tokens)
        total = "" if shown is self.text else f"Total output lines: {self.lines}\n"
        return (
            f"Exit code: {self.exit_code}\n"
            f"Wall time: {f'{self.duration_s:.1f}'.removesuffix('.0')} seconds\n"
            f"{total}Output:\n{shown}"
        )

    def structured(self, limit_tokens: int) -> str:
        output = truncate_output(self.text, limit_tokens, total_lines=self.lines)
        metadata = {"exit_code": self.exit_code, "duration_seconds": round(self.duration_s, 1)}
        return encode_json({"output": output, "metadata": metadata}).decode()


class _TimedCommand(CommandTool):
    async def _run(
        self, argv: Sequence[str], params: TimedCommandParams, context: ToolContext
    ) -> ToolOutput:
        if not argv:
            raise ToolError("command args are empty", code="InvalidArgs")
        patched = await self._runner.patch_output(argv, params.cwd(context), context)
        if patched is not None:
            return patched

        wait_s = min(params.timeout_ms, _MAX_TIMEOUT_MS) / 1000
        process = await self._runner.run(argv, params, context, wait_s)
        in_time = process.finished.is_set()
        if not in_time:
            await process.stop(exit_code=_TIMED_OUT)
        output = process.take_output()
        result = CommandResult(output.text(), output.lines, process.exit_code, process.duration_s)
        if not in_time:
            note = f"command timed out after {round(process.duration_s * 1000)} milliseconds\n"
            result = replace(result, text=note + result.text, lines=result.lines + 1)
        render = result.structured if self._structured else result.freeform
        return ToolOutput(render(context.output_token_limit), success=process.exit_code == 0)


class Shell(_TimedCommand):
    """Runs an argv."""

    name = "shell"
    params: type[Any] = ShellParams

    async def run(self, params: ShellParams, context: ToolContext) -> ToolOutput:
        command = params.command
        argv = self._in_shell(command) if isinstance(command, str) else command
        return await self._run(argv, params, context)


class ShellCommand(_TimedCommand):
    """Runs a line of text in the user's shell."""

    name = "shell_command"
    params: type[Any] = ShellCommandParams

    async def run(self, params: ShellCommandParams, context: ToolContext) -> ToolOutput:
        return await self._run(self._in_shell(params.command, params.login), params, context)


class LocalShell(_TimedCommand):
    """Runs the argv of a `local_shell_call`, a type of item of the Responses API."""

    name = "local_shell"
    params: type[Any] = LocalShellParams

    async def run(self, params: LocalShellParams, context: ToolContext) -> ToolOutput:
        return await self._run(params.command, params, context)

"""Runs programs of the user while a session waits: hooks, and what extensions start. LIGHT."""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path

from codex_py.app.options import SessionSetup
from codex_py.app.session_tools import SessionTools
from codex_py.app.user_programs import Start, user_programs
from codex_py.core.session import Session
from codex_py.errors import CodexError, ExitCode, ToolError
from codex_py.protocol.extension import CommandOptions, CommandResult, Script

_MAX_OUTPUT_BYTES = 1 << 20


class UserCommands:
    """Runs the programs of one session. `close` ends them."""

    def __init__(self, setup: SessionSetup, tools: SessionTools) -> None:
        self._setup = setup
        self._tools = tools
        self._runner = None

    async def run(
        self, session: Session, command: Script, how: CommandOptions
    ) -> CommandResult:
        """See `Thread.run_command`."""
        from codex_py.process.piped import ProgramRunner  # 2 ms

        runner = self._runner or ProgramRunner()
        self._runner = runner
        if how["sandboxed"]:
            prepare = self._tools.confined
        else:
            prepare = self._outside
        cwd = how.get("cwd") or session.settings.cwd
        try:
            with prepare(command, how.get("environment", {}), cwd) as start:
                exit_code, stdout, stderr = await runner.run(
                    start.argv,
                    cwd=start.cwd,
                    environment=start.environment,
                    stdin=how.get("stdin", b""),
                    timeout_s=how["timeout_s"],
                    max_output_bytes=how.get("max_output_bytes", _MAX_OUTPUT_BYTES),
                    joins_errors=how.get("joins_errors", False),
                )
            return CommandResult(exit_code, stdout, stderr)
        except (OSError, ValueError) as error:
            text = str(error)
            if isinstance(error, OSError) and error.filename == cwd:
                text = f"working directory {str(cwd)!r}: {error.strerror}"
            raise CodexError(text, code="command") from error
        except ToolError as error:
            raise CodexError(
                str(error), code="sandbox", exit_code=ExitCode.SANDBOX
            ) from error

    def close(self) -> None:
        if self._runner is not None:
            self._runner.close()

    def _outside(
        self, command: Script, environment: Mapping[str, str], cwd: Path
    ) -> AbstractContextManager[Start]:
        """Return the start of a program outside of the sandbox, with these variables added."""
        setup = self._setup
        add_dirs = setup.options.add_dirs
        programs = user_programs(setup.config, setup.environment, add_dirs)
        start = programs.start(command, setup.environment, cwd)
        variables = {**start.environment, **environment}
        return nullcontext(replace(start, environment=variables))

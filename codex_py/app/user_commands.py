"""Runs the programs of the user that a session waits for: hooks, and what extensions run. LIGHT."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Final

from codex_py.app.options import SessionSetup
from codex_py.app.session_tools import SessionTools
from codex_py.app.user_programs import Start, user_programs
from codex_py.core.session import Session
from codex_py.errors import CodexError, ExitCode, ToolError
from codex_py.protocol.extension import CommandResult

_READ_BYTES: Final = 64 * 1024


class UserCommands:
    def __init__(self, setup: SessionSetup, tools: SessionTools) -> None:
        self._setup = setup
        self._tools = tools
        self._guardian = None
        """If this program is killed, it kills the commands that run."""

    async def run(
        self,
        session: Session,
        command: str | Sequence[str],
        *,
        sandboxed: bool,
        timeout_s: float,
        cwd: Path | None = None,
        stdin: bytes = b"",
        environment: Mapping[str, str] = MappingProxyType({}),
        max_output_bytes: int = 1 << 20,
    ) -> CommandResult:
        """See `RunCommand`."""
        from codex_py.process.guardian import Guardian  # 1 ms
        from codex_py.process.output import HeadTailBuffer  # 0 ms
        from codex_py.process.piped import PipedProcess  # 1 ms

        self._guardian = guardian = self._guardian or Guardian()
        cwd, stdout, exit_code = cwd or session.settings.cwd, HeadTailBuffer(max_output_bytes), None
        started = self._tools.tools().confined if sandboxed else self._outside
        try:
            with started(command, environment, cwd) as start:
                process = PipedProcess(
                    guardian, start.argv, cwd=start.cwd, environment=start.environment
                )
                try:
                    async with asyncio.timeout(timeout_s):
                        reader, writer = await process.streams(max_line_bytes=_READ_BYTES)
                        # Sent in the background, so that a program may exit without reading it.
                        writer.write(stdin)
                        writer.write_eof()
                        while data := await reader.read(_READ_BYTES):
                            stdout.append(data)
                        await process.exited.wait()
                    exit_code = process.exit_code
                except TimeoutError:
                    pass
                finally:
                    await process.stop()
            return CommandResult(exit_code, stdout.text(), process.stderr_tail())
        except (OSError, ValueError) as error:
            raise CodexError(str(error), code="command") from error
        except ToolError as error:
            raise CodexError(str(error), code="sandbox", exit_code=ExitCode.SANDBOX) from error

    def close(self) -> None:
        if self._guardian is not None:
            self._guardian.close()

    def _outside(
        self, command: str | Sequence[str], environment: Mapping[str, str], cwd: Path
    ) -> AbstractContextManager[Start]:
        setup = self._setup
        programs = user_programs(setup.config, setup.environment, setup.options.add_dirs)
        start = programs.start(command, setup.environment, cwd)
        return nullcontext(replace(start, environment={**start.environment, **environment}))

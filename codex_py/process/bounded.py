"""Runs programs to their end, bounded in time and output."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from codex_py.process.guardian import Guardian
from codex_py.process.output import HeadTailBuffer
from codex_py.process.piped import PipedProcess

_READ_BYTES: Final = 64 * 1024


class ProgramRunner:
    def __init__(self) -> None:
        self._guardian = Guardian()
        """If this program is killed, it kills what runs."""

    async def run(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        environment: Mapping[str, str],
        stdin: bytes,
        timeout_s: float,
        max_output_bytes: int,
    ) -> tuple[int | None, str, str]:
        """The exit code, None after the time-out, and what was written to standard output and error. Nothing is left
        running.

        Raises:
            OSError, ValueError: the program cannot be started.
        """
        stdout, exit_code = HeadTailBuffer(max_output_bytes), None
        process = PipedProcess(self._guardian, argv, cwd=cwd, environment=environment)
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
        return exit_code, stdout.text(), process.stderr_tail()

    def close(self) -> None:
        self._guardian.close()

"""Makes attempts: agents that work side by side, each in a process of its own.

`exec_process` runs one of them. This module starts it where it shall work, which may be a git
worktree that is removed afterwards, follows its events, and ends it together with the others.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final

from codex_py.app.exec_process import (
    EVENTS,
    FORK_SERVER,
    PROGRAM,
    TERM_GRACE_S,
    ExecInvocation,
    ExecResult,
    run_exec,
)
from codex_py.app.worktrees.worktree import Worktree, new_worktree, open_worktree
from codex_py.process.forked import ForkServer
from codex_py.process.guardian import Guardian
from codex_py.process.piped import ProgramRunner

_READ_EVERY_S: Final = 0.2
_AGENTS_WITHOUT_FORKS: Final = 6
"""A process that forks agents takes as long to start as some agents do."""
_MAX_SCRIPT_OUTPUT_BYTES: Final = 64_000


class Attempts:
    """Makes attempts on this machine. No agent outlives us.

    Args:
        home: `$CODEX_HOME`.
        environment: the variables for git and for scripts.
        warn: tells the user about a worktree that could not be removed.
    """

    def __init__(
        self,
        home: Path,
        environment: Mapping[str, str],
        warn: Callable[[str], None],
    ) -> None:
        self._home = home
        self._environment = environment
        self._warn = warn
        self._guardian = Guardian()
        self._forks: ForkServer | None = None
        self._started = 0
        """The agents that were started."""
        self._scripts = ProgramRunner()
        self._limits: set[asyncio.Timeout] = set()
        """The time limits of the agents that run."""

    def close(self) -> None:
        if self._forks is not None:
            self._forks.close()
        self._guardian.close()
        self._scripts.close()

    def worktree(
        self, cwd: Path, *, name: str, base: str, parent: Path | None = None
    ) -> AbstractAsyncContextManager[Worktree]:
        """Make a worktree, which is removed with all of its contents when the context is left.

        The arguments and errors are those of `new_worktree`.
        """
        make = partial(
            new_worktree,
            cwd,
            self._home,
            self._environment,
            name=name,
            base=base,
            parent=parent,
        )
        return open_worktree(make, self._warn, force=True)

    async def run(
        self,
        command: ExecInvocation,
        folder: Path,
        *,
        watch: Callable[[bytes], None] | None = None,
        grace_s: float = TERM_GRACE_S,
    ) -> ExecResult:
        """Run an agent to its end; see `run_exec`.

        Args:
            watch: called with each event soon after the agent has written it, as a line.

        Raises:
            TimeoutError: `end_all` has ended the agent.
            OSError: see `run_exec`, as `ValueError`.
        """
        limit = asyncio.timeout(None)
        async with limit, _watched(folder / EVENTS, watch):
            self._limits.add(limit)
            try:
                return await run_exec(
                    command,
                    self._guardian,
                    folder,
                    forks=self._fork_server(command.environment),
                    grace_s=grace_s,
                )
            finally:
                self._limits.discard(limit)

    async def run_script(
        self,
        script: str,
        cwd: Path,
        sandbox: Sequence[str],
        timeout_s: float,
    ) -> tuple[int | None, str]:
        """Run a script for `/bin/sh` in the sandbox, for instance on the files that an agent left.

        Nothing of it is left running.

        Args:
            sandbox: the words after `codex-py sandbox`: the mode, and options.

        Returns:
            The exit code, which is None after the time-out; and the standard output, of which the
            first and the last part are kept if it is long.

        Raises:
            OSError: the script cannot be started, as `ValueError`.
        """
        code, printed, _ = await self._scripts.run(
            [*PROGRAM, "sandbox", *sandbox, "--", "/bin/sh", "-c", script],
            cwd=cwd,
            environment=self._environment,
            stdin=b"",
            timeout_s=timeout_s,
            max_output_bytes=_MAX_SCRIPT_OUTPUT_BYTES,
        )
        return code, printed

    def _fork_server(self, environment: Mapping[str, str]) -> ForkServer | None:
        """The process that forks agents, once there are so many that it saves time."""
        self._started += 1
        if self._forks is None and self._started > _AGENTS_WITHOUT_FORKS:
            self._forks = ForkServer(FORK_SERVER, self._guardian, environment)
        return self._forks

    def end_all(self) -> None:
        """End all agents that run now."""
        while self._limits:
            self._limits.pop().reschedule(0)


@asynccontextmanager
async def _watched(
    events: Path, watch: Callable[[bytes], None] | None
) -> AsyncGenerator[None]:
    """Create the file of events, and read what the agent writes to it within the context."""
    if watch is None:
        yield
        return
    with events.open("w+b") as file:
        following = asyncio.create_task(_follow(file, watch))
        try:
            yield
        finally:
            following.cancel()
            _read(file, watch)


async def _follow(file: BinaryIO, watch: Callable[[bytes], None]) -> None:
    while True:
        await asyncio.sleep(_READ_EVERY_S)
        _read(file, watch)


def _read(file: BinaryIO, watch: Callable[[bytes], None]) -> None:
    """Read the lines that have been written since the last call.

    A line that is still being written is left for the next call.
    """
    for line in iter(file.readline, b""):
        if not line.endswith(b"\n"):
            file.seek(-len(line), os.SEEK_CUR)
            return
        watch(line)

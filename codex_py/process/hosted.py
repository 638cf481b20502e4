"""Runs commands in terminals of the user's own program, such as an editor.

That program starts the commands, and it may fail, leave, or never answer. Each command has one
result all the same: whatever goes wrong is a sentence at the end of the output.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from codex_py.errors import ToolError
from codex_py.process.child import kill_marked
from codex_py.process.process import OutputListener, Process
from codex_py.process.sessions import ProcessSessions
from codex_py.protocol.terminals import (
    CommandTerminal,
    CommandTerminals,
    TerminalState,
)

_MAX_OUTPUT_BYTES: Final = 1 << 20
_LOOK_S: Final = 1.0
"""The time for the output so far, when a wait for the command is over."""
_UNKNOWN: Final = -1
"""The exit code of a command that could not be started, or that was lost."""
_KILLED: Final = 128 + 9
_SEAM: Final = 2_000
"""The number of characters by which new output is joined to the output that is known."""


class HostedCommands:
    """Starts commands in terminals. They end with those of `sessions`.

    Args:
        sessions: the commands of the agent, which this adds to.
    """

    def __init__(self, sessions: ProcessSessions, terminals: CommandTerminals) -> None:
        self._sessions = sessions
        self._terminals = terminals

    def spawn(
        self,
        argv: Sequence[str],
        *,
        title: str,
        cwd: Path,
        environment: Mapping[str, str],
        tty: bool = False,
        on_output: OutputListener | None = None,  # noqa: ARG002
        on_finished: Callable[[Process], None] | None = None,
    ) -> Process:
        """Start a command in the running loop. It finishes at once if there is no terminal.

        Args:
            title: the command as people know it.
            tty: nobody can type into these terminals for us, so this must be false.
            on_output: unused, because the terminal shows the output.
            on_finished: as in `ProcessSessions.spawn`.
        """
        assert not tty
        marked, mark = self._sessions.marked(environment)

        def finished(process: Process) -> None:
            self._sessions.remove(process, on_finished)

        process = HostedProcess(
            self._terminals, argv, title, cwd, marked, mark, finished
        )
        self._sessions.add(process)
        return process


class HostedProcess(Process):
    """A command in a terminal.

    A kill ends its processes on this machine by their mark, whatever the terminal does.
    """

    def __init__(
        self,
        terminals: CommandTerminals,
        argv: Sequence[str],
        title: str,
        cwd: Path,
        environment: Mapping[str, str],
        mark: str,
        on_finished: Callable[[Process], None],
    ) -> None:
        """
        Args:
            environment: the variables of the command, with the mark.
            mark: the text in its environment by which `kill_marked` finds it.
        """
        super().__init__(None, on_finished)
        self._mark = mark
        self._terminal: CommandTerminal | None = None
        self._seen = ""
        """The output as the terminal had it last."""
        self._code = _UNKNOWN
        self._is_killed = False
        name, _, value = mark.removesuffix("\0").partition("=")
        self._open = partial(
            terminals.open,
            argv,
            title=title,
            cwd=cwd,
            environment=environment,
            marks={name: value},
            max_output_bytes=_MAX_OUTPUT_BYTES,
        )
        self._task = asyncio.create_task(self._run())

    @property
    def has_input(self) -> bool:
        return False

    def write(self, data: bytes) -> None:  # noqa: ARG002
        raise BufferError

    async def wait(self, timeout_s: float) -> bool:
        """Wait as `Process.wait` does. Then the output so far is known."""
        if await super().wait(timeout_s) or self._is_killed:
            return self.finished.is_set()
        is_known = False
        with suppress(ToolError, TimeoutError):
            async with asyncio.timeout(_LOOK_S):
                await self._look()
                is_known = True
        if self._code != _UNKNOWN and not self.finished.is_set():
            # It has ended, and one of the answers about that is late or lost.
            if not is_known:
                self._note("the editor did not give the output in time")
            self._task.cancel()
            await self.finished.wait()
        return self.finished.is_set()

    def interrupt(self, times: int = 1) -> None:  # noqa: ARG002
        """Kill the command: these terminals have no other signal."""
        if not self.finished.is_set():
            self._kill()

    def hang_up(self) -> None:
        self.kill_now()

    def kill_now(self) -> None:
        if not self.finished.is_set():
            self._kill()

    def abandon(self) -> None:
        if not self.finished.is_set():
            self._task.cancel()
            self._end(_KILLED)

    def _kill(self) -> None:
        if self._terminal is None:
            # The command does not run, and never will.
            self._note("the editor had not opened a terminal yet")
            self.abandon()
            return
        if not self._is_killed:
            self._is_killed = True
            self._terminal.kill()
        kill_marked(self._mark)

    async def _run(self) -> None:
        """Open the terminal, and wait for the end of the command."""
        try:
            self._terminal = await self._open()
            self.on_terminal(self._terminal.id)
            self._code = await self._terminal.wait()
            await self._look()
        except ToolError as error:
            self._note(str(error))
            if self._code == _UNKNOWN and self._terminal is not None:
                # It may still run, and nobody would learn of its end.
                self._kill()
        finally:
            if self._terminal is not None:
                self._terminal.release()
            if not self.finished.is_set():
                self._end(self._code)

    async def _look(self) -> None:
        """Add the output that is new, and note the end of the command."""
        if self._terminal is None or self.finished.is_set():
            return
        state = await self._terminal.state()
        if self.finished.is_set():
            return
        self._add(state)
        if state.exit_code is not None and self._code == _UNKNOWN:
            self._code = state.exit_code

    def _add(self, state: TerminalState) -> None:
        """Add what the terminal has printed since it was asked last."""
        output = state.output.replace("\r\n", "\n")
        seen = self._seen
        if seen.startswith(output):
            # An older answer, or no news.
            return
        self._seen = output
        if output.startswith(seen):
            if state.is_truncated and not seen:
                self._note("the editor kept only the end of the output:")
            self._print(output[len(seen) :])
            return
        joint = seen[-_SEAM:]
        _, found, new = output.rpartition(joint)
        if not found:
            self._note("the editor did not keep what came between:")
            new = output
        self._print(new)

    def _note(self, text: str) -> None:
        """Add a line of ours to the output."""
        is_begun = self.all_output().total_bytes > 0
        self._print(f"\n[{text}]\n" if is_begun else f"[{text}]\n")

    def _print(self, text: str) -> None:
        self._untaken.append(text.encode(errors="replace"))

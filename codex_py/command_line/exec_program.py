"""Surrounds the work of `codex-py exec` with its configuration, streams, signals and result."""

import asyncio
import os
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from codex_py.app.features.output_schema import load_schema
from codex_py.app.user_programs import without_approval_key
from codex_py.command_line.answers import Answers
from codex_py.command_line.arguments import Arguments
from codex_py.command_line.configuration import load_exec_config
from codex_py.command_line.interruption import Interruption
from codex_py.command_line.target import SessionTarget
from codex_py.command_line.worktrees import in_folder_of_session, names_folder
from codex_py.errors import CodexError
from codex_py.streams.standard import READER_LEFT, OutputStream
from codex_py.streams.terminal import printable

if TYPE_CHECKING:
    from codex_py.filesystem.output_file import OutputFile

_Work: TypeAlias = Callable[[], Coroutine[Any, Any, int]]
"""The work of a command, which returns its exit code."""


class ExecProgram:
    """Reads the configuration of one command, runs its work, and delivers its result.

    Attributes:
        needs_own_worktree: True if no option names a folder for the session.
        arguments: the options, with the worktree of a resumed session as the working folder.
        environment: the variables, without the key that signs approvals.
        add_dirs: the folders of `--add-dir`; absolute.
        schema: the schema of `--output-schema`; None without one.
        answers: the file of `--answers`; None without one.
        interruption: ends the work on a signal.
    """

    def __init__(
        self,
        arguments: Arguments,
        target: SessionTarget,
        environment: Mapping[str, str],
        stderr: OutputStream,
    ) -> None:
        """Raises a `CodexError` if an option or the configuration is wrong."""
        if arguments.full_auto:
            stderr.write_text(
                "warning: --full-auto is deprecated; use --sandbox workspace-write\n"
            )
        environment = without_approval_key(environment)
        self.needs_own_worktree = not names_folder(arguments)
        arguments = in_folder_of_session(arguments, target, environment)
        self.arguments = arguments
        self.target = target
        self.environment = environment
        self.config = load_exec_config(arguments, environment)
        add_dirs = [self.config.cwd / name for name in arguments.add_dir]
        self.add_dirs = tuple(add_dirs)
        self.schema = None
        if arguments.output_schema is not None:
            self.schema = load_schema(Path(arguments.output_schema))
        self._message_file: OutputFile | None = None
        if arguments.output_last_message is not None:
            self._message_file = self.output_file(
                arguments.output_last_message, "the last message"
            )
        self.stdout = OutputStream(1)
        self.stderr = stderr
        self.answers = None
        if arguments.answers is not None:
            self.answers = Answers(Path(arguments.answers), self.warn)
        self.interruption = Interruption()

    @property
    def root(self) -> Path:
        """The folder of the project, or else the working folder."""
        return self.config.project_root or self.config.cwd

    def output_file(self, name: str, what: str, *, empty: bool = False) -> "OutputFile":
        """Open a file for a result; see `OutputFile`."""
        from codex_py.filesystem.output_file import OutputFile  # 1 ms

        return OutputFile(Path(name), self.root, what, empty=empty)

    def run(self, work: _Work) -> int:
        """Run the work in an event loop. A signal or a failure of standard output ends it.

        Returns the exit code of the command.

        Raises:
            CodexError: standard output failed, but not because its reader has left.
        """
        return asyncio.run(self._supervised(work))

    async def _supervised(self, work: _Work) -> int:
        self.stdout.on_failure = self.interruption.cancel
        try:
            code = await self.interruption.run(work())
        except asyncio.CancelledError:
            if self.stdout.failure is None:
                raise
            code = READER_LEFT
        failure = self.stdout.failure
        if failure is None or self.interruption.signal is not None:
            return code
        if self.stdout.reader_left:
            return READER_LEFT
        raise CodexError(
            f"Failed to write to standard output: {failure.strerror}", code="stdout"
        )

    def warn(self, text: str) -> None:
        self.stderr.write_text(f"warning: {printable(text)}\n")

    def deliver(self, message: str | None) -> None:
        """Write the last message to standard output and to the file of `-o`.

        Standard output gets it only if nothing else has shown it: neither JSON nor a terminal that
        also shows standard error.

        Args:
            message: None if the turn ended without one.

        Raises:
            CodexError: the file of `-o` cannot be written. The message is on standard output then.
        """
        is_on_screen = os.isatty(1) and os.isatty(2)
        is_shown = self.arguments.json or is_on_screen
        if message is not None and not is_shown:
            # A terminal must not get control characters; a program gets the exact text.
            text = printable(message) if os.isatty(1) else message
            self.stdout.write_text(f"{text}\n")
        if self._message_file is not None:
            self._message_file.write(message or "")
            if message is None:
                self._warn_of_empty_file(self._message_file.path)

    def _warn_of_empty_file(self, path: Path) -> None:
        self.stderr.write_text(
            "Warning: no last agent message; wrote empty content to"
            f" {printable(str(path))}\n"
        )

"""`!COMMAND`: a command that the user runs directly, without sandbox and without approval, and without keys of
providers.

It is shown as the agent's commands are, and the model is told of it, in the words of Codex.
"""

import codecs
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from codex_py.app.user_programs import user_programs, user_shell
from codex_py.config.config import Config
from codex_py.errors import CodexError
from codex_py.process.process import Process
from codex_py.process.sessions import ProcessSessions
from codex_py.protocol import event_items, events

_TOLD: Final = 40_000
"""Bytes of the output that the model is told, from its start and its end; some 10,000 tokens."""


class UserShell:
    """One command at a time. It reads nothing: the keyboard is the composer's."""

    def __init__(
        self, config: Config, environment: Mapping[str, str], sink: events.EventSink
    ) -> None:
        self._cwd = config.cwd
        self._shell_option = "-lc" if config.allow_login_shell else "-c"
        self._environment = user_programs(config, environment).without_keys(environment)
        self._sink = sink
        self._processes = ProcessSessions()
        self._running: Process | None = None
        self._count = 0

    @property
    def is_running(self) -> bool:
        return self._running is not None

    async def run(self, command: str, tell: Callable[[str], None]) -> None:
        """Run it to its end; `tell` gets the message for the model.

        Raises:
            CodexError: it cannot be started.
        """
        self._count += 1
        id_ = f"shell_{self._count}"
        decoder = codecs.getincrementaldecoder("utf-8")("replace")

        def printed(data: bytes) -> None:
            self._sink(events.CommandOutputDelta(id_, decoder.decode(data)))

        try:
            process = self._processes.spawn(
                [user_shell(self._environment), self._shell_option, command],
                cwd=self._cwd,
                environment=self._environment,
                on_output=printed,
            )
        except (OSError, ValueError) as error:
            raise CodexError(f"the command could not be run: {error}", code="shell") from error
        self._running = process
        item = event_items.CommandExecution(
            id=id_, command=command, cwd=str(self._cwd), is_users=True
        )
        self._sink(events.ItemStarted(item))
        try:
            await process.finished.wait()
        finally:
            await process.stop()
            self._running = None
            output = process.all_output().text()
            done = replace(
                item,
                aggregated_output=output,
                exit_code=process.exit_code,
                status="failed" if process.exit_code else "completed",
                duration_ms=round(process.duration_s * 1000),
                was_stopped=process.was_killed,
            )
            self._sink(events.ItemCompleted(done))
            tell(_told(command, output, process))

    def stop(self) -> bool:
        """Kill the command that runs; True if there was one."""
        if self._running is None:
            return False
        self._running.kill()
        return True

    async def aclose(self) -> None:
        """End it, and the processes that it has left in the background."""
        await self._processes.aclose()


def _told(command: str, output: str, process: Process) -> str:
    if len(output) > _TOLD:
        missing = len(output) - _TOLD
        output = (
            f"{output[: _TOLD // 2]}\n... {missing} characters omitted ...\n{output[-_TOLD // 2 :]}"
        )
    return (
        f"<user_shell_command>\n<command>\n{command}\n</command>\n<result>\n"
        f"Exit code: {process.exit_code}\nDuration: {process.duration_s:.4f} seconds\n"
        f"Output:\n{output}\n</result>\n</user_shell_command>"
    )

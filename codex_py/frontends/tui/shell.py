"""`!COMMAND`: the user runs a command directly, without sandbox, approval or providers' keys.

The command has the terminal until it ends, as in a shell. Its output is also kept for the
conversation, and the model gets it in the words of Codex.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from codex_py.app.user_shell import shell_command, shell_environment, told_command
from codex_py.config.config import Config
from codex_py.errors import CodexError, cause
from codex_py.frontends.tui.relay import Relay, kept_output, raw_terminal
from codex_py.frontends.tui.screen import Screen
from codex_py.process.foreground import ForegroundCommand
from codex_py.process.sessions import ProcessSessions
from codex_py.protocol import event_items, events
from codex_py.streams.plain_text import plain

_OF_SHELL_ALONE = re.compile(
    r"(?:cd|pushd|popd|export|unset|alias|source|\.|umask|set|shopt|ulimit)(?: [^;&|\n]*)?"
)
"""Commands that only change the shell that they run in."""
_OTHER_KEYS = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|O.|.)?|[\x00-\x08\x0b-\x1f\x7f]", re.DOTALL
)
"""Keys that are not text, as a terminal sends them."""


class UserShell:
    """Runs the user's commands, one at a time."""

    def __init__(
        self,
        config: Config,
        environment: Mapping[str, str],
        screen: Screen,
        sink: events.EventSink,
    ) -> None:
        self._cwd = config.cwd
        self._config = config
        self._environment = shell_environment(config, environment)
        self._screen = screen
        self._sink = sink
        self._processes = ProcessSessions()
        self._running: ForegroundCommand | None = None
        self._count = 0

    @property
    def is_running(self) -> bool:
        """True while a command has the terminal."""
        return self._running is not None

    async def run(self, command: str, tell: Callable[[str], None]) -> str:
        """Run a command to its end; `tell` gets the message for the model.

        Returns the text that was typed meanwhile, and that the command has not read.

        Raises:
            CodexError: the command cannot be started.
        """
        self._count += 1
        item = event_items.CommandExecution(
            id=f"shell_{self._count}",
            command=command,
            cwd=str(self._cwd),
            is_users=True,
            was_relayed=True,
        )
        async with self._screen.lent(self._resize, self.stop) as writer:
            relay = Relay(writer)
            relay.print(self._heading(command))
            running = self._started(command, relay)
            self._running = running
            relay.command = running
            try:
                with raw_terminal(0, relay.type, self.stop):
                    await running.ended.wait()
            finally:
                if not running.ended.is_set():
                    running.process.kill()
                self._running = None
                relay.end()
        self._report(item, running, tell)
        return _typed_text(running.typed_ahead)

    def stop(self) -> None:
        """Kill the command that has the terminal."""
        if self._running is not None:
            self._running.process.kill()

    def stop_all(self) -> int:
        """Kill all commands, and those that they left in the background. Returns their number."""
        return self._processes.kill_running()

    async def aclose(self) -> None:
        """End the command, and the processes that it has left in the background."""
        await self._processes.aclose()

    def _started(self, command: str, relay: Relay) -> ForegroundCommand:
        try:
            return ForegroundCommand(
                self._processes,
                shell_command(command, self._config, self._environment),
                cwd=self._cwd,
                environment=self._environment,
                size=(self._screen.width, self._screen.height),
                on_output=relay.print,
            )
        except (OSError, ValueError) as error:
            message = f"the command could not be run: {cause(error)}"
            raise CodexError(message, code="shell") from error

    def _resize(self) -> None:
        if self._running is not None:
            self._running.process.resize(self._screen.width, self._screen.height)

    def _heading(self, command: str) -> bytes:
        """The command as it stands above its output."""
        text = f"\n$ {plain(command)}".replace("\n", "\r\n")
        return f"{text}\r\n".encode(errors="replace")

    def _report(
        self,
        item: event_items.CommandExecution,
        ran: ForegroundCommand,
        tell: Callable[[str], None],
    ) -> None:
        """Report a command that has ended, to the conversation and to the model."""
        output = kept_output(ran.output)
        done = replace(
            item,
            aggregated_output=output,
            exit_code=ran.exit_code,
            status="failed" if ran.exit_code else "completed",
            duration_ms=round(ran.duration_s * 1000),
            was_stopped=ran.process.was_killed,
        )
        self._sink(events.ItemCompleted(done))
        tell(told_command(item.command, output, ran.exit_code, ran.duration_s))


def _typed_text(typed: bytes) -> str:
    """The text in what was typed, without other keys and without newlines at its end."""
    text = _OTHER_KEYS.sub("", typed.decode(errors="replace"))
    return text.rstrip("\n")


def changes_shell_alone(command: str) -> bool:
    """True if a command has no lasting effect, because each runs in its own shell."""
    return _OF_SHELL_ALONE.fullmatch(command.strip()) is not None

"""The user's own commands: run without sandbox, approval or providers' keys, and told to the model.

The terminal runs them as `!COMMAND`, the app server for `thread/shellCommand`.
"""

import asyncio
from codecs import getincrementaldecoder
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from codex_py.app.user_programs import user_programs, user_shell
from codex_py.config.config import Config
from codex_py.errors import cause
from codex_py.process.sessions import ProcessSessions
from codex_py.protocol import event_items, events
from codex_py.streams.plain_text import command_output

_TOLD: Final = 40_000
"""Characters of output for the model, from its start and its end; some 10,000 tokens."""
_UNPAGED: Final = {"PAGER": "cat", "GIT_PAGER": "cat"}
"""No pagers: their output over the whole screen could not be kept, and they wait for keys."""
_TIMED_OUT: Final = 124
"""The exit code of a command whose time is up, as that of `timeout`."""
_NOT_STARTED: Final = 127
_KILLED: Final = 137


def shell_environment(config: Config, environment: Mapping[str, str]) -> dict[str, str]:
    """The variables of the user's commands."""
    own = user_programs(config, environment).without_keys(environment)
    return {**own, **_UNPAGED}


def shell_command(
    command: str, config: Config, environment: Mapping[str, str]
) -> list[str]:
    """The argv that runs a command in the user's shell.

    `environment`: as from `shell_environment`.
    """
    option = "-c"
    if config.settings.allow_login_shell:
        option = "-lc"
    return [user_shell(environment), option, command]


def told_command(
    command: str,
    output: str,
    exit_code: int | None,
    duration_s: float,
) -> str:
    """The message to the model about a command that the user ran, in the form of Codex."""
    output = command_output(output)
    missing = len(output) - _TOLD
    if missing > 0:
        half = _TOLD // 2
        remark = f"... {missing} characters omitted ..."
        output = f"{output[:half]}\n{remark}\n{output[-half:]}"
    return (
        f"<user_shell_command>\n<command>\n{command}\n</command>\n<result>\n"
        f"Exit code: {exit_code}\nDuration: {duration_s:.4f} seconds\n"
        f"Output:\n{output}\n</result>\n</user_shell_command>"
    )


class UserShell:
    """Runs commands of the user's without a terminal, several at a time if need be."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._processes = ProcessSessions()

    @property
    def is_idle(self) -> bool:
        """True if nothing runs, also in the background."""
        return self._processes.is_idle

    async def run(
        self,
        command: str,
        config: Config,
        *,
        item_id: str,
        timeout_s: float,
        sink: events.EventSink,
        tell: Callable[[str], None],
    ) -> None:
        """Run a command in the folder of a configuration, to its end.

        A command that was killed, or could not be started, is reported as a failed one. If this is
        cancelled, the command is killed and reported, too.

        Args:
            item_id: the id of its item.
            sink: gets the events of the item.
            tell: gets the message for the model.
        """
        item = event_items.CommandExecution(
            id=item_id, command=command, cwd=str(config.cwd), is_users=True
        )
        sink(events.ItemStarted(item))
        decoder = getincrementaldecoder("utf-8")("replace")

        def printed(data: bytes) -> None:
            delta = decoder.decode(data)
            if delta:
                sink(events.CommandOutputDelta(item_id, delta))

        def report(output: str, exit_code: int | None, duration_s: float) -> None:
            done = replace(
                item,
                aggregated_output=output,
                exit_code=exit_code,
                status="failed" if exit_code else "completed",
                duration_ms=round(duration_s * 1000),
            )
            sink(events.ItemCompleted(done))
            tell(told_command(command, output, exit_code, duration_s))

        variables = shell_environment(config, self._environment)
        try:
            process = self._processes.spawn(
                shell_command(command, config, variables),
                cwd=config.cwd,
                environment=variables,
                on_output=printed,
            )
        except (OSError, ValueError) as error:
            report(f"the command could not be run: {cause(error)}", _NOT_STARTED, 0)
            return
        remark = ""
        try:
            async with asyncio.timeout(timeout_s):
                await process.finished.wait()
        except TimeoutError:
            remark = f"the command was stopped after {timeout_s:g} seconds"
            await process.stop(exit_code=_TIMED_OUT)
        except asyncio.CancelledError:
            remark = "the command was stopped by the user"
            await process.stop(exit_code=_KILLED)
            raise
        finally:
            output = process.all_output().text()
            if remark:
                output = f"{output.rstrip()}\n{remark}".lstrip()
            report(output, process.exit_code, process.duration_s)

    async def aclose(self) -> None:
        """End the commands, and the processes that they have left in the background."""
        await self._processes.aclose()

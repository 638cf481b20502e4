"""Runs a command for `exec_command` and the shells: starts the process, and emits its item."""

import asyncio
import codecs
import errno
import shlex
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias, cast

from codex_py.errors import ToolError
from codex_py.execpolicy.place import CommandPlace
from codex_py.execpolicy.safety import is_known_safe
from codex_py.patch.envelope.shell import find_patch, is_bare_patch, mentions_patch
from codex_py.process.process import Process
from codex_py.process.sessions import ProcessSessions
from codex_py.protocol import event_items, events
from codex_py.protocol.annotations import OR_DEFAULT
from codex_py.protocol.approval import ApprovalPolicy
from codex_py.protocol.calls import PastCall, PastItems, past_command, read_report
from codex_py.protocol.checked import WrongValue
from codex_py.protocol.dispatch import ToolContext
from codex_py.protocol.frozen import frozen
from codex_py.protocol.tools import ToolOutput
from codex_py.tools.base import ToolParams, invalid_arguments
from codex_py.tools.shell.orchestrator import Launch, Orchestrator
from codex_py.tools.shell.permission import CommandCall, Run
from codex_py.tools.shell.quoting import quote_argv
from codex_py.tools.shell.snapshot import LoginShell, ShellSnapshot

_SPAWN_FAILED = -1
_NOT_STARTED: Final[Mapping[str, Literal["declined", "failed"]]] = {
    "ApprovalDenied": "declined",
    "SandboxUnavailable": "failed",
}
"""The status of a command's item, by the code of the error that kept the command from starting."""
_LIVE_INTERVAL_S = 0.05
_LIVE_BYTES = 8 * 1024
_BARE_PATCH = (
    "apply_patch verification failed: patch detected without explicit call to apply_patch."
    ' Rerun as ["apply_patch", "<patch>"]'
)

Workdir: TypeAlias = Annotated[
    str | None, "Where to run it. Default: the working directory of the session."
]
"""A path, absolute or relative to the turn's directory."""
Login: TypeAlias = Annotated[
    bool | None, "Run the shell as a login shell. Default: true."
]


@frozen(kw_only=True)
class CommandParams(ToolParams):
    workdir: Workdir = None
    sandbox_permissions: Annotated[
        Literal["use_default", "require_escalated"],
        "`require_escalated` asks to run without the sandbox. Default: use_default.",
        OR_DEFAULT,
    ] = "use_default"
    justification: Annotated[
        str | None,
        "With `require_escalated`: the question to put to the user, one sentence.",
    ] = None
    prefix_rule: Annotated[
        tuple[str, ...],
        "With `require_escalated`: words with which later commands that may also run this way begin.",
        OR_DEFAULT,
    ] = ()

    def cwd(self, context: ToolContext) -> Path:
        """The command's directory, absolute. Raises a `ToolError` if `workdir` cannot be a path."""
        workdir = self.workdir or ""
        if "\0" in workdir:
            reason = "a path cannot contain NUL"
            raise invalid_arguments(WrongValue(["workdir"], reason, workdir))
        return context.cwd / workdir

    def call(
        self, argv: Sequence[str], context: ToolContext, *, tty: bool
    ) -> CommandCall:
        return CommandCall(
            tuple(argv),
            self.cwd(context),
            escalated=self.sandbox_permissions == "require_escalated",
            justification=self.justification,
            prefix_rule=self.prefix_rule,
            tty=tty,
        )


@frozen
class CommandRunner:
    """Runs all commands of a session."""

    sessions: ProcessSessions
    orchestrator: Orchestrator
    apply_patch: Callable[[str, Path, ToolContext], Awaitable[ToolOutput]]
    """The method `ApplyPatch.apply`."""
    login_shell: LoginShell | None = None

    async def patch_output(
        self, argv: Sequence[str], cwd: Path, context: ToolContext
    ) -> ToolOutput | None:
        """Apply the patch if the command line calls `apply_patch`; else return None.

        So it is reviewed as a patch. A bare patch is refused in Codex's words, because it may not
        be meant as a command.
        """
        if not mentions_patch(argv):
            return None
        if is_bare_patch(argv):
            return ToolOutput(_BARE_PATCH, success=False, error_code="PatchFailed")
        found = find_patch(argv)
        if found is None:
            return None
        folder = cwd / (found.workdir or "")
        return await self.apply_patch(found.patch, folder, context)

    async def run(
        self,
        argv: Sequence[str],
        params: CommandParams,
        context: ToolContext,
        wait_s: float,
        *,
        tty: bool = False,
    ) -> Process:
        """Run a command if that is allowed. It may still be running after `wait_s`.

        Each attempt is a thread item, completed when its process ends. A refused command is also an
        item, with the status `declined`. A cancellation leaves no process running.

        Raises:
            ToolError: the command was refused, or cannot be started.
        """
        call = params.call(argv, context, tty=tty)
        snapshot = None
        shell = self.login_shell
        if shell is not None:
            snapshot = await shell.snapshot(argv)
        if shell is not None and snapshot is not None:
            # Merge before the decision, which searches programs on the `PATH` that the command
            # gets.
            environment = shell.merge(snapshot.exported, context.environment)
            context = replace(context, environment=environment)
        try:
            verdict = await self.orchestrator.approve(call, context)
            process = await self._attempt(call, verdict, context, wait_s, snapshot)
            may_ask = (
                verdict.sandboxed
                and context.approval_policy is ApprovalPolicy.ON_FAILURE
            )
            if may_ask and await self.orchestrator.may_leave(call, process, context):
                outside = Run(sandboxed=False)
                process = await self._attempt(call, outside, context, wait_s, snapshot)
            return process
        except ToolError as error:
            status = _NOT_STARTED.get(error.code)
            if status is not None:
                item = _start_item(call, context)
                declined = replace(item, aggregated_output=str(error), status=status)
                context.emit(events.ItemCompleted(declined))
            raise

    async def _attempt(
        self,
        call: CommandCall,
        verdict: Run,
        context: ToolContext,
        wait_s: float,
        snapshot: ShellSnapshot | None,
    ) -> Process:
        """Start the command, and wait for its end, but at most `wait_s`."""
        tty = call.tty
        setup = None
        if verdict.environment is not None:
            # A rule allowed the command without a question. The command gets no terminal, because
            # the rule does not cover later input; and no functions of the profile, which would take
            # precedence over programs.
            context = replace(context, environment=dict(verdict.environment))
            tty = False
            if snapshot is not None:
                # An empty setup keeps the shell from reading the profile again.
                setup = ""
        elif snapshot is not None:
            setup = snapshot.command
            environment = context.environment | snapshot.pieces
            context = replace(context, environment=environment)
        launch = self.orchestrator.launch(
            call, context, sandboxed=verdict.sandboxed, tty=tty, setup=setup
        )
        process = self._start(call, launch, context, tty=tty)
        try:
            await process.wait(wait_s)
        except BaseException:
            await process.stop()
            raise
        return process

    def _start(
        self,
        call: CommandCall,
        launch: Launch,
        context: ToolContext,
        *,
        tty: bool,
    ) -> Process:
        """Start the command and its thread item, which ends with the process.

        Raises:
            ToolError: the process cannot be started. The item has failed.
        """
        item = _start_item(call, context)
        live = _LiveOutput(item.id, context.emit)

        def complete_item(process: Process) -> None:
            live.stop()
            status = "completed" if process.exit_code == 0 else "failed"
            ended = replace(
                item,
                aggregated_output=process.all_output().text(),
                exit_code=process.exit_code,
                status=status,
                duration_ms=round(process.duration_s * 1000),
                was_stopped=process.was_killed,
            )
            context.emit(events.ItemCompleted(ended))

        spawn = launch.spawn or self.sessions.spawn
        try:
            process = spawn(
                launch.argv,
                cwd=call.cwd,
                environment=context.environment,
                tty=tty,
                on_output=live.feed,
                on_finished=complete_item,
            )
        except (OSError, ValueError) as error:
            failure = _spawn_failure(error, call)
            failed = replace(
                item,
                aggregated_output=str(failure),
                exit_code=_SPAWN_FAILED,
                status="failed",
                duration_ms=0,
            )
            context.emit(events.ItemCompleted(failed))
            raise failure from error
        process.on_kept = lambda: context.emit(events.CommandInBackground(item.id))
        process.on_terminal = lambda terminal_id: context.emit(
            events.CommandInTerminal(item.id, terminal_id)
        )
        return process


@dataclass(eq=False)
class CommandTool:
    """A tool that runs commands."""

    parallel = True
    command_field: ClassVar = "command"
    """The parameter with the argv, or with the text for a shell."""

    runner: CommandRunner
    shell: str
    """Path of the user's shell."""
    structured: bool = False
    """True: answer with JSON, as models without a freeform `apply_patch` were trained."""
    allow_login: bool = True
    """True: a shell may read the files of the user's profile."""

    def _in_shell(
        self, script: str, login: bool | None = None, shell: str | None = None
    ) -> list[str]:
        """Return the argv that runs a script in a shell.

        Args:
            login: True or False if the model chose; None for the configured default.
            shell: the path of the shell; None for the user's.

        Raises:
            ToolError: the model chose a login shell, which the configuration forbids.
        """
        if login and not self.allow_login:
            raise ToolError(
                "login shell is disabled by config; omit `login` or set it to false.",
                code="InvalidArgs",
            )
        is_login = self.allow_login and login is not False
        option = "-lc" if is_login else "-c"
        return [shell or self.shell, option, script]

    def changes(self, params: Any, cwd: Path) -> Sequence[Path] | None:  # noqa: ARG002
        command: str | list[str] = getattr(params, self.command_field)
        if isinstance(command, str):
            argv = self._in_shell(command)
        else:
            argv = command
        if is_known_safe(argv, CommandPlace(shell=self.shell)):
            return ()
        return None

    def replay(self, call: PastCall, past: PastItems) -> event_items.ThreadItem | None:
        if not call.has_run:
            return None
        arguments = call.arguments
        command: Any = arguments.get("cmd", arguments.get("command"))
        if not isinstance(command, list):
            # The session file does not name the shell.
            command = ["/bin/bash", "-lc", command]
        words = [str(word) for word in cast("list[Any]", command)]
        report = read_report(call.output)
        item = past_command(
            past.next_id(),
            shlex.join(words),
            str(arguments.get("workdir") or ""),
            report,
            declined=call.error_code == "ApprovalDenied",
        )
        if report.process_id is not None:
            past.noted[f"process {report.process_id}"] = item.id
        return item


def _start_item(
    call: CommandCall, context: ToolContext
) -> event_items.CommandExecution:
    shown = quote_argv(call.argv)
    item = event_items.CommandExecution(
        id=context.next_item_id(), command=shown, cwd=str(call.cwd)
    )
    context.emit(events.ItemStarted(item))
    return item


def _spawn_failure(error: OSError | ValueError, call: CommandCall) -> ToolError:
    if not isinstance(error, OSError):
        return ToolError(f"cannot run the command: {error}", code="EINVAL")
    code = errno.errorcode.get(error.errno or 0, "UnknownError")
    if error.filename == call.cwd:
        text = f"working directory {str(call.cwd)!r}: {error.strerror}"
    else:
        text = f"cannot run {call.argv[0]!r}: {error.strerror}"
    return ToolError(text, code=code)


class _LiveOutput:
    """Shows the output of a running command at intervals; if there is much, only the latest."""

    def __init__(self, item_id: str, emit: events.EventSink) -> None:
        self._item_id = item_id
        self._emit = emit
        self._latest = b""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._timer: asyncio.TimerHandle | None = None
        self._has_shown = False

    def feed(self, data: bytes) -> None:
        """Add output, and show it at the next interval."""
        latest = self._latest + data[-_LIVE_BYTES:]
        self._latest = latest[-_LIVE_BYTES:]
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(_LIVE_INTERVAL_S, self._show)

    def stop(self) -> None:
        """Show the rest, if some output was shown.

        Otherwise the completed item shows all of it. Clients that have begun to show the output
        take no more from that item.
        """
        if self._timer is None:
            return
        self._timer.cancel()
        if self._has_shown:
            self._show()

    def _show(self) -> None:
        self._timer = None
        self._has_shown = True
        delta = self._decoder.decode(self._latest)
        self._latest = b""
        self._emit(events.CommandOutputDelta(self._item_id, delta))

"""What `exec_command` and the shells share: from an argv to a process that is watched and reported."""

import asyncio
import codecs
import errno
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, cast

from pydantic import Field, model_validator

from codex_py.errors import ToolError
from codex_py.patch.shell import find_patch, is_bare_patch
from codex_py.process.process import Process
from codex_py.process.sessions import ProcessSessions
from codex_py.protocol.approval import ApprovalPolicy, ApprovalRequest, ReviewDecision
from codex_py.protocol.events import (
    CommandExecution,
    CommandOutputDelta,
    EventSink,
    ItemCompleted,
    ItemStarted,
)
from codex_py.protocol.tools import ToolOutput
from codex_py.sandbox.base import Sandbox
from codex_py.tools.base import ToolContext, ToolParams
from codex_py.tools.quoting import quote_argv

_SPAWN_FAILED = -1
_LIVE_INTERVAL_S = 0.05
_LIVE_BYTES = 8 * 1024
_BARE_PATCH = (
    "apply_patch verification failed: patch detected without explicit call to apply_patch."
    ' Rerun as ["apply_patch", "<patch>"]'
)
_NEVER_ESCALATES = (
    "approval policy is Never; reject command — you cannot ask for escalated permissions"
    " if the approval policy is Never"
)


class PatchApplier(Protocol):
    async def apply(self, patch: str, cwd: Path, context: ToolContext) -> ToolOutput:
        """Apply the text of a patch whose relative paths start at `cwd`."""
        ...


class LenientParams(ToolParams):
    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, data: Any) -> Any:
        """Models write null for what they leave out."""
        if not isinstance(data, dict):
            return data
        fields = cast("dict[str, Any]", data)
        return {name: value for name, value in fields.items() if value is not None}


class CommandParams(LenientParams):
    workdir: str | None = Field(default=None, pattern=r"^[^\x00]*$")
    """Relative to the directory of the turn; a name with a NUL is none."""
    sandbox_permissions: str = "use_default"
    justification: str | None = None

    def cwd(self, context: ToolContext) -> Path:
        return context.cwd / (self.workdir or "")


@dataclass(frozen=True, slots=True)
class CommandRunner:
    sessions: ProcessSessions
    sandbox: Sandbox
    apply_patch: PatchApplier | None

    async def patch_output(
        self, argv: Sequence[str], cwd: Path, context: ToolContext
    ) -> ToolOutput | None:
        """Apply the patch that a command line is, so that it is reviewed as one; None if it is none.

        A patch without a command is not applied, but answered as by Codex: it need not be meant so.
        """
        if self.apply_patch is None:
            return None
        if is_bare_patch(argv):
            return ToolOutput(_BARE_PATCH, success=False, error_code="PatchFailed")
        if (found := find_patch(argv)) is None:
            return None
        return await self.apply_patch.apply(found.patch, cwd / (found.workdir or ""), context)

    async def start(
        self, argv: Sequence[str], params: CommandParams, context: ToolContext, *, tty: bool = False
    ) -> Process:
        """Start a command as a thread item, which is completed when the process is finished.

        Raises:
            ToolError: it may not run, which leaves no item, or it can not be started.
        """
        cwd = params.cwd(context)
        shown = quote_argv(argv)
        escalated = await _is_escalated(shown, cwd, params, context)
        policy = context.sandbox_policy
        spawned = argv if escalated else self.sandbox.command(argv, policy, cwd)

        item = CommandExecution(id=context.next_item_id(), command=shown, cwd=str(cwd))
        context.emit(ItemStarted(item))
        live = _LiveOutput(item.id, context.emit)

        def finished(process: Process) -> None:
            live.stop()
            ended = replace(
                item,
                aggregated_output=process.all_output().text(),
                exit_code=process.exit_code,
                status="completed" if process.exit_code == 0 else "failed",
                duration_ms=round(process.duration_s * 1000),
            )
            context.emit(ItemCompleted(ended))

        try:
            return self.sessions.spawn(
                spawned,
                cwd=cwd,
                environment=context.environment,
                tty=tty,
                on_output=live.feed,
                on_finished=finished,
            )
        except (OSError, ValueError) as error:
            failure = _spawn_failure(error, argv, cwd)
            failed = replace(
                item,
                aggregated_output=str(failure),
                exit_code=_SPAWN_FAILED,
                status="failed",
                duration_ms=0,
            )
            context.emit(ItemCompleted(failed))
            raise failure from error


async def _is_escalated(
    command: str, cwd: Path, params: CommandParams, context: ToolContext
) -> bool:
    """Whether the call asks to run outside the sandbox, and may.

    Raises:
        ToolError: it asks, and may not.
    """
    if params.sandbox_permissions != "require_escalated":
        return False
    if context.approval_policy is ApprovalPolicy.NEVER:
        raise ToolError(_NEVER_ESCALATES, code="ApprovalDenied")
    request = ApprovalRequest("command", command, cwd, params.justification)
    review = await context.approver.review(request)
    match review.decision:
        case (
            ReviewDecision.APPROVED
            | ReviewDecision.APPROVED_FOR_SESSION
            | ReviewDecision.APPROVED_WITH_RULE
        ):
            return True
        case ReviewDecision.DENIED | ReviewDecision.ABORT:
            raise ToolError("exec command rejected by user", code="ApprovalDenied")


def _spawn_failure(error: OSError | ValueError, argv: Sequence[str], cwd: Path) -> ToolError:
    if not isinstance(error, OSError):
        return ToolError(f"cannot run the command: {error}", code="EINVAL")
    code = errno.errorcode.get(error.errno or 0, "UnknownError")
    if error.filename == cwd:
        return ToolError(f"working directory {str(cwd)!r}: {error.strerror}", code=code)
    return ToolError(f"cannot run {argv[0]!r}: {error.strerror}", code=code)


class _LiveOutput:
    """Shows what a command prints while it runs: now and then, and of much only the latest."""

    def __init__(self, item_id: str, emit: EventSink) -> None:
        self._item_id = item_id
        self._emit = emit
        self._latest = b""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._timer: asyncio.TimerHandle | None = None

    def feed(self, data: bytes) -> None:
        self._latest = (self._latest + data[-_LIVE_BYTES:])[-_LIVE_BYTES:]
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_LIVE_INTERVAL_S, self._show)

    def stop(self) -> None:
        """Nothing more is shown; the completed item has it all."""
        if self._timer is not None:
            self._timer.cancel()

    def _show(self) -> None:
        self._timer = None
        delta = self._decoder.decode(self._latest)
        self._latest = b""
        self._emit(CommandOutputDelta(self._item_id, delta))

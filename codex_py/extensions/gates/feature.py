"""Gates: the conditions that a run must satisfy before its turn may end. LIGHT.

Failures go back to the model. If a gate fails for good, the turn still completes. Its last event
has `gates` and `evidence`, and sets the exit code.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from typing import Any, Final

from codex_py.api.events import (
    DENIALS,
    AgentEvent,
    CallDenied,
    ErrorItem,
    Event,
    FileChange,
    HookProgress,
    ItemCompleted,
    McpToolCall,
)
from codex_py.api.extensions import (
    CodexError,
    ExitCode,
    Extension,
    Note,
    SessionSetup,
    Thread,
    TurnStart,
    TurnStop,
    frozen,
)
from codex_py.api.turn_changes import (
    TreeChanges,
    TurnChanges,
    comparing_files,
    end_work,
    turn_changes,
)
from codex_py.extensions.gates.checks import judge_changes
from codex_py.extensions.gates.evidence import Evidence
from codex_py.extensions.gates.settings import GateSettings

_EXIT_CODES: Final = {
    "denied": ExitCode.DENIED,
    "sandbox": ExitCode.SANDBOX,
    "tool": ExitCode.GATE,
}
_UNUSABLE: Final = {126: "is not executable", 127: "was not found"}
"""Exit codes of a shell for a program that it cannot run."""
_SHOWN_BYTES: Final = 8192
"""The last bytes of a failed script's output, which are shown."""
_ADVICE: Final = (
    "This run is not accepted yet:\n\n{}\n\n"
    "Mend the cause, then finish. Do not weaken, skip or remove a check."
)


@frozen
class Gate:
    """The verdict of one gate.

    A failed gate has a `reason`. The lines after its first one are the output of the script.
    """

    name: str
    reason: str | None = None
    exit_code: int | None = None
    is_fixable: bool = True
    """True if the model may be able to fix the problem."""

    @property
    def data(self) -> dict[str, Any]:
        """The verdict for JSON. Fields without a value are left out."""
        status = "passed" if self.reason is None else "failed"
        data: dict[str, Any] = {"name": self.name, "status": status}
        if self.exit_code is not None:
            data["exit_code"] = self.exit_code
        reason, _, output = (self.reason or "").partition("\n")
        if reason:
            data["reason"] = reason
        if output:
            data["output"] = output
        return data


class Gates:
    """Judges the work of each turn, and lets the model go on if a gate fails that it can fix."""

    def __init__(self, setup: SessionSetup, settings: GateSettings) -> None:
        self._setup = setup
        self._settings = settings
        self._cwd = setup.config.cwd
        self._evidence = Evidence(self._settings.require_evidence, self._cwd)
        self._judged: Sequence[Gate] = ()
        """The verdicts from the last time that the model was done."""
        self._failures: dict[str, str] = {}
        """The reasons why `fail_on` fails the run, by the words of `fail_on`."""

    def __call__(self, thread: Thread) -> Extension:
        if thread.parent is not None:
            # The work of subagents is work of the session at the top.
            return Extension()

        @asynccontextmanager
        async def around_session() -> AsyncGenerator[None]:
            turn_changes(thread).require()
            yield

        @asynccontextmanager
        async def around_turn(_: TurnStart) -> AsyncGenerator[None]:
            self._judged = ()
            self._failures.clear()
            changes = turn_changes(thread)
            self._evidence = Evidence(
                self._settings.require_evidence, self._cwd, changes
            )
            with ExitStack() as stack:
                needs_changes = self._settings.looks_at_files
                if needs_changes or self._settings.require_evidence:
                    stack.enter_context(comparing_files(self._setup, changes))
                if needs_changes:
                    changes.copy_soon()
                yield

        async def before_request() -> Sequence[Note]:
            await self._evidence.look()
            return ()

        async def before_stop(stop: TurnStop) -> Note | None:
            self._judged = await self._judge(thread)
            failed = [gate for gate in self._judged if gate.reason is not None]
            may_be_fixed = any(gate.is_fixable for gate in failed)
            if not stop.rounds_left or not may_be_fixed:
                return None
            names = ", ".join(gate.name for gate in failed)
            thread.warn(f"Not accepted yet, so the model goes on: {names}")
            reasons = "\n\n".join(f"{gate.name}: {gate.reason}" for gate in failed)
            return Note(_ADVICE.format(reasons))

        return Extension(
            around_session=around_session,
            around_turn=around_turn,
            before_stop=before_stop,
            max_rounds=self._settings.verify_tries,
            before_request=before_request,
            turn_facts=self._turn_facts,
            sink=self._watch,
        )

    async def _judge(self, thread: Thread) -> list[Gate]:
        changes = turn_changes(thread)
        settings = self._settings
        # Processes that the model left running must not change the files that were judged.
        await end_work(thread)
        if settings.require_evidence:
            # Settle first: changes by the scripts below must not count against the evidence.
            await self._evidence.settle()
        gates: list[Gate] = []
        for command in settings.verify:
            async with changes.changing():
                gates.append(await self._verified(thread, command))
        if settings.looks_at_files:
            gates += await self._judged_changes(changes)
        for name, reason in self._evidence.verdicts():
            gates.append(Gate(f"require-evidence: {name}", reason))
        return gates

    async def _judged_changes(self, changes: TurnChanges) -> list[Gate]:
        try:
            found = await changes.all()
        except (CodexError, OSError) as error:
            why = f"nobody can tell what was changed: {error}"
            # If the model made too many or too large files, it can remove them; it cannot repair a
            # disk.
            is_fixable = getattr(error, "is_too_large", False)
            judged = judge_changes(self._settings, TreeChanges(), self._cwd)
            return [Gate(name, why, is_fixable=is_fixable) for name, _ in judged]
        judged = judge_changes(self._settings, found, self._cwd)
        return [Gate(name, reason) for name, reason in judged]

    async def _verified(self, thread: Thread, command: str) -> Gate:
        name = f"verify: {command}"
        timeout_s = self._settings.verify_timeout_s
        thread.emit(HookProgress("Verify", "running", command))
        try:
            ran = await thread.run_command(
                command,
                sandboxed=True,
                timeout_s=timeout_s,
                max_output_bytes=_SHOWN_BYTES,
                joins_errors=True,
            )
        except CodexError as error:
            if error.code != "command":
                raise
            # The script could not be started: the folder may have been moved away.
            thread.emit(HookProgress("Verify", "failed", command))
            return Gate(name, str(error))
        code = ran.exit_code
        if code == 0:
            thread.emit(HookProgress("Verify", "completed", command))
            return Gate(name, None, code)
        thread.emit(HookProgress("Verify", "failed", command))
        if code in _UNUSABLE:
            reason = f"{command!r} {_UNUSABLE[code]}"
            thread.warn(f"--verify: {reason}.")
            return Gate(name, reason, code, is_fixable=False)
        if code is None:
            reason = f"did not end within {timeout_s:g} s"
        else:
            reason = f"exit code {code}"
        printed = ran.stdout.strip()
        if printed:
            reason = f"{reason}\n{printed}"
        return Gate(name, reason, code)

    def _watch(self, event: Event) -> None:
        self._evidence.watch(event)
        if isinstance(event, AgentEvent):
            event = event.event
        match event:
            case CallDenied(tool=tool, reason=reason, code=code):
                self._failures.setdefault("denied", f"{tool}: {reason}")
                if code == "SandboxDenied":
                    self._failures.setdefault("sandbox", f"{tool}: {reason}")
            case ItemCompleted(
                ErrorItem(tool=str(tool), message=message, code=code)
            ) if code not in DENIALS:
                self._failures.setdefault("tool", f"{tool}: {message}")
            case ItemCompleted(FileChange(status="failed") as item) if (
                not item.is_declined
            ):
                self._failures.setdefault("tool", "apply_patch: the patch does not fit")
            case ItemCompleted(McpToolCall(status="failed", server=server, tool=tool)):
                self._failures.setdefault("tool", f"{server}/{tool} failed")
            case _:
                pass

    def _turn_facts(self) -> Mapping[str, Any]:
        gates = list(self._judged)
        codes = [ExitCode.DONE]
        if any(gate.reason is not None for gate in gates):
            codes.append(ExitCode.GATE)
        for kind in dict.fromkeys(self._settings.fail_on):
            reason = self._failures.get(kind)
            gates.append(Gate(f"fail-on {kind}", reason))
            if reason is not None:
                codes.append(_EXIT_CODES[kind])
        return {
            "gates": [gate.data for gate in gates],
            "evidence": self._evidence.data,
            "exit_code": int(max(codes)),
        }

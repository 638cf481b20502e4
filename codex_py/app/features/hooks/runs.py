"""Runs all hooks of one session that an event concerns, side by side. LIGHT."""

import asyncio
import re
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, Final

from codex_py.app.features.hooks.answers import Answer, read_answer
from codex_py.app.features.hooks.handlers import HookFailed, HookRunner
from codex_py.app.options import SessionSetup
from codex_py.config.hooks import Hook
from codex_py.protocol.approval import ApprovalPolicy
from codex_py.protocol.calls import shortened
from codex_py.protocol.events import HookProgress, HookStatus
from codex_py.protocol.extension import Thread
from codex_py.protocol.frozen import frozen
from codex_py.protocol.prompts import Note

_GRACE_S: Final = 2.0
"""For hooks in the background when the session ends."""
_SHOWN_CHARS: Final = 300
_OF_SESSION: Final = frozenset({"SessionStart", "SessionEnd"})
"""Events that belong to no turn."""
_WITHOUT_MODE: Final = frozenset({"SessionEnd", "PreCompact", "PostCompact"})
_NAMES: Final = re.compile(r"[A-Za-z0-9_|]+")


@frozen
class HookRun:
    number: int
    """The number of the hook among all that are configured, from 0."""
    hook: Hook
    answer: Answer
    ended_at: float
    """By the clock of the event loop."""


class HookRuns:
    """Runs the hooks of one session. One that fails in any way costs a warning."""

    def __init__(
        self, hooks: Callable[[], Iterable[tuple[int, Hook]]], setup: SessionSetup, thread: Thread
    ) -> None:
        self._hooks = hooks
        self._runner = HookRunner(setup)
        self._warn = setup.warn
        self._thread = thread
        self._background: set[asyncio.Task[None]] = set()

    async def run(self, event: str, names: Sequence[str], **fields: Any) -> list[HookRun]:
        """Run the hooks of an event. Those in the background are only started.

        Args:
            names: what matchers are compared with.
            fields: of the input, besides the common ones.

        Returns:
            The runs, in the order of the configuration.
        """
        given = _input(self._thread, event, **fields)
        waited: list[asyncio.Task[HookRun]] = []
        async with asyncio.TaskGroup() as group:
            for number, hook in self._hooks():
                if hook.event == event and matches(hook.matcher, names):
                    work = self._run_one(number, hook, given)
                    if hook.is_async:
                        self._start_in_background(work)
                    else:
                        waited.append(group.create_task(work))
        return [task.result() for task in waited]

    async def aclose(self) -> None:
        """Let the hooks in the background end, for a while, and stop the others."""
        try:
            if self._background:
                await asyncio.wait(self._background, timeout=_GRACE_S)
        finally:
            for task in self._background:
                task.cancel()
            await asyncio.gather(*self._background, return_exceptions=True)
            self._runner.close()

    def _start_in_background(self, work: Coroutine[Any, Any, HookRun]) -> None:
        async def run() -> None:
            for note in notes_of([await work]):
                self._thread.tell(note)

        task = asyncio.create_task(run())
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _run_one(self, number: int, hook: Hook, given: Mapping[str, Any]) -> HookRun:
        self._show(hook, "running")
        try:
            answer = read_answer(hook.event, *await self._runner.run(hook, self._thread, given))
        except HookFailed as failure:
            answer = Answer(failure=str(failure))
        if answer.failure is not None:
            name = shortened(hook.command or f"{hook.server}/{hook.tool}", _SHOWN_CHARS)
            why = shortened(answer.failure, _SHOWN_CHARS)
            self._warn(f"The {hook.event} hook {name!r} {why}.")
        if answer.message is not None:
            self._warn(answer.message)
        run = HookRun(number, hook, answer, asyncio.get_running_loop().time())
        self._show(
            hook, "blocked" if ending([run]) else "failed" if answer.failure else "completed"
        )
        return run

    def _show(self, hook: Hook, status: HookStatus) -> None:
        # As in Codex, neither those in the background nor those after the end are shown.
        if not hook.is_async and hook.event != "SessionEnd":
            self._thread.emit(HookProgress(hook.event, status, hook.status_message))


def _input(thread: Thread, event: str, **fields: Any) -> dict[str, Any]:
    """What hooks read: the common fields of Codex 0.169, and those of the event."""
    settings, parent, turn = thread.settings, thread.parent, thread.turn
    file = thread.session_file
    data: dict[str, Any] = {
        "session_id": thread.thread_id if parent is None else parent.root_id,
        "transcript_path": None if file is None else str(file),
        "cwd": str(settings.cwd),
        "hook_event_name": event,
    }
    if event not in _OF_SESSION and turn is not None:
        data["turn_id"] = turn.id
    if event != "SessionEnd":
        data["model"] = settings.model
    if event not in _WITHOUT_MODE:
        is_never = settings.approval_policy is ApprovalPolicy.NEVER
        mode = "bypassPermissions" if is_never else "default"
        data["permission_mode"] = "plan" if settings.mode == "plan" else mode
    if parent is not None:
        data |= {"agent_id": thread.thread_id, "agent_type": agent_type(thread)}
        if event == "SubagentStop":
            data["agent_transcript_path"] = data["transcript_path"]
            file = parent.session_file
            data["transcript_path"] = None if file is None else str(file)
    return data | fields


def agent_type(thread: Thread) -> str:
    return (thread.parent and thread.parent.role) or "default"


def matches(matcher: str | None, names: Sequence[str]) -> bool:
    """True if the matcher accepts one of the names.

    Letters, digits, `_` and `|` alone are a list of exact names; anything else is a valid regular expression, unanchored.
    None, `""` and `*` accept everything.
    """
    if not matcher or matcher == "*":
        return True
    if _NAMES.fullmatch(matcher):
        return not set(matcher.split("|")).isdisjoint(names)
    return any(re.search(matcher, name) for name in names)


def notes_of(runs: Sequence[HookRun]) -> tuple[Note, ...]:
    """What the hooks tell the model."""
    return tuple(Note(run.answer.context) for run in runs if run.answer.context is not None)


def ending(runs: Sequence[HookRun]) -> str | None:
    """Why the first of the hooks that refuse or stop something does so; None if none does."""
    reasons = (run.answer.refusal or run.answer.stop for run in runs)
    return next(filter(None, reasons), None)

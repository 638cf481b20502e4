"""Hooks at the events of a session. LIGHT.

Part of the composition root.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

from codex_py.app.features.hooks.calls import HookedApprover, HookedCalls
from codex_py.app.features.hooks.runs import HookRun, HookRuns, notes_of, stop_reason
from codex_py.app.options import SessionSetup
from codex_py.config.hooks import Hook, Hooks, find_hooks
from codex_py.errors import CodexError, TurnSkipped
from codex_py.protocol.events import StopOverridden
from codex_py.protocol.extension import (
    Compaction,
    Extension,
    Occasion,
    Thread,
    TurnStart,
    TurnStop,
)
from codex_py.protocol.prompts import Note, UserPrompt

_MAX_ROUNDS: Final = 20
"""The number of times that `Stop` hooks may keep the agent working in a turn."""


class HooksFeature:
    """The feature of the configured hooks.

    Attributes:
        hooks: the hooks of the session at the top. A frontend replaces them when the user has
            decided to trust or refuse some.

    Args:
        parent: the feature of the parent; None for the session at the top.
    """

    def __init__(
        self, setup: SessionSetup, parent: "HooksFeature | None" = None
    ) -> None:
        self._setup = setup
        self._parent = parent
        self.hooks = Hooks()
        if parent is None:
            self.hooks = find_hooks(setup.config, setup.environment)
        for warning in self.hooks.warnings:
            setup.warn(warning)
        new = self.hooks.to_review
        if new:
            files = ", ".join(dict.fromkeys(str(hook.source) for hook in new))
            hooks = f"Hooks that are new or changed ({len(new)}, in {files})"
            switch = "--dangerously-bypass-hook-trust"
            if setup.options.bypass_hook_trust:
                effect = f"run because of {switch}."
            else:
                review = "Review them in the terminal with /hooks"
                effect = f"do not run. {review}, or run them all with {switch}."
            setup.warn(f"{hooks} {effect}")

    def for_child(self, setup: SessionSetup) -> "HooksFeature":
        """Give children the hooks of their parent, whatever their role configures."""
        return HooksFeature(setup, self)

    def may_run(self) -> list[Hook]:
        """Return the hooks that are trusted, or all that are not refused if trust is bypassed."""
        if self._parent is not None:
            return self._parent.may_run()
        states = {"trusted"}
        if self._setup.options.bypass_hook_trust:
            states |= {"new", "changed"}
        return [hook for hook in self.hooks.found if hook.state in states]

    def __call__(self, thread: Thread) -> Extension:
        runs = HookRuns(self.may_run, self._setup, thread)
        events = _SessionEvents(runs, self._setup, thread)
        max_rounds = self._setup.config.settings.hooks.stop_rounds
        if max_rounds is None:
            max_rounds = _MAX_ROUNDS
        return Extension(
            wrap_dispatch=partial(HookedCalls, runs),
            wrap_approver=partial(HookedApprover, runs),
            context=events.context,
            before_prompt=events.before_prompt,
            before_stop=events.before_stop,
            max_rounds=max_rounds,
            around_turn=events.around_turn,
            around_compaction=events.around_compaction,
            around_session=events.around_session,
        )


class _SessionEvents:
    """Runs the hooks of one session, except those around calls."""

    def __init__(
        self,
        runs: HookRuns,
        setup: SessionSetup,
        thread: Thread,
    ) -> None:
        self._runs = runs
        self._run = runs.run
        self._thread = thread
        self._is_child = setup.options.parent is not None
        options = setup.options
        is_resumed = options.resume is not None or options.resume_last
        self._source = "startup"
        """The way in which the session began; empty once the hooks of the start have run."""
        if is_resumed:
            self._source = "resume"
        elif options.cleared:
            self._source = "clear"
        self._first_notes: Sequence[Note] = ()
        """The notes of the hooks at the start of the session, until the context takes them."""

    @asynccontextmanager
    async def around_session(self) -> AsyncGenerator[None]:
        """At the end, run `SessionEnd` hooks and stop background hooks.

        A session without a turn has run no hooks of its start, so it runs none of its end.
        """
        try:
            yield
        finally:
            try:
                has_started = not self._source
                if has_started and not self._is_child:
                    await self._run("SessionEnd", reason="other")
            finally:
                await self._runs.aclose()

    @asynccontextmanager
    async def around_turn(self, turn: TurnStart) -> AsyncGenerator[None]:
        """Run `Interrupt` hooks if the turn is interrupted."""
        try:
            if turn.prompt is None:
                await self._start_session()
            yield
        except asyncio.CancelledError:
            if not self._is_child:
                await self._run("Interrupt")
            raise

    def context(self, _: Occasion) -> Sequence[Note]:
        """Return the notes of the hooks at the start of the session, once."""
        notes = self._first_notes
        self._first_notes = ()
        return notes

    async def before_prompt(self, prompt: UserPrompt) -> Sequence[Note]:
        """In the first turn, run the hooks of the session's start. Then run `UserPromptSubmit`."""
        # If the user interrupts hooks here, the prompt is kept; in `around_turn` it would be lost.
        await self._start_session()
        runs = await self._run("UserPromptSubmit", prompt=prompt.text)
        _skip_if_stopped(runs, "the prompt")
        return notes_of(runs)

    async def before_stop(self, stop: TurnStop) -> Note | StopOverridden | None:
        """Run the `Stop` hooks. If some refuse, the turn goes on, and the model reads why.

        Each of them gives a message: the first one is returned, and the thread is told the others.
        """
        runs = await self._run(
            "SubagentStop" if self._is_child else "Stop",
            stop_hook_active=stop.rounds > 0,
            last_assistant_message=stop.last_message,
        )
        reasons = [run.answer.refusal for run in runs if run.answer.refusal]
        if not reasons or any(run.answer.stop for run in runs):
            return None
        if not stop.rounds_left:
            return StopOverridden(stop.rounds, "\n".join(reasons))
        name = "subagent-stop" if self._is_child else "stop"
        notes = [_refusal_note(name, run) for run in runs if run.answer.refusal]
        for note in notes[1:]:
            self._thread.tell(note)
        return notes[0]

    @asynccontextmanager
    async def around_compaction(self, compaction: Compaction) -> AsyncGenerator[None]:
        """Run the hooks before a compaction and after it. Those before it may end the turn."""
        trigger = compaction.trigger
        reason = stop_reason(await self._run("PreCompact", trigger=trigger))
        if reason is not None:
            # As in Codex, the turn ends; a `CompactionFailed` would let it continue.
            raise CodexError(
                f"a PreCompact hook stopped the turn: {reason}", code="compaction"
            )
        yield
        await self._run("PostCompact", trigger=trigger)
        if not self._is_child:
            for note in await self._run_start_hooks("compact"):
                self._thread.tell(note)

    async def _start_session(self) -> None:
        """Tell hooks of the start of the session, if this is the first turn."""
        source = self._source
        self._source = ""
        if source:
            self._first_notes = await self._run_start_hooks(source)

    async def _run_start_hooks(self, source: str) -> Sequence[Note]:
        if self._is_child:
            return notes_of(await self._run("SubagentStart"))
        runs = await self._run("SessionStart", source=source)
        _skip_if_stopped(runs, "the turn")
        return notes_of(runs)


def _skip_if_stopped(runs: Sequence[HookRun], what: str) -> None:
    """Raise `TurnSkipped` if a hook refuses or stops."""
    reason = stop_reason(runs)
    if reason is not None:
        raise TurnSkipped(f"A {runs[0].hook.event} hook stopped {what}: {reason}")


def _refusal_note(name: str, run: HookRun) -> Note:
    """Return the message of a `Stop` hook to the model. The reason cannot close the tag."""
    assert run.answer.refusal is not None
    entities = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
    reason = run.answer.refusal.translate(str.maketrans(entities))
    run_id = f"{name}:{run.hook.number}:{run.hook.source}"
    return Note(f'<hook_prompt hook_run_id="{run_id}">{reason}</hook_prompt>', "user")

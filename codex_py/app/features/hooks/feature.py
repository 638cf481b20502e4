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
    """The feature of the configured hooks."""

    def __init__(
        self, setup: SessionSetup, parent: "HooksFeature | None" = None
    ) -> None:
        self._setup = setup
        self._parent = parent
        if parent:
            self.hooks = Hooks()
        else:
            self.hooks = find_hooks(setup.config, setup.environment)
        """The hooks of the session at the top. A frontend replaces them when the user has decided
        to trust or refuse some."""
        for warning in self.hooks.warnings:
            setup.warn(warning)
        new = self.hooks.to_review
        if new:
            files = ", ".join(dict.fromkeys(str(hook.source) for hook in new))
            effect = "run because of"
            if not setup.options.bypass_hook_trust:
                effect = "do not run. Review them in the terminal with /hooks, or run them all with"
            hooks = f"Hooks that are new or changed ({len(new)}, in {files})"
            setup.warn(f"{hooks} {effect} --dangerously-bypass-hook-trust.")

    def for_child(self, setup: SessionSetup) -> "HooksFeature":
        """Give children the hooks of their parent, whatever their role configures."""
        return HooksFeature(setup, self)

    def may_run(self) -> list[Hook]:
        """The hooks that are trusted or need no trust."""
        if self._parent is not None:
            return self._parent.may_run()
        is_bypassed = self._setup.options.bypass_hook_trust
        if is_bypassed:
            states = {"trusted", "new", "changed"}
        else:
            states = {"trusted"}
        return [hook for hook in self.hooks.found if hook.state in states]

    def __call__(self, thread: Thread) -> Extension:
        runs = HookRuns(self.may_run, self._setup, thread)
        at = _SessionEvents(runs, self._setup, thread)
        return Extension(
            wrap_dispatch=partial(HookedCalls, runs),
            wrap_approver=partial(HookedApprover, runs),
            context=at.context,
            before_prompt=at.before_prompt,
            before_stop=at.before_stop,
            max_rounds=self._max_rounds(),
            around_turn=at.around_turn,
            around_compaction=at.around_compaction,
            around_session=at.around_session,
        )

    def _max_rounds(self) -> int:
        own = self._setup.config.settings.hooks.stop_rounds
        if own is None:
            return _MAX_ROUNDS
        return own


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
        if is_resumed:
            self._source = "resume"
        elif options.cleared:
            self._source = "clear"
        else:
            self._source = "startup"
        """The way in which the session began, for hooks; empty once hooks were told."""
        self._first_notes: Sequence[Note] = ()

    @asynccontextmanager
    async def around_session(self) -> AsyncGenerator[None]:
        try:
            yield
        finally:
            try:
                if not self._source and not self._is_child:
                    await self._run("SessionEnd", reason="other")
            finally:
                await self._runs.aclose()

    @asynccontextmanager
    async def around_turn(self, turn: TurnStart) -> AsyncGenerator[None]:
        try:
            if turn.prompt is None:
                await self._start_session()
            yield
        except asyncio.CancelledError:
            if not self._is_child:
                await self._run("Interrupt")
            raise

    def context(self, _: Occasion) -> Sequence[Note]:
        notes = self._first_notes
        self._first_notes = ()
        return notes

    async def before_prompt(self, prompt: UserPrompt) -> Sequence[Note]:
        # The hooks run here because the prompt is kept if the user interrupts them.
        await self._start_session()
        runs = await self._run("UserPromptSubmit", prompt=prompt.text)
        _skip_if_ended(runs, "the prompt")
        return notes_of(runs)

    async def before_stop(self, stop: TurnStop) -> Note | StopOverridden | None:
        """Turn each refusal into a message, and all of them into one more round."""
        event, name = (
            ("SubagentStop", "subagent-stop") if self._is_child else ("Stop", "stop")
        )
        runs = await self._run(
            event,
            stop_hook_active=stop.rounds > 0,
            last_assistant_message=stop.last_message,
        )
        refusals = [(run, run.answer.refusal) for run in runs if run.answer.refusal]
        if not refusals or any(run.answer.stop for run in runs):
            return None
        if not stop.rounds_left:
            return StopOverridden(
                stop.rounds, "\n".join(reason for _, reason in refusals)
            )
        first, *others = [_hook_prompt(name, *refusal) for refusal in refusals]
        for note in others:
            self._thread.tell(note)
        return first

    @asynccontextmanager
    async def around_compaction(self, compaction: Compaction) -> AsyncGenerator[None]:
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
            for note in await self._start("compact"):
                self._thread.tell(note)

    async def _start_session(self) -> None:
        source = self._source
        self._source = ""
        if source:
            self._first_notes = await self._start(source)

    async def _start(self, source: str) -> Sequence[Note]:
        if self._is_child:
            return notes_of(await self._run("SubagentStart"))
        runs = await self._run("SessionStart", source=source)
        _skip_if_ended(runs, "the turn")
        return notes_of(runs)


def _skip_if_ended(runs: Sequence[HookRun], what: str) -> None:
    reason = stop_reason(runs)
    if reason is not None:
        raise TurnSkipped(f"A {runs[0].hook.event} hook stopped {what}: {reason}")


def _hook_prompt(
    name: str,
    run: HookRun,
    reason: str,
) -> Note:
    entities = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
    reason = reason.translate(str.maketrans(entities))
    run_id = f"{name}:{run.hook.number}:{run.hook.source}"
    return Note(f'<hook_prompt hook_run_id="{run_id}">{reason}</hook_prompt>', "user")

"""Records what each turn changes, for undo and for the `diff` of the turn's last event. LIGHT.

Patches and commands of subagents belong to the turn of the session at the top, unless they have a
work tree of their own. What a command in the background changes after a turn has ended belongs to
the next turn that runs a command.
"""

import asyncio
import stat
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final

from codex_py.app.options import SessionSetup
from codex_py.app.session_tools import SessionTools
from codex_py.errors import CodexError
from codex_py.filesystem.denials import denials_of
from codex_py.protocol.approval import ApprovalPolicy
from codex_py.protocol.dispatch import Dispatch, ToolUse, changed_paths
from codex_py.protocol.event_items import CommandExecution
from codex_py.protocol.events import Event, FilesPatched, ItemCompleted, ItemStarted
from codex_py.protocol.extension import Extension, Thread, TurnStart
from codex_py.protocol.patched_file import TreeChanges
from codex_py.protocol.tools import COMMAND_TOOLS, ToolOutput
from codex_py.tools.threads import to_its_end

_MAX_SHARE: Final = 0.1
"""The largest part of a turn's time that copies between its calls may take."""


class TurnChanges:
    """Records the changes of turns.

    With `features.undo = false`, it only records the diff of patches, unless a feature calls `require`.

    Args:
        top: the feature of the session at the top; None if this one is it.
    """

    def __init__(self, setup: SessionSetup, top: "TurnChanges | None" = None) -> None:
        self._setup = setup
        self._top = top or self
        self._is_kept = setup.config.features.undo is not False
        """True if the changes are kept for undo after the turn."""
        self._is_required = False
        """True if a feature needs the changes by commands."""
        self._home: Path = setup.config.home
        """The folder below which the copies are."""
        self._recorder = None
        """The `TurnRecorder`; made by the first call or hook that may change files."""
        self._lock = asyncio.Lock()
        """Held while a thread works with the recorder."""
        # The session at the top counts for its subagents too.
        self._calls = 0
        """The number of running calls and hooks that may change files."""
        self._writers: set[object] = set()
        """The calls, hooks and commands that may be changing files now, also in the background."""
        self._toolboxes: set[SessionTools] = set()
        """The tools of sessions whose commands may still run in the background."""
        self._copying: asyncio.Task[object] | None = None
        """The last copy of this turn that was made while the model thinks."""
        self._next_copy_s = 0.0
        """The time of the next such copy, on the clock of `time.monotonic()`."""
        self._warned_reasons: set[str] = set()
        """The reasons why changes are not recorded that the user was told of."""
        self._thread: Thread | None = None
        self._diff = ""
        """The diff of the last turn."""

    def for_child(self, setup: SessionSetup) -> "TurnChanges":
        return TurnChanges(setup, self._top)

    def __call__(self, thread: Thread) -> Extension:
        self._thread = thread
        return Extension(
            wrap_dispatch=self._wrap_dispatch,
            around_turn=self._around_turn,
            turn_facts=self._turn_facts,
            sink=self._watch,
        )

    def _watch(self, event: Event) -> None:
        match event:
            case FilesPatched(files=files, entry=entry, saved=saved):
                self._loaded().patched(files, entry, saved)
            # A command changes files from its start to its end: not while it waits for an approval,
            # but also after its call.
            case ItemStarted(CommandExecution(id=item)) if self._records:
                self._top._begin_writing((self, item))
            case ItemCompleted(CommandExecution(id=item)) if self._records:
                self._top._end_writing((self, item))
            case _:
                pass

    def _wrap_dispatch(self, inner: Dispatch) -> Dispatch:
        """Record what a call changes, for the diff of the turn and for undo."""

        async def dispatch(use: ToolUse) -> ToolOutput:
            if not self._is_on:
                return await inner(use)
            async with self._changing_by(use):
                return await inner(use)

        return dispatch

    def _changing_by(self, use: ToolUse) -> AbstractAsyncContextManager[None]:
        """Return the context for a call: `changing`, or none if it cannot change a file."""
        paths = changed_paths(use)
        name = use.call.tool_name
        # A patch names the files that it changes, and is refused otherwise.
        if paths is not None or name == "apply_patch":
            if not paths:
                return nullcontext()
            # A patch names one path of a file, but changes all hard links to it.
            is_known = not any(map(_has_other_links, paths))
            return self.changing(is_known=is_known, is_confined=True)
        if name not in {*COMMAND_TOOLS, "write_stdin"}:
            return self.changing()
        is_poll = name == "write_stdin" and not use.params.chars
        if is_poll:
            return nullcontext()
        is_confined = self._is_confined(use)
        if is_confined and use.context.sandbox_policy.mode == "read-only":
            return nullcontext()
        return self.changing(is_command=True, is_confined=is_confined)

    @asynccontextmanager
    async def changing(
        self,
        *,
        is_known: bool = False,
        is_command: bool = False,
        is_confined: bool = False,
    ) -> AsyncGenerator[None]:
        """Record, as part of the turn, the changes of a call or a hook that runs within.

        Args:
            is_known: the call itself says what it changes, so no copy is needed.
            is_command: it runs commands, whose items tell when they start and end.
            is_confined: a sandbox keeps it from writing to the folder of the repository, so it
                cannot switch the branch.
        """
        if not self._records:
            yield
            return
        top = self._top
        # The items of a command are its writers, see `_watch`.
        writer = None if is_command else object()
        await top._begin(
            self._toolbox, writer, is_known=is_known, is_confined=is_confined
        )
        try:
            yield
        finally:
            top._calls -= 1
            top._end_writing(writer)
            if not is_known and top._may_copy:
                # The copy is made while the model thinks, so that the turn ends sooner.
                top._copying = asyncio.create_task(top._copy())

    def require(self) -> None:
        """Record what commands change from now on, also with `features.undo = false`."""
        self._is_required = True

    def use_place(self, home: Path) -> None:
        """Keep the copies of this turn below this folder, as if it were `$CODEX_HOME`."""
        if home != self._home:
            self._home = home
            self._recorder = None

    def copy_soon(self) -> None:
        """Copy the work tree before the turn changes it, while the model thinks."""
        self._copying = asyncio.create_task(self.state())

    async def state(self) -> object:
        """Return the state of the work tree, or None if it is unknown, as while something runs.

        Two states are equal if no file has changed in between.
        """
        recorder = self._loaded()
        try:
            async with self._lock:
                state = await to_its_end(asyncio.to_thread(recorder.look))
        except (CodexError, OSError):
            return None
        if self._is_quiet:
            return state
        return None

    async def all(self) -> TreeChanges:
        """Return the changes of the turn so far.

        Raises:
            CodexError, OSError: the changes cannot be found out.
        """
        recorder = self._loaded()
        async with self._lock:
            return await to_its_end(asyncio.to_thread(recorder.all_changes))

    @property
    def _is_on(self) -> bool:
        """True if changes by commands are recorded."""
        return self._is_kept or self._top._is_required

    @property
    def _records(self) -> bool:
        """True in a turn whose thread works in the work tree of the session at the top.

        A subagent may have a work tree of its own.
        """
        thread = self._thread
        cwd = self._top._setup.config.cwd
        if not self._is_on or thread is None or thread.turn is None:
            return False
        return thread.settings.cwd.is_relative_to(cwd)

    async def _begin(
        self,
        toolbox: SessionTools | None,
        writer: object,
        *,
        is_known: bool,
        is_confined: bool,
    ) -> None:
        """Prepare the record for a call, and count it. A copy is made before it, if one is needed.

        Args:
            toolbox: the tools of the session that runs the call.
            writer: stands for the call while it may change files; None if others do.
        """
        recorder = self._loaded()
        async with self._lock:
            self._settle()
            if is_known:
                # A turn that was cut off must not get the files of this one, so it is closed first.
                await _in_thread(recorder.recover)
            elif not recorder.has_copy:
                await _in_thread(recorder.copy)
            elif self._may_copy:
                await _in_thread(self._make_timed_copy)
            recorder.will_run(is_confined=is_confined or is_known)
            if toolbox is not None:
                self._toolboxes.add(toolbox)
            self._calls += 1
            if writer is not None:
                self._begin_writing(writer)

    def _begin_writing(self, writer: object) -> None:
        """Begin the time in which files may change, or prolong it."""
        self._writers.add(writer)
        if self._recorder is not None:
            self._recorder.begin_life()

    def _end_writing(self, writer: object) -> None:
        self._writers.discard(writer)
        self._settle()

    def _settle(self) -> None:
        """If nothing is running any more, end the time in which files may change."""
        if self._writers or not self._is_idle:
            return
        if self._recorder is not None:
            self._recorder.end_life()
        if not self._calls:
            # The subagents of closed sessions are forgotten.
            self._toolboxes.clear()

    @property
    def _is_idle(self) -> bool:
        """True if no command runs, not even in the background."""
        return all(toolbox.is_idle for toolbox in self._toolboxes)

    @property
    def _is_quiet(self) -> bool:
        """True if no call runs, and no command."""
        return not self._calls and self._is_idle

    @property
    def _may_copy(self) -> bool:
        """True if nothing runs, and the last copy is long enough ago for its cost."""
        return self._is_quiet and time.monotonic() > self._next_copy_s

    def _make_timed_copy(self) -> None:
        """Make a copy, and set the time of the next one by how long it took."""
        began_s = time.monotonic()
        self._loaded().copy()
        ended_s = time.monotonic()
        self._next_copy_s = ended_s + (ended_s - began_s) / _MAX_SHARE

    async def _copy(self) -> None:
        """Make a copy, unless something has begun to run."""
        async with self._lock:
            if self._is_quiet:
                await _in_thread(self._make_timed_copy)

    @asynccontextmanager
    async def _around_turn(self, turn: TurnStart) -> AsyncGenerator[None]:
        self._diff = ""
        try:
            yield
        finally:
            if self._copying or self._recorder is not None:
                await to_its_end(self._end_turn(turn))

    async def _end_turn(self, turn: TurnStart) -> None:
        """Complete the record of the turn, and tell the user what it lacks."""
        assert self._thread is not None
        if self._copying is not None:
            await self._copying
            self._copying = None
        self._settle()
        recorder = self._loaded()
        end = partial(
            recorder.end_turn,
            len(self._thread.past_prompts()),
            is_new=turn.prompt is not None,
            is_kept=self._is_kept and self._top is self,
        )
        try:
            async with self._lock:
                self._diff = await asyncio.to_thread(end)
        except (CodexError, OSError) as error:
            self._thread.warn(f"What this turn changed cannot be undone: {error}")
            return
        if recorder.loss is not None:
            lost = (
                f"What commands changed in this turn cannot be undone: {recorder.loss}."
            )
            self._thread.warn(lost)
        elif self._is_kept:
            self._warn_of_unrecorded(recorder.unrecorded)

    def _warn_of_unrecorded(self, reason: str) -> None:
        """Tell the user once in a session why changes of commands are neither shown nor undone."""
        if not reason or reason in self._warned_reasons:
            return
        self._warned_reasons.add(reason)
        assert self._thread is not None
        self._thread.warn(
            f"What commands change here is not recorded, so `undo` and the diff of a turn leave it out: {reason}."
        )

    def _turn_facts(self) -> Mapping[str, Any]:
        if self._diff:
            return {"diff": self._diff}
        return {}

    def _loaded(self):
        """Return the `TurnRecorder`, which the first call makes."""
        if self._recorder is None:
            # The cost is measured with the tools already loaded.
            from codex_py.patch.undo.recorder import TurnRecorder  # 8 ms

            assert self._thread is not None
            config = self._setup.config
            options = self._setup.options
            refuses = None
            if config.files.denies:
                refuses = denials_of(config.files).refuses
            self._recorder = TurnRecorder(
                self._home,
                config.cwd,
                self._setup.environment,
                self._thread.thread_id,
                is_resumed=options.resume is not None or options.resume_last,
                refuses=refuses,
                folder_times=self._setup.folder_times,
            )
        return self._recorder

    def _is_confined(self, use: ToolUse) -> bool:
        """True if nothing can let a command out of its sandbox."""
        policy = use.context.sandbox_policy
        if policy.mode == "danger-full-access":
            return False
        if policy.is_final:
            return True
        # An approval or a rule can let a command run without the sandbox.
        has_rules = self._toolbox is not None and self._toolbox.has_rules
        is_never_asked = use.context.approval_policy is ApprovalPolicy.NEVER
        return is_never_asked and not has_rules

    @cached_property
    def _toolbox(self) -> SessionTools | None:
        """The tools of the session, which never change once it has started."""
        assert self._thread is not None
        return self._thread.feature(SessionTools)


def _has_other_links(path: Path) -> bool:
    """True for a file that has other hard links."""
    try:
        found = path.stat()
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_nlink > 1


async def _in_thread(work: Callable[[], None]) -> None:
    """Do the work in a thread. A cancellation waits for its end."""
    await to_its_end(asyncio.to_thread(work))

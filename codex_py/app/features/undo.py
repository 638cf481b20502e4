"""Records what each turn changes, for undo and for the `diff` of the turn's last event. LIGHT.

Patches and commands of subagents belong to the turn of the session at the top, unless they have a work tree of their own.
What a command in the background changes after a turn has ended belongs to the next turn that runs a command.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final, TypeVar

from codex_py.app.loading import load
from codex_py.app.options import SessionSetup
from codex_py.app.session_tools import SessionTools
from codex_py.config.hook_files import has_hooks
from codex_py.errors import CodexError
from codex_py.protocol.approval import ApprovalPolicy
from codex_py.protocol.dispatch import Dispatch, ToolUse, changed_paths
from codex_py.protocol.events import Event, FilesPatched
from codex_py.protocol.extension import Extension, Thread, TurnStart
from codex_py.protocol.tools import COMMAND_TOOLS, ToolOutput

T = TypeVar("T")

_MAX_SHARE: Final = 0.1
"""The largest part of a turn's time that is spent on copies between its calls."""


class Undo:
    """Records the changes of turns. With `features.undo = false` there is only the diff of patches."""

    def __init__(self, setup: SessionSetup, top: "Undo | None" = None) -> None:
        """`top`: the feature of the session at the top; None if this is it."""
        self._setup = setup
        self._top = top or self
        self._is_on = setup.config.features.get("undo") is not False
        self._copies_early = not has_hooks(setup.config)
        """Hooks may change files after a call."""
        self._recorder: Any = None
        """The `TurnRecorder`: loaded with the tools, in 10 ms."""
        self._lock = asyncio.Lock()
        self._running = 0
        """The number of running calls that may change files."""
        self._copying: asyncio.Task[None] | None = None
        self._copied_at_s = 0.0
        self._copy_took_s = 0.0
        self._thread: Thread | None = None
        self._diff = ""

    def for_child(self, setup: SessionSetup) -> "Undo":
        return Undo(setup, self._top)

    def __call__(self, thread: Thread) -> Extension:
        self._thread = thread
        return Extension(
            wrap_dispatch=self._wrap_dispatch if self._is_on else lambda inner: inner,
            around_turn=self._around_turn,
            turn_facts=self._turn_facts,
            sink=self._watch,
        )

    def _watch(self, event: Event) -> None:
        if isinstance(event, FilesPatched):
            self._loaded().patched(event.files, event.entry)

    def _wrap_dispatch(self, inner: Dispatch) -> Dispatch:
        # While the model thinks: the call that needs it need not wait.
        self._loaded()

        async def dispatch(use: ToolUse) -> ToolOutput:
            if self._may_change(use):
                return await self._top.copied(inner, use)
            if changed_paths(use):
                # Before it becomes part of a turn that was cut off.
                await self._top.recovered()
            return await inner(use)

        return dispatch

    async def copied(self, inner: Dispatch, use: ToolUse) -> ToolOutput:
        """Copy the work tree, then run a call that may change files, of this session or a subagent."""
        recorder = self._loaded()
        if not use.context.cwd.is_relative_to(self._setup.config.cwd):
            # A subagent with a work tree of its own.
            return await inner(use)
        self._running += 1
        try:
            await self._in_thread(recorder.copy_before)
            return await inner(use)
        finally:
            self._running -= 1
            self._copy_after(recorder)

    async def recovered(self) -> None:
        """Make entries of turns whose process has died, before this turn changes the first file."""
        await self._in_thread(self._loaded().recover)

    def _copy_after(self, recorder: Any) -> None:
        """Copy the work tree while the model thinks, so that the turn ends sooner. The next call makes the copy useless."""
        if not self._copies_early:
            return
        is_quiet = not self._running and self._toolbox is not None and self._toolbox.is_idle
        since_s = time.monotonic() - self._copied_at_s
        if is_quiet and self._copy_took_s < since_s * _MAX_SHARE:
            self._copying = asyncio.create_task(self._copy(recorder))

    async def _copy(self, recorder: Any) -> None:
        started_s = time.monotonic()
        await self._in_thread(recorder.copy_after)
        self._copied_at_s = time.monotonic()
        self._copy_took_s = self._copied_at_s - started_s

    @asynccontextmanager
    async def _around_turn(self, turn: TurnStart) -> AsyncGenerator[None]:
        self._diff = ""
        try:
            yield
        finally:
            if self._recorder is not None and self._recorder.is_open:
                await _to_its_end(self._end_turn(turn))

    async def _end_turn(self, turn: TurnStart) -> None:
        assert self._thread is not None
        if self._copying is not None:
            await self._copying
            self._copying = None
        end = partial(
            self._recorder.end_turn,
            len(self._thread.past_prompts()),
            is_new=turn.prompt is not None,
            is_kept=self._is_on and self._top is self,
        )
        try:
            self._diff = await self._in_thread(end)
        except (CodexError, OSError) as error:
            self._thread.warn(f"What this turn changed cannot be undone: {error}")

    async def _in_thread(self, work: Callable[[], T]) -> T:
        """Run work of the recorder in a thread, one piece at a time."""
        async with self._lock:
            return await _to_its_end(asyncio.to_thread(work))

    def _turn_facts(self) -> Mapping[str, Any]:
        return {"diff": self._diff} if self._diff else {}

    def _loaded(self) -> Any:
        if self._recorder is None:
            assert self._thread is not None
            config, options = self._setup.config, self._setup.options
            self._recorder = load("codex_py.patch.turns:TurnRecorder")(
                config.home,
                config.cwd,
                self._setup.environment,
                self._thread.thread_id,
                is_resumed=options.resume is not None or options.resume_last,
            )
        return self._recorder

    def _may_change(self, use: ToolUse) -> bool:
        # Patches say what they change, and those that do not are refused.
        if changed_paths(use) is not None or use.call.tool_name == "apply_patch":
            return False
        if use.call.tool_name == "write_stdin":
            return bool(use.params.chars)
        policy, toolbox = use.context.sandbox_policy, self._toolbox
        is_confined = policy.is_final or (
            # Nobody and nothing lets it leave the sandbox.
            use.context.approval_policy is ApprovalPolicy.NEVER
            and not (toolbox and toolbox.has_rules)
        )
        is_command = use.call.tool_name in COMMAND_TOOLS
        return not (is_command and is_confined and policy.mode == "read-only")

    @property
    def _toolbox(self) -> SessionTools | None:
        return None if self._thread is None else self._thread.feature(SessionTools)


async def _to_its_end(work: Coroutine[Any, Any, T]) -> T:
    """Await work that cannot be stopped, such as that of a thread: a cancellation waits for its end."""
    working = asyncio.create_task(work)
    cancelled: asyncio.CancelledError | None = None
    while not working.done():
        try:
            await asyncio.wait([working])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled
    return working.result()

"""One open subagent: a session that runs a turn for each message."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path

from codex_py.app.hosted import HostedSession
from codex_py.app.worktrees.worktree import Worktree
from codex_py.core.session import Session
from codex_py.core.session_turn import TurnResult
from codex_py.protocol.event_items import AgentState
from codex_py.protocol.extension import Thread
from codex_py.protocol.messages import EncodedItem
from codex_py.protocol.prompts import UserPrompt


@dataclass(eq=False)
class ChildAgent(HostedSession):
    """A subagent, from the call that opens it to its closing."""

    parent: Thread
    """The thread that opens the subagent."""
    nickname: str
    role: str
    """The agent type; empty if none was given."""
    on_change: Callable[["ChildAgent"], None]
    """Called after each change of the state."""
    id: str = ""
    """The id of its thread; empty while the session is being opened."""
    tree: Worktree | None = None
    """The subagent's own worktree; None if it works where its parent works."""
    state: AgentState = field(default_factory=lambda: AgentState("pending_init"))
    """The state that the model is told."""
    _prompts: list[UserPrompt] = field(default_factory=list[UserPrompt])
    """The messages that wait for a turn of their own."""
    _working: asyncio.Task[None] | None = None
    """The task that runs the turns for the waiting messages."""

    def __post_init__(self) -> None:
        super().__init__()

    @property
    def is_busy(self) -> bool:
        return self._working is not None and not self._working.done()

    @property
    def items(self) -> Sequence[EncodedItem]:
        """The history of the subagent, with the base prompt first; empty while it is closed."""
        if self.is_open:
            return self.session.items
        return ()

    async def open(self, opening: AbstractAsyncContextManager[Session]) -> None:
        """Open the session. Raises a `CodexError` if it cannot be opened."""
        session = await self.host(opening)
        self.id = session.thread_id
        if session.is_resumed and session.is_unfinished:
            self.state = AgentState("interrupted")

    def send(
        self,
        prompt: UserPrompt,
        *,
        interrupt: bool = False,
    ) -> None:
        """Add the message to the running turn.

        If no turn takes it, or with `interrupt`, the message gets its own turn, after those of the
        messages that already wait. `interrupt` ends the running turn.
        """
        session = self.session
        images = list(map(Path, prompt.images))
        needs_turn = interrupt or bool(self._prompts)
        if needs_turn or not session.steer(prompt.text, images=images):
            self._queue(prompt)
        if interrupt:
            session.abort()

    def _queue(self, prompt: UserPrompt) -> None:
        """Let the message wait for its turn. If no task runs the turns, start one."""
        is_idle = not self.is_busy
        if is_idle and self._working is not None:
            # A bug that ended the last task is raised here, so that it is not lost.
            self._working.result()
        self._prompts.append(prompt)
        self._become(AgentState("running"))
        if is_idle:
            self._working = asyncio.create_task(self._work(self.session))

    async def interrupt(self) -> None:
        """Stop the running turn, and drop the messages that no turn has sent.

        Returns when the task that runs the turns has ended.
        """
        if self.is_open and self._working is not None:
            self._prompts.clear()
            self.session.take_unsent()
            self.session.abort()
            await asyncio.wait([self._working])

    async def close(self) -> None:
        """End the session and its running task.

        Raises the exception of a bug that has ended one of them.
        """
        try:
            if self._working is not None:
                self._working.cancel()
                await asyncio.wait([self._working])
                if not self._working.cancelled():
                    self._working.result()
        finally:
            await super().close()

    async def _work(self, session: Session) -> None:
        """Run a turn for each message. The state at the end is that of the last turn."""
        state = AgentState("interrupted")
        try:
            while self._prompts:
                prompt = self._prompts.pop(0)
                images = list(map(Path, prompt.images))
                result = await session.run_turn(prompt.text, images=images)
                state = _state_after(result)
                remark = await self.tree_remark()
                if remark:
                    state = replace(state, message=f"{state.message or ''}{remark}")
                # Messages that the turn took but did not send come first.
                self._prompts[:0] = session.take_unsent()
        except Exception as error:
            state = AgentState("errored", f"internal error: {error!r}")
            raise
        finally:
            self._become(state)

    async def tree_remark(self) -> str:
        """Say where the changes in the subagent's own worktree are. Empty if there are none."""
        if self.tree is None:
            return ""
        return await asyncio.to_thread(self.tree.remark)

    def _become(self, state: AgentState) -> None:
        self.state = state
        self.on_change(self)


def _state_after(result: TurnResult) -> AgentState:
    error = result.error
    if error is None:
        return AgentState("completed", result.last_message)
    if error.code == "aborted":
        return AgentState("interrupted")
    return AgentState("errored", str(error))

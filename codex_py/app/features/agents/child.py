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
        """Raises a `CodexError` if the session cannot be opened."""
        session = await self.host(opening)
        self.id = session.thread_id
        if session.is_resumed and session.is_unfinished:
            self.state = AgentState("interrupted")

    def send(self, prompt: UserPrompt, *, interrupt: bool = False) -> None:
        """Add the message to the running task.

        If no task runs, or with `interrupt`, the message starts a new task.
        """
        session = self.session
        images = list(map(Path, prompt.images))
        if interrupt or self._prompts or not session.steer(prompt.text, images=images):
            is_idle = not self.is_busy
            if is_idle and self._working is not None:
                # A bug that ended the last task is raised here, so that it is not lost.
                self._working.result()
            self._prompts.append(prompt)
            self._become(AgentState("running"))
            if is_idle:
                self._working = asyncio.create_task(self._work(session))
        if interrupt:
            session.abort()

    async def interrupt(self) -> None:
        """Stop the running task and drop the messages that it has not read.

        Returns when the task has ended.
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
        """Run a turn for each message."""
        state = AgentState("interrupted")
        try:
            while self._prompts:
                prompt = self._prompts.pop(0)
                images = list(map(Path, prompt.images))
                state = _state(await session.run_turn(prompt.text, images=images))
                if self.tree is not None and (
                    said := await asyncio.to_thread(self.tree.remark)
                ):
                    state = replace(state, message=f"{state.message or ''}{said}")
                self._prompts[:0] = session.take_unsent()
        except Exception as error:
            state = AgentState("errored", f"internal error: {error!r}")
            raise
        finally:
            self._become(state)

    def _become(self, state: AgentState) -> None:
        self.state = state
        self.on_change(self)


def _state(result: TurnResult) -> AgentState:
    error = result.error
    if error is None:
        return AgentState("completed", result.last_message)
    is_aborted = error.code == "aborted"
    if is_aborted:
        return AgentState("interrupted")
    return AgentState("errored", str(error))

"""One open subagent: a session that runs a turn for each message, in a task of its own."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import fields, replace
from pathlib import Path

from codex_py.app.worktrees import Worktree
from codex_py.core.session import Session
from codex_py.core.session_turn import TurnResult
from codex_py.protocol.approval import ApprovalRequest, Approver, Review
from codex_py.protocol.events import (
    AgentEvent,
    AgentState,
    CallDenied,
    ErrorItem,
    Event,
    FilesPatched,
    ItemCompleted,
    ThreadStarted,
    UsageReported,
)
from codex_py.protocol.extension import Thread
from codex_py.protocol.messages import EncodedItem
from codex_py.protocol.prompts import UserPrompt
from codex_py.protocol.stream import Usage


class Child:
    """
    Attributes:
        parent: the thread that opened it.
        role: its agent type; empty if none was given.
        tree: its own one; None if it works where its parent does.
        state: as the model is told.
        on_change: called after each change of the state.
        on_end: called when a task has ended that was not interrupted.
    """

    def __init__(self, parent: Thread, nickname: str, role: str = "") -> None:
        self.parent = parent
        self.nickname = nickname
        self.role = role
        self.tree: Worktree | None = None
        self.id = ""
        self.state = AgentState("pending_init")
        self.on_change: Callable[[], None] = lambda: None
        self.on_end: Callable[[], None] = lambda: None
        self._prompts: list[UserPrompt] = []
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._session: Session | None = None
        self._task: asyncio.Task[None] | None = None
        self._counted = Usage()
        """The tokens that the parent has counted."""

    @property
    def is_busy(self) -> bool:
        return not self._idle.is_set()

    async def open(self, opening: AbstractAsyncContextManager[Session]) -> None:
        """
        Raises:
            CodexError: the session cannot be opened.
        """
        opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._run(opening, opened))
        try:
            await asyncio.wait([self._task, opened], return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            await self.aclose()
            raise
        if not opened.done():
            await self._task

    @property
    def items(self) -> Sequence[EncodedItem]:
        """Its history, base prompt first."""
        return () if self._session is None else self._session.items

    def send(self, prompt: UserPrompt, *, interrupt: bool = False) -> None:
        """Add the message to the task at hand. If there is none, or `interrupt`, it is a task of its own."""
        session, task = self._session, self._task
        assert session is not None
        assert task is not None
        if task.done():
            # A bug has ended it: the state says so.
            return
        images = [Path(path) for path in prompt.images]
        if interrupt or self._prompts or not session.steer(prompt.text, images=images):
            self._prompts.append(prompt)
            self._idle.clear()
            self._become(AgentState("running"))
            self._wake.set()
        if interrupt:
            session.abort()

    async def interrupt(self) -> None:
        """Stop the task at hand, and wait until it has ended."""
        self._prompts.clear()
        if self._session is not None:
            self._session.abort()
        await self._idle.wait()

    async def aclose(self) -> None:
        """End the session, and the task at hand with it.

        Raises:
            Exception: a bug has ended the session.
        """
        if (task := self._task) is not None:
            task.cancel()
            await asyncio.wait([task])
            if not task.cancelled() and (error := task.exception()) is not None:
                raise error

    def sink(self, event: Event) -> None:
        """Pass on to the parent what concerns it too."""
        match event:
            case ThreadStarted(thread_id):
                self.id = thread_id
            case UsageReported(total=total):
                self.parent.count(_less(total, self._counted))
                self._counted = total
            case ItemCompleted(ErrorItem(message=message, tool=None, code=None)):
                self.parent.warn(f"{self.nickname}: {message}")
            case FilesPatched() if self.tree is None:
                self.parent.emit(event)
            case CallDenied(tool=tool):
                self.parent.emit(replace(event, tool=f"{self.nickname}: {tool}"))
            case _:
                pass
        self.parent.emit(event if isinstance(event, AgentEvent) else AgentEvent(self.id, event))

    async def _run(
        self, opening: AbstractAsyncContextManager[Session], opened: "asyncio.Future[None]"
    ) -> None:
        try:
            async with opening as session:
                self._session, self._counted = session, session.token_usage.total
                if session.initial_items and session.is_unfinished:
                    self.state = AgentState("interrupted")
                self._idle.set()
                opened.set_result(None)
                while True:
                    await self._wake.wait()
                    await self._work(session)
        finally:
            self._idle.set()

    async def _work(self, session: Session) -> None:
        """Run a turn for each message."""
        state = AgentState("interrupted")
        try:
            while self._prompts:
                prompt = self._prompts.pop(0)
                images = [Path(path) for path in prompt.images]
                state = _state(await session.run_turn(prompt.text, images=images))
                if self.tree is not None and (said := await asyncio.to_thread(self.tree.remark)):
                    state = replace(state, message=f"{state.message or ''}{said}")
                self._prompts[:0] = session.take_unsent()
        except Exception as error:
            state = AgentState("errored", f"internal error: {error!r}")
            raise
        finally:
            self._wake.clear()
            self._idle.set()
            self._become(state)
            if state.status != "interrupted":
                self.on_end()

    def _become(self, state: AgentState) -> None:
        self.state = state
        self.on_change()


class NamedApprover:
    """Asks with the nickname of the subagent that makes the call."""

    def __init__(self, approver: Approver, nickname: str) -> None:
        self._approver = approver
        self._nickname = nickname

    async def review(self, request: ApprovalRequest) -> Review:
        return await self._approver.review(replace(request, agent=request.agent or self._nickname))


def _state(result: TurnResult) -> AgentState:
    match result.error:
        case None:
            return AgentState("completed", result.last_message)
        case error if error.code == "aborted":
            return AgentState("interrupted")
        case error:
            return AgentState("errored", str(error))


def _less(total: Usage, part: Usage) -> Usage:
    names = [each.name for each in fields(total)]
    return Usage(*(getattr(total, name) - getattr(part, name) for name in names))

"""Runs the threads of one server. The first call of a thread opens it; its turns never overlap."""

import asyncio
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from mcp_types import CallToolResult

from codex_py.app.hosted import HostedThread, HostedThreads
from codex_py.app.options import SessionOptions
from codex_py.app.session import Session, open_session
from codex_py.config.config import Config
from codex_py.errors import CodexError
from codex_py.frontends.mcp_server.client import ClientCall
from codex_py.frontends.mcp_server.tools import tool_result
from codex_py.protocol.approval import (
    ApprovalRequest,
    Review,
    ReviewDecision,
    approval_data,
)
from codex_py.protocol.events import Event, ThreadStarted
from codex_py.protocol.mcp import Elicitation, ElicitationAnswer


class _Thread(HostedThread):
    """A thread, which is also an `Approver` and an `Elicitor`: the running call gets the questions."""

    id: str | None = None
    """The id of the thread; None before the session is open."""
    task: "asyncio.Task[CallToolResult] | None" = None
    """The task that runs the turn; None if no turn runs."""
    is_ending = False
    """True: the task is about to end, and further calls wait for that."""
    call: ClientCall | None = None
    """The call whose turn runs; None between turns."""

    def __init__(self, config: Config, options: SessionOptions) -> None:
        super().__init__(options)
        self._config = config

    async def open(self, environment: Mapping[str, str]) -> Session:
        """Open the session. Raises the errors of `open_session`."""
        can_be_asked = self.call is not None and self.call.can_be_asked
        opening = open_session(
            self._config,
            self.options,
            self._tell,
            environment=environment,
            approver=self,
            elicitor=self if can_be_asked else None,
        )
        return await self.host(opening)

    async def review(self, request: ApprovalRequest) -> Review:
        if self.call is None or self.id is None:
            return Review(ReviewDecision.DENIED)
        return await self.call.review(self.id, request)

    async def elicit(self, elicitation: Elicitation) -> ElicitationAnswer:
        if self.call is None:
            return ElicitationAnswer("decline")
        return await self.call.elicit(elicitation)

    def _tell(self, event: Event) -> None:
        """The sink of the session's events."""
        if isinstance(event, ThreadStarted):
            self.id = event.thread_id
        if self.call is not None and self.id is not None:
            self.call.tell(self.id, event)


class Threads:
    """The threads that calls of tools have opened."""

    def __init__(self, environment: Mapping[str, str], options: SessionOptions) -> None:
        self._environment = environment
        self._options = options
        self._threads = HostedThreads[_Thread]()
        self._tasks: set[asyncio.Task[CallToolResult]] = set()

    async def begin(
        self,
        config: Config,
        prompt: str,
        call: ClientCall,
    ) -> CallToolResult:
        """Run the first turn of a new thread."""
        return await self._run(_Thread(config, self._options), prompt, call)

    async def go_on(
        self,
        thread_id: str,
        prompt: str,
        call: ClientCall,
        load: Callable[[], Config],
    ) -> CallToolResult:
        """Run the next turn of a thread.

        Args:
            load: reads the configuration of a thread that this server has not opened yet.

        Raises:
            CodexError: the thread is busy, or `load` fails.
        """
        thread = self._threads.get(thread_id)
        if thread is None:
            thread = _Thread(load(), replace(self._options, resume=thread_id))
            self._threads.use(thread_id, thread)
        while thread.task is not None and thread.is_ending:
            await asyncio.wait([thread.task])
        if thread.task is not None:
            raise CodexError(
                f"thread {thread_id} is working on another call; wait for its end, or cancel it",
                code="busy",
            )
        return await self._run(thread, prompt, call)

    async def aclose(self) -> None:
        """Interrupt every turn, and close every thread."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(set(self._tasks))
        await self._threads.aclose()

    async def _run(
        self,
        thread: _Thread,
        prompt: str,
        call: ClientCall,
    ) -> CallToolResult:
        """Run a turn in its own task.

        The SDK cancels again and again, which would cut short the end of the turn.
        """
        task = asyncio.create_task(self._turn(thread, prompt, call))
        thread.task = task
        self._tasks.add(task)

        def turn_ended(task: asyncio.Task[CallToolResult]) -> None:
            self._tasks.discard(task)
            thread.task = None
            thread.is_ending = False
            self._threads.close_idle()

        task.add_done_callback(turn_ended)
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            thread.is_ending = True
            task.cancel()
            raise
        return task.result()

    async def _turn(
        self,
        thread: _Thread,
        prompt: str,
        call: ClientCall,
    ) -> CallToolResult:
        """Run a turn. Errors become the result of the call."""
        asked_for = thread.options.resume
        # The thread may be closing.
        async with thread.lock:
            thread.call = call
            try:
                return await self._answer(thread, prompt, call)
            except CodexError as error:
                return tool_result(thread.id, str(error), is_error=True)
            except Exception as error:  # noqa: BLE001 - a bug costs this call, and not the other threads
                # The SDK would answer too, but if its logger is silenced, nobody would see the
                # traceback.
                traceback.print_exc(file=sys.stderr)
                text = f"internal error: {error!r}"
                return tool_result(thread.id, text, is_error=True)
            finally:
                thread.call = None
                if thread.id is None and asked_for is not None:
                    # The thread could not be opened.
                    self._threads.remove(thread)

    async def _answer(
        self,
        thread: _Thread,
        prompt: str,
        call: ClientCall,
    ) -> CallToolResult:
        """Open the thread if it is closed, run the turn, and make the result of the call."""
        asked_for = thread.options.resume
        if not thread.is_open:
            session = await thread.open(self._environment)
            call.tell_codex(session.thread_id, _session_configured(session))
        session = thread.session
        if asked_for:
            # A session that Codex wrote continues under an id of its own.
            self._threads.use(asked_for, thread)
        self._threads.use(session.thread_id, thread)
        result = await session.run_turn(prompt)
        if result.error is not None:
            return tool_result(thread.id, str(result.error), is_error=True)
        done = {"type": "task_complete", "last_agent_message": result.last_message}
        call.tell_codex(session.thread_id, done)
        return tool_result(thread.id, result.last_message or "")


def _session_configured(session: Session) -> dict[str, Any]:
    settings = session.settings
    return {
        "type": "session_configured",
        "session_id": session.thread_id,
        "thread_id": session.thread_id,
        "model": settings.model,
        "model_provider_id": settings.provider,
        "approval_policy": approval_data(settings.approval_policy),
        "cwd": str(settings.cwd),
        "reasoning_effort": settings.reasoning_effort,
    }

"""The threads of one server: each is opened by its first call, and runs one turn at a time."""

import asyncio
import sys
import traceback
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import Any

from mcp_types import CallToolResult

from codex_py.app.options import SessionOptions
from codex_py.app.session import Session, open_session
from codex_py.config.config import Config
from codex_py.errors import CodexError
from codex_py.frontends.mcp_server.client import Call
from codex_py.frontends.mcp_server.tools import tool_result
from codex_py.protocol.approval import ApprovalRequest, Review, ReviewDecision, approval_data
from codex_py.protocol.events import Event, ThreadStarted
from codex_py.protocol.mcp import Elicitation, ElicitationAnswer

_MAX_OPEN = 16
"""Threads that stay open between calls, with their MCP servers and connections. Others are read from their
files again."""


@dataclass(eq=False, slots=True)
class _Thread:
    """One thread, open or not. As an `Approver` and an `Elicitor` it passes questions to the call that runs."""

    config: Config
    options: SessionOptions
    id: str | None = None
    session: Session | None = None
    task: "asyncio.Task[Any] | None" = None
    """Runs the turn, or closes the thread."""
    is_ending: bool = False
    """The task is about to end; further calls wait for that."""
    call: Call | None = None
    _open: AsyncExitStack = field(default_factory=AsyncExitStack)

    async def open(self, environment: Mapping[str, str]) -> Session:
        self.session = session = await self._open.enter_async_context(
            open_session(
                self.config,
                self.options,
                self._tell,
                environment=environment,
                approver=self,
                elicitor=self if self.call is not None and self.call.can_be_asked else None,
            )
        )
        return session

    async def close(self) -> None:
        self.session = None
        if self.id is not None:
            self.options = replace(self.options, resume=self.id)
        await self._open.aclose()

    async def review(self, request: ApprovalRequest) -> Review:
        if self.call is None or self.id is None:
            return Review(ReviewDecision.DENIED)
        return await self.call.review(self.id, request)

    async def elicit(self, elicitation: Elicitation) -> ElicitationAnswer:
        if self.call is None:
            return ElicitationAnswer("decline")
        return await self.call.elicit(elicitation)

    def _tell(self, event: Event) -> None:
        if isinstance(event, ThreadStarted):
            self.id = event.thread_id
        if self.call is not None and self.id is not None:
            self.call.tell(self.id, event)


class Threads:
    def __init__(self, environment: Mapping[str, str], options: SessionOptions) -> None:
        self._environment = environment
        self._options = options
        self._threads: dict[str, _Thread] = {}
        """By id, the one that was used last at the end."""
        self._tasks: set[asyncio.Task[Any]] = set()

    async def begin(self, config: Config, prompt: str, call: Call) -> CallToolResult:
        """Run the first turn of a new thread."""
        return await self._run(_Thread(config, self._options), prompt, call)

    async def go_on(
        self, thread_id: str, prompt: str, call: Call, load: Callable[[], Config]
    ) -> CallToolResult:
        """Run the next turn of a thread.

        Args:
            load: reads the configuration of a thread that this server has not opened yet.

        Raises:
            CodexError: it is busy, or `load` fails.
        """
        thread = self._threads.get(thread_id)
        if thread is None:
            thread = _Thread(load(), replace(self._options, resume=thread_id))
            self._threads[thread_id] = thread
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
        threads = list(dict.fromkeys(self._threads.values()))
        self._threads = {}
        await asyncio.gather(*(thread.close() for thread in threads), return_exceptions=True)

    async def _run(self, thread: _Thread, prompt: str, call: Call) -> CallToolResult:
        """Run a turn in its own task: the SDK cancels again and again, which would cut the end of the turn short."""
        task = self._start(thread, self._turn(thread, prompt, call))
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            thread.is_ending = True
            task.cancel()
            raise
        return task.result()

    def _start(self, thread: _Thread, work: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
        task: asyncio.Task[Any] = asyncio.create_task(work)
        thread.task = task
        self._tasks.add(task)

        def over(task: "asyncio.Task[Any]") -> None:
            self._tasks.discard(task)
            thread.task = None
            thread.is_ending = False
            # Close the threads that were used longest ago.
            open_ones = [each for each in self._threads.values() if each.session is not None]
            idle = [each for each in dict.fromkeys(open_ones) if each.task is None]
            for each in idle[:-_MAX_OPEN]:
                self._start(each, each.close())
                each.is_ending = True

        task.add_done_callback(over)
        return task

    async def _turn(self, thread: _Thread, prompt: str, call: Call) -> CallToolResult:
        thread.call = call
        asked_for = thread.options.resume
        try:
            session = thread.session
            if session is None:
                session = await thread.open(self._environment)
                call.tell_codex(session.thread_id, _session_configured(session))
            for name in (asked_for, session.thread_id):
                # A session that Codex wrote continues under an id of its own.
                if name is not None:
                    self._threads.pop(name, None)
                    self._threads[name] = thread
            result = await session.run_turn(prompt)
            if result.error is not None:
                return tool_result(thread.id, str(result.error), is_error=True)
            done = {"type": "task_complete", "last_agent_message": result.last_message}
            call.tell_codex(session.thread_id, done)
            return tool_result(thread.id, result.last_message or "")
        except CodexError as error:
            return tool_result(thread.id, str(error), is_error=True)
        except Exception as error:  # noqa: BLE001 - a bug costs this call, and not the other threads
            # The SDK would answer too, but its logger may be silenced, and nobody would see the traceback.
            traceback.print_exc(file=sys.stderr)
            return tool_result(thread.id, f"internal error: {error!r}", is_error=True)
        finally:
            thread.call = None
            if thread.id is None and asked_for is not None:
                # It could not be opened.
                self._threads.pop(asked_for, None)


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

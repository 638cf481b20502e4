"""The threads of one server: each is opened by its first call, and runs one turn at a time."""

import asyncio
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from codex_py.app.hosted import HostedThread, HostedThreads
from codex_py.app.options import SessionOptions
from codex_py.app.session import Session, open_session
from codex_py.config.config import Config
from codex_py.errors import CodexError
from codex_py.frontends.mcp_server.client import Call
from codex_py.frontends.mcp_server.tools import tool_result
from codex_py.protocol.approval import ApprovalRequest, Review, ReviewDecision, approval_data
from codex_py.protocol.events import Event, ThreadStarted
from codex_py.protocol.mcp import Elicitation, ElicitationAnswer


class _Thread(HostedThread):
    """As an `Approver` and an `Elicitor` it passes questions to the call that runs."""

    def __init__(self, config: Config, options: SessionOptions) -> None:
        super().__init__(options)
        self.id: str | None = None
        self.call: Call | None = None
        self.task: asyncio.Task[Any] | None = None
        """Of the last call. It runs a turn, or waits until the one before has ended."""
        self._config = config

    async def open(self, environment: Mapping[str, str]) -> Session:
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
        if isinstance(event, ThreadStarted):
            self.id = event.thread_id
        if self.call is not None and self.id is not None:
            self.call.tell(self.id, event)


class Threads:
    def __init__(self, environment: Mapping[str, str], options: SessionOptions) -> None:
        self._environment = environment
        self._options = options
        self._threads = HostedThreads[_Thread]()

    async def begin(self, config: Config, prompt: str, call: Call) -> dict[str, Any]:
        """Run the first turn of a new thread."""
        return await self._run(_Thread(config, self._options), prompt, call)

    async def go_on(
        self, thread_id: str, prompt: str, call: Call, load: Callable[[], Config]
    ) -> dict[str, Any]:
        """Run the next turn of a thread.

        Args:
            load: reads the configuration of a thread that this server has not opened yet.

        Raises:
            CodexError: it is busy, or `load` fails.
        """
        thread = self._threads.get(thread_id)
        if thread is None:
            thread = _Thread(load(), replace(self._options, resume=thread_id))
            self._threads.use(thread_id, thread)
        if thread.task is not None and not thread.task.cancelling():
            raise CodexError(
                f"thread {thread_id} is working on another call; wait for its end, or cancel it",
                code="busy",
            )
        return await self._run(thread, prompt, call)

    async def aclose(self) -> None:
        """Close every thread."""
        await self._threads.aclose()

    async def _run(self, thread: _Thread, prompt: str, call: Call) -> dict[str, Any]:
        thread.task = task = asyncio.current_task()
        try:
            # A call that was cancelled ends first.
            async with thread.lock:
                return await self._turn(thread, prompt, call)
        finally:
            if thread.task is task:
                thread.task = None
            self._threads.close_idle()

    async def _turn(self, thread: _Thread, prompt: str, call: Call) -> dict[str, Any]:
        thread.call = call
        asked_for = thread.options.resume
        try:
            if not thread.is_open:
                session = await thread.open(self._environment)
                call.tell_codex(session.thread_id, _session_configured(session))
            session = thread.session
            for name in (asked_for, session.thread_id):
                # A session that Codex wrote continues under an id of its own.
                if name is not None:
                    self._threads.use(name, thread)
            result = await thread.run(session.run_turn(prompt))
            if result.error is not None:
                return tool_result(thread.id, str(result.error), is_error=True)
            done = {"type": "task_complete", "last_agent_message": result.last_message}
            call.tell_codex(session.thread_id, done)
            return tool_result(thread.id, result.last_message or "")
        except CodexError as error:
            return tool_result(thread.id, str(error), is_error=True)
        except Exception as error:  # noqa: BLE001 - a bug costs this call, and not the other threads
            # The model that called reads results, not errors of the protocol.
            traceback.print_exc(file=sys.stderr)
            return tool_result(thread.id, f"internal error: {error!r}", is_error=True)
        finally:
            thread.call = None
            if thread.id is None:
                # It could not be opened.
                self._threads.remove(thread)


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

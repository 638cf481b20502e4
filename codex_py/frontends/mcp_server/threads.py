"""Runs the threads of one server. The first call of a thread opens it; its turns never overlap."""

import sys
import traceback
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from mcp_types import CallToolResult

from codex_py.app.options import SessionOptions
from codex_py.app.served_thread import ServedThread
from codex_py.app.served_threads import ServedThreads
from codex_py.app.session import Session, TurnResult
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
from codex_py.protocol.events import Event
from codex_py.protocol.mcp import Elicitation, ElicitationAnswer


class _Thread(ServedThread):
    """A thread, which is also an `Approver` and an `Elicitor`: the running call gets the questions."""

    def __init__(
        self,
        config: Config,
        options: SessionOptions,
        environment: Mapping[str, str],
        turn_ended: Callable[[], None],
    ) -> None:
        super().__init__(options, environment, turn_ended)
        self._config = config
        self._call: ClientCall | None = None
        """The call whose turn runs; None between turns."""
        self.approver = self

    def configuration(self) -> Config:
        return self._config

    async def open(self) -> Session:
        call = self._call
        self.elicitor = None
        if call is not None and call.can_be_asked:
            self.elicitor = self
        session = await super().open()
        if call is not None:
            call.tell_codex(session.thread_id, _session_configured(session))
        return session

    @contextmanager
    def working_for(self, call: ClientCall) -> Generator[None]:
        """Send the events and the questions from within to a call."""
        self._call = call
        try:
            yield
        finally:
            self._call = None

    def show(self, event: Event) -> None:
        if self._call is not None and self.thread_id:
            self._call.tell(self.thread_id, event)

    async def review(self, request: ApprovalRequest) -> Review:
        if self._call is None:
            return Review(ReviewDecision.DENIED)
        return await self._call.review(self.thread_id, request)

    async def elicit(self, elicitation: Elicitation) -> ElicitationAnswer:
        if self._call is None:
            return ElicitationAnswer("decline")
        return await self._call.elicit(elicitation)


class Threads:
    """The threads that calls of tools have opened."""

    def __init__(self, environment: Mapping[str, str], options: SessionOptions) -> None:
        self._environment = environment
        self._options = options
        self._threads = ServedThreads[_Thread]()

    async def begin(
        self,
        config: Config,
        prompt: str,
        call: ClientCall,
    ) -> CallToolResult:
        """Run the first turn of a new thread."""
        return await self._run(self._new(config, self._options), prompt, call)

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
            thread = self._new(load(), replace(self._options, resume=thread_id))
            self._threads.use(thread, thread_id)
        if thread.is_busy:
            raise CodexError(
                f"thread {thread_id} is working on another call; wait for its end, or cancel it",
                code="busy",
            )
        return await self._run(thread, prompt, call)

    async def aclose(self) -> None:
        """Interrupt every turn, and close every thread."""
        await self._threads.aclose()

    def _new(self, config: Config, options: SessionOptions) -> _Thread:
        return _Thread(config, options, self._environment, self._threads.close_idle)

    async def _run(
        self,
        thread: _Thread,
        prompt: str,
        call: ClientCall,
    ) -> CallToolResult:
        """Run a turn, and make the result of the call. Errors become the result too."""

        async def work() -> TurnResult:
            self._threads.use(thread)
            with thread.working_for(call):
                try:
                    session = await thread.ready()
                finally:
                    if not thread.thread_id:
                        # The thread could not be opened.
                        self._threads.remove(thread)
                self._threads.use(thread, session.thread_id)
                result = await session.run_turn(prompt)
                if result.error is None:
                    call.tell_codex(session.thread_id, _task_complete(result))
                return result

        try:
            result = await thread.begin(work).ended()
            result.raise_for_error()
        except CodexError as error:
            return tool_result(thread.thread_id, str(error), is_error=True)
        except Exception as error:  # noqa: BLE001 - a bug costs this call, and not the other threads
            # The SDK would answer too, but if its logger is silenced, nobody would see the
            # traceback.
            traceback.print_exc(file=sys.stderr)
            text = f"internal error: {error!r}"
            return tool_result(thread.thread_id, text, is_error=True)
        return tool_result(thread.thread_id, result.last_message or "")


def _task_complete(result: TurnResult) -> dict[str, Any]:
    return {"type": "task_complete", "last_agent_message": result.last_message}


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

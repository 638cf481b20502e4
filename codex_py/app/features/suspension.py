"""A call that needs an approval suspends the run: `exec --on-approval suspend`.

The calls beside it end first. It stays without an output in the session file, and a signed request is left for a
person. With their answer, the session goes on with this call.
"""

import asyncio
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from codex_py.app.approval_file import (
    ApprovalFile,
    call_data,
    history_data,
)
from codex_py.app.options import SessionSetup
from codex_py.errors import CallRefused, CodexError, OptionError, ToolError, TurnSuspended
from codex_py.protocol.approval import (
    ApprovalNeeded,
    ApprovalRequest,
    Approver,
    Review,
    ReviewDecision,
)
from codex_py.protocol.dispatch import Dispatch, ToolUse
from codex_py.protocol.extension import Extension, Thread, TurnStart
from codex_py.protocol.stream import ModelStream, Prompt, ResponseEvent
from codex_py.protocol.tools import ToolCall, ToolOutput


class SuspendedApprovals:
    """The innermost approver must be an `AbsentApprover`."""

    def __init__(self, setup: SessionSetup) -> None:
        """Raises `OptionError` if the answer is to no request that holds."""
        assert setup.options.suspension is not None
        self._options = setup.options.suspension
        self._home = setup.config.home
        answer = self._options.answer
        self._answer = answer and (answer, ApprovalFile.read(answer.file, self._options.key))
        """To the first call; None once that runs."""
        self._granted: Mapping[str, Any] | None = None
        """The question that a person has said yes to."""
        self._waiting: tuple[ToolCall, ApprovalRequest] | None = None
        """The call that suspends the run."""
        self._facts: Mapping[str, Any] = {}
        self._busy = 0
        """The number of running calls and responses, without the call that waits."""
        self._quiet = asyncio.Event()

    def __call__(self, thread: Thread) -> Extension:
        self._thread = thread
        return Extension(
            wrap_model=self._wrap_model,
            wrap_dispatch=self._wrap_dispatch,
            wrap_approver=self._wrap_approver,
            around_session=self._around_session,
            around_turn=self._around_turn,
            turn_facts=lambda: self._facts,
        )

    async def review(self, request: ApprovalRequest) -> Review:
        """Ask nobody about what a person has said yes to."""
        if self._granted is not None and self._granted == request.question:
            self._granted = None
            return Review(ReviewDecision.APPROVED)
        return await self._approver.review(request)

    def _wrap_approver(self, approver: Approver) -> Approver:
        self._approver = approver
        return self

    def _wrap_model(self, inner: ModelStream) -> ModelStream:
        @asynccontextmanager
        async def stream(prompt: Prompt) -> AsyncGenerator[AsyncIterator[ResponseEvent]]:
            self._answer = None
            with self._working():
                async with inner(prompt) as events:
                    yield events

        return stream

    def _wrap_dispatch(self, inner: Dispatch) -> Dispatch:
        async def dispatch(use: ToolUse) -> ToolOutput:
            self._take_answer(use.call)
            try:
                with self._working():
                    return await inner(use)
            except ApprovalNeeded as needed:
                if self._waiting is not None:
                    raise ToolError(
                        "not run: another call waits for an approval; call again", code="Canceled"
                    ) from needed
                self._waiting = use.call, needed.request
            finally:
                self._granted = None
            while self._busy:
                await self._quiet.wait()
            raise TurnSuspended("the run waits for an approval of another call")

        return dispatch

    def _take_answer(self, call: ToolCall) -> None:
        """Use the answer, if it is one to this call. Raises a `CallRefused` if that is a no."""
        if self._answer is None:
            return
        (answer, request), self._answer = self._answer, None
        if request.call != call_data(call):
            raise OptionError("the approval is for another call")
        request.use(self._home)
        if not answer.is_approved:
            because = f": {answer.because}" if answer.because else ""
            cause = "a person refused it"
            raise CallRefused(f"{cause}{because}", code="ApprovalDenied", cause=cause)
        self._granted = request.question

    @contextmanager
    def _working(self) -> Generator[None]:
        self._busy += 1
        self._quiet.clear()
        try:
            yield
        finally:
            self._busy -= 1
            if not self._busy:
                self._quiet.set()

    @asynccontextmanager
    async def _around_session(self) -> AsyncGenerator[None]:
        thread = self._thread
        if (file := thread.session_file) is None:
            raise CodexError("a run without a session file cannot be suspended", code="session")
        if self._answer is not None:
            # The session file is locked: nobody else can use the same approval meanwhile.
            self._answer[1].check(thread.thread_id, file, thread.settings.cwd, self._home)
        yield

    @asynccontextmanager
    async def _around_turn(self, _: TurnStart) -> AsyncGenerator[None]:
        self._waiting, self._facts = None, {}
        try:
            yield
        except TurnSuspended as error:
            # The outermost: nothing is written to the session file, or to the folder of the session, any more.
            raise await asyncio.to_thread(self._suspended) from error

    def _suspended(self) -> CodexError:
        """Leave the request. Returns the error that the turn ends with."""
        thread, file, waiting = self._thread, self._thread.session_file, self._waiting
        assert file is not None
        assert waiting is not None
        expires = datetime.now(UTC) + timedelta(seconds=self._options.lifetime_s)
        request = ApprovalFile(
            id=secrets.token_hex(8),
            session=thread.thread_id,
            cwd=str(thread.settings.cwd),
            call=call_data(waiting[0]),
            question=waiting[1].question,
            history=history_data(file),
            expires=expires.isoformat(timespec="seconds"),
        )
        folder = self._options.folder
        try:
            path = request.write(folder, self._options.key)
        except OSError as error:
            reason = error.strerror or error
            return CodexError(f"the request for an approval cannot be left in {folder}: {reason}")
        self._facts = {"approval": {"id": request.id, "file": str(path)}}
        return TurnSuspended(
            f"A call waits for an approval: {path}. To go on: codex-py exec resume"
            f" {thread.thread_id} --approve {path}, or --deny"
        )

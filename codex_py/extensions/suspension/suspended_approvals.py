"""Suspends a run when a call needs an approval: `exec --on-approval suspend`.

The calls beside it end first. The waiting call stays without an output in the session file, and a
signed request is left for a person. With their answer, the session continues with this call.
"""

import asyncio
import json
import secrets
import shlex
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

from codex_py.api.approvals import (
    ApprovalRequest,
    Approver,
    Extension,
    Review,
    ReviewDecision,
    SessionSetup,
    Thread,
    TurnStart,
    TurnSuspended,
)
from codex_py.api.calls import (
    CallRefused,
    Dispatch,
    ToolCall,
    ToolError,
    ToolOutput,
    ToolUse,
)
from codex_py.api.extensions import Note
from codex_py.api.files import make_private
from codex_py.api.options import CodexError, OptionError
from codex_py.api.sessions import session_state
from codex_py.extensions.suspension.request_files import read_request, write_request
from codex_py.extensions.suspension.suspension import Suspension


class SuspendedApprovals:
    """Approves the one question that a person has answered, and suspends the turn at any other.

    The innermost approver must be an `AbsentApprover`.
    """

    def __init__(self, setup: SessionSetup, options: Suspension) -> None:
        """Read the request that the options answer. Raises an `OptionError` if it is not valid."""
        self._options = options
        self._folder = setup.config.home / "codex-py" / "approvals"
        """The folder with a file for each request whose answer was used."""
        self._answered_request: Mapping[str, Any] | None = None
        """The request that the options answer; None after the first call."""
        if options.answer is not None:
            self._answered_request = read_request(options.answer, options.key)
        self._granted_question: Mapping[str, Any] | None = None
        """The question that a person has answered with yes."""
        self._open_request: dict[str, Any] = {}
        """The `question` that suspends the run, and the `call` that asked it; empty without one."""
        self._facts: Mapping[str, Any] = {}
        self._is_exclusive = False
        """True if no other call may run beside the call that waits."""

    def __call__(self, thread: Thread) -> Extension:
        if thread.parent is not None:
            # The call of a subagent cannot wait: the `AbsentApprover` refuses it.
            return Extension()
        self._thread = thread
        return Extension(
            wrap_dispatch=self._wrap_dispatch,
            wrap_approver=self._wrap_approver,
            before_request=self._before_request,
            around_session=self._around_session,
            around_turn=self._around_turn,
            turn_facts=lambda: self._facts,
        )

    async def review(self, request: ApprovalRequest) -> Review:
        """Let the other approvers decide; if none does, approve the question answered with yes.

        Raises:
            TurnSuspended: nobody decided another question, and no call waits yet.
            ToolError: a call waits already.
        """
        try:
            return await self._approver.review(request)
        except TurnSuspended as error:
            # The `AbsentApprover` was reached: nobody decided.
            if request.question == self._granted_question:
                self._granted_question = None
                return Review(ReviewDecision.APPROVED)
            if self._open_request:
                raise _not_run() from error
            self._open_request = {"question": request.question}
            raise

    def _wrap_approver(self, approver: Approver) -> Approver:
        """Take the place of the approver, which `review` still asks first."""
        self._approver = approver
        return self

    async def _before_request(self) -> Sequence[Note]:
        # An answer is for the call that the session ended with. It runs before the first request.
        self._answered_request = None
        return ()

    def _wrap_dispatch(self, inner: Dispatch) -> Dispatch:
        """Use the person's answer for its call, and note a call that suspends the run.

        Calls that would have to run after the noted one are refused.
        """

        async def dispatch(use: ToolUse) -> ToolOutput:
            self._take_answer(use.call)
            if self._open_request and (self._is_exclusive or not use.tool.parallel):
                raise _not_run()
            try:
                return await inner(use)
            except TurnSuspended:
                self._open_request["call"] = _call_data(use.call)
                self._is_exclusive = not use.tool.parallel
                raise
            finally:
                self._granted_question = None

        return dispatch

    def _take_answer(self, call: ToolCall) -> None:
        """Use the answer if it is for this call.

        Raises a `CallRefused` if the person refused the call.
        """
        request = self._answered_request
        self._answered_request = None
        if request is None:
            return
        if request["call"] != _call_data(call):
            raise OptionError("the approval is for another call")
        try:
            make_private(self._folder)
            (self._folder / request["id"]).touch(0o600, exist_ok=False)
        except FileExistsError as error:
            raise _used(request) from error
        except OSError as error:
            reason = (
                f"approval {request['id']} cannot be marked as used: {error.strerror}"
            )
            raise OptionError(reason) from error
        if not self._options.is_approved:
            cause = "a person refused it"
            problem = cause
            if self._options.because:
                problem = f"{cause}: {self._options.because}"
            raise CallRefused(problem, code="ApprovalDenied", cause=cause)
        self._granted_question = request["question"]

    @asynccontextmanager
    async def _around_session(self) -> AsyncGenerator[None]:
        if self._thread.session_file is None:
            raise CodexError(
                "a run without a session file cannot be suspended", code="session"
            )
        request = self._answered_request
        if request is not None:
            # The session file is locked: nobody else can use the same approval meanwhile.
            if (self._folder / request["id"]).exists():
                raise _used(request)
            state = session_state(self._thread)
            _require_same(request, state)
            if request["history"] != state["history"]:
                raise OptionError(
                    "the session is not as it was when the approval was asked for"
                )
        yield

    @asynccontextmanager
    async def _around_turn(self, _: TurnStart) -> AsyncGenerator[None]:
        self._open_request = {}
        self._facts = {}
        try:
            yield
        except TurnSuspended as error:
            # This context is the outermost: nothing is written to the session file, or to the
            # folder of the session, any more.
            end = await asyncio.to_thread(self._leave_request)
            raise end from error

    def _leave_request(self) -> CodexError:
        """Write the request. Returns the error that the turn ends with."""
        folder = self._options.folder
        lifetime = timedelta(seconds=self._options.lifetime_s)
        expires = (datetime.now(UTC) + lifetime).isoformat(timespec="seconds")
        state = session_state(self._thread)
        request = {
            "id": secrets.token_hex(8),
            **state,
            **self._open_request,
            "expires": expires,
        }
        try:
            path = write_request(request, folder, self._options.key)
        except OSError as error:
            reason = error.strerror or error
            return CodexError(
                f"the request for an approval cannot be left in {folder}: {reason}"
            )
        approval = {"id": request["id"], "file": str(path)}
        self._facts = {"approval": approval}
        resume = [
            "codex-py",
            "exec",
            *self._options.options,
            "resume",
            state["session"],
        ]
        approve = shlex.join([*resume, "--approve", str(path)])
        deny = shlex.join([*resume, "--deny", str(path)])
        return TurnSuspended(
            f"A call waits for an approval: {path}\nTo run it: {approve}\nTo refuse it: {deny}"
        )


def _require_same(request: Mapping[str, Any], state: Mapping[str, Any]) -> None:
    """Raise an `OptionError` if the run differs from the one that left the request.

    They must have the same session, folder and sandbox.
    """
    if request["session"] != state["session"]:
        raise OptionError(
            f"the approval is for session {request['session']}, not {state['session']}"
        )
    if request["cwd"] != state["cwd"]:
        folder = shlex.quote(request["cwd"])
        raise OptionError(
            f"the approval is for the folder {request['cwd']}, not {state['cwd']}: use -C {folder}"
        )
    was = request["sandbox"]
    now = state["sandbox"]
    if was["type"] != now["type"]:
        raise OptionError(
            f"the approval was asked for with the sandbox {was['type']}, and this run has"
            f" {now['type']}: add -s {was['type']}"
        )
    for name in sorted({*was, *now}):
        if was.get(name) != now.get(name):
            raise OptionError(
                f"the approval was asked for with `{name}` = {json.dumps(was.get(name))} of the"
                f" sandbox, and this run has {json.dumps(now.get(name))}: give it the options of"
                " the first run"
            )


def _used(request: Mapping[str, Any]) -> OptionError:
    return OptionError(f"approval {request['id']} was used already")


def _not_run() -> ToolError:
    return ToolError(
        "not run: another call waits for an approval; call again", code="Canceled"
    )


def _call_data(call: ToolCall) -> Mapping[str, Any]:
    """Return the call as the model wrote it."""
    data = {"call_id": call.call_id, "tool": call.tool_name}
    data.update(asdict(call.payload))
    return json.loads(json.dumps(data))

"""Reports the hosts that commands were not allowed to reach. LIGHT.

If somebody can be asked, it asks about these hosts.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Final

from codex_py.app.options import SessionSetup
from codex_py.config.declared.features import NetworkProxy
from codex_py.config.edit import TomlValue, set_in_config
from codex_py.errors import CodexError, ConfigError, ToolError
from codex_py.protocol.approval import (
    AbsentApprover,
    ApprovalRequest,
    ReviewDecision,
    may_ask,
)
from codex_py.protocol.dispatch import Dispatch, ToolContext, ToolUse
from codex_py.protocol.events import CallDenied
from codex_py.protocol.extension import Extension, Thread
from codex_py.protocol.network_report import Blocked
from codex_py.protocol.tools import ToolOutput

_MAX_NOES: Final = 3
"""After so many refusals, a command that tries further hosts does not ask about them."""
_CAUSE: Final = "a host is not on the list of domains"


class NetworkList:
    """The feature of a session and its children, which share the report of their proxies."""

    def __init__(self, setup: SessionSetup) -> None:
        self._setup = setup
        self._report = setup.network
        self._running: dict[str, ToolContext] = {}
        """The contexts of running calls, by the id of the call."""
        self._latest: ToolContext | None = None
        """The context of the last call, for commands in the background, whose call has ended."""
        self._allowed: set[str] = set()
        """The hosts that are allowed in this session."""
        self._answers: dict[tuple[str, str], bool] = {}
        """The answers of the user, by call and host."""

    def for_child(self, setup: SessionSetup) -> "NetworkList":  # noqa: ARG002
        return self

    def __call__(self, thread: Thread) -> Extension:  # noqa: ARG002
        return Extension(around_session=self._around_session, wrap_dispatch=self._wrap)

    @asynccontextmanager
    async def _around_session(self) -> AsyncGenerator[None]:
        loop = asyncio.get_running_loop()

        def ask(blocked: Blocked) -> Any:
            return asyncio.run_coroutine_threadsafe(self._is_allowed(blocked), loop)

        if not isinstance(self._setup.approver, AbsentApprover):
            # A waiting command cannot be suspended until somebody answers later.
            self._report.ask = ask
        yield

    def _wrap(self, inner: Dispatch) -> Dispatch:
        """Tell which call it was that tried to reach a host outside of the list."""

        async def dispatch(use: ToolUse) -> ToolOutput:
            call_id = use.context.call_id
            self._latest = self._running[call_id] = use.context
            try:
                output = await inner(use)
            finally:
                # A child may have had a call with the same id.
                self._running.pop(call_id, None)
            # The hosts of another running call are reported when that call ends. Those of commands
            # in the background, whose calls have ended, are reported here.
            reported = list(self._report.blocked)
            blocked = [each for each in reported if each.call_id not in self._running]
            if blocked:
                return self._told(use, output, blocked)
            return output

        return dispatch

    def _told(
        self, use: ToolUse, output: ToolOutput, blocked: list[Blocked]
    ) -> ToolOutput:
        """Add a line to the output for each blocked host, and tell the user."""
        lines = [f"Network access was blocked: {each}." for each in blocked]
        for each, line in zip(blocked, lines, strict=True):
            self._report.blocked.pop(each, None)
            if each.pattern:
                allow = f"`--allow-domain {each.pattern}`"
            else:
                allow = None
            event = CallDenied(
                use.call.tool_name, line, _CAUSE, allow, "NetworkBlocked"
            )
            use.context.emit(event)
        return replace(output, text="\n".join((output.text.rstrip("\n"), *lines)))

    async def _is_allowed(self, blocked: Blocked) -> bool:
        context = self._running.get(blocked.call_id, self._latest)
        if context is None:
            return False
        key = (blocked.call_id, blocked.host)
        async with context.approvals.asking:
            # The previous question may have been about this host.
            if blocked.host in self._allowed:
                return True
            if key not in self._answers and self._may_ask(blocked.call_id, context):
                self._answers[key] = await self._ask(blocked, context)
        return self._answers.get(key, False)

    def _may_ask(self, call_id: str, context: ToolContext) -> bool:
        """False if the call had too many refusals, or the policy allows no question."""
        answers = [yes for (call, _), yes in self._answers.items() if call == call_id]
        if answers.count(False) >= _MAX_NOES:
            return False
        return may_ask(context.approval_policy, "sandbox_approval")

    async def _ask(self, blocked: Blocked, context: ToolContext) -> bool:
        """Ask about a host. True if it is allowed; an answer for longer is kept."""
        request = ApprovalRequest(
            "network",
            f"{blocked.host}:{blocked.port}",
            context.cwd,
            f"a command wants to reach {blocked.host}, which is not on the list of domains",
            (blocked.host,),
            tool=("network", {"host": blocked.host, "port": blocked.port}),
        )
        try:
            answer = await context.approvals.ask(request, (), rejected="")
        except (CodexError, ToolError):
            return False
        is_for_session = answer is not ReviewDecision.APPROVED
        if is_for_session:
            self._allowed.add(blocked.host)
        if answer is ReviewDecision.APPROVED_WITH_RULE:
            await asyncio.to_thread(self._write, blocked.host)
        return True

    def _write(self, host: str) -> None:
        """Add an allowed host to the user's configuration, or warn that it cannot be written."""
        config = self._setup.config
        key: tuple[str, ...] = ("features", "network_proxy")
        value: TomlValue
        if isinstance(config.features.network_proxy, NetworkProxy):
            key = (*key, "domains", host)
            value = "allow"
        else:
            # A table takes the place of `network_proxy = true`.
            value = {"enabled": True, "domains": {host: "allow"}}
        try:
            set_in_config(config.home, key, value)
        except ConfigError as error:
            self._setup.warn(
                f"The host could not be written: {error}. It holds for this session."
            )

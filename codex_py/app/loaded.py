"""The half of a session that is loaded after its first request was sent: tools, router, sandbox and processes."""

import asyncio
import os
from collections.abc import (
    Awaitable,
    Callable,
    Collection,
    Generator,
    Mapping,
    Sequence,
)
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from codex_py.app.options import SessionSetup
from codex_py.app.user_programs import Start, secret_names, user_programs, user_shell
from codex_py.config.environment import (
    child_environment,
    environment_after_profile,
    hidden_names,
    without_variables,
)
from codex_py.core.session import Session
from codex_py.errors import cause
from codex_py.execpolicy.added_rule import allow_prefix
from codex_py.execpolicy.decision import Rules
from codex_py.model.catalog import model_info
from codex_py.process.sessions import ProcessSessions
from codex_py.programs import record_writable_roots
from codex_py.protocol.approval import (
    ApprovalRequest,
    Review,
    ReviewDecision,
    SandboxPolicy,
)
from codex_py.protocol.dispatch import (
    Approvals,
    Dispatch,
    ItemIds,
    Tool,
    ToolContext,
    ToolUse,
)
from codex_py.protocol.events import EventSink
from codex_py.protocol.extension import Extension, ToolFinder
from codex_py.protocol.items import OutputItem
from codex_py.protocol.prompts import Note
from codex_py.protocol.tools import ToolCall, ToolOutput
from codex_py.sandbox.choice import PlatformSandbox
from codex_py.tools.builtin import builtin_tools
from codex_py.tools.plan import UpdatePlan
from codex_py.tools.router import ToolRouter
from codex_py.tools.shell.orchestrator import Orchestrator
from codex_py.tools.shell.snapshot import LoginShell

_RELEASE_AFTER_S = 0.3
"""The next command often comes at once, and what a command left behind takes a moment to die."""


class LoadedTools:
    """`rules`: for commands; None if there are none."""

    def __init__(
        self, setup: SessionSetup, rules: Rules | None, session: Session
    ) -> None:
        config = setup.config
        extension = session.extension
        info = model_info(config.model, config.model_catalog_json)
        self._session = session
        self._warn = setup.warn
        self._warn_once = cache(setup.warn)
        self._rules_folder = config.home / "rules"
        self._output_token_limit = (
            config.tool_output_token_limit or info.truncation_limit_tokens
        )
        self.processes = ProcessSessions()
        self.processes.on_last_finished = self._release_soon
        self._release: asyncio.TimerHandle | None = None
        self.plan = UpdatePlan()
        names = secret_names(config)
        policy = session.settings.sandbox_policy
        self._environment = child_environment(
            config.shell_environment,
            setup.environment,
            thread_id=session.thread_id,
            network_disabled=not policy.network_access,
            secret_names=names,
            profile=policy.profile,
        )
        programs = user_programs(config, setup.environment, setup.options.add_dirs)
        self._record = cache(
            partial(record_writable_roots, config.home, self._environment)
        )
        # The home is read-only for commands: the configuration says what they may do.
        new_sandbox = partial(
            PlatformSandbox,
            programs.environment(self._environment),
            home=config.home,
            limits=config.sandbox_limits,
            problems=setup.backend_problems,
            folder_times=setup.folder_times,
        )
        self.sandbox = new_sandbox(network=setup.network)
        self._hidden = hidden_names(config.shell_environment, setup.environment, names)
        shell = user_shell(setup.environment)
        self._shell = [shell, "-lc" if config.allow_login_shell else "-c"]
        # With a sandbox of its own: a session that runs no command may do without one. Offline, if there is a list of
        # domains.
        self._profile_sandbox = new_sandbox()
        self._login_shell = self._new_login_shell(setup, shell, names)
        self._confined = 0
        """The number of commands that run within `confined`."""
        orchestrator = Orchestrator(
            self.sandbox,
            hidden=self._hidden,
            shell=shell,
            rules=rules or Rules(),
            write_rule=self._write_rule,
        )
        tools = builtin_tools(
            self.processes,
            self.plan,
            orchestrator,
            home=config.home,
            shell=shell,
            structured_shell=not info.freeform_apply_patch,
            image_rule=session.settings.image_rule,
            max_poll_ms=config.background_terminal_max_timeout_ms,
            allow_login_shell=config.allow_login_shell,
            login_shell=self._login_shell if config.allow_login_shell else None,
            unambiguous_patches=config.patch_ambiguous == "refuse",
        )
        self.router = ToolRouter(
            _finder(tools, extension),
            lambda inner: self._with_latest_settings(extension.wrap_dispatch(inner)),
        )
        self._approvals = Approvals(
            extension.wrap_approver(setup.approver or _DenyingApprover()),
            session.abort,
            setup.asking,
            session.parent and session.parent.nickname,
        )
        extension.loaded()

    def _new_login_shell(
        self, setup: SessionSetup, shell: str, secrets: Collection[str]
    ) -> LoginShell:
        """The shell whose profile commands get; it is asked at once, if they may have one."""
        settings = setup.config.shell_environment
        login_shell = LoginShell(
            shell,
            self._environment,
            partial(environment_after_profile, settings, secrets),
            self._in_profile_sandbox,
            self._session.settings.cwd,
            setup.shell_snapshots,
        )
        if setup.config.allow_login_shell:
            login_shell.begin()
        return login_shell

    async def dispatch(
        self, call: ToolCall, emit: EventSink
    ) -> Sequence[Note | OutputItem]:
        """See `ToolCalls`."""
        try:
            items = await self.router.dispatch(call, self._context(call.call_id, emit))
        finally:
            # A command that could not start does not finish either.
            self._release_soon()
        for text in filter(None, (self.sandbox.unavailable, self.sandbox.warning)):
            self._warn(text)
        return items

    def answer(self, call: ToolCall, output: ToolOutput, emit: EventSink) -> OutputItem:
        """See `ToolCalls`."""
        return self.router.answer(call, output, self._context(call.call_id, emit))

    @contextmanager
    def confined(
        self, command: str | Sequence[str], environment: Mapping[str, str], cwd: Path
    ) -> Generator[Start]:
        """How the command is started as those of the model are. It has ended when this is left.

        Raises:
            ToolError: no sandbox is available.
        """
        if isinstance(command, str):
            argv = [*self._shell, command]
        else:
            argv = command
        argv = without_variables(argv, self._hidden)
        self._confined += 1
        try:
            argv = self.sandbox.command(argv, self._policy(), cwd)
            yield Start(argv, cwd, {**self._environment, **environment})
        finally:
            self._confined -= 1
            self._release_soon()

    async def aclose(self) -> None:
        """Stop the processes that the tools started. The tools can be used again."""
        try:
            await asyncio.gather(self._login_shell.aclose(), self.processes.aclose())
        finally:
            if self._release is not None:
                self._release.cancel()
            self.sandbox.release()
            self._profile_sandbox.release()

    def _release_soon(self, delay_s: float = _RELEASE_AFTER_S) -> None:
        def release() -> None:
            runs = self.processes.is_running or self._confined
            if not runs and not self.sandbox.release(0):
                # What lives on may do so for days.
                self._release_soon(2 * delay_s)

        if self._release is not None:
            self._release.cancel()
        self._release = asyncio.get_running_loop().call_later(delay_s, release)

    def _policy(self) -> SandboxPolicy:
        # The user may have changed the settings since the last turn.
        settings = self._session.settings
        policy = settings.sandbox_policy
        if os.path.realpath(settings.cwd) != str(settings.cwd):
            # It had no links. A command of another session can put one there, to where this one may not write.
            roots = (
                r for r in policy.writable_roots if not r.is_relative_to(settings.cwd)
            )
            policy = replace(policy, writable_roots=tuple(roots))
            self._warn_once(
                f"{settings.cwd} was replaced by a link, so nothing is written there."
            )
        self._record(policy)
        return policy

    def _in_profile_sandbox(self, argv: Sequence[str]) -> Sequence[str]:
        # No profile has to write to the workspace, so nothing in it needs protection meanwhile.
        policy = replace(self._session.settings.sandbox_policy, writable_roots=())
        return self._profile_sandbox.command(argv, policy, self._session.settings.cwd)

    def _with_latest_settings(self, inner: Dispatch) -> Dispatch:
        """Run each call with the settings of when its turn comes: those may have changed while it waited."""

        def dispatch(use: ToolUse) -> Awaitable[ToolOutput]:
            policy = self._session.settings.approval_policy
            context = replace(
                use.context, approval_policy=policy, sandbox_policy=self._policy()
            )
            return inner(replace(use, context=context))

        return dispatch

    def _context(self, call_id: str, emit: EventSink) -> ToolContext:
        settings = self._session.settings
        return ToolContext(
            call_id=call_id,
            cwd=settings.cwd,
            environment={**self._environment, "CODEX_TOOL_CALL_ID": call_id},
            approval_policy=settings.approval_policy,
            sandbox_policy=self._policy(),
            approvals=self._approvals,
            emit=emit,
            next_item_id=ItemIds(self._session.next_item_id),
            output_token_limit=self._output_token_limit,
        )

    def _write_rule(self, prefix: Sequence[str]) -> None:
        folder = self._rules_folder
        try:
            allow_prefix(folder, prefix)
        except (OSError, ValueError) as error:
            self._session.warn(
                f"The rule could not be written to {folder}: {cause(error)}. It holds for this session."
            )


def _finder(
    builtin: Mapping[str, Callable[[], Tool[Any]]], extension: Extension
) -> ToolFinder:
    """Finds our tools and those of extensions. One that is always offered is loaded by its first call."""
    offered = {tool.name: tool.load for tool in extension.tools}
    load = {name: cache(load) for name, load in {**offered, **builtin}.items()}
    others = extension.find_tool()
    return lambda name: load[name]() if name in load else others(name)


class _DenyingApprover:
    """Denies every request, for sessions without a user."""

    async def review(self, request: ApprovalRequest) -> Review:  # noqa: ARG002
        return Review(ReviewDecision.DENIED, "there is nobody to ask")

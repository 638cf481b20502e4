"""The tools of a session, which run its calls.

They are loaded after its first request was sent. LIGHT.
"""

import asyncio
import os
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Generator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from codex_py.app.options import SessionSetup
from codex_py.app.user_programs import Start
from codex_py.config.environment import without_variables
from codex_py.config.layers import SYSTEM_FOLDER
from codex_py.config.project_trust import Trusted
from codex_py.core.session import Session
from codex_py.errors import ExitCode
from codex_py.protocol.approval import SandboxPolicy
from codex_py.protocol.dispatch import Dispatch, ItemIds, ToolContext, ToolUse
from codex_py.protocol.events import EventSink
from codex_py.protocol.extension import Extension, Occasion, Thread, TurnStart
from codex_py.protocol.items import OutputItem, ResponseItem
from codex_py.protocol.prompts import Note
from codex_py.protocol.tools import ToolCall, ToolOutput
from codex_py.tools.plan_notes import plan_notes

_CALLS = {"function_call", "custom_tool_call", "local_shell_call"}
"""The types of the items that tools answer."""
_LOAD_AFTER_S = 0.2
"""The wait between the first request and the loading. The model usually thinks for longer; a turn
that ends sooner never loads the tools."""
_RELEASE_AFTER_S = 0.3
"""The wait before a release: the next command often comes at once, and left processes take a moment
to end."""


class SessionTools:
    """The feature of the tools, and the `ToolCalls` of the session.

    The parts of the tools are loaded while the model thinks, or by the first call.
    """

    _session: Session
    """The session; set by `attach`."""

    def __init__(self, setup: SessionSetup) -> None:
        """Raises a `ConfigError` if a rules file cannot be read or parsed."""
        self._setup = setup
        self._warn_once = cache(setup.warn)
        self._rules = _rules(setup)
        self._waiting: asyncio.TimerHandle | None = None
        """The timer that loads the tools."""
        self._failure: BaseException | None = None
        """The exception that `_load` could not raise in the turn."""
        self._loaded = None
        """The `ToolParts` once they are loaded; see `parts`."""
        self._confined_count = 0
        """The number of commands that run within `confined`."""
        self._release: asyncio.TimerHandle | None = None
        """The timer of `_release_soon`."""

    def __call__(self, thread: Thread) -> Extension:
        def context(occasion: Occasion) -> Sequence[Note]:
            # A compaction would lose the plan.
            return plan_notes(thread.items) if occasion == "compact" else ()

        return Extension(
            context=context,
            around_session=self._around_session,
            around_turn=lambda turn: self._around_turn(thread, turn),
            turn_facts=self._turn_facts,
        )

    def attach(self, session: Session) -> None:
        """Run the calls of this session. This does not load the tools yet."""
        self._session = session

    def load_soon(self) -> None:
        """Load the tools soon after a request was sent, unless its turn ends at once."""
        if self._loaded is None and self._waiting is None:
            loop = asyncio.get_running_loop()
            self._waiting = loop.call_later(_LOAD_AFTER_S, self._load)

    def _load(self) -> None:
        """Load the tools between two steps of the turn. An exception is kept, and raised there."""
        try:
            self.parts.prepare()
        except BaseException as error:  # noqa: BLE001 - it is raised in the turn
            self._failure = error

    def _raise_failure(self) -> None:
        failure = self._failure
        self._failure = None
        if failure is not None:
            raise failure

    @property
    def parts(self):
        """Return the `ToolParts`; they are loaded first if necessary.

        Raises what an extension raises when it is told that they are loaded.
        """
        self._raise_failure()
        if self._loaded is None:
            from codex_py.app.tool_parts import make_parts  # 13 ms

            self._loaded = make_parts(
                self._setup,
                self._session,
                self._rules,
                with_latest_settings=self.with_latest_settings,
                last_finished=self._release_soon,
            )
            self._session.extension.loaded()
        return self._loaded

    def build_tool_call(self, item: ResponseItem) -> ToolCall | None:
        """See `ToolCalls`."""
        if item.type in _CALLS:
            return self.parts.router.build_tool_call(item)
        return None

    async def dispatch(
        self, call: ToolCall, emit: EventSink
    ) -> Sequence[Note | OutputItem]:
        """Run a call and make its output; see `ToolCalls`.

        The tools are loaded first if necessary.
        """
        parts = self.parts
        context = self._context(call.call_id, emit)
        try:
            items = await parts.router.dispatch(call, context)
        finally:
            # Nothing calls `last_finished` for a command that could not start.
            self._release_soon()
        for text in (parts.sandbox.unavailable, parts.sandbox.warning):
            if text:
                self._setup.warn(text)
        return items

    def answer(
        self,
        call: ToolCall,
        output: ToolOutput,
        emit: EventSink,
    ) -> OutputItem:
        """See `ToolCalls`."""
        context = self._context(call.call_id, emit)
        return self.parts.router.answer(call, output, context)

    def _context(self, call_id: str, emit: EventSink) -> ToolContext:
        """The context of a call, with the settings of this moment."""
        parts = self.parts
        session = self._session
        settings = session.settings
        return ToolContext(
            call_id=call_id,
            cwd=settings.cwd,
            environment={**parts.environment, "CODEX_TOOL_CALL_ID": call_id},
            approval_policy=settings.approval_policy,
            sandbox_policy=self._policy(),
            approvals=parts.approvals,
            emit=emit,
            next_item_id=ItemIds(session.next_item_id),
            output_token_limit=parts.output_token_limit,
        )

    def with_latest_settings(self, inner: Dispatch) -> Dispatch:
        """Run each call with the settings at the time when its turn comes.

        They may have changed while the call waited.
        """

        def dispatch(use: ToolUse) -> Awaitable[ToolOutput]:
            policy = self._session.settings.approval_policy
            context = replace(
                use.context, approval_policy=policy, sandbox_policy=self._policy()
            )
            return inner(replace(use, context=context))

        return dispatch

    def _policy(self) -> SandboxPolicy:
        """The sandbox policy of this moment.

        Its writable roots are recorded, so that we start no program from there.
        """
        # The user may have changed the settings since the last turn began.
        settings = self._session.settings
        policy = settings.sandbox_policy
        if os.path.realpath(settings.cwd) != str(settings.cwd):
            # The path had no links when the session began. A command of another session can put
            # one there, and it may lead to a place that is not writable here.
            roots = policy.writable_roots
            kept = [root for root in roots if not root.is_relative_to(settings.cwd)]
            policy = replace(policy, writable_roots=tuple(kept))
            self._warn_once(
                f"{settings.cwd} was replaced by a link, so nothing is written there."
            )
        self.parts.record(policy)
        return policy

    @contextmanager
    def confined(
        self,
        command: str | Sequence[str],
        environment: Mapping[str, str],
        cwd: Path,
    ) -> Generator[Start]:
        """Return the start of a command in the sandbox of the model's commands.

        Leave the context after the end of the command.

        Raises:
            ToolError: no sandbox is available.
        """
        parts = self.parts
        argv = command
        if isinstance(argv, str):
            argv = [*parts.script_shell, argv]
        argv = without_variables(argv, parts.hidden)
        self._confined_count += 1
        try:
            argv = parts.sandbox.command(argv, self._policy(), cwd)
            yield Start(argv, cwd, {**parts.environment, **environment})
        finally:
            self._confined_count -= 1
            self._release_soon()

    def _release_soon(self, delay_s: float = _RELEASE_AFTER_S) -> None:
        """Release the sandbox after the delay, if no command runs then."""

        def release() -> None:
            parts = self.parts
            runs = parts.processes.is_running or self._confined_count
            if not runs and not parts.sandbox.release(0):
                # Processes that outlive the command may run for days.
                self._release_soon(2 * delay_s)

        if self._release is not None:
            self._release.cancel()
        self._release = asyncio.get_running_loop().call_later(delay_s, release)

    def stop_commands(self) -> int:
        """Kill all running commands, including those in the background. Returns their number."""
        if self._loaded is None:
            return 0
        return self._loaded.processes.kill_running()

    def let_commands_go(self) -> int:
        """Answer the calls of running commands, which continue in the background.

        Returns their number.
        """
        if self._loaded is None:
            return 0
        return self._loaded.processes.let_go()

    @property
    def has_rules(self) -> bool:
        """True if a rule may let a command leave the sandbox."""
        return self._rules is not None

    @property
    def is_idle(self) -> bool:
        """True if no command runs, not even in the background."""
        return self._loaded is None or self._loaded.processes.is_idle

    @asynccontextmanager
    async def _around_turn(
        self,
        thread: Thread,
        _: TurnStart,
    ) -> AsyncGenerator[None]:
        """End the commands of a turn, and its plan."""
        try:
            yield
            self._raise_failure()
        finally:
            self._failure = None
            try:
                await self.end_commands()
            except asyncio.CancelledError:
                # The clean-up was cancelled: finish it.
                await self.end_commands()
                raise
            finally:
                if self._loaded is not None:
                    self._loaded.plan.end_turn(thread.emit)

    @asynccontextmanager
    async def _around_session(self) -> AsyncGenerator[None]:
        try:
            yield
        finally:
            if self._waiting is not None:
                self._waiting.cancel()
            await self._end_processes()

    async def end_commands(self) -> None:
        """End all commands and their remaining processes, unless they may outlive the turn.

        New commands can be started.
        """
        if not self._setup.options.keep_commands:
            await self._end_processes()

    async def _end_processes(self) -> None:
        """Stop the processes that the tools started. The tools can be used again."""
        parts = self._loaded
        if parts is None:
            return
        try:
            await asyncio.gather(parts.login_shell.aclose(), parts.processes.aclose())
        finally:
            if self._release is not None:
                self._release.cancel()
            parts.sandbox.release()
            parts.profile_sandbox.release()

    def _turn_facts(self) -> Mapping[str, Any]:
        """The exit code of a turn in which a sandbox was missing."""
        if self._loaded is None or self._loaded.sandbox.unavailable is None:
            return {}
        return {"exit_code": ExitCode.SANDBOX}


def _rules(setup: SessionSetup):
    """Read the `CommandRules` of the system, of the user and of a trusted project.

    The administrator's required rules are added, which no option switches off. Returns None if
    there are no rules.
    """
    config = setup.config
    trust = config.project_trust
    folders: list[Path] = []
    trusted: Mapping[Path, str] = {}
    if not setup.options.ignore_rules:
        folders = [SYSTEM_FOLDER / "rules", config.home / "rules"]
        if isinstance(trust, Trusted):
            # These texts were checked for trust; the files may have changed since.
            trusted = trust.files
    project = {path: text for path, text in trusted.items() if path.suffix == ".rules"}
    required = config.requirements.file.values.get("rules", {})
    tables = required.get("prefix_rules", ())
    has_files = any(any(folder.glob("*.rules")) for folder in folders)
    if not (tables or project or has_files):
        return None
    from codex_py.execpolicy.rules import (
        load_rules,
        parse_rules,
        required_rules,
    )  # 8 ms

    rules = load_rules(folders)
    for path, text in project.items():
        rules = parse_rules(text, str(path), rules)
    for warning in rules.warnings:
        setup.warn(warning)
    return required_rules(tables, rules)

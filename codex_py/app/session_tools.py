"""Loads the tools of a session after its first request was sent. LIGHT."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from codex_py.app.options import SessionSetup
from codex_py.config.layers import SYSTEM_FOLDER
from codex_py.config.project_trust import Trusted
from codex_py.core.session import Session
from codex_py.errors import ExitCode
from codex_py.protocol.events import EventSink
from codex_py.protocol.extension import Extension, Thread, TurnStart
from codex_py.protocol.items import OutputItem, ResponseItem
from codex_py.protocol.prompts import Note
from codex_py.protocol.tools import ToolCall, ToolOutput
from codex_py.tools.plan_notes import plan_notes

_CALLS = {"function_call", "custom_tool_call", "local_shell_call"}
"""Types of the items that tools answer."""
_LOAD_AFTER_S = 0.2


class SessionTools:
    """The feature of the tools, and the item handlers. The tools are loaded while the model thinks, or by its first
    call."""

    def __init__(self, setup: SessionSetup) -> None:
        """Raises a `ConfigError` if a rules file cannot be read or parsed."""
        self._setup = setup
        self._rules = _rules(setup)
        self._session: Session | None = None
        self._waiting: asyncio.TimerHandle | None = None
        self._loaded = None
        """The `LoadedTools`, once `tools` has made them."""

    def __call__(self, thread: Thread) -> Extension:
        return Extension(
            context=lambda occasion: (
                plan_notes(thread.items) if occasion == "compact" else ()
            ),
            around_session=self._around_session,
            around_turn=lambda turn: self._around_turn(thread, turn),
            turn_facts=self._turn_facts,
        )

    def attach(self, session: Session) -> None:
        """Run the calls of this session. The tools are not loaded yet."""
        self._session = session

    def build_tool_call(self, item: ResponseItem) -> ToolCall | None:
        """See `ToolCalls`."""
        if item.type in _CALLS:
            return self.tools().router.build_tool_call(item)
        return None

    async def dispatch(
        self, call: ToolCall, emit: EventSink
    ) -> Sequence[Note | OutputItem]:
        """See `ToolCalls`."""
        return await self.tools().dispatch(call, emit)

    def answer(self, call: ToolCall, output: ToolOutput, emit: EventSink) -> OutputItem:
        """See `ToolCalls`."""
        return self.tools().answer(call, output, emit)

    def load_soon(self) -> None:
        """A request was sent: load the tools, unless its turn ends at once."""
        if self._loaded is None and self._waiting is None:
            # The model usually thinks for longer than this; a turn that ends sooner never loads the tools.
            loop = asyncio.get_running_loop()
            self._waiting = loop.call_later(_LOAD_AFTER_S, self.tools)

    def tools(self):
        """The `LoadedTools`, loaded now if they are not."""
        if self._loaded is None:
            assert self._session is not None
            from codex_py.app.loaded import LoadedTools  # 13 ms

            self._loaded = LoadedTools(self._setup, self._rules, self._session)
        return self._loaded

    def stop_commands(self) -> int:
        """Kill all running commands, also those in the background. Returns their number."""
        if self._loaded is None:
            return 0
        return self._loaded.processes.kill_running()

    def let_commands_go(self) -> int:
        """Have the calls answered whose commands run, which go on in the background. Returns their number."""
        if self._loaded is None:
            return 0
        return self._loaded.processes.let_go()

    @property
    def has_rules(self) -> bool:
        """True if a rule may let a command leave the sandbox."""
        return self._rules is not None

    @property
    def is_idle(self) -> bool:
        """True if no command runs, also in the background."""
        return self._loaded is None or self._loaded.processes.is_idle

    @asynccontextmanager
    async def _around_turn(self, thread: Thread, _: TurnStart) -> AsyncGenerator[None]:
        try:
            yield
        finally:
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
            if self._loaded is not None:
                await self._loaded.aclose()

    async def end_commands(self) -> None:
        """End all commands and what they left behind, unless they may outlive the turn. More can be started."""
        if self._loaded is not None and not self._setup.options.keep_commands:
            await self._loaded.aclose()

    def _turn_facts(self) -> Mapping[str, Any]:
        is_unavailable = (
            self._loaded is not None and self._loaded.sandbox.unavailable is not None
        )
        if is_unavailable:
            return {"exit_code": ExitCode.SANDBOX}
        return {}


def _rules(setup: SessionSetup):
    """The `Rules` of the system, of the user and of a trusted project, and those that are required, which no option
    switches off; None if there are no rules."""
    config = setup.config
    is_on = not setup.options.ignore_rules
    if is_on:
        folders = [SYSTEM_FOLDER / "rules", config.home / "rules"]
    else:
        folders = []
    trust = config.project_trust
    tables = config.requirements.file.values.get("rules", {}).get("prefix_rules", ())
    trusted: Mapping[Path, str] = {}
    if is_on and isinstance(trust, Trusted):
        # The texts that were checked for trust; the files may have changed since.
        trusted = trust.files
    project = {path: text for path, text in trusted.items() if path.suffix == ".rules"}
    if not (tables or project) and not any(
        next(folder.glob("*.rules"), None) for folder in folders
    ):
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

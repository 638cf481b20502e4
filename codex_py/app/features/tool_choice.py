"""Requests `tool_choice` and `parallel_tool_calls`, and enforces them. LIGHT.

Some servers ignore these fields of a request.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace

from codex_py.app.options import SessionSetup
from codex_py.errors import ConfigError, ToolError
from codex_py.protocol.dispatch import Dispatch, ToolUse
from codex_py.protocol.event_items import WebSearch
from codex_py.protocol.events import Event, ItemCompleted, UsageReported
from codex_py.protocol.extension import Compaction, Extension, Thread, TurnStart
from codex_py.protocol.stream import ANY_TOOL, ModelStream, Prompt, ToolChoice
from codex_py.protocol.tools import ToolOutput, called_tool


class ToolChoices:
    """Applies the tool choice of each turn.

    A choice that requires a call holds for the first response of a turn: the turn would never end
    otherwise.

    Raises:
        ConfigError: the setting cannot be read.
    """

    def __init__(self, setup: SessionSetup) -> None:
        self._configured = ToolChoice.parse(setup.config.settings.tool_choice)
        self._choice: ToolChoice | None = None
        """The choice of the running turn; None if the model may call any tool."""
        self._is_first = False
        """True if the next or the running response is the first one of its turn."""
        self._is_answered = False
        """True if the turn has a whole response."""
        self._is_met = False
        """True if the first response of the turn calls a tool as the choice requires."""
        self._is_compacting = False
        self._serial = asyncio.Lock()
        """Held by the running call if calls must not run side by side."""

    def __call__(self, thread: Thread) -> Extension:
        self._thread = thread
        return Extension(
            sink=self._watch,
            wrap_model=self._wrap_model,
            wrap_dispatch=self._wrap_dispatch,
            around_turn=self._around_turn,
            around_compaction=self._around_compaction,
        )

    def _watch(self, event: Event) -> None:
        match event:
            case ItemCompleted(WebSearch()) if self._is_first:
                # The provider runs its searches itself, so they are not dispatched.
                takes_any_tool = self._choice is not None and not self._choice.names
                if takes_any_tool:
                    self._is_met = True
            case UsageReported() if not self._is_compacting:
                # The usage is reported at the end of each response. Its calls may run later, but
                # before the next request.
                self._is_answered = True
            case _:
                pass

    def _wrap_model(self, inner: ModelStream) -> ModelStream:
        """Add the choice of the turn to its requests.

        Raises a `ConfigError` if the choice names a tool that is not offered.
        """

        def stream(prompt: Prompt):
            # After a whole response, this request begins another one. A repeated request does not.
            if self._is_answered:
                self._is_first = False
            choice = self._choice
            if choice is None or self._is_compacting or not prompt.tools:
                return inner(prompt)
            if choice.mode == "required" and not self._is_first:
                return inner(prompt)
            offered = [spec.name for spec in prompt.tools]
            for name in choice.names:
                if name not in offered:
                    raise ConfigError(
                        f"tool_choice: no tool {name!r} is offered; offered are {', '.join(offered)}"
                    )
            return inner(replace(prompt, tool_choice=choice))

        return stream

    def _wrap_dispatch(self, inner: Dispatch) -> Dispatch:
        """Refuse calls that the choice of tools for this turn excludes."""

        async def dispatch(use: ToolUse) -> ToolOutput:
            if self._choice is not None:
                _check_call(self._choice, use.call.tool_name, is_first=self._is_first)
            if self._is_first:
                self._is_met = True
            if self._thread.settings.parallel_tool_calls:
                return await inner(use)
            async with self._serial:
                return await inner(use)

        return dispatch

    @asynccontextmanager
    async def _around_turn(self, turn: TurnStart) -> AsyncGenerator[None]:
        """Apply the choice of the turn, else the configured one. Warn if the model ignored it."""
        choice = turn.tool_choice or self._configured
        if choice == ANY_TOOL:
            choice = None
        self._choice = choice
        self._is_first = True
        self._is_answered = False
        self._is_met = False
        yield
        if choice is None or choice.mode != "required":
            return
        if self._is_answered and not self._is_met:
            tool = " or ".join(choice.names) or "a tool"
            self._thread.warn(
                f"`tool_choice` was not met: the first response does not call {tool}."
            )

    @asynccontextmanager
    async def _around_compaction(self, _: Compaction) -> AsyncGenerator[None]:
        self._is_compacting = True
        try:
            yield
        finally:
            self._is_compacting = False


def _check_call(
    choice: ToolChoice,
    name: str,
    *,
    is_first: bool,
) -> None:
    """Raise a `ToolError` if the choice does not allow a call of this tool.

    Args:
        is_first: True for a call of the first response of the turn.
    """
    if choice.mode == "none":
        raise ToolError("no tool may be called in this turn", code="ToolNotAllowed")
    holds_all_turn = choice.mode == "auto"
    if not holds_all_turn and not is_first:
        return
    allowed = {called_tool(None, each) for each in choice.names}
    if allowed and name not in allowed:
        when = "in this turn" if holds_all_turn else "now"
        names = ", ".join(choice.names)
        raise ToolError(f"{when}, only {names} may be called", code="ToolNotAllowed")

"""`tool_choice` and `parallel_tool_calls`: asked of the model, and enforced where a server ignores them. LIGHT."""

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
    """A choice that requires a call holds for the first response of a turn: it would never end otherwise."""

    def __init__(self, setup: SessionSetup) -> None:
        """
        Raises:
            ConfigError: the setting cannot be read.
        """
        self._configured = ToolChoice.parse(setup.config.tool_choice)

    def __call__(self, thread: Thread) -> Extension:
        choice = ANY_TOOL
        is_first = is_answered = is_compacting = is_met = False
        serial = asyncio.Lock()

        def sink(event: Event) -> None:
            nonlocal is_answered, is_met
            # The provider runs its searches itself.
            is_search = isinstance(event, ItemCompleted) and isinstance(event.item, WebSearch)
            is_met = is_met or (is_first and is_search and not choice.names)
            # Reported at the end of each response. Its calls may run later, but before the next request.
            if isinstance(event, UsageReported) and not is_compacting:
                is_answered = True

        def wrap_model(inner: ModelStream) -> ModelStream:
            def stream(prompt: Prompt):
                nonlocal is_first
                is_first = is_first and not is_answered
                is_over = choice.mode == "required" and not is_first
                if choice == ANY_TOOL or is_over or is_compacting or not prompt.tools:
                    return inner(prompt)
                _check_names(choice, prompt)
                return inner(replace(prompt, tool_choice=choice))

            return stream

        def wrap_dispatch(inner: Dispatch) -> Dispatch:
            async def dispatch(use: ToolUse) -> ToolOutput:
                nonlocal is_met
                _check_call(choice, use.call.tool_name, is_first=is_first)
                is_met = is_met or is_first
                if thread.settings.parallel_tool_calls:
                    return await inner(use)
                async with serial:
                    return await inner(use)

            return dispatch

        @asynccontextmanager
        async def around_turn(turn: TurnStart) -> AsyncGenerator[None]:
            nonlocal choice, is_first, is_answered, is_met
            choice = turn.tool_choice or self._configured
            is_first, is_answered, is_met = True, False, False
            yield
            if choice.mode == "required" and is_answered and not is_met:
                thread.warn(_not_met(choice))

        @asynccontextmanager
        async def around_compaction(_: Compaction) -> AsyncGenerator[None]:
            nonlocal is_compacting
            is_compacting = True
            try:
                yield
            finally:
                is_compacting = False

        return Extension(
            sink=sink,
            wrap_model=wrap_model,
            wrap_dispatch=wrap_dispatch,
            around_turn=around_turn,
            around_compaction=around_compaction,
        )


def _not_met(choice: ToolChoice) -> str:
    tool = " or ".join(choice.names) or "a tool"
    return f"`tool_choice` was not met: the first response does not call {tool}."


def _check_names(choice: ToolChoice, prompt: Prompt) -> None:
    offered = [spec.name for spec in prompt.tools]
    for name in choice.names:
        if name not in offered:
            raise ConfigError(
                f"tool_choice: no tool {name!r} is offered; offered are {', '.join(offered)}"
            )


def _check_call(choice: ToolChoice, name: str, *, is_first: bool) -> None:
    """
    Raises:
        ToolError: the call is not allowed.
    """
    if choice.mode == "none":
        raise ToolError("no tool may be called in this turn", code="ToolNotAllowed")
    allowed = {called_tool(None, each) for each in choice.names}
    holds = choice.mode == "auto" or is_first
    if allowed and holds and name not in allowed:
        when = "in this turn" if choice.mode == "auto" else "now"
        names = ", ".join(choice.names)
        raise ToolError(f"{when}, only {names} may be called", code="ToolNotAllowed")

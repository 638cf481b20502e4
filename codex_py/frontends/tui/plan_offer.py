"""Asks whether a plan is to be implemented, once the turn that proposed it is over."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Literal, TypeAlias

from codex_py.frontends.tui.panel import Choice, Option
from codex_py.frontends.tui.surface import Surface

Begin: TypeAlias = Literal["here", "afresh"]

IMPLEMENT: Final = "Implement the plan."
AFRESH: Final = "Implement this plan, which the user has agreed to:\n\n{plan}"


class PlanOffer:
    """
    Args:
        begin: leaves Plan mode, and has a plan implemented in this conversation or in a new one.
    """

    def __init__(self, surface: Surface, begin: Callable[[str, Begin], Awaitable[None]]) -> None:
        self._surface = surface
        self._begin = begin
        self._asking: asyncio.Task[None] | None = None

    def make(self, plan: str) -> None:
        self.withdraw()
        self._asking = self._surface.tasks.create_task(self._ask(plan))

    def withdraw(self) -> None:
        """Close the question: the conversation goes on."""
        if self._asking is not None:
            self._asking.cancel()
            self._asking = None

    async def _ask(self, plan: str) -> None:
        options = [
            Option[Begin | None]("Yes, implement this plan", "here", "y", "leaves Plan mode"),
            Option[Begin | None](
                "Yes, in a new conversation", "afresh", "f", "it knows the plan alone"
            ),
            Option[Begin | None]("No, stay in Plan mode", None, "n", "say what is to be different"),
        ]
        answer = await self._surface.panels.ask(
            lambda: Choice[Begin | None](
                [("bold", "Implement this plan?")], options, cancelled=None, default=2
            ),
            about="Implement this plan?",
        )
        self._asking = None
        if answer is not None:
            await self._begin(plan, answer)

"""The goal of a thread: the agent works until it says that the goal is reached. LIGHT.

Tools, statuses and fields are those of Codex 0.169. Codex begins a new turn for each round; here
the rounds are parts of one turn, so that the limits of the turn hold for them. The session file has
the goal, for a later session.
"""

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias

from codex_py.app.features.functions import functions
from codex_py.app.options import SessionSetup
from codex_py.errors import QUOTA_CODES, CodexError
from codex_py.instructions import instruction_text
from codex_py.protocol.events import Event, GoalChanged, UsageReported
from codex_py.protocol.extension import Extension, Thread, TurnStart, TurnStop
from codex_py.protocol.frozen import frozen
from codex_py.protocol.json_fields import object_field
from codex_py.protocol.messages import decode_json
from codex_py.protocol.prompts import Note
from codex_py.protocol.stream import Usage
from codex_py.rollout.lines import lines_with

Status: TypeAlias = Literal[
    "active", "paused", "blocked", "usageLimited", "budgetLimited", "complete"
]
_MAX_ROUNDS: Final = 1000
_SPENT: Final = "The token budget of the goal is used up. Begin nothing new: say what is done, and what is left."


@frozen
class Goal:
    """A goal, and what the work on it has used. Times are in seconds since the epoch."""

    objective: str
    status: Status = "active"
    token_budget: int | None = None
    tokens_used: int = 0
    """The tokens except those that came from the provider's cache."""
    time_used_s: float = 0.0
    created_at: int = 0
    updated_at: int = 0

    def data(self, thread_id: str) -> dict[str, Any]:
        """Return the goal as Codex writes it in JSON."""
        return {
            "threadId": thread_id,
            "objective": self.objective,
            "status": self.status,
            "tokenBudget": self.token_budget,
            "tokensUsed": self.tokens_used,
            "timeUsedSeconds": int(self.time_used_s),
            "createdAt": self.created_at,
            "updatedAt": self.updated_at,
        }


class Goals:
    """The feature of the goal of one session. A frontend may set it as the model does."""

    def __init__(self, setup: SessionSetup) -> None:
        self._resumes = setup.options.resume is not None and not setup.options.fork
        self._thread: Thread
        self._counted = Usage()
        """The usage of the session that was last reported."""
        self.goal: Goal | None = None

    def __call__(self, thread: Thread) -> Extension:
        self._thread = thread
        return replace(
            functions([self.get_goal, self.create_goal, self.update_goal])(thread),
            around_session=self._around_session,
            around_turn=self._around_turn,
            before_request=self._before_request,
            before_stop=self._before_stop,
            max_rounds=_MAX_ROUNDS,
            sink=self._watch,
        )

    @property
    def data(self) -> dict[str, Any] | None:
        """The goal in JSON; None if there is none."""
        if self.goal is None:
            return None
        return self.goal.data(self._thread.thread_id)

    def set(
        self,
        objective: str | None = None,
        status: Status | None = None,
        token_budget: int | None = None,
    ) -> None:
        """Make a goal, or change the present one. What is None stays as it is.

        A new objective takes the place of the old one, keeps what was used so far, and makes the
        goal active. After a complete goal, a new one begins.

        Raises:
            ValueError: the objective is blank, no goal exists to change, or the budget is below 1.
        """
        goal = self.goal
        if objective is not None:
            objective = objective.strip()
            if not objective:
                raise ValueError("goal objective must not be empty")
            if goal is None or goal.status == "complete":
                goal = Goal(objective, created_at=int(time.time()))
            goal = replace(goal, objective=objective, status="active")
        if goal is None:
            raise ValueError("no goal exists")
        if token_budget is not None and token_budget < 1:
            raise ValueError("a token budget is a whole number above 0")
        self._change(
            replace(
                goal,
                status=status or goal.status,
                token_budget=token_budget or goal.token_budget,
            )
        )

    def clear(self) -> bool:
        """Remove the goal. Returns False if there was none."""
        if self.goal is None:
            return False
        self.goal = None
        self._thread.emit(GoalChanged(None))
        return True

    async def get_goal(self) -> str:
        """Get the goal of this thread: its status, its budget, and what was used of it."""
        return self._report()

    async def create_goal(
        self,
        objective: Annotated[str, "What is to be reached, in full."],
        token_budget: Annotated[int | None, "Only if the user gave one."] = None,
    ) -> str:
        """Create a goal, only if the user asks for one. It fails while there is an unfinished one."""
        if self.goal is not None and self.goal.status != "complete":
            raise ValueError(
                "there is an unfinished goal; update_goal changes its status"
            )
        self.set(objective, token_budget=token_budget)
        return self._report()

    async def update_goal(
        self,
        status: Annotated[
            Literal["complete", "blocked", "paused"],
            "`complete`: all of it is reached, and you have checked that. `blocked`: the same obstacle, which only the"
            " user can remove, came up three times in a row. `paused`: the user asks for a pause.",
        ],
    ) -> str:
        """Change the status of the goal, which ends the work on it."""
        self.set(status=status)
        return self._report()

    def _report(self) -> str:
        """Return the output of the tools: the goal, and the tokens that are left."""
        left = None
        if self.goal is not None and self.goal.token_budget is not None:
            left = max(0, self.goal.token_budget - self.goal.tokens_used)
        return json.dumps({"goal": self.data, "remainingTokens": left})

    @asynccontextmanager
    async def _around_session(self) -> AsyncGenerator[None]:
        """Continue the goal of a resumed session."""
        path = self._thread.session_file
        if self._resumes and path is not None:
            self.goal = _stored_goal(path)
        self._counted = self._thread.token_usage.total
        yield

    @asynccontextmanager
    async def _around_turn(self, _: TurnStart) -> AsyncGenerator[None]:
        """Count the time of the turn. A turn that fails or is interrupted stops the goal."""
        began = time.monotonic()
        status_after_turn: Status = "active"
        try:
            yield
        except asyncio.CancelledError:
            status_after_turn = "paused"
            raise
        except CodexError as error:
            if error.code in QUOTA_CODES:
                status_after_turn = "usageLimited"
            else:
                status_after_turn = "blocked"
            raise
        finally:
            # A goal that this turn has paused, blocked or spent stays as it is.
            goal = self.goal
            if goal is not None and goal.status in {"active", "complete"}:
                is_complete = goal.status == "complete"
                status = goal.status if is_complete else status_after_turn
                used_s = goal.time_used_s + time.monotonic() - began
                self._change(replace(goal, time_used_s=used_s, status=status))

    async def _before_request(self) -> Sequence[Note]:
        """Tell the model once that the token budget is used up."""
        goal = self.goal
        if goal is None or goal.status != "active" or not self._is_spent(goal):
            return ()
        self._change(replace(goal, status="budgetLimited"))
        return [Note(_SPENT)]

    async def _before_stop(self, stop: TurnStop) -> Note | None:
        """Keep the agent going while the goal is active, and rounds and tokens are left."""
        goal = self.goal
        if goal is None or goal.status != "active":
            return None
        if not stop.rounds_left:
            self._change(replace(goal, status="paused"))
            return None
        if self._is_spent(goal):
            self._change(replace(goal, status="budgetLimited"))
            return None
        return _round_note(goal)

    def _watch(self, event: Event) -> None:
        """Count the tokens of each response towards an active goal."""
        if not isinstance(event, UsageReported):
            return
        spent = event.total - self._counted
        self._counted = event.total
        goal = self.goal
        if goal is not None and goal.status == "active":
            tokens = max(0, spent.total_tokens - spent.cached_input_tokens)
            self._change(replace(goal, tokens_used=goal.tokens_used + tokens))

    def _is_spent(self, goal: Goal) -> bool:
        return goal.token_budget is not None and goal.tokens_used >= goal.token_budget

    def _change(self, goal: Goal) -> None:
        self.goal = replace(goal, updated_at=int(time.time()))
        self._thread.emit(GoalChanged(self.data))


def _round_note(goal: Goal) -> Note:
    """Return the message that begins another round."""
    budget = "none" if goal.token_budget is None else f"{goal.token_budget:,}"
    parts = [
        '<codex_internal_context source="goal">',
        instruction_text("goal.md"),
        f"Tokens used: {goal.tokens_used:,}; budget: {budget}.",
        f"\n<objective>\n{goal.objective}\n</objective>\n</codex_internal_context>",
    ]
    return Note("\n".join(parts))


def _stored_goal(path: Path) -> Goal | None:
    """Read the goal of a session file. Returns None if there is none, or it was removed."""
    with path.open("rb") as file:
        last_first = (line for _, line in lines_with(b'{"type":"goal",', file))
        line = next(last_first, None)
    if line is None:
        return None
    payload = object_field(decode_json(line), "payload")
    data = object_field(payload, "goal")
    if not data:
        return None
    return Goal(
        objective=data["objective"],
        status=data["status"],
        token_budget=data["tokenBudget"],
        tokens_used=data["tokensUsed"],
        time_used_s=data["timeUsedSeconds"],
        created_at=data["createdAt"],
    )

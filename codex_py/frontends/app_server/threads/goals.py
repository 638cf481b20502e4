"""Answers the methods about the goal of a thread."""

from functools import partial

from codex_py.app.features.goals import Goals
from codex_py.app.json_rpc import INVALID_REQUEST, RpcError
from codex_py.frontends.app_server import params
from codex_py.frontends.app_server.methods import MethodGroup, serves
from codex_py.frontends.app_server.threads.thread import AppThread
from codex_py.frontends.app_server.turn_items.items import Fields
from codex_py.protocol.event_items import UserMessage


class GoalMethods(MethodGroup):
    """Answers `thread/goal/…`."""

    @serves("thread/goal/get", params.OneThread)
    async def get(self, asked: params.OneThread) -> Fields:
        async with self.threads.locked(asked.thread_id) as thread:
            return {"goal": _goals(thread).data}

    @serves("thread/goal/set", params.GoalSet)
    async def set(self, asked: params.GoalSet) -> Fields:
        """Set the goal of a thread. An active goal starts a turn if none runs."""
        async with self.threads.locked(asked.thread_id) as thread:
            goals = _goals(thread)
            with thread.answering():
                try:
                    goals.set(asked.objective, asked.status, asked.token_budget)
                except ValueError as error:
                    raise RpcError(INVALID_REQUEST, str(error)) from None
                goal = goals.goal
                assert goal is not None
                thread.session.keeps_file = True
                if goal.status == "active" and thread.feed is None:
                    await thread.ended()
                    turn = partial(thread.session.run_turn, goal.objective)
                    shown = UserMessage(id="prompt", text=goal.objective)
                    await thread.start(turn, shown)
            return {"goal": goals.data}

    @serves("thread/goal/clear", params.OneThread)
    async def clear(self, asked: params.OneThread) -> Fields:
        async with self.threads.locked(asked.thread_id) as thread:
            with thread.answering():
                return {"cleared": _goals(thread).clear()}


def _goals(thread: AppThread) -> Goals:
    goals = thread.session.feature(Goals)
    if goals is None:
        raise RpcError(INVALID_REQUEST, "goals are off: `features.goals`")
    return goals

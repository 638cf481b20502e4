"""The state that a session and its subagents share. LIGHT."""

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from codex_py.protocol.dispatch import Dispatch, ToolUse, changed_paths
from codex_py.protocol.tools import ToolOutput


class AgentRegistry:
    """The subagents of a session and of its subagents.

    Attributes:
        open: the open children, each a `ChildAgent`. A child that is still being opened has no id.
        limit: the largest number of open children, including those that have answered.
        names: nicknames by id, also of closed children.
        turns: see `taking_turns`.
        resuming: held while a closed child is opened again.
        changed: set when the state of a child changes; a new event then takes its place.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.open: list[Any] = []
        self.names: dict[str, str] = {}
        self.turns: defaultdict[Path, asyncio.Lock] = defaultdict(asyncio.Lock)
        self.resuming = asyncio.Lock()
        self.changed = asyncio.Event()

    def tell(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()


def taking_turns(turns: Mapping[Path, asyncio.Lock], inner: Dispatch) -> Dispatch:
    """Let calls that change files take turns across a session and its children.

    Calls in other working directories do not wait for each other. A call waits for its turn while
    it holds its place in the queue of its session. There is no deadlock: a tool that waits for a
    child changes no file, and takes no turn.

    Args:
        turns: a lock for each working directory, shared by all sessions.
    """

    async def dispatch(use: ToolUse) -> ToolOutput:
        paths = changed_paths(use)
        if use.tool.parallel or (paths is not None and not paths):
            return await inner(use)
        async with turns[use.context.cwd]:
            return await inner(use)

    return dispatch

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
        names: the nickname of each child by its id, also of closed children.
        turns: the lock of each working directory; see `taking_turns`.
        resuming: a lock that is held while a closed child is opened again.
        changed: an event for one change. It is set when the state of a child changes, and a new
            event takes its place.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.open: list[Any] = []
        self.names: dict[str, str] = {}
        self.turns: defaultdict[Path, asyncio.Lock] = defaultdict(asyncio.Lock)
        self.resuming = asyncio.Lock()
        self.changed = asyncio.Event()

    def tell(self) -> None:
        """Wake everybody who waits for `changed`."""
        self.changed.set()
        self.changed = asyncio.Event()


def taking_turns(turns: Mapping[Path, asyncio.Lock], inner: Dispatch) -> Dispatch:
    """Return a `Dispatch` that lets calls that may change files run one at a time.

    This holds for calls of a session and all its children in the same working directory. A call
    waits for its turn while it holds its place in the queue of its session. There is no deadlock:
    a tool that waits for a child changes no file, so it needs no turn.

    Args:
        turns: the lock of each working directory; makes missing ones.
    """

    async def dispatch(use: ToolUse) -> ToolOutput:
        paths = changed_paths(use)
        changes_nothing = paths is not None and not paths
        if use.tool.parallel or changes_nothing:
            return await inner(use)
        async with turns[use.context.cwd]:
            return await inner(use)

    return dispatch

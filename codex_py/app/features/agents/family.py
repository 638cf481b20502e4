"""What a session and its subagents share. LIGHT."""

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from codex_py.protocol.dispatch import Dispatch, ToolUse, changed_paths
from codex_py.protocol.tools import ToolOutput


class Family:
    """
    Attributes:
        open: each is a `Child`; one that is not open yet has no id.
        limit: how many may be open, those that have answered included.
        names: nicknames by id, also of closed ones.
        turns: see `taking_turns`.
        resuming: held while a closed one is opened.
        changed: is set when the state of one changes; another takes its place.
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
    """Let calls that change files take turns across a session and its children, as they do within a session.

    Calls in other working directories do not wait for each other. A call waits for its turn while it holds its place in
    the queue of its session. Nobody can wait for each other: a tool that waits for a child changes no file, and takes
    no turn.

    Args:
        turns: one for each working directory, for all sessions together.
    """

    async def dispatch(use: ToolUse) -> ToolOutput:
        paths = changed_paths(use)
        if use.tool.parallel or (paths is not None and not paths):
            return await inner(use)
        async with turns[use.context.cwd]:
            return await inner(use)

    return dispatch

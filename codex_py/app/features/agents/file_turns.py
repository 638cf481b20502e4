"""Calls that change files take turns across a session and its children, as they do within a session."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

from codex_py.protocol.dispatch import Dispatch, ToolUse, changed_paths
from codex_py.protocol.tools import ToolOutput


def taking_turns(turns: Mapping[Path, asyncio.Lock], inner: Dispatch) -> Dispatch:
    """Calls in other working directories do not wait for each other.

    A call waits for its turn while it holds its place in the queue of its session. Nobody can wait for each other: a tool
    that waits for a child changes no file, and takes no turn.

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

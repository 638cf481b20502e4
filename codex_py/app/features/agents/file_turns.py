"""Calls that change files take turns across a session and its children, as they do within a session. LIGHT."""

import asyncio
from collections import defaultdict
from pathlib import Path

from codex_py.app.options import SessionSetup
from codex_py.protocol.dispatch import Dispatch, ToolUse, changed_paths
from codex_py.protocol.extension import Extension, Thread
from codex_py.protocol.tools import ToolOutput


class FileTurns:
    """One serves a session and its children. Calls in other working directories do not wait for each other.

    A call waits for a turn while it holds its place in the queue of its session, and for nothing else that another session
    can hold: tools that wait for a child change no file.
    """

    def __init__(self) -> None:
        self._locks: defaultdict[Path, asyncio.Lock] = defaultdict(asyncio.Lock)

    def for_child(self, setup: SessionSetup) -> "FileTurns":  # noqa: ARG002
        return self

    def __call__(self, thread: Thread) -> Extension:  # noqa: ARG002
        return Extension(wrap_dispatch=self._wrap_dispatch)

    def _wrap_dispatch(self, inner: Dispatch) -> Dispatch:
        async def dispatch(use: ToolUse) -> ToolOutput:
            paths = changed_paths(use)
            if use.tool.parallel or (paths is not None and not paths):
                return await inner(use)
            async with self._locks[use.context.cwd]:
                return await inner(use)

        return dispatch

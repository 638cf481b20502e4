"""Tests `mcp/connection.py`."""

import asyncio
from contextlib import ExitStack

from codex_py.mcp.connection import Deadlines


def test_a_limit_is_paused_until_the_last_question_is_answered() -> None:
    async def run() -> None:
        deadlines, first = Deadlines(), ExitStack()
        async with deadlines.limit(0.01):
            first.enter_context(deadlines.paused())
            with deadlines.paused():
                first.close()
                # Longer than the limit, which would end the block.
                await asyncio.sleep(0.05)

    asyncio.run(run())

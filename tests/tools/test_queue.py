"""Tests `tools/router.py`."""

import asyncio

from codex_py.tools.router import CallQueue


async def _most_at_once(calls: int) -> int:
    queue = CallQueue()
    running = most = ended = 0

    async def call() -> None:
        nonlocal running, most, ended
        async with queue.turn(parallel=True):
            running += 1
            most = max(most, running)
            await asyncio.sleep(0)
            running -= 1
            ended += 1

    await asyncio.gather(*(call() for _ in range(calls)))
    assert ended == calls
    return most


def test_few_calls_run_side_by_side_and_many_in_their_turn() -> None:
    assert asyncio.run(_most_at_once(50)) == 50
    assert asyncio.run(_most_at_once(5_000)) == 64


def test_a_call_that_is_cancelled_while_it_waits_holds_up_none() -> None:
    async def main() -> None:
        queue = CallQueue()
        leave = asyncio.Event()

        async def call() -> None:
            async with queue.turn(parallel=True):
                await leave.wait()

        calls = [asyncio.create_task(call()) for _ in range(100)]
        await asyncio.sleep(0)
        for waiting in calls[64:]:
            waiting.cancel()
        leave.set()
        await asyncio.gather(*calls, return_exceptions=True)
        async with asyncio.timeout(10), queue.turn(parallel=False):
            pass

    asyncio.run(main())

"""Schedules the tasks of a batch by priorities and limits of providers, and repeats attempts.

It does not depend on the engine that makes the attempts.
"""

import asyncio
import heapq
import itertools
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, TypeAlias

from codex_py.api.attempts import is_set_within
from codex_py.extensions.batch.tasks import Row

_GROWS_AFTER = 10
"""A limit grows each time the provider has served this many tasks since it last refused one."""
_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 60.0
_MAX_ATTEMPTS = 50
_OF_ATTEMPT = ("status", "exit_code", "signal", "seconds", "thread_id", "error")
"""The fields of each attempt that the result of its task keeps."""

Record: TypeAlias = dict[str, Any]


class _Lane:
    """The tasks of a provider that wait, and the limit on those that run.

    The limit is halved when the provider asks to try later, and then grows again.

    Args:
        most: the greatest limit, with which the lane begins.
    """

    def __init__(self, most: int) -> None:
        self.queue: list[tuple[int, int, Row]] = []
        """A heap of the negated priority, a unique number, and the row. The number breaks ties."""
        self.running = 0
        self.limit = most
        self._most = most
        self.paused_until = 0.0
        self._lowered = 0.0
        """The time at which the limit was last lowered."""
        self._served = 0
        self._refusals = 0
        self.is_closed = False

    def close(self) -> None:
        """Let no further attempt begin."""
        self.queue.clear()
        self.is_closed = True

    def is_ready(self, now: float) -> bool:
        """True if the next task may start now."""
        has_room = self.running < self.limit
        return bool(self.queue) and has_room and now >= self.paused_until

    def served(self) -> None:
        self._refusals = 0
        self._served += 1
        if self._served % _GROWS_AFTER == 0:
            self.limit = min(self.limit + 1, self._most)

    def refused(self, began: float) -> bool:
        """Lower the limit, once for all attempts that ran at that time.

        Returns True if the limit was 1: then other tasks did not cause the refusal.
        """
        was_alone = self.limit == 1
        now = time.monotonic()
        if began >= self._lowered:
            pause_s = _FIRST_PAUSE_S * 2**self._refusals
            self.paused_until = now + min(pause_s, _LONGEST_PAUSE_S)
            self._refusals += 1
            self.limit = max(1, self.limit // 2)
            self._lowered = now
            self._served = 0
        return was_alone


class Schedule:
    """Decides which task runs next, and repeats attempts.

    Args:
        run: makes an attempt, and returns its record.
        ended: gets a task that will not run again, and its last record.
        jobs: number of attempts at once.
        limits: number of attempts at once for a provider, by its name.
        retries: number of repetitions of an attempt that was lost, or refused by a provider that
            had nothing else to do.
    """

    def __init__(
        self,
        rows: Iterable[Row],
        run: Callable[[Row], Awaitable[Record]],
        ended: Callable[[Row, Record], None],
        *,
        jobs: int,
        limits: Mapping[str, int],
        retries: int,
        fail_fast: bool = False,
    ) -> None:
        self._run = run
        self._ended = ended
        self._jobs = jobs
        self._retries = retries
        self._fail_fast = fail_fast
        self._wake = asyncio.Event()
        self.running = 0
        self.stopped: dict[str, Record] = {}
        """The attempt that ended all tasks of a provider, for instance because the key is missing."""
        self._lanes: dict[str, _Lane] = {}
        self._numbers = itertools.count()
        for row in rows:
            if row.provider not in self._lanes:
                limit = limits.get(row.provider, jobs)
                self._lanes[row.provider] = _Lane(min(limit, jobs))
            self._add(row)

    async def work(self) -> None:
        """Run all tasks. An error of `run` or `ended` cancels all attempts and is then raised."""
        lanes = self._lanes.values()
        try:
            async with asyncio.TaskGroup() as group:
                while self.running or any(lane.queue for lane in lanes):
                    self._wake.clear()
                    now = time.monotonic()
                    self._start_ready(group, now)
                    await is_set_within(self._wake, self._pause_s(now))
        except BaseExceptionGroup as group:
            raise group.exceptions[0] from None

    def _start_ready(self, group: asyncio.TaskGroup, now: float) -> None:
        """Start the tasks that may start now, the most urgent ones first."""
        while self.running < self._jobs:
            ready = [lane for lane in self._lanes.values() if lane.is_ready(now)]
            if not ready:
                return
            lane = min(ready, key=lambda lane: lane.queue[0])
            _, _, row = heapq.heappop(lane.queue)
            lane.running += 1
            self.running += 1
            group.create_task(self._attempt(lane, row))

    def _pause_s(self, now: float) -> float | None:
        """The time until the first pause of a provider ends; None if none with tasks pauses."""
        waiting = [lane for lane in self._lanes.values() if lane.queue]
        pauses = [lane.paused_until - now for lane in waiting]
        return min((pause for pause in pauses if pause > 0), default=None)

    def _add(self, row: Row) -> None:
        """Queue a row after its equals, so that an outage does not use up one task's attempts."""
        lane = self._lanes[row.provider]
        if not lane.is_closed:
            number = next(self._numbers)
            heapq.heappush(lane.queue, (-row.priority, number, row))

    async def _attempt(self, lane: _Lane, row: Row) -> None:
        began = time.monotonic()
        record = await self._run(row)
        lane.running -= 1
        self.running -= 1
        self._wake.set()
        kept = {name: record.get(name) for name in _OF_ATTEMPT}
        row.attempts = (*row.attempts, kept)
        match record["status"]:
            case "stopped":
                self.stopped[row.provider] = record
                lane.close()
                return
            case "try_later" | "lost" as status:
                if status == "lost" or lane.refused(began):
                    row.failures += 1
                if row.failures <= self._retries and len(row.attempts) < _MAX_ATTEMPTS:
                    self._add(row)
                    return
                record["status"] = "failed"
            case _:
                lane.served()
        self._ended(row, record)
        if self._fail_fast and record["status"] != "done":
            for each in self._lanes.values():
                each.close()

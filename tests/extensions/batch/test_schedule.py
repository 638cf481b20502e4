"""The schedule of a batch, with an engine that does nothing.

Tests `extensions/batch/schedule.py`.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from codex_py.extensions.batch.schedule import Record, Schedule
from codex_py.extensions.batch.tasks import Row


def row(name: str, provider: str = "p", priority: int = 0) -> Row:
    return Row(name, 0, "", provider, priority)


def worked(
    rows: Sequence[Row], status: Callable[[Row, int], str], **options: Any
) -> tuple[list[str], dict[str, tuple[str, int]], dict[str, int]]:
    """The attempts in their order, how each task ended, and the most attempts at once for a provider."""
    begun: list[str] = []
    ends: dict[str, tuple[str, int]] = {}
    running: dict[str, int] = {}
    most: dict[str, int] = {}

    async def run(row: Row) -> Record:
        begun.append(row.id)
        running[row.provider] = running.get(row.provider, 0) + 1
        most[row.provider] = max(most.get(row.provider, 0), running[row.provider])
        await asyncio.sleep(0)
        running[row.provider] -= 1
        return {"status": status(row, len(row.attempts) + 1)}

    def ended(row: Row, record: Record) -> None:
        ends[row.id] = record["status"], len(row.attempts)

    async def main() -> None:
        settings: dict[str, Any] = {"jobs": 8, "limits": {}, "retries": 2, **options}
        await Schedule(rows, run, ended, **settings).work()

    asyncio.run(main())
    return begun, ends, most


def test_higher_priorities_begin_first_and_equal_ones_in_their_order() -> None:
    rows = [row("a"), row("b", priority=-1), row("c", priority=2), row("d")]
    begun, _, _ = worked(rows, lambda _row, _number: "done", jobs=1)
    assert begun == ["c", "a", "d", "b"]


def test_each_provider_has_its_limit_and_all_have_that_of_the_jobs() -> None:
    rows = [
        row(f"{provider}{number}", provider) for number in range(9) for provider in "pq"
    ]
    _, ends, most = worked(rows, lambda _row, _number: "done", jobs=6, limits={"p": 2})
    assert set(ends.values()) == {("done", 1)}
    assert (most["p"], most["q"]) == (2, 4)


def test_a_lost_attempt_is_repeated_as_often_as_retries_allow() -> None:
    _, ends, _ = worked(
        [row("a"), row("b")],
        lambda row, n: "lost" if row.id == "a" or n < 3 else "done",
    )
    assert ends == {"a": ("failed", 3), "b": ("done", 3)}


def test_a_provider_that_never_has_time_ends_its_tasks_as_failed() -> None:
    _, ends, _ = worked(
        [row("a")], lambda _row, _number: "try_later", jobs=2, retries=0
    )
    assert ends == {"a": ("failed", 2)}


def test_an_outage_does_not_use_up_the_attempts_of_one_task() -> None:
    left = 3

    def status(_row: Row, _number: int) -> str:
        nonlocal left
        left -= 1
        return "try_later" if left >= 0 else "done"

    rows = [row(name) for name in "abcdef"]
    begun, ends, _ = worked(rows, status, jobs=1, retries=1)
    assert begun[:6] == list("abcdef")
    assert {name: end for name, (end, _) in ends.items()} == dict.fromkeys(
        "abcdef", "done"
    )


def test_a_stopped_provider_ends_no_task_of_another() -> None:
    rows = [row("a", "p"), row("b", "p"), row("c", "q")]
    _, ends, _ = worked(
        rows, lambda row, _: "stopped" if row.provider == "p" else "done", jobs=1
    )
    assert ends == {"c": ("done", 1)}

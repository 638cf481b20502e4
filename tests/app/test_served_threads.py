"""The threads of a server, by their ids."""

import asyncio

from codex_py.app.served_threads import ServedThreads
from codex_py.testing import FakeModel, Pause
from tests.app.test_json_rpc import in_a_loop
from tests.app.test_served_thread import RecordedThread, answer_after, reached
from tests.support.program import Workplace


class ClosingThread(RecordedThread):
    """A thread whose end can be waited for."""

    def __init__(self, place: Workplace, model: FakeModel) -> None:
        super().__init__(place, model)
        self.closed = asyncio.Event()

    async def close(self) -> None:
        await super().close()
        self.closed.set()


@in_a_loop
async def test_a_thread_is_found_by_each_of_its_ids(place: Workplace) -> None:
    threads = ServedThreads[RecordedThread]()
    one = RecordedThread(place, FakeModel())
    two = RecordedThread(place, FakeModel())
    threads.use(one)
    assert list(threads) == [one]
    threads.use(one, "a")
    threads.use(two, "b")
    threads.use(one, "c", "d")
    assert list(threads) == [two, one]
    assert [threads.get(name) for name in "abcd"] == [one, two, one, one]
    threads.remove(one)
    threads.remove(one)
    assert [threads.get(name) for name in "abcd"] == [None, two, None, None]


@in_a_loop
async def test_the_threads_used_longest_ago_are_closed(place: Workplace) -> None:
    threads = ServedThreads[ClosingThread]()
    made = [ClosingThread(place, FakeModel("one", "two")) for _ in range(18)]
    for thread in made:
        await thread.prompt("a").ended()
        threads.use(thread)
    threads.use(made[0])
    threads.close_idle()
    threads.close_idle()
    for thread in made[1:3]:
        await thread.closed.wait()
    assert [n for n in range(18) if not made[n].is_open] == [1, 2]
    assert (await made[1].prompt("b").ended()).last_message == "two"
    await threads.aclose()


@in_a_loop
async def test_all_turns_end_when_the_server_closes(place: Workplace) -> None:
    threads = ServedThreads[RecordedThread]()
    pauses = [Pause(), Pause()]
    for pause in pauses:
        thread = RecordedThread(place, FakeModel(answer_after(pause)))
        threads.use(thread)
        thread.prompt("a")
        await reached(pause)
    open_threads = list(threads)
    await threads.aclose()
    assert list(threads) == []
    for thread in open_threads:
        assert thread.turns() == ["TurnStarted", "TurnFailed"]
        assert not thread.is_open
    for pause in pauses:
        pause.until.set()

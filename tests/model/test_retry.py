import pytest

from codex_py.errors import ModelError, StreamError
from codex_py.model.retry import Retries
from codex_py.protocol.stream import Retry


def retries(request_max: int = 4, stream_max: int = 5) -> Retries:
    return Retries(request_max, stream_max, random=lambda: 0.5)


def failure(started: bool = False, retry_after_s: float | None = None) -> StreamError:
    return StreamError("x", started=started, retry_after_s=retry_after_s)


def test_delays_double_in_each_layer_until_the_budget_is_spent() -> None:
    budget = retries(2, 2)
    found = [budget.next(failure()) for _ in range(9)]
    delays_s = [0.2, 0.4, 0.2, 0.2, 0.4, 0.4, 0.2, 0.4]
    assert found == [
        *(Retry(n, 8, delay_s) for n, delay_s in enumerate(delays_s, 1)),
        None,
    ]


def test_a_service_may_be_away_for_twenty_seconds() -> None:
    budget = retries()
    waits = [retry.delay_s for retry in iter(lambda: budget.next(failure()), None)]
    assert (len(waits), sum(waits)) == (29, pytest.approx(24.2))


def test_a_server_of_this_machine_that_is_not_there_is_waited_for_some_seconds() -> (
    None
):
    budget = retries()
    refused = StreamError("x", few_retries=True)
    waits = [retry.delay_s for retry in iter(lambda: budget.next(refused), None)]
    assert (len(waits), sum(waits)) == (4, pytest.approx(3.0))


def test_all_retries_of_a_request_share_one_count() -> None:
    for error, most in (
        (failure(), 29),
        (failure(started=True), 5),
        (StreamError("x", few_retries=True), 4),
    ):
        budget = retries()
        found = list(iter(lambda: budget.next(error), None))  # noqa: B023 - used at once
        assert [(retry.attempt, retry.maximum) for retry in found] == [
            (number, most) for number in range(1, most + 1)
        ]


def test_a_stream_that_breaks_leaves_its_next_request_a_full_allowance() -> None:
    budget = retries(1, 2)
    assert budget.next(failure()) == Retry(1, 5, 0.2)
    assert budget.next(failure(started=True)) == Retry(2, 3, 0.2)
    assert budget.next(failure()) == Retry(3, 5, 0.2)
    assert budget.next(failure(started=True)) == Retry(4, 4, 0.4)
    assert budget.next(failure(started=True)) is None


def test_jitter_is_a_tenth_either_way() -> None:
    for number, delay_s in ((0.0, 0.18), (1.0, 0.22)):
        retry = Retries(4, 5, random=lambda number=number: number).next(failure())
        assert retry is not None
        assert retry.delay_s == pytest.approx(delay_s)


def test_the_delay_of_the_server_is_kept_to_the_full() -> None:
    retry = retries().next(failure(retry_after_s=2.0))
    assert retry == Retry(1, 29, 2.0)


def test_a_server_that_says_at_once_is_not_hammered() -> None:
    retry = retries().next(failure(retry_after_s=0.0))
    assert retry == Retry(1, 29, 0.2)


def test_a_server_that_asks_for_too_long_is_not_waited_for() -> None:
    assert retries().next(failure(retry_after_s=120.5)) is None


def test_all_waiting_for_one_request_is_bounded() -> None:
    budget = retries(1_000, 1_000)
    found = [budget.next(failure(retry_after_s=100.0)) for _ in range(7)]
    assert [retry is not None for retry in found] == [True] * 6 + [False]
    assert found[0] == Retry(1, 200, 100.0)


def test_a_request_that_succeeds_gives_the_next_one_a_full_allowance() -> None:
    budget = retries(1, 0)
    for _ in range(50):
        assert budget.next(failure()) == Retry(1, 1, 0.2)
        assert budget.next(failure()) is None
        budget.renew()


def test_a_turn_retries_two_hundred_times_at_most() -> None:
    budget = retries()
    found = 0
    while budget.next(failure()) is not None:
        found += 1
        budget.renew()
    assert found == 200


def test_a_final_failure_is_not_tried_again() -> None:
    assert retries().next(ModelError("x")) is None

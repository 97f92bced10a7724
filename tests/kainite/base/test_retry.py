"""The schedule of pauses, and the loops around a call that may fail."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.base.errors import LogCorruptError, LogUnavailableError, StreamUnavailableError
from kainite.base.retry import AWS_BACKOFF, Backoff, is_retryable, only, retry, retry_async

SCHEDULE = Backoff((0.1, 0.2, 0.5))
AWAY = LogUnavailableError("the store is away")


def failing(times: int, error: Exception = AWAY) -> Callable[[], str]:
    """Returns a call that fails so often before it answers."""
    left = [error] * times

    def call() -> str:
        if left:
            raise left.pop()
        return "answer"

    return call


@pytest.mark.parametrize(
    ("backoff", "pauses"),
    [
        (SCHEDULE, [0.1, 0.2, 0.5, 0.5]),
        (Backoff.doubling(0.5, 3.0), [0.5, 1.0, 2.0, 3.0, 3.0]),
        (Backoff.doubling(0.5, 2.0), [0.5, 1.0, 2.0, 2.0]),
        (Backoff.doubling(5.0, 2.0), [2.0, 2.0]),
        (Backoff.doubling(0.0, 2.0), [0.0, 0.0]),
        (Backoff.doubling(0.0, 0.0), [0.0, 0.0]),
    ],
)
def test_the_pauses_are_those_of_the_schedule_and_the_last_one_repeats(backoff: Backoff, pauses: list[float]) -> None:
    assert [backoff.after(failures) for failures in range(1, len(pauses) + 1)] == pauses


@pytest.mark.parametrize(
    ("jitter", "number", "pause"), [(0.5, 0.0, 8.0), (0.5, 1.0, 4.0), (1.0, 1.0, 0.0), (0.0, 1.0, 8.0)]
)
def test_jitter_shortens_a_pause_by_a_random_part(jitter: float, number: float, pause: float) -> None:
    assert Backoff((8.0,), jitter).after(1, lambda: number) == pause


@given(st.integers(1, 10_000))
def test_pauses_for_aws_grow_with_jitter_and_have_a_cap(failures: int) -> None:
    longest = min(20.0, 0.2 * 2.0 ** min(failures - 1, 40))
    assert longest / 2 <= AWS_BACKOFF.after(failures) <= longest


def test_a_backoff_without_pauses_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one pause"):
        Backoff(())


@pytest.mark.parametrize(
    ("error", "retryable"),
    [(LogUnavailableError("x"), True), (LogCorruptError("x"), False), (OSError("x"), False)],
)
def test_which_errors_are_retried_where_nothing_else_is_said(error: Exception, retryable: bool) -> None:
    assert is_retryable(error) is retryable


def test_a_call_is_made_until_it_succeeds() -> None:
    waited: list[float] = []
    told: list[tuple[Exception, int, float]] = []
    answer = retry(failing(4), SCHEDULE, wait=waited.append, failed=lambda *failure: told.append(failure))
    assert answer == "answer"
    assert waited == [0.1, 0.2, 0.5, 0.5]
    assert told == [(AWAY, 1, 0.1), (AWAY, 2, 0.2), (AWAY, 3, 0.5), (AWAY, 4, 0.5)]


@pytest.mark.parametrize(("failures", "succeeds"), [(2, True), (3, False)])
def test_the_number_of_tries_counts_the_first_one(failures: int, succeeds: bool) -> None:
    waited: list[float] = []
    call = failing(failures)
    if succeeds:
        assert retry(call, SCHEDULE, wait=waited.append, tries=3) == "answer"
    else:
        with pytest.raises(LogUnavailableError):
            retry(call, SCHEDULE, wait=waited.append, tries=3)
    assert waited == [0.1, 0.2]


def test_an_error_that_is_not_worth_another_attempt_is_raised_at_once() -> None:
    waited: list[float] = []
    with pytest.raises(LogUnavailableError):
        retry(failing(1), SCHEDULE, wait=waited.append, retryable=only(StreamUnavailableError))
    assert waited == []


def test_a_stop_that_is_set_ends_the_retries_with_the_latest_error() -> None:
    stop = threading.Event()
    stop.set()
    with pytest.raises(LogUnavailableError):
        retry(failing(1), SCHEDULE, wait=stop.wait)


def test_sleeping_goes_on_until_the_call_succeeds() -> None:
    assert retry(failing(1), Backoff((0.0,)), wait=time.sleep) == "answer"


async def test_an_awaited_call_is_made_until_it_succeeds() -> None:
    waited: list[float] = []
    told: list[int] = []
    call = failing(2)

    async def awaited() -> str:
        return call()

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    def failed(error: Exception, failures: int, pause: float) -> None:
        told.append(failures)

    answer = await retry_async(awaited, SCHEDULE, sleep=sleep, failed=failed)
    assert answer == "answer"
    assert (waited, told) == ([0.1, 0.2], [1, 2])


async def test_an_awaited_call_is_given_up_after_the_last_try() -> None:
    call = failing(9)

    async def awaited() -> str:
        return call()

    with pytest.raises(LogUnavailableError):
        await retry_async(awaited, Backoff((0.0,)), tries=2)

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from kainite_demo.dsql_delivery import Habits, UntidyDelivery, hash_of

HABITS = Habits(spread=0.4, repeats=0.2, lagging=0.25, lag=0.3, burst_every=5.0, burst_pause=0.5)


def delivered(seed: int, count: int, habits: Habits = HABITS) -> list[tuple[float, str, bytes]]:
    """Gives a record each 10 ms; returns when each came, its key and data."""
    delivery, came = UntidyDelivery(habits, random.Random(seed)), []
    for tick in range(count + 1000):
        if tick < count:
            delivery.give(b"%d" % tick, tick / 100)
        came += [(tick / 100, key, data) for key, data in delivery.due(tick / 100)]
        if tick >= count and not len(delivery):
            break
    return came


@given(seed=st.integers(), count=st.integers(1, 60))
def test_every_record_comes_within_the_lateness(seed: int, count: int) -> None:
    came = delivered(seed, count)
    assert {data for _, _, data in came} == {b"%d" % number for number in range(count)}
    assert all(0 <= at - int(data) / 100 <= HABITS.lateness + 0.01 for at, _, data in came)


@given(st.integers())
def test_the_same_seed_gives_the_same_delivery(seed: int) -> None:
    assert delivered(seed, 30) == delivered(seed, 30)


def test_records_overtake_each_other_come_again_lag_and_come_in_bursts() -> None:
    came = delivered(1, 1500)
    order = [int(data) for _, _, data in came]
    assert order != sorted(order)
    assert 1.1 < len(order) / 1500 < 1.3
    lags = {True: [0.0], False: [0.0]}
    for at, key, data in came:
        lags[hash_of(key) < 2**126].append(at - int(data) / 100)
    assert sum(lags[True]) / len(lags[True]) > sum(lags[False]) / len(lags[False]) + 0.2
    assert not [at for at, _, _ in came if 0 < at % 5 < 0.5]
    assert len({key for _, key, _ in came}) == len(came), "each record has a random key of its own"


def test_habits_can_be_tidy() -> None:
    tidy = Habits(spread=0, repeats=0, lagging=0, lag=0, burst_every=0, burst_pause=0)
    assert [int(data) for _, _, data in delivered(1, 20, tidy)] == list(range(20))

"""A counter's age is the time since its present value was first seen, by the observer's clock alone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kainite.base.liveness import Sighting, observe

TIMEOUT = 10

# Whole seconds: the properties are about order, not about rounding.
reads = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 20)), min_size=1, max_size=40)
"""Each: the counter's value, and the seconds since the read before."""


def read_all(gaps: list[tuple[int, int]], *, offset: int = 0) -> list[tuple[int, Sighting[int]]]:
    """Returns the clock's time and the sighting after each read; ``offset`` is where the clock begins."""
    now, last, found = offset, None, []
    for counter, gap in gaps:
        now += gap
        last = observe(last, counter, now)
        found.append((now, last))
    return found


def test_the_first_observation_has_age_0_and_is_no_movement() -> None:
    first = observe(None, 7, 100.0)
    assert first == Sighting(7, 100.0, moved=False)
    assert first.age(100.0) == 0.0


def test_a_lower_value_is_a_movement_too() -> None:
    assert observe(Sighting(7, 100.0), 6, 105.0) == Sighting(6, 105.0, moved=True)


def test_the_timeout_itself_is_expired() -> None:
    seen = Sighting("version", 100.0)
    assert not seen.expired(109.9, TIMEOUT)
    assert seen.expired(110.0, TIMEOUT)


@given(reads)
def test_the_age_is_the_time_since_the_present_value_was_first_seen(gaps: list[tuple[int, int]]) -> None:
    found = read_all(gaps)
    now, last = found[-1]
    counters = [counter for counter, _ in gaps]
    run = next((n for n, counter in enumerate(reversed(counters)) if counter != counters[-1]), len(counters))
    assert last.counter == counters[-1]
    assert last.age(now) == now - found[-run][0]
    assert last.moved == (len(set(counters)) > 1)
    assert last.expired(now, TIMEOUT) == (last.age(now) >= TIMEOUT)


@given(reads, st.integers(-(10**9), 10**9))
def test_ages_do_not_depend_on_where_the_clock_begins(gaps: list[tuple[int, int]], offset: int) -> None:
    ages = [last.age(now) for now, last in read_all(gaps)]
    assert [last.age(now) for now, last in read_all(gaps, offset=offset)] == ages


@given(st.lists(st.integers(0, TIMEOUT - 1), max_size=40))
def test_a_counter_that_moves_within_the_timeout_never_expires(gaps: list[int]) -> None:
    now, last = 0, observe(None, 0, 0)
    for counter, gap in enumerate(gaps, 1):
        now += gap
        assert not last.expired(now, TIMEOUT)
        last = observe(last, counter, now)


@given(st.lists(st.integers(0, 20), max_size=40))
def test_a_counter_that_stands_still_expires_at_the_timeout_however_often_it_is_read(gaps: list[int]) -> None:
    now, last = 0, observe(None, 0, 0)
    for gap in gaps:
        now += gap
        last = observe(last, 0, now)
        assert last.expired(now, TIMEOUT) == (now >= TIMEOUT)

"""Locks are never underestimated, and exact for those raised last."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kainite.waltz.locks import Locks

HASHES = st.integers(0, 30)


@given(st.lists(st.frozensets(HASHES, max_size=4), max_size=40), st.integers(1, 10), HASHES)
def test_a_lock_is_never_underestimated_and_exact_while_few_others_were_raised(
    raised: list[frozenset[int]], most: int, asked: int
) -> None:
    locks = Locks(-1, most)
    for transaction, hashes in enumerate(raised):
        locks.note(transaction, hashes)
    truth = max((transaction for transaction, hashes in enumerate(raised) if asked in hashes), default=-1)
    later = set().union(*raised[truth + 1 :]) if raised else set()
    told = locks.latest([asked])
    assert told >= truth
    if truth >= 0 and len(later | {asked} | raised[truth]) <= most:
        assert told == truth


def test_beyond_the_most_locks_a_mark_before_the_floor_meets_a_false_conflict_and_a_later_one_none() -> None:
    locks = Locks(-1, most=300)
    for transaction in range(1_000):
        locks.note(transaction, [transaction])
    assert locks.latest([5_000]) == 699
    assert locks.latest([998]) == 998
    assert locks.latest([]) == -1
    assert locks.latest([5_000, 998]) == 998

"""Credit: what is under way stays within its bounds, and everything passes in the end."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kainite.peers.connection.credit import Credit


def test_one_message_of_any_size_passes_alone() -> None:
    credit = Credit(10)
    assert credit.has_room(1000)
    credit.take(1000)
    assert not credit.has_room(0)
    credit.give(1000)
    assert credit.has_room(10)


@given(st.lists(st.integers(0, 30), max_size=40), st.integers(1, 5))
def test_the_bounds_hold_whatever_is_sent(sizes: list[int], most: int) -> None:
    credit = Credit(20, most)
    under_way: list[int] = []
    for size in sizes:
        while not credit.has_room(size):
            credit.give(under_way.pop(0))
        credit.take(size)
        under_way.append(size)
        assert credit.bytes == sum(under_way)
        assert len(under_way) <= most
        assert sum(under_way) <= 20 or sum(1 for one in under_way if one) == 1

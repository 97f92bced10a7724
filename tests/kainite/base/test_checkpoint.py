from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.base.checkpoint import AT_TIMESTAMP, LATEST, SHARD_END, TRIM_HORIZON, Checkpoint
from kainite.base.position import Position

NUMBERS = st.builds(Checkpoint, st.integers(0, 10**60).map(str), st.integers(0, 5))
ANY = NUMBERS | st.sampled_from([AT_TIMESTAMP, TRIM_HORIZON, LATEST, SHARD_END])


@given(NUMBERS)
def test_sentinels_stand_around_every_number_in_kcls_order(number: Checkpoint) -> None:
    assert AT_TIMESTAMP < TRIM_HORIZON < LATEST < number < SHARD_END


@given(ANY, ANY, ANY)
def test_the_order_is_total_and_agrees_with_equality(a: Checkpoint, b: Checkpoint, c: Checkpoint) -> None:
    assert [a < b, a == b, b < a].count(True) == 1
    assert (a <= b) == (a < b or a == b)
    if a <= b <= c:
        assert a <= c
    if a == b:
        assert hash(a) == hash(b)


@given(st.builds(Position, st.integers(0, 10**60), st.integers(0, 9)), st.builds(Position, st.integers(0, 10**60)))
def test_checkpoints_compare_as_their_positions(one: Position, two: Position) -> None:
    assert Checkpoint.at(one).position == one
    assert (Checkpoint.at(one) < Checkpoint.at(two)) == (one < two)


def test_numbers_compare_by_value_not_by_text() -> None:
    assert Checkpoint("9") < Checkpoint("10")
    assert Checkpoint("007") == Checkpoint("7")


@pytest.mark.parametrize("text", ["", "latest", "-1", "1.5", "1e5", " 1", "٣", "9" * 129, "SHARD_END "])
def test_what_is_neither_number_nor_sentinel_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="neither"):
        Checkpoint(text)


def test_a_sentinel_is_no_position() -> None:
    assert TRIM_HORIZON.position is None
    with pytest.raises(ValueError, match="negative"):
        Checkpoint("1", -1)

"""Batches begin where a reader asks; outcomes are equal whenever they were learned; positions exceed 64 bits."""

from __future__ import annotations

import pytest

from kainite.base.position import Position
from kainite.log.format.entry import Outcome, PositionMeta, UnitStatus
from support.log_builders import batch


@pytest.mark.parametrize(("first", "ids"), [(0, [5, 6, 7]), (6, [6, 7]), (8, [])])
def test_a_batch_gives_its_entries_from_an_id_on(first: int, ids: list[int]) -> None:
    three = batch(5, count=3)
    assert [tid for tid, _ in three.entries_from(first)] == ids
    assert three.last_id == 7


def test_an_outcome_is_the_same_whenever_it_was_learned() -> None:
    one, later = (Outcome(1, UnitStatus.COMMITTED, 0, at_ms=at) for at in (5, 6))
    assert one == later
    assert hash(one) == hash(later)
    assert one != Outcome(1, UnitStatus.COMMITTED, 1, at_ms=5)
    assert one != (1, UnitStatus.COMMITTED, 0, None)


def test_a_position_keeps_a_sequence_number_of_any_length() -> None:
    position = Position(2**186, 3)
    assert PositionMeta.of("s", position).position == position

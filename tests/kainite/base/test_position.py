from __future__ import annotations

import itertools

import pytest

from kainite.base.position import Position

IN_ORDER = [Position(0), Position(9), Position(9, 1), Position(9, 10), Position(10), Position(10**127)]


@pytest.mark.parametrize(
    ("before", "after"),
    list(itertools.pairwise(IN_ORDER)),
)
def test_sequence_numbers_are_ordered_as_numbers_and_sub_sequence_numbers_inside_them(
    before: Position, after: Position
) -> None:
    assert before < after
    assert max(after, before) == after


def test_a_record_that_is_no_aggregates_is_the_first_of_its_sequence_number() -> None:
    assert Position(7) == Position(7, 0)

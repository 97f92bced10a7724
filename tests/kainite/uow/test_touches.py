"""What a unit touches, while it grows."""

from __future__ import annotations

from kainite.uow.scheme import MIXED
from kainite.uow.touches import NOTHING, Touched, TouchedSoFar

ONE = Touched(frozenset({1}), frozenset({2}), ("b",), (), "s")
OTHER = Touched(frozenset({3}), frozenset({2}), ("a", "b"), ("a",), "s")


def test_parts_add_up() -> None:
    unit = TouchedSoFar()
    unit.add(ONE, 1, 0)
    unit.add(OTHER, 2, 1)
    assert unit.frozen() == Touched(frozenset({1, 3}), frozenset({2}), ("a", "b"), ("a",), "s")


def test_the_scheme_is_that_of_all_parts_with_deltas() -> None:
    unit = TouchedSoFar()
    unit.add(NOTHING, 0, 0)
    assert unit.scheme is None
    unit.add(ONE, 1, 0)
    unit.add(NOTHING, 0, 1)
    assert unit.scheme == "s"
    unit.add(Touched(scheme="t"), 1, 1)
    assert unit.scheme == MIXED


def test_what_it_would_be_with_more_changes_nothing() -> None:
    unit = TouchedSoFar.of(ONE)
    assert unit.with_(OTHER, 2, 1).written == {1, 3}
    assert unit.frozen() == ONE


def test_copies_grow_by_themselves() -> None:
    unit = TouchedSoFar.of(ONE)
    copy = unit.copy()
    unit.add(OTHER, 1, 1)
    assert copy.frozen() == ONE

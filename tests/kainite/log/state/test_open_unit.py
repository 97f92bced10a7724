"""What FRAGMENT entries add up to."""

from __future__ import annotations

import pytest

from kainite.log.format.entry import Fault, FragmentMeta
from kainite.log.state.open_unit import MOST_CAUSES, OpenUnit, latest
from kainite.uow.delta import UnitEnd, UnitKind
from kainite.uow.touches import Touched

END = UnitEnd(2, 7, UnitKind.CORRECTION)


def opened(*metas: FragmentMeta) -> OpenUnit:
    unit = OpenUnit("T", 0)
    for tid, meta in enumerate(metas):
        unit.add(tid, meta, Touched(frozenset({tid})))
    return unit


def test_the_end_tells_number_and_kind() -> None:
    unit = opened(FragmentMeta("T", "s", 1, (0,)))
    assert (unit.number, unit.kind, unit.lacks) == (None, UnitKind.NORMAL, "its end has not come; 1 delta has")
    unit.add(1, FragmentMeta("T", "s", 0, end=END), Touched())
    assert (unit.number, unit.kind, unit.lacks) == (7, UnitKind.CORRECTION, "1 of its 2 deltas have come")
    unit.add(2, FragmentMeta("T", "s", 1, (1,)), Touched())
    assert unit.whole
    assert unit.lacks is None


def test_a_unit_that_was_given_up_is_complete_and_has_no_cause_of_its_own() -> None:
    unit = opened(
        FragmentMeta("T", "s", 1, end=END), FragmentMeta("T", "s", 0, causes=("slow",), fault=Fault.INCOMPLETE)
    )
    assert (unit.given_up, unit.causes, unit.complete, unit.whole) == ("slow", [], True, False)


def test_the_first_causes_are_kept() -> None:
    unit = OpenUnit("T", 0)
    for tid in range(3):
        causes = tuple(f"{tid}.{place}" for place in range(MOST_CAUSES - 1))
        unit.add(tid, FragmentMeta("T", "s", 1, causes=causes, misfits=causes), Touched())
    assert len(unit.causes) == len(unit.misfits) == MOST_CAUSES
    assert unit.causes[-1] == unit.misfits[-1] == "1.0"


def test_deltas_are_known_by_their_ordinals_and_digests() -> None:
    unit = opened(FragmentMeta("T", "s", 2, (5,), digests=(b"d" * 16,)))
    assert [unit.has(identity) for identity in (5, 6, b"d" * 16, b"e" * 16)] == [True, False, True, False]


def test_only_times_by_which_the_watermark_ends_units_count() -> None:
    unit = opened(FragmentMeta("T", "s", 1, time=5, arrived_ms=6))
    assert (unit.time, unit.arrived_ms) == (None, None)
    unit.add(1, FragmentMeta("T", "s", 1, time=4, arrived_ms=9, watermark=True), Touched())
    unit.add(2, FragmentMeta("T", "s", 1, time=8, watermark=True), Touched())
    assert (unit.time, unit.arrived_ms) == (8, 9)


def test_a_copy_stays_as_it_is() -> None:
    unit = opened(FragmentMeta("T", "s", 1, (0,), causes=("a",), misfits=("b",)))
    copy, as_it_was = unit.copy(), unit.copy()
    unit.add(
        1, FragmentMeta("T", "t", 1, (1,), causes=("c",), misfits=("d",), digests=(b"d" * 16,)), Touched(frozenset({9}))
    )
    assert copy == as_it_was != unit


@pytest.mark.parametrize(("one", "other", "found"), [(None, None, None), (1, None, 1), (None, 2, 2), (1, 2, 2)])
def test_the_later_of_two_times_that_may_not_be_known(one: int | None, other: int | None, found: int | None) -> None:
    assert latest(one, other) == found

"""A dispatched unit: what its UNIT entry says, and what comes behind it."""

from __future__ import annotations

import pytest

from kainite.log.format.entry import Fault, FragmentMeta, Outcome, RefitMeta, UnitMeta, UnitStatus
from kainite.log.state.open_unit import OpenUnit
from kainite.log.state.unit_state import UnitState
from kainite.uow.delta import UnitEnd, UnitKind
from kainite.uow.touches import Touched

TOUCHED = Touched(frozenset({1}), frozenset({2}), ("t",), ("t",), "s")


def incomplete(fault: Fault = Fault.INCOMPLETE) -> UnitState:
    """Returns a unit that failed with one of two deltas."""
    opened = OpenUnit("T", 0)
    opened.add(3, FragmentMeta("T", "s0", 1, (0,), causes=("odd",) if fault is Fault.MALFORMED else ()), TOUCHED)
    meta = UnitMeta("T", 1, ("s0",), (3,), cause="1 of 2", fault=fault)
    return UnitState.dispatched(4, meta, TOUCHED, opened)


def test_a_sound_unit_is_in_progress_with_what_its_entry_touches() -> None:
    unit = UnitState.dispatched(4, UnitMeta("T", 1), TOUCHED, OpenUnit("T", 0))
    assert (unit.status, unit.late, unit.obstacle, unit.own) == (UnitStatus.IN_PROGRESS, None, None, TOUCHED)
    assert (unit.written, unit.read, unit.tables, unit.unsigned, unit.scheme) == ({1}, {2}, ("t",), ("t",), "s")
    assert (unit.entries, unit.first_tid) == ((4,), 4)


def test_a_unit_that_lacks_parts_goes_on_collecting_at_its_place() -> None:
    unit = incomplete()
    assert unit.collecting
    late = FragmentMeta("T", "s1", 1, (1,), UnitEnd(2, 9, UnitKind.REVERSAL))
    grown = unit.with_late(7, late, Touched(frozenset({5}), tables=("u",), scheme="s"))
    assert (grown.tid, grown.count, grown.number, grown.kind) == (4, 2, 9, UnitKind.REVERSAL)
    assert (grown.written, grown.read, grown.tables, grown.scheme) == ({1, 5}, {2}, ("t", "u"), "s")
    assert (grown.entries, grown.shards, grown.first_tid) == ((3, 7, 4), ["s0", "s1"], 3)
    assert not grown.collecting
    assert grown.obstacle is None
    assert grown.memory > UnitState(4, grown.meta).memory


def test_a_snapshots_copy_does_not_grow() -> None:
    unit = incomplete()
    copy = unit.copy()
    unit.with_late(7, FragmentMeta("T", "s1", 1, (1,)), Touched(frozenset({5})))
    assert (copy.written, copy.fragments) == ({1}, [3])


@pytest.mark.parametrize(
    ("fault", "malformed"), [(Fault.MALFORMED, True), (Fault.MISSING_NUMBER, True), (Fault.INCOMPLETE, False)]
)
def test_what_no_retry_can_apply_is_malformed(fault: Fault, malformed: bool) -> None:
    unit = UnitState.dispatched(0, UnitMeta("T", 0, cause="why", fault=fault), TOUCHED)
    assert (unit.malformed, unit.obstacle) == (malformed, "why" if malformed else None)


def test_a_retry_is_an_attempt_and_keeps_the_job_instance() -> None:
    unit = incomplete().settled(Outcome(4, UnitStatus.FAILED, 2, "no"))
    again = unit.settled(Outcome(4, UnitStatus.IN_PROGRESS))
    assert (again.attempt, again.instance, again.cause, again.resolved) == (1, 2, None, False)
    assert again.settled(Outcome(4, UnitStatus.DISCARDED)).resolved


def test_a_unit_that_was_judged_anew_has_its_deltas_in_the_refit_entry() -> None:
    unit = incomplete().judged_anew(9, RefitMeta(4, "T", 5), Touched(frozenset({8}), tables=("u",), scheme="x"))
    assert (unit.entries, unit.count, unit.fault, unit.late) == ((9,), 5, None, None)
    assert (unit.written, unit.tables, unit.unsigned, unit.scheme) == ({8}, ("u",), (), "x")
    assert unit.first_tid == 3

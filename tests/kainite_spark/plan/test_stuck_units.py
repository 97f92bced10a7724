"""The failed, delayed and blocked units: which of them a unit has to wait for."""

from __future__ import annotations

import pytest

from kainite.log.format.entry import UnitStatus
from kainite.settings import OnFailure
from kainite_spark.plan.stuck_units import StuckUnits
from support.unit_states import unit_state

UNITS = {tid: unit_state(tid, {tid % 2}) for tid in range(6)}


@pytest.mark.parametrize(("policy", "blocker"), [(OnFailure.BLOCK, 1), (OnFailure.SKIP, None)])
def test_a_failed_unit_holds_back_what_conflicts_unless_it_is_skipped(policy: OnFailure, blocker: int | None) -> None:
    stuck = StuckUnits(UNITS, policy)
    stuck.fail(1, "refused")

    assert stuck.blocker_of(UNITS[3]) == blocker
    assert stuck.blocker_of(UNITS[2]) is None


def test_a_delayed_unit_holds_back_whatever_the_policy_until_its_delay_ends() -> None:
    stuck = StuckUnits(UNITS, OnFailure.SKIP)
    stuck.delay(1, 0.0)
    assert stuck.blocker_of(UNITS[3]) == 1
    stuck.block(UNITS[3], 1)

    assert stuck.end_delay(1)
    assert list(stuck.release()) == [3]
    assert stuck.blocker_of(UNITS[3]) is None
    assert not stuck.end_delay(1)


def test_a_blocked_unit_holds_back_others_and_tells_whom_it_waits_for() -> None:
    stuck = StuckUnits(UNITS, OnFailure.BLOCK)
    stuck.block(UNITS[3], 1)

    assert stuck.blocker_of(UNITS[5]) == 3
    assert stuck.status(3) == (UnitStatus.BLOCKED, "waits for 1")
    assert stuck.status(5) is None


def test_only_what_held_others_back_has_to_release_them() -> None:
    stuck = StuckUnits(UNITS, OnFailure.BLOCK)
    stuck.fail(1, None)

    assert not stuck.remove([2])
    assert stuck.remove([1])
    assert list(stuck) == []

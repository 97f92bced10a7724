"""The apply job's view of the main log: new units, a person's decisions, outcomes that the owner has not copied yet."""

from __future__ import annotations

import pytest

from kainite.log.format.entry import Outcome, StatusMeta, UnitStatus
from kainite.store.memory import MemoryStore
from kainite.uow.delta import UnitEnd
from kainite.uow.signature import Signatures
from kainite_spark.driver.follower import LogFollower
from kainite_spark.plan.backlog import Backlog
from support.apply_world import insert
from support.main_log import MainLog

COMMITTED, DISCARDED, FAILED = UnitStatus.COMMITTED, UnitStatus.DISCARDED, UnitStatus.FAILED


class World:
    """A main log, and a follower of it that has read the log to its tail."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.log = MainLog(self.store, Signatures(None))
        self.follower = LogFollower(self.store, "0")

    @property
    def backlog(self) -> Backlog:
        return self.follower.backlog

    def unresolved(self) -> list[int]:
        return sorted(self.backlog.unresolved())


@pytest.fixture
def world() -> World:
    return World()


def test_units_come_from_the_log_as_it_is_at_the_start_and_then_from_new_entries(world: World) -> None:
    early = world.log.unit("early")
    world.follower.start()
    late = world.log.unit("late")
    assert world.unresolved() == [early]
    assert world.follower.poll(strong=True)
    assert world.unresolved() == [early, late]
    assert world.follower.next_id == world.log.state.next_id


def test_a_malformed_unit_comes_as_failed(world: World) -> None:
    world.follower.start()
    tid = world.log.malformed("bad")
    world.follower.poll(strong=True)
    assert world.backlog.failed.keys() == {tid}


@pytest.mark.parametrize(
    ("status", "unresolved", "failed"), [(COMMITTED, [], []), (DISCARDED, [], []), (FAILED, [0], [0])]
)
def test_outcomes_that_the_owner_has_not_copied_change_what_the_log_says(
    world: World, status: UnitStatus, unresolved: list[int], failed: list[int]
) -> None:
    tid = world.log.unit("T-0")
    world.follower.start(lambda _: [Outcome(tid, status, cause="why")])
    assert world.unresolved() == unresolved
    assert list(world.backlog.failed) == failed


def test_a_person_s_discard_removes_a_unit(world: World) -> None:
    tid = world.log.malformed("bad")
    world.follower.start()
    assert world.unresolved() == [tid]
    world.log.ask("discard", "bad")
    world.follower.poll(strong=True)
    assert world.unresolved() == []


@pytest.mark.parametrize("status", [COMMITTED, DISCARDED])
def test_a_unit_that_a_later_apply_job_has_resolved_is_not_looked_for_any_more(
    world: World, status: UnitStatus
) -> None:
    world.follower.start()
    gone, waiting = world.log.unit("T-0"), world.log.unit("T-1")
    world.follower.poll(strong=True)
    world.log.status(StatusMeta((Outcome(gone, status),), through=4))
    world.follower.poll(strong=True)
    assert world.unresolved() == [waiting]
    assert [unit.tid for unit in world.backlog.take(10, 10).units] == [waiting]


def test_entries_that_were_truncated_before_they_were_read_are_told(world: World) -> None:
    world.follower.start()
    for _ in range(3):
        world.log.append()
    world.log.snapshot()
    assert not world.follower.poll(strong=True)
    world.follower.start()
    assert world.follower.poll(strong=True)


def incomplete(world: World) -> int:
    """Fails a unit of two rows that has one; returns its transaction id."""
    world.log.append(world.log.fragment("T", insert(1), ends=(UnitEnd(2),)))
    return world.log.expire("T")


@pytest.mark.parametrize("start_anew", [False, True])
def test_parts_that_come_late_are_held_back_too_and_a_retry_has_them(world: World, start_anew: bool) -> None:
    world.follower.start()
    tid = incomplete(world)
    world.follower.poll(strong=True)
    world.log.append(world.log.fragment("T", insert(2)))
    if start_anew:
        world.follower.start()
    behind = world.log.unit("U", insert(2))
    world.follower.poll(strong=True)
    assert not world.backlog.take(9, 9).units
    assert world.log.ask("retry", "T") == "ok"
    world.follower.poll(strong=True)
    (whole,) = world.backlog.take(9, 9).units
    assert (whole.tid, whole.count, len(whole.entries)) == (tid, 2, 1), "all is in its REFIT entry"
    world.backlog.settle([Outcome(tid, COMMITTED)])
    # A micro-batch of its own: the retry signed the unit under a scheme, which the other unit's entry does not name.
    (after,) = world.backlog.take(9, 9).units
    assert after.tid == behind
    assert whole.written & after.written

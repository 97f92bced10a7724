"""The apply job's own partition: mounted by one job at a time, and read back by the next one."""

from __future__ import annotations

import threading
from itertools import pairwise

import pytest

from kainite.base.errors import LogFencedError
from kainite.log.format.entry import Outcome, UnitStatus
from kainite.owner.mount import LeaseWatch, mount
from kainite.store.memory import MemoryStore
from kainite_spark.driver.outcomes import LOOK_S, SHORTEST_S, Outcomes, begin_to_watch, mount_outcomes
from kainite_spark.targets.mark import TargetMark

P = "0:outcomes"
MARK = TargetMark(1, 7)
COMMITTED = [Outcome(tid, UnitStatus.COMMITTED) for tid in range(3)]


def mounted(store: MemoryStore, owner: str, lease: float = 60.0) -> Outcomes:
    found = mount_outcomes(store, P, owner, lease, threading.Event())
    assert found is not None
    return found


def test_what_one_job_appended_the_next_one_reads_back() -> None:
    store = MemoryStore()
    with mounted(store, "one") as outcomes:
        outcomes.append(COMMITTED[:1], MARK)
        outcomes.append([], MARK)
        first = outcomes.last_id
        outcomes.append(COMMITTED[1:], MARK)
        assert outcomes.last_id == first + 1, "nothing was appended for no outcomes"
    with mounted(store, "other") as outcomes:
        assert outcomes.read_from(0) == tuple(COMMITTED)
        assert outcomes.read_from(first + 1) == tuple(COMMITTED[1:])


def test_what_is_truncated_is_not_read_back_and_is_not_truncated_again() -> None:
    store = MemoryStore()
    with mounted(store, "one") as outcomes:
        for outcome in COMMITTED:
            outcomes.append([outcome], MARK)
        outcomes.truncate(outcomes.last_id)
        outcomes.truncate(0)
        head = store.read_head(P)
        assert head is not None
        assert head.low_water_mark == outcomes.last_id
        assert outcomes.read_from(outcomes.last_id) == (COMMITTED[-1],)


def test_the_latest_mark_is_read_back_and_never_truncated() -> None:
    store = MemoryStore()
    with mounted(store, "one") as outcomes:
        assert outcomes.read_mark() is None
        outcomes.append(COMMITTED[:1], TargetMark(1, 1))
        outcomes.append(COMMITTED[1:], TargetMark(1, 2))
        outcomes.append([Outcome(9, UnitStatus.FAILED, cause="bad")], TargetMark(1, 3))
        outcomes.truncate(outcomes.last_id + 1)
    for _ in range(2):
        with mounted(store, "other") as outcomes:
            assert outcomes.read_mark() == TargetMark(1, 2, (1, 2))
            outcomes.truncate(outcomes.last_id + 1)


def test_a_job_whose_partition_another_one_has_mounted_appends_nothing() -> None:
    store = MemoryStore()
    silent = mounted(store, "one", lease=0.05)  # not entered: it writes no heartbeats
    with mounted(store, "other") as other:
        assert other.generation > silent.generation
        with pytest.raises(LogFencedError):
            silent.append(COMMITTED, MARK)


def test_a_stop_ends_the_wait_for_another_job() -> None:
    store, stop = MemoryStore(), threading.Event()
    stop.set()
    with mounted(store, "one"):
        assert mount_outcomes(store, P, "other", 60.0, stop) is None


class ClockedStop(threading.Event):
    """A stop whose waits pass at once, by a clock of their own; notes when they end."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.looks: list[float] = []

    def clock(self) -> float:
        return self.now

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        self.now += timeout
        self.looks.append(self.now)
        return self.is_set()


@pytest.mark.parametrize("lease", [0.5, 10.0, 99.9])
def test_who_waits_mounts_when_the_lease_is_over_and_looks_often_enough_to_see_each_heartbeat_soon(
    lease: float,
) -> None:
    store, stop = MemoryStore(), ClockedStop()
    mounted(store, "killed", lease)
    assert mount_outcomes(store, P, "other", lease, stop, LeaseWatch(stop.clock)) is not None
    assert stop.looks[-1] == pytest.approx(lease, abs=2 * SHORTEST_S)
    assert max(after - before for before, after in pairwise([0.0, *stop.looks])) <= LOOK_S


def test_who_waits_makes_ready_while_heartbeats_fail_to_come() -> None:
    store, ready = MemoryStore(), list[float]()
    holder = mount(store, P, "one", 10.0)
    beats = iter([2.5, 5.0, 7.5])
    due = next(beats)

    class Beating(ClockedStop):
        def wait(self, timeout: float | None = None) -> bool:
            nonlocal due
            super().wait(timeout)
            if self.now >= due:
                holder.renew()
                due = next(beats, float("inf"))
            return False

    stop = Beating()
    assert (
        mount_outcomes(store, P, "other", 10.0, stop, LeaseWatch(stop.clock), lambda: ready.append(stop.now))
        is not None
    )
    assert ready[0] == pytest.approx(7.5 + 5.0)
    assert ready[-1] < stop.looks[-1] == pytest.approx(7.5 + 10.0, abs=2 * SHORTEST_S)


def test_a_partition_that_nobody_has_mounted_can_be_watched() -> None:
    store = MemoryStore()
    watch = begin_to_watch(store, P)
    with mounted(store, "one"):
        pass
    assert mount_outcomes(store, P, "other", 60.0, threading.Event(), watch) is not None

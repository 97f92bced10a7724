"""The apply job's own partition: mounted by one job at a time, and read back by the next one."""

from __future__ import annotations

import threading

import pytest

from kainite.base.errors import LogFencedError
from kainite.log.format.entry import Outcome, UnitStatus
from kainite.store.memory import MemoryStore
from kainite_spark.driver.outcomes import Outcomes, begin_to_watch, mount_outcomes
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


def test_a_partition_that_nobody_has_mounted_can_be_watched() -> None:
    store = MemoryStore()
    watch = begin_to_watch(store, P)
    with mounted(store, "one"):
        pass
    assert mount_outcomes(store, P, "other", 60.0, threading.Event(), watch) is not None

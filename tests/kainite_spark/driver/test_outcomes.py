"""The apply job's own partition: mounted by one job at a time, and read back by the next one."""

from __future__ import annotations

import threading

import pytest

from kainite.base.errors import LogFencedError
from kainite.log.format.entry import Outcome, UnitStatus
from kainite.store.memory import MemoryStore
from kainite_spark.driver.outcomes import Outcomes, begin_to_watch, mount_outcomes

P = "0:outcomes"
COMMITTED = [Outcome(tid, UnitStatus.COMMITTED) for tid in range(3)]


def mounted(store: MemoryStore, owner: str, lease: float = 60.0) -> Outcomes:
    found = mount_outcomes(store, P, owner, lease, threading.Event())
    assert found is not None
    return found


def test_what_one_job_appended_the_next_one_reads_back() -> None:
    store = MemoryStore()
    with mounted(store, "one") as outcomes:
        outcomes.append(COMMITTED[:1])
        outcomes.append([])
        first = outcomes.last_id
        outcomes.append(COMMITTED[1:])
        assert outcomes.last_id == first + 1, "nothing was appended for no outcomes"
    with mounted(store, "other") as outcomes:
        assert outcomes.read_from(0) == tuple(COMMITTED)
        assert outcomes.read_from(first + 1) == tuple(COMMITTED[1:])


def test_what_is_truncated_is_not_read_back_and_is_not_truncated_again() -> None:
    store = MemoryStore()
    with mounted(store, "one") as outcomes:
        for outcome in COMMITTED:
            outcomes.append([outcome])
        outcomes.truncate(outcomes.last_id)
        outcomes.truncate(0)
        head = store.read_head(P)
        assert head is not None
        assert head.low_water_mark == outcomes.last_id
        assert outcomes.read_from(outcomes.last_id) == (COMMITTED[-1],)


def test_a_job_whose_partition_another_one_has_mounted_appends_nothing() -> None:
    store = MemoryStore()
    silent = mounted(store, "one", lease=0.05)  # not entered: it writes no heartbeats
    with mounted(store, "other") as other:
        assert other.generation > silent.generation
        with pytest.raises(LogFencedError):
            silent.append(COMMITTED)


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

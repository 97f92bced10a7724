"""Tests what an apply job tells the meter."""

from __future__ import annotations

from pathlib import Path

import pytest

from kainite.observe import metric
from kainite.observe.meter import Meter
from kainite.observe.metric import (
    ACCESS_FILES_READ,
    ACCESS_FILES_REFUSED,
    APPLY_FAILURES,
    APPLY_METRICS,
    APPLY_PREPARED_AGE,
    CERTIFICATE_EXPIRY,
    LOG_LINES_DROPPED,
    PROCESS_METRICS,
)
from kainite.store.memory import MemoryStore
from support.apply_world import World, insert, update
from support.metric_sums import Sums


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(MemoryStore(), f"sqlite:///{tmp_path}/target.db")


def test_units_micro_batches_and_groups_are_counted(world: World) -> None:
    world.log.unit("good", insert(1))
    world.log.unit("bad", insert(2, -1))
    world.log.unit("behind", update(2, 7))
    sums = Sums()
    world.job(meter=Meter(sums)).run(once=True)
    told = sums.values
    assert (told[metric.APPLIED_UNITS], told[metric.APPLY_FAILURES]) == (1, 1)
    assert (told[metric.APPLY_FAILED], told[metric.APPLY_BLOCKED], told[metric.APPLY_WAITING]) == (1, 1, 0)
    assert told[metric.GROUPS_SPLIT] >= 1
    assert told[metric.APPLY_GROUPS] >= 3
    assert told[metric.MICRO_BATCHES] == sums.seen[metric.MICRO_BATCH_TIME] == sums.seen[metric.RUN_TIME] >= 2
    assert told[metric.APPLY_LAG] == 0


def test_every_metric_of_an_apply_job_is_told(world: World) -> None:
    world.log.unit("good", insert(1))
    sums = Sums()
    world.job(meter=Meter(sums)).run(once=True)
    untold = {each.series for each in APPLY_METRICS if not sums.seen[each]}
    of_the_process = {LOG_LINES_DROPPED, *PROCESS_METRICS}
    of_its_files = {CERTIFICATE_EXPIRY, ACCESS_FILES_READ, ACCESS_FILES_REFUSED}
    of_a_replica = {each for each in APPLY_METRICS if each.operation == "Replica"}  # test_replica_watch.py
    of_several = {APPLY_PREPARED_AGE, metric.COMMON_MARK_LAG}  # test_prepared_watch.py, test_common_mark.py
    others = {APPLY_FAILURES, *of_the_process, *of_its_files, *of_a_replica, *of_several}
    assert untold == {each.series for each in others}

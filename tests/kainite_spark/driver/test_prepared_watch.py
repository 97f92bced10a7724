"""The age of the oldest transaction that is prepared, in health and metrics."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kainite.base.errors import TargetUnavailableError
from kainite.observe import metric
from kainite.observe.meter import Meter
from kainite.settings import ApplySettings
from kainite.store.memory import MemoryStore
from kainite_spark.driver.environment import ApplyEnvironment
from kainite_spark.driver.job_health import PREPARED_S
from kainite_spark.driver.job_metrics import JobMetrics
from kainite_spark.driver.prepared_watch import LOOK_EVERY_S, PreparedWatch
from kainite_spark.targets.contract import Unit
from kainite_spark.targets.fence import Fence
from kainite_spark.targets.preparing import TransactionName, gid_of
from support.atomic_world import LEDGER, AtomicWorld
from support.inline_runner import InlineRunner
from support.metric_sums import Sums
from support.preparing_sqlite import PreparingSqlite
from support.several_world import contact
from support.stores import Database


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def world(tmp_path: Path, clock: Clock) -> Iterator[AtomicWorld]:
    """Gives targets with a transaction that was prepared in one of them at the clock's first time."""
    databases = {}
    for name in ("shop", "crm"):
        path = tmp_path / f"{name}.db"
        sqlite3.connect(path).close()
        databases[name] = Database(f"sqlite:///{path}")
    with closing(AtomicWorld(MemoryStore(), databases)) as made:
        for name, target in made.targets.items():
            assert isinstance(target, PreparingSqlite)
            made.targets[name] = replace(target, clock=clock)
        fence = Fence(LEDGER, 1, 1)
        made.target().raise_generation(LEDGER, 1)
        made.target().begin_micro_batch(fence)
        with closing(made.targets["crm"].connect()) as session:
            gid = gid_of(LEDGER, "crm", TransactionName(1, 1, "a"))
            session.prepare(fence, (Unit(1, "T", (contact(1),)),), gid)
        yield made


def watched(world: AtomicWorld, target: Any, clock: Clock) -> tuple[PreparedWatch, ApplyEnvironment, Sums]:
    sums = Sums()
    runner = InlineRunner(world.store, "0", target)
    environment = ApplyEnvironment(ApplySettings(), world.store, "0", "a job", target, runner, LEDGER)
    return PreparedWatch(environment, JobMetrics(Meter(sums)), clock), environment, sums


def test_the_oldest_one_is_told_and_is_trouble_when_it_is_old(world: AtomicWorld, clock: Clock) -> None:
    watch, environment, sums = watched(world, world.target(), clock)
    clock.now += PREPARED_S - 1
    watch.look()
    assert sums.values[metric.APPLY_PREPARED_AGE] == (PREPARED_S - 1) * 1000
    assert environment.health.report().healthy
    clock.now += 2 + LOOK_EVERY_S
    watch.look()
    report = environment.health.report()
    assert not report.healthy
    assert "kainite apply resolve" in str(report.as_json()["checks"])
    world.target().resolve(LEDGER)
    watch.look()
    assert environment.health.report().prepared > 0, "it looks only now and then"
    clock.now += LOOK_EVERY_S
    watch.look()
    assert environment.health.report().healthy
    assert sums.values[metric.APPLY_PREPARED_AGE] == 0


class Away:
    def prepared(self, prefix: str) -> None:
        raise TargetUnavailableError("away")


def test_a_target_that_is_away_hides_no_other(world: AtomicWorld, clock: Clock) -> None:
    away: Any = Away()
    world.targets["shop"] = away
    watch, environment, _ = watched(world, world.target(), clock)
    clock.now += 7
    watch.look()
    assert environment.health.report().prepared == 7
    del world.targets["shop"]


def test_a_single_target_is_not_asked(world: AtomicWorld, clock: Clock) -> None:
    watch, environment, sums = watched(world, world.targets["shop"], clock)
    watch.look()
    assert environment.health.report().prepared == 0
    assert not sums.values

"""Small micro-batches are applied in the driver's process, as Spark's tasks would; larger ones are Spark's."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from kainite.base.errors import SparkUnavailableError, TargetFencedError
from kainite.log.format.entry import UnitStatus
from kainite.settings import Consistency
from kainite.store.memory import MemoryStore
from kainite_spark.driver import near_runner
from kainite_spark.driver.job_watch import SparkLimits
from kainite_spark.driver.near_runner import NearRunner, small
from kainite_spark.executor import tasks
from kainite_spark.executor.tasks import read_slice
from kainite_spark.plan.micro_batch import MicroBatch, TaskResult
from kainite_spark.plan.unit_part import UnitPart
from kainite_spark.targets.fence import Fence
from kainite_spark.targets.opening import open_target
from support.apply_world import World, insert, noted, update
from support.inline_runner import QUICK, InlineRunner

LIMIT = 60.0


@dataclass
class Given:
    """Gives a near runner the parts of each micro-batch, as the feed does."""

    world: World
    near: NearRunner
    batches: list[MicroBatch] = field(default_factory=list)

    @property
    def parallelism(self) -> int:
        return self.near.parallelism

    def run(self, batch: MicroBatch) -> list[TaskResult]:
        self.batches.append(given(self.world, batch))
        return self.near.run(self.batches[-1])


def given(world: World, batch: MicroBatch) -> MicroBatch:
    slices = []
    for piece in batch.slices:
        parts = [part for _, part in read_slice(world.store, "0", piece) if isinstance(part, UnitPart)]
        slices.append(replace(piece, given=tuple(parts)))
    return replace(batch, slices=tuple(slices))


@pytest.fixture(params=["sqlite", "postgresql"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    url = f"sqlite:///{tmp_path}/target.db" if request.param == "sqlite" else request.getfixturevalue("postgres")
    return World(MemoryStore(), url)


@pytest.fixture
def spark(world: World) -> InlineRunner:
    return world.runner()


@pytest.fixture
def near(world: World, spark: InlineRunner) -> Iterator[NearRunner]:
    runner = NearRunner(spark, world.target, QUICK)
    yield runner
    runner.close()


def test_conflicts_orders_and_failures_are_those_of_tasks(world: World, near: NearRunner, spark: InlineRunner) -> None:
    for n in range(6):
        world.log.unit(f"one-{n}", *noted(f"one-{n}", insert(1) if n == 0 else update(1, n)))
        world.log.unit(f"two-{n}", *noted(f"two-{n}", insert(2) if n == 0 else update(2, n)))
    world.log.unit("bad", *noted("bad", insert(3, -1)))
    world.log.unit("behind", *noted("behind", insert(3, 3)))
    world.job(Given(world, near), consistency=Consistency.CONFLICT).run(once=True)
    world.log.take_outcomes()

    assert world.items() == {1: 5, 2: 5}
    assert world.journal() == sorted(f"{name}-{n}" for name in ("one", "two") for n in range(6))
    assert world.log.statuses() == {"bad": UnitStatus.FAILED, "behind": UnitStatus.BLOCKED}
    assert spark.ran == []


def test_what_is_large_or_has_to_be_read_is_given_to_spark(
    world: World, near: NearRunner, spark: InlineRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(4):
        world.log.unit(f"T-{n}", *noted(f"T-{n}", insert(n)))
    runner = Given(world, near)
    world.job(runner).run(once=True)
    (batch,) = runner.batches
    assert small(batch)
    unread = replace(batch, slices=tuple(replace(piece, given=()) for piece in batch.slices))
    assert small(unread) is None
    monkeypatch.setattr(near_runner, "MOST_ENTRIES", 3)
    assert small(batch) is None
    near.run(batch)
    assert len(spark.ran) == 1
    monkeypatch.setattr(near_runner, "MOST_ENTRIES", 4)
    monkeypatch.setattr(near_runner, "MOST_BYTES", 3)
    assert small(batch) is None


def test_a_micro_batch_of_an_older_fence_changes_nothing(world: World, near: NearRunner) -> None:
    world.log.unit("T-1", *noted("T-1", insert(1)))
    runner = Given(world, near)
    world.job(runner).run(once=True)
    world.database.run("DELETE FROM item; DELETE FROM journal; DELETE FROM kainite_applied")
    world.target.raise_generation(world.ledger, 99)
    (late,) = near.run(runner.batches[0])
    assert isinstance(late.problem, TargetFencedError)
    assert world.items() == {}


def test_an_error_that_no_task_foresees_leaves_the_micro_batch_to_spark(
    world: World, near: NearRunner, spark: InlineRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.log.unit("T-1", *noted("T-1", insert(1)))
    applied = tasks.apply_parts

    def breaks(*args: Any) -> TaskResult:
        applied(*args)
        raise ZeroDivisionError

    monkeypatch.setattr(near_runner, "apply_parts", breaks)
    job = world.job(Given(world, near))
    job.run(once=True)
    assert world.journal() == ["T-1"]
    assert job.summary.outcomes == {UnitStatus.COMMITTED: 1}
    assert len(spark.ran) == 1


def test_what_does_not_come_back_is_given_up_at_the_stop_and_its_thread_is_not_used_again(
    world: World, spark: InlineRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.log.unit("T-1", *noted("T-1", insert(1)))
    stop, hangs, applied = threading.Event(), threading.Event(), tasks.apply_parts
    near = NearRunner(spark, world.target, QUICK, SparkLimits(grace=0.0), stop)
    runner = Given(world, near)
    monkeypatch.setattr(near_runner, "apply_parts", lambda *_: hangs.wait(LIMIT))
    stop.set()
    batch = MicroBatch(Fence(world.ledger, 1, 1), (), 1, shuffled=False)
    with pytest.raises(SparkUnavailableError, match="after the stop"):
        runner.run(batch)
    monkeypatch.setattr(near_runner, "apply_parts", applied)
    stop.clear()
    world.job(runner).run(once=True)
    assert world.journal() == ["T-1"]
    hangs.set()
    near.close()


def test_another_target_gets_another_session_and_spark_is_told(
    world: World, near: NearRunner, spark: InlineRunner
) -> None:
    runner = Given(world, near)
    world.log.unit("T-1", *noted("T-1", insert(1)))
    world.job(runner).run(once=True)
    other = open_target(world.database.target, world.catalogue)
    near.retarget(other)
    assert spark.target is other
    world.log.take_outcomes()
    world.log.unit("T-2", *noted("T-2", insert(2)))
    world.job(runner, owner="another").run(once=True)
    assert world.items() == {1: 0, 2: 0}
    assert near.parallelism == spark.parallelism

"""Micro-batches as Spark jobs: worker processes read the log from DynamoDB and write to real databases."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kainite.base.errors import LogCorruptError, SparkUnavailableError, TargetFencedError
from kainite.log.format.entry import UnitStatus
from kainite.settings import AwsSettings, Consistency
from kainite.store.dynamodb import DynamoDBStore
from kainite.uow.delta import UnitEnd
from kainite_spark.driver.runner import SparkRunner, cause_of
from kainite_spark.executor.apply_options import ApplyOptions
from kainite_spark.executor.tasks import TaskSettings
from kainite_spark.plan import micro_batch
from kainite_spark.plan.micro_batch import MicroBatch, Slice, TaskResult, Wanted
from kainite_spark.targets.fence import Fence
from support.apply_world import World, insert, noted, update
from support.names import unique

pytestmark = pytest.mark.xdist_group("spark")


class Recording:
    """A Spark runner, and what it was given."""

    def __init__(self, inner: SparkRunner, parallelism: int = 2) -> None:
        self.inner = inner
        self.parallelism = parallelism
        self.ran: list[MicroBatch] = []

    def run(self, batch: MicroBatch) -> list[TaskResult]:
        self.ran.append(batch)
        return self.inner.run(batch)


@pytest.fixture
def table() -> str:
    return unique("runner")


@pytest.fixture(params=["postgresql", "sqlite"])
def world(request: pytest.FixtureRequest, dynamodb: Any, table: str, tmp_path: Path) -> World:
    store = DynamoDBStore(dynamodb, table)
    store.create()
    if request.param == "sqlite":
        return World(store, f"sqlite:///{tmp_path}/target.db")
    return World(store, request.getfixturevalue("postgres"))


@pytest.fixture
def runner(world: World, table: str, spark: Any, moto_endpoint: str) -> Recording:
    aws = AwsSettings(region="us-east-1", dynamodb_endpoint=moto_endpoint)
    settings = TaskSettings(unique("run"), aws, table, "0", world.target, ApplyOptions())
    return Recording(SparkRunner(spark.sparkContext, settings))


def test_conflicts_order_failures_and_large_units_in_one_micro_batch(world: World, runner: Recording) -> None:
    log = world.log
    for n in range(6):
        log.unit(f"one-{n}", *noted(f"one-{n}", insert(1) if n == 0 else update(1, n)))
        log.unit(f"two-{n}", *noted(f"two-{n}", insert(2) if n == 0 else update(2, n)))
    log.unit("bridge", *noted("bridge", update(1, 90), update(2, 90)))
    log.unit("bad", *noted("bad", insert(3, -1)))
    log.unit("behind", *noted("behind", insert(3, 3)))
    log.append(log.fragment("large", *[insert(n) for n in range(20_000, 25_000)]))
    log.append(log.fragment("large", *[insert(n) for n in range(10_000, 15_000)], ends=(UnitEnd(10_000),)))
    world.job(runner, consistency=Consistency.CONFLICT).run(once=True)
    log.take_outcomes()

    assert [batch.instances for batch in runner.ran] == [2, 1]
    assert (world.items()[1], world.items()[2], len(world.items())) == (90, 90, 10_002)
    assert world.journal() == sorted([f"{name}-{n}" for name in ("one", "two") for n in range(6)] + ["bridge"])
    assert log.statuses() == {"bad": UnitStatus.FAILED, "behind": UnitStatus.BLOCKED}


def test_with_many_job_instances_units_are_shuffled_to_them(
    world: World, runner: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(micro_batch, "MIN_SLICE", 4)
    runner.parallelism = micro_batch.MAX_DIRECT + 2
    for n in range(24):
        world.log.unit(f"T-{n}", *noted(f"T-{n}", insert(n % 8) if n < 8 else update(n % 8, n)))
    job = world.job(runner, consistency=Consistency.CONFLICT)
    job.run(once=True)

    assert [(batch.instances, batch.shuffled) for batch in runner.ran] == [(6, True)]
    assert len(runner.ran[0].slices) > 1
    assert world.items() == {n: n + 16 for n in range(8)}
    assert job.summary.outcomes == {UnitStatus.COMMITTED: 24}


def test_a_micro_batch_run_twice_changes_nothing(world: World, runner: Recording) -> None:
    world.log.unit("T-1", *noted("T-1", insert(1)))
    world.log.unit("T-2", *noted("T-2", insert(2)))

    class Twice(Recording):
        def run(self, batch: MicroBatch) -> list[TaskResult]:
            super().run(batch)
            return super().run(batch)

    job = world.job(Twice(runner.inner), consistency=Consistency.CONFLICT)
    job.run(once=True)

    assert world.journal() == ["T-1", "T-2"]
    assert job.summary.outcomes == {UnitStatus.COMMITTED: 2}


def test_errors_come_back_from_the_tasks_as_what_they_are(world: World, runner: Recording) -> None:
    tid = world.log.unit("T-1", *noted("T-1", insert(1)))
    world.target.raise_generation("0", 5)
    late = MicroBatch(Fence("0", 4, 1), (Slice(((tid, tid),), (Wanted(tid, tid, 0, 0),)),), 1, shuffled=False)
    (fenced,) = runner.run(late)
    assert isinstance(fenced.problem, TargetFencedError)

    nowhere = MicroBatch(Fence("0", 5, 0), (Slice(((99, 99),), (Wanted(99, 99, 0, 0),)),), 1, shuffled=True)
    (corrupt,) = runner.run(nowhere)
    assert isinstance(corrupt.problem, LogCorruptError)
    assert world.journal() == []


@pytest.mark.parametrize("world", ["sqlite"], indirect=True)
def test_a_task_that_breaks_is_told_by_its_python_error(runner: Recording) -> None:
    broken = MicroBatch(Fence("0", 1, 1), (Slice((), (Wanted(0, 0, 0, 0),), "no parts"),), 1, shuffled=False)  # type: ignore[arg-type]
    with pytest.raises(SparkUnavailableError, match=r"^a Spark job failed: AttributeError: "):
        runner.run(broken)


@pytest.mark.parametrize(
    ("message", "cause"),
    [
        ("An error occurred while calling o1.x.\n: org.apache.X: gone\n\tat org.apache.Y", "org.apache.X: gone"),
        ("Answer from Java side is empty", "Answer from Java side is empty"),
    ],
)
def test_a_java_error_without_python_in_it_is_told_by_its_own_line(message: str, cause: str) -> None:
    assert cause_of(message) == cause


def test_each_job_has_a_group_of_its_own() -> None:
    # A look at a job asks for all of its group, and Spark remembers a thousand jobs.
    groups: list[str] = []
    context: Any = SimpleNamespace(defaultParallelism=1, setJobGroup=lambda group, _: groups.append(group))
    target: Any = None
    runner = SparkRunner(context, TaskSettings("run", AwsSettings(), "table", "0", target, ApplyOptions()))
    for _ in range(2):
        runner._wait_for(list)  # noqa: SLF001
    assert groups == ["run-1", "run-2"]

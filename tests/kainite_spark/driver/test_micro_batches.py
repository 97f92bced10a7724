"""The micro-batches of an apply job: each under a fence of its own, and failures only once they are certain."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kainite.base.errors import TargetFencedError
from kainite.log.format.entry import Outcome, UnitStatus
from kainite.settings import ApplySettings
from kainite.store.memory import MemoryStore
from kainite_spark.driver.environment import ApplyEnvironment
from kainite_spark.driver.job_metrics import JobMetrics
from kainite_spark.driver.micro_batches import MicroBatches
from kainite_spark.driver.payloads import Payloads
from kainite_spark.plan.micro_batch import MicroBatch, TaskResult
from kainite_spark.plan.selection import Selection
from support.apply_world import World, insert
from support.inline_runner import InlineRunner


class Bench:
    """A world, and the micro-batches of a job of a generation."""

    def __init__(self, folder: Path) -> None:
        self.world = World(MemoryStore(), f"sqlite:///{folder}/target.db")
        self.runner = self.world.runner()

    def micro_batches(self, generation: int = 1, runner: InlineRunner | None = None) -> MicroBatches:
        world = self.world
        environment = ApplyEnvironment(
            ApplySettings(), world.store, "0", "a job", world.target, runner or self.runner, world.ledger
        )
        return MicroBatches(environment, generation, Payloads(0), JobMetrics())

    def selection(self, *tids: int, serial: bool = False) -> Selection:
        return Selection(tuple(self.world.log.state.units[tid] for tid in tids), serial=serial)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_units_are_applied_and_each_call_has_a_fence_of_its_own(bench: Bench) -> None:
    tids = [bench.world.log.unit(f"T-{n}", insert(n)) for n in range(3)]
    micro_batches = bench.micro_batches()
    micro_batches.raise_generation(None)
    first, second = micro_batches.run(bench.selection(*tids[:2])), micro_batches.run(bench.selection(tids[2]))
    assert [o.status for o in (*first.outcomes, *second.outcomes)] == [UnitStatus.COMMITTED] * 3
    assert first.problem is second.problem is None
    assert bench.world.items() == {0: 0, 1: 0, 2: 0}
    assert [batch.fence.micro_batch for batch in bench.runner.ran] == [1, 2]
    micro_batches.trim(tids[2])
    assert bench.world.acknowledged() == [tids[2]]


def test_a_job_of_an_older_generation_applies_nothing(bench: Bench) -> None:
    tid = bench.world.log.unit("T", insert(1))
    older = bench.micro_batches(1)
    older.raise_generation(None)
    bench.micro_batches(2).raise_generation(None)
    run = older.run(bench.selection(tid))
    assert isinstance(run.problem, TargetFencedError)
    assert run.outcomes == ()
    assert bench.world.items() == {}


class AppliesMeanwhile(InlineRunner):
    """A runner whose tasks are refused, while one that was given up applies the units after all."""

    def run(self, batch: MicroBatch) -> list[TaskResult]:
        found = super().run(batch)
        failed = [Outcome(outcome.tid, UnitStatus.FAILED, cause="refused") for outcome in found[0].outcomes]
        return [replace(found[0], outcomes=tuple(failed))]


def test_a_unit_that_was_applied_after_all_has_not_failed(bench: Bench) -> None:
    tid = bench.world.log.unit("T", insert(1))
    runner = AppliesMeanwhile(bench.world.store, "0", bench.world.target)
    micro_batches = bench.micro_batches(runner=runner)
    micro_batches.raise_generation(None)
    (first,) = micro_batches.run(bench.selection(tid)).outcomes
    assert first.status is UnitStatus.FAILED, "a first refusal is not final, so nobody looks"
    (second,) = micro_batches.run(bench.selection(tid, serial=True)).outcomes
    assert second.status is UnitStatus.COMMITTED
    assert micro_batches._number == 3, "the fence was closed under a number of its own"  # noqa: SLF001

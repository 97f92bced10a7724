"""Snapshots of the target while units are applied: each is the source's state after a prefix of the log.

The units are those of a small TPC-C (:mod:`support.tpcc`). Tasks run in threads, one a job instance, so that lanes
really run at the same time; connections are cut at random meanwhile. tests/end_to_end/test_tpcc.py has the whole way,
and kills processes.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import psycopg
import pytest

from kainite.base.retry import Backoff
from kainite.log.format.entry import UnitStatus
from kainite.settings import Consistency, OnFailure
from kainite.store.memory import MemoryStore
from kainite_spark.driver import patience
from kainite_spark.driver.job import ApplyJob
from kainite_spark.executor.apply_options import ApplyOptions, Retry
from kainite_spark.executor.tasks import read_slice
from kainite_spark.plan.micro_batch import MicroBatch, TaskResult
from kainite_spark.targets.contract import Unit
from kainite_spark.targets.fence import Fence
from kainite_spark.targets.postgresql.session import PostgresSession
from support.apply_world import World, insert, noted, update
from support.inline_runner import QUICK, InlineRunner
from support.tpcc import CONDITIONS, Source, Watched


class InThreads(InlineRunner):
    """Runs the job instances of a micro-batch at the same time, in an order of their own."""

    def run(self, batch: MicroBatch) -> list[TaskResult]:
        self.ran.append(batch)
        parts = [part for piece in batch.slices for part in read_slice(self.store, self.partition, piece)]
        instances = list(range(batch.instances))[::-1]
        with ThreadPoolExecutor(len(instances)) as pool:
            return list(pool.map(lambda instance: self._apply(batch, instance, parts), instances))


class LastFirst(InlineRunner):
    """Runs the last job instance of a micro-batch first: what may commit out of order does."""

    def run(self, batch: MicroBatch) -> list[TaskResult]:
        parts = [part for piece in batch.slices for part in read_slice(self.store, self.partition, piece)]
        return [self._apply(batch, instance, parts) for instance in reversed(range(batch.instances))]


def apply_cut(world: World, job: ApplyJob, seed: int, cuts: int) -> None:
    """Runs a job whose sessions are cut at random moments."""
    chance = random.Random(seed)
    ended = threading.Event()

    def cut() -> None:
        with psycopg.connect(world.database.url, autocommit=True) as connection:
            for _ in range(cuts):
                if ended.wait(chance.uniform(0.0, 0.05)):
                    return
                connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'kainite apply'"
                    " AND datname = current_database() AND query LIKE '%%json_to_recordset%%'"
                )

    with ThreadPoolExecutor(1) as pool:
        cutting = pool.submit(cut)
        try:
            job.run(once=True)
        finally:
            ended.set()
            cutting.result()


@pytest.fixture(autouse=True)
def no_long_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "BACKOFF", Backoff.doubling(0.001, 10.0))


def tpcc(postgres: str, seed: int, count: int) -> tuple[World, Source]:
    source = Source(random.Random(seed))
    source.create(postgres)
    world = World(MemoryStore(), postgres)
    for n in range(count):
        world.log.unit(f"T-{n}", *source.transaction())
    return world, source


def runner_of(world: World, group_units: int = 2) -> InThreads:
    options = ApplyOptions(group_units=group_units, retry=Retry(tries=4, first=0.01))
    return InThreads(world.store, "0", world.target, parallelism=3, options=options)


@pytest.mark.parametrize("seed", [1, 2])
def test_every_snapshot_meets_tpc_c_s_conditions_also_while_connections_are_cut(postgres: str, seed: int) -> None:
    world, source = tpcc(postgres, seed, 200)
    job = world.job(runner_of(world), consistency=Consistency.PREFIX, max_units=40)
    with source.watched(postgres) as seen:
        apply_cut(world, job, seed, 20)
    assert job.summary.outcomes == {UnitStatus.COMMITTED: 200}
    assert not seen.wrong, seen.wrong
    assert seen.snapshots > 10
    assert source.reached(postgres) == 200


Apply = Callable[[PostgresSession, Fence, Sequence[Unit]], None]


@pytest.fixture
def at_commits(postgres: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Source], tuple[Watched, Apply]]]:
    """Looks at the target after each commit; gives what was seen, and what makes one transaction."""
    with psycopg.connect(postgres, autocommit=True) as connection:
        whole = PostgresSession.apply

        def looking(source: Source) -> tuple[Watched, Apply]:
            seen = Watched()

            def apply(session: PostgresSession, fence: Fence, units: Sequence[Unit], *, folded: bool = False) -> None:
                whole(session, fence, units, folded=folded)
                source.look(connection, seen)

            monkeypatch.setattr(PostgresSession, "apply", apply)
            return seen, apply

        yield looking


@pytest.mark.parametrize("consistency", Consistency)
def test_with_prefix_each_commit_leaves_a_state_of_the_source_with_conflict_condition_3_is_violated(
    postgres: str, at_commits: Callable[[Source], tuple[Watched, Apply]], consistency: Consistency
) -> None:
    world, source = tpcc(postgres, 3, 60)
    seen, _ = at_commits(source)
    options = replace(QUICK, group_units=1)
    runner = LastFirst(world.store, "0", world.target, parallelism=6, options=options)
    world.job(runner, consistency=consistency).run(once=True)
    assert source.reached(postgres) == seen.snapshots == 60
    if consistency is Consistency.PREFIX:
        assert not seen.wrong, seen.wrong
    else:
        assert seen.wrong["condition 3"]


def test_units_that_are_not_applied_whole_violate_every_other_condition(
    postgres: str, at_commits: Callable[[Source], tuple[Watched, Apply]], monkeypatch: pytest.MonkeyPatch
) -> None:
    world, source = tpcc(postgres, 3, 20)
    seen, apply = at_commits(source)

    def torn(session: PostgresSession, fence: Fence, units: Sequence[Unit], *, folded: bool = False) -> None:
        for unit in units:
            for number, delta in enumerate(unit.deltas):
                apply(session, fence, (replace(unit, deltas=(delta,), tid=unit.tid + 1_000 * number),))

    monkeypatch.setattr(PostgresSession, "apply", torn)
    world.job(runner_of(world), consistency=Consistency.PREFIX).run(once=True)
    assert {f"condition {n}" for n in CONDITIONS if n != 3} <= set(seen.wrong)
    assert source.reached(postgres) == 20


def test_a_locked_row_holds_everything_up_for_a_while_then_only_what_conflicts(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kainite_spark.plan.backlog.PATIENCE", 3.0)
    world = World(MemoryStore(), postgres)
    world.database.run("INSERT INTO item (id, v) SELECT n, 0 FROM generate_series(0, 3) n")
    for n in range(4):
        world.log.unit(f"T-{n}", *noted(f"T-{n}", update(n, 1)))
    world.log.unit("behind", *noted("behind", update(1, 2)))
    seen: list[Sequence[str]] = []
    with psycopg.connect(postgres) as holder:
        holder.execute("SELECT 1 FROM item WHERE id = 1 FOR UPDATE")

        class Looks(InThreads):
            def run(self, batch: MicroBatch) -> list[TaskResult]:
                results = super().run(batch)
                seen.append(world.journal())
                if len(seen[-1]) == 3:
                    holder.rollback()
                return results

        job = world.job(Looks(world.store, "0", world.target, options=runner_of(world).options))
        job.run(once=True)
    assert seen[0] == ["T-0"], "nothing passes the unit on the locked row at first"
    assert ["T-0", "T-2", "T-3"] in seen, "what does not conflict goes on when that lasts"
    assert world.journal() == ["T-0", "T-1", "T-2", "T-3", "behind"]
    assert world.items() == {0: 1, 1: 2, 2: 1, 3: 1}


def test_with_stop_nothing_ever_passes_a_unit_on_a_locked_row(postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kainite_spark.plan.backlog.PATIENCE", 0.0)
    world = World(MemoryStore(), postgres)
    world.database.run("INSERT INTO item (id, v) SELECT n, 0 FROM generate_series(0, 3) n")
    for n in range(4):
        world.log.unit(f"T-{n}", *noted(f"T-{n}", update(n, 1)))
    with psycopg.connect(postgres) as holder:
        holder.execute("SELECT 1 FROM item WHERE id = 1 FOR UPDATE")

        class Looks(InThreads):
            def run(self, batch: MicroBatch) -> list[TaskResult]:
                results = super().run(batch)
                if len(self.ran) < 4:
                    assert world.journal() == ["T-0"]
                else:
                    holder.rollback()
                return results

        runner = Looks(world.store, "0", world.target, options=runner_of(world).options)
        world.job(runner, on_failure=OnFailure.STOP, consistency=Consistency.PREFIX).run(once=True)
    assert world.journal() == ["T-0", "T-1", "T-2", "T-3"]


def test_a_failed_unit_and_what_waits_for_it_are_the_exception(postgres: str) -> None:
    world = World(MemoryStore(), postgres)
    world.log.unit("good", *noted("good", insert(1)))
    world.log.unit("bad", *noted("bad", insert(2, -1)))
    world.log.unit("behind", *noted("behind", update(2, 5)))
    world.log.unit("free", *noted("free", update(1, 5)))
    job = world.job(runner_of(world), consistency=Consistency.PREFIX)
    job.run(once=True)
    assert world.journal() == ["free", "good"]
    assert job.summary.outcomes == {UnitStatus.COMMITTED: 2, UnitStatus.FAILED: 1, UnitStatus.BLOCKED: 1}

"""A row of the target that somebody else has locked, and units larger than the target takes at once: on PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from kainite.log.format.entry import UnitStatus
from kainite.settings import Consistency, OnFailure
from kainite.store.memory import MemoryStore
from kainite.uow.delta import Delta, Operation
from kainite_spark.executor.apply_options import ApplyOptions, Retry
from kainite_spark.plan.micro_batch import MicroBatch, TaskResult
from kainite_spark.targets.postgresql import rendering
from support.apply_world import World, insert, noted, update
from support.inline_runner import InlineRunner


@pytest.fixture
def world(postgres: str) -> World:
    return World(MemoryStore(), postgres)


@contextmanager
def locked(world: World, row: int) -> Iterator[psycopg.Connection]:
    with psycopg.connect(world.database.url) as holder:
        holder.execute("SELECT 1 FROM item WHERE id = %s FOR UPDATE", (row,))
        yield holder


class LetsGo(InlineRunner):
    """Ends somebody's lock at the second try of the unit that waits for it."""

    world: World
    holder: psycopg.Connection | None = None
    journal_at_release: tuple[str, ...] = ()
    alone = 0

    def run(self, batch: MicroBatch) -> list[TaskResult]:
        results = super().run(batch)
        self.alone += batch.alone
        if batch.alone and self.holder is not None:
            self.journal_at_release = tuple(self.world.journal())
            self.holder.rollback()
            self.holder = None
        return results


@pytest.mark.parametrize("policy", OnFailure)
def test_units_on_other_rows_commit_while_a_row_is_locked_and_order_is_kept(world: World, policy: OnFailure) -> None:
    world.database.run("INSERT INTO item (id, v) SELECT n, 0 FROM generate_series(0, 19) n")
    for n in range(20):
        world.log.unit(f"A-{n:02}", *noted(f"A-{n:02}", update(n, 1)))
    world.log.unit("B-07", *noted("B-07", update(7, 2), update(8, 2)))
    world.log.unit("C-08", *noted("C-08", update(8, 3)))
    others = tuple(f"A-{n:02}" for n in range(20) if n != 7)
    runner = LetsGo(world.store, "0", world.target)
    runner.world = world
    with locked(world, 7) as holder:
        runner.holder = holder
        job = world.job(runner, on_failure=policy, consistency=Consistency.CONFLICT)
        job.run(once=True)

    assert runner.journal_at_release == others, "the other rows' units committed while row 7 was locked"
    assert runner.alone == 2
    assert job.summary.outcomes[UnitStatus.COMMITTED] == 22
    assert job.summary.outcomes[UnitStatus.FAILED] == 0
    assert world.items() == dict.fromkeys(range(20), 1) | {7: 2, 8: 3}
    assert len(world.journal()) == 22


def test_the_log_shows_a_delayed_unit_as_in_progress_and_what_waits_for_it_as_blocked(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.database.run("INSERT INTO item (id, v) VALUES (1, 0), (2, 0)")
    first = world.log.unit("first", update(1, 1))
    world.log.unit("second", update(1, 2))
    world.log.unit("other", update(2, 2))

    class Stops(InlineRunner):
        def run(self, batch: MicroBatch) -> list[TaskResult]:
            results = super().run(batch)
            world.stop.set()
            return results

    with locked(world, 1):
        world.job(Stops(world.store, "0", world.target), consistency=Consistency.CONFLICT).run()
    world.log.take_outcomes()
    assert world.log.statuses() == {"first": UnitStatus.IN_PROGRESS, "second": UnitStatus.IN_PROGRESS}
    assert "unit delayed" in caplog.messages
    (delayed,) = [record for record in caplog.records if record.getMessage() == "unit delayed"]
    told = vars(delayed)["kainite_fields"]
    assert (told["uow"], told["id"], told["tables"]) == ("first", first, "item")
    assert told["help"] == "kainite uow show -p FILE first"
    assert "item: " in told["cause"]
    world.stop.clear()
    world.apply()
    assert world.items() == {1: 2, 2: 2}


def test_a_job_that_is_killed_while_a_unit_is_delayed_keeps_the_order(world: World) -> None:
    world.database.run("INSERT INTO item (id, v) VALUES (1, 0)")
    for n in range(3):
        world.log.unit(f"T-{n}", *noted(f"T-{n}", update(1, n)))

    class Dies(InlineRunner):
        def run(self, batch: MicroBatch) -> list[TaskResult]:
            super().run(batch)
            raise KeyboardInterrupt

    with locked(world, 1), pytest.raises(KeyboardInterrupt):
        world.job(Dies(world.store, "0", world.target)).run(once=True)
    world.apply()
    assert world.journal() == ["T-0", "T-1", "T-2"]
    assert world.items() == {1: 2}


def test_units_that_are_too_large_together_are_applied_in_groups_and_statements_that_fit(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    # 275 units of 4 MB, a thousand times smaller; one unit is larger than a group, one row larger than a statement.
    most = 16_000
    sent: list[int] = []
    parameters = rendering.parameters

    def watched(shape: object, deltas: object) -> tuple[str, ...]:
        found = parameters(shape, deltas)  # type: ignore[arg-type]
        sent.append(max(map(len, found)))
        return found

    monkeypatch.setattr("kainite_spark.targets.postgresql.session.MOST_BYTES", most)
    monkeypatch.setattr("kainite_spark.targets.postgresql.session.parameters", watched)

    def note(length: int) -> Delta:
        return Delta("journal", Operation.INSERT, {}, {"tid": 0, "what": "x" * length}, {})

    for n in range(275):
        world.log.unit(f"T-{n}", note(4_000))
    world.log.unit("large", *[note(4_000 + n) for n in range(20)], insert(1))
    world.log.unit("row", note(40_000), note(10))
    options = ApplyOptions(group_bytes=most, retry=Retry(tries=2, first=0.01))
    job = world.job(InlineRunner(world.store, "0", world.target, options=options))
    job.run(once=True)

    assert job.summary.outcomes == {UnitStatus.COMMITTED: 277}
    assert len(world.journal()) == 275 + 20 + 2
    assert max(size for size in sent if size < 40_000) <= most
    assert len([size for size in sent if size >= 40_000]) == 1


def test_a_row_that_the_target_can_never_take_is_a_failed_unit(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendering, "_IMPOSSIBLE", 1_000)
    monkeypatch.setattr("kainite_spark.targets.postgresql.session.MOST_BYTES", 500)
    for n in (10, 2_000, 20):
        world.log.unit(f"T-{n}", Delta("journal", Operation.INSERT, {}, {"tid": 0, "what": "x" * n}, {}))
    job = world.apply()
    assert job.summary.outcomes == {UnitStatus.COMMITTED: 2, UnitStatus.FAILED: 1}
    assert "more than PostgreSQL takes" in (world.log.state.units[world.log.tid("T-2000")].cause or "")

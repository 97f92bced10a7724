"""The apply job's loop, its tasks run in this process: what is applied, in which order, with which outcomes."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from kainite.base.errors import (
    KainiteError,
    LogCorruptError,
    LogFencedError,
    SparkUnavailableError,
    TargetFencedError,
    TargetRejectedError,
    TargetUnavailableError,
)
from kainite.base.retry import Backoff
from kainite.log.format.entry import Outcome, StatusMeta, UnitStatus
from kainite.observe import metric
from kainite.observe.meter import Meter
from kainite.owner.mount import mount
from kainite.settings import Consistency, OnFailure
from kainite.store.memory import MemoryStore
from kainite.uow.delta import Delta, Operation, UnitEnd, UnitKind
from kainite_spark.driver import outcome_writer, patience, trouble
from kainite_spark.driver.job import ApplyJob
from kainite_spark.driver.job_health import JobHealth
from kainite_spark.driver.outcomes import begin_to_watch
from kainite_spark.executor.assemble import assemble
from kainite_spark.executor.tasks import read_slice
from kainite_spark.plan.micro_batch import MicroBatch, TaskResult
from kainite_spark.targets.fence import Fence
from kainite_spark.targets.mark import TargetMark
from support.apply_world import World, insert, note, noted, update
from support.inline_runner import InlineRunner
from support.metric_sums import Sums
from support.waiting import eventually

COMMITTED, FAILED, BLOCKED = UnitStatus.COMMITTED, UnitStatus.FAILED, UnitStatus.BLOCKED


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(MemoryStore(), f"sqlite:///{tmp_path}/target.db")


@pytest.fixture(autouse=True)
def no_long_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "BACKOFF", Backoff.doubling(0.001, 10.0))


def outcomes(world: World) -> list[Outcome]:
    """Returns all outcomes that apply jobs appended and did not truncate."""
    head = world.store.read_head("0:outcomes")
    assert head is not None
    batches = world.store.read_batches("0:outcomes", head.low_water_mark)
    metas = [entry.meta for batch in batches for entry in batch.entries]
    return [outcome for meta in metas if isinstance(meta, StatusMeta) for outcome in meta.outcomes]


@dataclass
class Faulty:
    """A runner whose first runs end in errors; ``after`` lets the units be applied before that."""

    inner: InlineRunner
    problems: list[KainiteError]
    after: bool = False
    runs: int = field(default=0)

    @property
    def parallelism(self) -> int:
        return self.inner.parallelism

    def run(self, batch: MicroBatch) -> list[TaskResult]:
        self.runs += 1
        if not self.problems:
            return self.inner.run(batch)
        if self.after:
            self.inner.run(batch)
        problem = self.problems.pop(0)
        if isinstance(problem, SparkUnavailableError):
            raise problem
        return [TaskResult(0, (), problem)]


def test_units_are_applied_in_log_order_acknowledged_and_reported(world: World) -> None:
    for n in range(5):
        world.log.unit(f"T-{n}", *noted(f"T-{n}", insert(1) if n == 0 else update(1, n)))
    job = world.apply()

    assert world.items() == {1: 4}
    assert world.journal() == [f"T-{n}" for n in range(5)]
    assert world.log.statuses() == {}
    assert job.summary.outcomes == {COMMITTED: 5}


def test_a_unit_in_several_appends_is_applied_whole_and_in_its_source_s_order(world: World) -> None:
    deltas = [
        Delta(d.table, d.op, d.key, d.row, d.before, n) for n, d in enumerate([insert(1), update(1, 5), insert(2)])
    ]
    world.log.append(world.log.fragment("T-1", deltas[2]))
    world.log.unit("T-2", insert(3))
    world.log.append(world.log.fragment("T-1", deltas[1], deltas[2]))
    world.log.append(world.log.fragment("T-1", deltas[0], ends=(UnitEnd(3),)))
    world.apply()

    assert world.items() == {1: 5, 2: 0, 3: 0}


def test_a_unit_of_ten_thousand_deltas(world: World) -> None:
    world.log.unit("T-1", *[insert(n, n) for n in range(10_000)])
    world.log.unit("T-2", update(9_999, 1))
    job = world.apply(max_units=1)

    assert (len(world.items()), world.items()[9_999]) == (10_000, 1)
    assert job.summary.micro_batches == 2


def test_a_failing_unit_fails_alone_and_holds_back_only_what_conflicts(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.log.unit("T-0", *noted("T-0", insert(1)))
    world.log.unit("bad", *noted("bad", insert(2, -1)))
    world.log.unit("behind", *noted("behind", insert(3), update(2, 7)))
    world.log.unit("after", *noted("after", update(3, 1)))
    world.log.unit("free", *noted("free", update(1, 5)))
    world.apply()

    assert world.journal() == ["T-0", "free"]
    assert world.log.statuses() == {"bad": FAILED, "behind": BLOCKED, "after": BLOCKED}
    assert "CHECK" in (world.log.state.units[world.log.tid("bad")].cause or "")
    (failed,) = [vars(record)["kainite_fields"] for record in caplog.records if record.getMessage() == "unit failed"]
    assert (failed["uow"], failed["id"]) == ("bad", world.log.tid("bad"))
    assert failed["tables"] == "item, journal"
    assert failed["help"] == "kainite uow show -p FILE bad"
    assert "CHECK" in failed["cause"]


def test_a_retry_after_mending_goes_first_and_those_behind_it_follow(world: World) -> None:
    world.log.unit("early", *noted("early", update(1, 1)))  # there is no row 1 yet
    world.log.unit("behind", *noted("behind", update(1, 2)))
    world.apply()
    assert world.log.statuses() == {"early": FAILED, "behind": BLOCKED}

    world.database.run("INSERT INTO item (id, v) VALUES (1, 0);")
    assert world.log.ask("retry", "early") == "ok"
    world.log.unit("late", *noted("late", update(1, 3)))
    world.apply()

    assert world.journal() == ["behind", "early", "late"]
    assert world.items() == {1: 3}
    assert world.log.statuses() == {}


def test_discarding_releases_what_waited(world: World) -> None:
    world.log.unit("bad", insert(1, -1))
    world.log.unit("behind", insert(1, 1))
    world.apply()
    assert world.log.ask("discard", "bad") == "ok"
    world.apply()

    assert world.items() == {1: 1}
    assert world.log.statuses() == {}


def test_a_task_that_was_given_up_does_not_apply_what_is_discarded_meanwhile(world: World) -> None:
    world.log.unit("unwanted", *noted("unwanted", insert(1)))
    given_up: list[MicroBatch] = []
    runner = world.runner()

    class GivesUp:
        parallelism = 2

        def run(self, batch: MicroBatch) -> list[TaskResult]:
            given_up.append(batch)
            assert world.log.ask("discard", "unwanted") == "asked"
            raise SparkUnavailableError("the executor does not answer")

    world.job(GivesUp()).run(once=True)
    late = [result for batch in given_up for result in runner.run(batch)]

    assert [type(result.problem) for result in late if result.outcomes or result.problem] == [TargetFencedError]
    assert world.journal() == []
    world.log.take_outcomes()
    assert world.log.statuses() == {}


def test_the_log_shows_why_units_wait_and_since_when(world: World) -> None:
    world.log.unit("T", insert(1))
    runner = world.runner()

    class ThirdTime:
        parallelism = 2
        tries = 0

        def run(self, batch: MicroBatch) -> list[TaskResult]:
            self.tries += 1
            if self.tries == 3:
                world.log.take_outcomes()
                shown.append(world.log.state.units[world.log.tid("T")].cause)
                return runner.run(batch)
            raise SparkUnavailableError("the executor does not answer")

    shown: list[str | None] = []
    world.job(ThirdTime()).run(once=True)
    assert re.fullmatch(r"waits since \d{4}-\S+: the executor does not answer", shown[0] or "")
    world.log.take_outcomes()
    assert world.log.statuses() == {}


def test_a_running_job_takes_up_a_retry(world: World) -> None:
    # The decision comes while the job runs, so the job reads it at the log's tail.
    world.log.unit("early", update(1, 1))
    runner = world.runner()

    def mend(batch: MicroBatch) -> None:
        if len(runner.ran) == 3:  # the micro-batch after the one in which the unit failed for good
            world.log.take_outcomes()
            world.database.run("INSERT INTO item (id, v) VALUES (1, 0);")
            assert world.log.ask("retry", "early") == "ok"

    class Mending:
        parallelism = 2

        def run(self, batch: MicroBatch) -> list[TaskResult]:
            results = runner.run(batch)
            mend(batch)
            if len(runner.ran) == 2:
                world.log.unit("other", insert(9))
            return results

    world.job(Mending(), consistency=Consistency.CONFLICT).run(once=True)

    assert world.items() == {1: 1, 9: 0}


def test_a_correction_overtakes_the_failed_unit(world: World) -> None:
    world.log.unit("bad", insert(1, -1))
    world.log.unit("behind", update(1, 9))
    bad = world.log.tid("bad")
    fix = world.log.unit("fix", insert(1, 1), kind=UnitKind.CORRECTION)
    world.apply()

    assert world.items() == {1: 9}
    assert world.log.statuses() == {}
    assert Outcome(bad, UnitStatus.DISCARDED, cause=f"overtaken by {fix}") in outcomes(world)


def test_a_malformed_unit_is_never_applied_and_holds_back_until_it_is_discarded(world: World) -> None:
    world.log.malformed("bad", insert(1))
    world.log.unit("behind", insert(1, 2))
    world.apply()
    assert world.log.statuses() == {"bad": FAILED, "behind": BLOCKED}

    assert world.log.ask("retry", "bad") == "refused"
    assert world.log.ask("discard", "bad") == "ok"
    world.apply()
    assert world.items() == {1: 2}


def test_a_unit_whose_parts_came_late_is_applied_whole_in_its_place(world: World) -> None:
    world.log.append(world.log.fragment("late", insert(1), ends=(UnitEnd(3),)))
    world.log.expire("late")
    world.log.unit("behind", update(1, 5))
    world.apply()
    assert world.log.statuses() == {"late": FAILED, "behind": BLOCKED}

    world.log.append(world.log.fragment("late", insert(2)))
    assert world.log.ask("retry", "late") == "refused"
    world.log.append(world.log.fragment("late", insert(1), insert(3)))
    world.log.unit("behind too", update(3, 7))
    world.apply()
    assert world.items() == {}

    assert world.log.ask("retry", "late") == "ok"
    world.apply()
    assert world.items() == {1: 5, 2: 0, 3: 7}
    assert world.log.statuses() == {}


def test_skip_lets_later_units_through(world: World) -> None:
    world.log.unit("bad", insert(1, -1))
    world.log.unit("behind", insert(1, 1))
    world.apply(OnFailure.SKIP)

    assert world.items() == {1: 1}
    assert world.log.statuses() == {"bad": FAILED}


def test_stop_ends_the_job_at_the_first_failure_and_again_until_it_is_resolved(world: World) -> None:
    world.log.unit("bad", insert(1, -1))
    for _ in range(2):
        with pytest.raises(TargetRejectedError, match=r"unit bad .* onUowFailure is stop"):
            world.apply(OnFailure.STOP)
        world.log.take_outcomes()
    world.log.unit("other", insert(2))
    assert world.log.ask("discard", "bad") == "ok"
    world.apply(OnFailure.STOP)

    assert world.items() == {2: 0}


def test_the_next_job_goes_on_where_the_log_has_not_taken_the_outcomes_over(world: World) -> None:
    good = world.log.unit("T-0", *noted("T-0"))
    bad = world.log.unit("bad", insert(1, -1))
    behind = world.log.unit("behind", insert(1, 1))
    world.job().run(once=True)
    before = outcomes(world)
    assert {outcome.tid: outcome.status for outcome in before} == {good: COMMITTED, bad: FAILED, behind: BLOCKED}
    runner = world.runner()
    world.job(runner).run(once=True)

    assert runner.ran == []
    assert outcomes(world) == before


def test_acknowledgements_and_outcomes_go_when_nobody_needs_them(world: World) -> None:
    world.log.unit("T-0", insert(1))
    bad = world.log.unit("bad", insert(2, -1))
    later = world.log.unit("later", insert(3))
    world.apply()
    assert world.acknowledged() == [later], "units before the oldest unresolved one are forgotten"

    assert world.log.ask("discard", "bad") == "ok"
    world.log.unit("last", insert(4))
    world.apply()
    assert world.acknowledged() == []
    assert bad not in {outcome.tid for outcome in outcomes(world)}


def test_what_is_away_is_waited_for_and_fails_no_unit(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outcome_writer, "TIDY_EVERY", 1)  # acknowledgements that are still needed must not go
    world.log.unit("T-0", *noted("T-0"))
    away = TargetUnavailableError("away"), SparkUnavailableError("an executor was lost"), TargetUnavailableError("away")
    runner = Faulty(world.runner(), list(away), after=True)
    job = world.job(runner)
    job.run(once=True)

    assert runner.runs == 4
    assert world.journal() == ["T-0"]
    assert job.summary.outcomes == {COMMITTED: 1}


def test_a_broken_spark_session_ends_the_job(world: World) -> None:
    world.log.unit("T-0", *noted("T-0"))
    problems: list[KainiteError] = [SparkUnavailableError("no worker starts") for _ in range(trouble.SPARK_TRIES)]
    with pytest.raises(SparkUnavailableError):
        world.job(Faulty(world.runner(), problems)).run(once=True)

    assert world.journal() == []


def test_a_corrupt_log_ends_the_job(world: World) -> None:
    world.log.unit("T-0", *noted("T-0"))
    with pytest.raises(LogCorruptError, match="missing"):
        world.job(Faulty(world.runner(), [LogCorruptError("an entry is missing")])).run(once=True)


def test_a_unit_that_holds_other_deltas_than_its_shards_holder_announced_fails_alone(world: World) -> None:
    part = world.log.fragment("bad", insert(1), ends=(UnitEnd(2),))
    world.log.append(replace(part, deltas=(), identities=(1, 2)))
    world.log.unit("behind", update(1, 2))
    world.log.unit("free", insert(3))
    world.apply()
    assert (world.items(), world.log.statuses()) == ({3: 0}, {"bad": FAILED, "behind": BLOCKED})
    causes = [outcome.cause for outcome in outcomes(world)]
    assert f"unit {world.log.tid('bad')} (bad) has 1 delta in the log, not 2" in causes


def test_two_logs_that_are_applied_to_one_target_do_not_meet(world: World) -> None:
    other = World(MemoryStore(), world.database.url, ledger="other/0", create=False)
    world.log.unit("T-0", note("T-0"))
    other.log.unit("U-0", note("U-0"))
    for one in (world, other):
        one.apply()

    assert world.journal() == ["T-0", "U-0"]
    assert (world.log.statuses(), other.log.statuses()) == ({}, {})


def test_commits_are_told_together_and_before_their_acknowledgements_go(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outcome_writer, "OUTCOMES_EVERY_S", 3_600.0)
    monkeypatch.setattr(outcome_writer, "TIDY_EVERY", 3)
    for n in range(7):
        world.log.unit(f"T-{n}", *noted(f"T-{n}"))
    applied, unknown = set[int](), set[int]()

    class Watched(InlineRunner):
        def run(self, batch: MicroBatch) -> list[TaskResult]:
            told = {outcome.tid for outcome in outcomes(world)}
            unknown.update(applied - told - set(world.acknowledged()))
            results = super().run(batch)
            applied.update(outcome.tid for result in results for outcome in result.outcomes)
            if len(applied) == 7:
                world.stop.set()
            return results

    world.job(Watched(world.store, "0", world.target), max_units=1, pace=0.0).run()
    assert unknown == set()
    assert {outcome.tid for outcome in outcomes(world)} == applied
    head = world.store.read_head("0:outcomes")
    assert head is not None
    assert len(list(world.store.read_batches("0:outcomes", head.low_water_mark))) < 7


class TestTwoJobs:
    def test_the_older_one_is_fenced_before_it_applies_anything_more(self, world: World) -> None:
        world.log.unit("T-0", *noted("T-0"))
        younger = world.job()

        class Overtaken(InlineRunner):
            def run(self, batch: MicroBatch) -> list[TaskResult]:
                younger.run(once=True)
                return super().run(batch)

        older = world.job(Overtaken(world.store, "0", world.target))
        with pytest.raises(TargetFencedError):
            older.run(once=True)

        assert world.journal() == ["T-0"]
        assert [outcome.status for outcome in outcomes(world)] == [COMMITTED]

    def test_the_older_one_cannot_report_what_it_applied(self, world: World) -> None:
        world.log.unit("T-0", *noted("T-0"))
        younger = world.job()

        class OvertakenLater(InlineRunner):
            def run(self, batch: MicroBatch) -> list[TaskResult]:
                results = super().run(batch)
                younger.run(once=True)
                return results

        with pytest.raises(LogFencedError):
            world.job(OvertakenLater(world.store, "0", world.target)).run(once=True)

        assert world.journal() == ["T-0"]
        assert [outcome.status for outcome in outcomes(world)] == [COMMITTED]

    def test_the_time_before_it_mounts_counts(self, world: World, caplog: pytest.LogCaptureFixture) -> None:
        dead = mount(world.store, "0:outcomes", "killed", 0.2)
        watch = begin_to_watch(world.store, "0:outcomes")
        deadline = time.monotonic() + 10
        while watch.remaining(dead.head) > 0:
            assert time.monotonic() < deadline
            world.stop.wait(0.01)
        world.log.unit("T-0", *noted("T-0"))
        job = world.job(owner="second")
        ApplyJob(job._environment, world.stop, watch).run(once=True)  # noqa: SLF001
        assert world.journal() == ["T-0"]
        assert "waiting for another apply job to end" not in caplog.messages

    def test_one_waits_while_the_other_s_lease_runs(self, world: World, caplog: pytest.LogCaptureFixture) -> None:
        world.log.unit("T-0", note("T-0"))
        second = world.job(owner="second", lease=0.5)
        waiting = threading.Thread(target=second.run, kwargs={"once": True})

        class WithAnother(InlineRunner):
            def run(self, batch: MicroBatch) -> list[TaskResult]:
                waiting.start()
                eventually(lambda: "waiting for another apply job to end" in caplog.messages)
                return super().run(batch)

        first = world.job(WithAnother(world.store, "0", world.target), owner="first", lease=0.5)
        first.run(once=True)
        waiting.join(10)

        assert not waiting.is_alive()
        assert first.summary.outcomes == {COMMITTED: 1}
        assert second.summary.outcomes == {}


def test_a_stopped_job_ends_after_its_micro_batch_and_lets_go_of_its_lease(world: World) -> None:
    for n in range(3):
        world.log.unit(f"T-{n}", *noted(f"T-{n}"))

    class Stopping(InlineRunner):
        def run(self, batch: MicroBatch) -> list[TaskResult]:
            world.stop.set()
            return super().run(batch)

    job = world.job(Stopping(world.store, "0", world.target), max_units=1)
    job.run()

    assert job.summary.outcomes == {COMMITTED: 1}
    head = world.store.read_head("0:outcomes")
    assert head is not None
    assert head.released


def test_conflicting_units_share_a_job_instance_and_a_bridge_joins_two(world: World) -> None:
    runner = world.runner()
    for n in range(4):
        world.log.unit(f"T-{n}", insert(n))
    world.job(runner, consistency=Consistency.CONFLICT).run(once=True)
    assert runner.ran[0].instances == 2

    runner = world.runner()
    world.log.unit("a", update(0, 1))
    world.log.unit("b", update(1, 1))
    world.log.unit("bridge", update(0, 2), update(1, 2))
    world.job(runner, consistency=Consistency.CONFLICT).run(once=True)
    assert runner.ran[0].instances == 1
    assert world.items() == {0: 2, 1: 2, 2: 0, 3: 0}


def test_a_child_waits_for_nobody_but_the_unit_that_brings_its_parent(world: World) -> None:
    # A foreign key is a conflict on the parent's existence: both units go to one instance, in order.
    runner = world.runner()
    world.log.unit("parent", Delta("parent", Operation.INSERT, {"id": 1}, {"id": 1, "v": 0}, {}))
    for n in range(3):
        child = Delta("item", Operation.INSERT, {"id": n}, {"id": n, "v": 0, "parent_id": 1}, {})
        world.log.unit(f"child-{n}", child)
    world.log.unit("hot", Delta("parent", Operation.UPDATE, {"id": 1}, {"v": 5}, {}))
    world.job(runner).run(once=True)

    assert len(world.items()) == 3
    assert len(runner.ran) == 1


class Meanwhile(threading.Event):
    """Calls a function when the job is idle for the first time, and stops the job the second time."""

    def __init__(self, action: Callable[[], None]) -> None:
        super().__init__()
        self._actions = [action]

    def wait(self, timeout: float | None = None) -> bool:
        if self._actions:
            self._actions.pop()()
        else:
            self.set()
        return self.is_set()


def test_a_log_truncated_before_it_was_read_is_read_anew(world: World, caplog: pytest.LogCaptureFixture) -> None:
    def the_log_moves_on() -> None:
        world.log.take_outcomes()
        world.log.malformed("bad", insert(1))
        assert world.log.ask("discard", "bad") == "ok"
        world.log.snapshot()
        world.log.unit("T-1", *noted("T-1", insert(1)))

    world.log.unit("T-0", *noted("T-0"))
    world.stop = Meanwhile(the_log_moves_on)
    world.job().run()
    assert "log truncated before it was read, reading it anew" in caplog.messages
    assert world.journal() == ["T-0", "T-1"]
    assert world.items() == {1: 0}


@dataclass
class Zombies:
    """A runner whose tasks are each given up once: ``wake`` lets them go on with what they had read by then."""

    inner: InlineRunner
    parallelism: int = 2
    asleep: list[Callable[[], None]] = field(default_factory=list)

    def run(self, batch: MicroBatch) -> list[TaskResult]:
        inner = self.inner
        parts = [part for piece in batch.slices for _, part in read_slice(inner.store, inner.partition, piece)]
        units = assemble([part for part in parts if not isinstance(part, KainiteError)])
        session = inner.target.connect()
        self.asleep.append(lambda: session.apply(batch.fence, units))
        return inner.run(batch)

    def wake(self) -> None:
        assert self.asleep
        for go_on in self.asleep:
            with pytest.raises(TargetFencedError):
                go_on()


def test_a_task_that_was_given_up_wakes_while_the_job_is_idle(world: World) -> None:
    zombies = Zombies(world.runner())
    for n in range(3):
        world.log.unit(f"T-{n}", note(f"T-{n}"))
    world.job(zombies).run(once=True)
    assert world.acknowledged() == [], "the idle job has trimmed"

    zombies.wake()
    assert world.journal() == ["T-0", "T-1", "T-2"]


def test_a_task_that_was_given_up_wakes_between_two_micro_batches_that_trim(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outcome_writer, "TIDY_EVERY", 1)
    zombies = Zombies(world.runner())
    trim = world.target.trim

    def trim_and_wake(fence: Fence, below: int, mark: TargetMark) -> int:
        trimmed = trim(fence, below, mark)
        zombies.wake()
        return trimmed

    monkeypatch.setattr(type(world.target), "trim", lambda _, fence, below, mark: trim_and_wake(fence, below, mark))
    for n in range(4):
        world.log.unit(f"T-{n}", note(f"T-{n}"))
    job = world.job(zombies, max_units=1)
    job.run(once=True)

    assert job.summary.outcomes == {COMMITTED: 4}
    assert world.journal() == [f"T-{n}" for n in range(4)]


def test_a_unit_that_has_failed_is_not_applied_by_a_task_that_wakes_later(world: World) -> None:
    # The target is mended after the unit has failed; a person may have discarded the unit by then.
    zombies = Zombies(world.runner())
    world.log.unit("early", *noted("early", update(1, 1)))
    world.job(zombies).run(once=True)
    world.log.take_outcomes()
    assert world.log.ask("discard", "early") == "ok"
    world.database.run("INSERT INTO item (id, v) VALUES (1, 0);")

    zombies.wake()
    assert world.items() == {1: 0}
    assert world.journal() == []


def test_a_unit_that_a_given_up_task_applied_before_it_failed_elsewhere_is_committed(world: World) -> None:
    # The retry refuses the unit; meanwhile the target is mended, and the task that was given up commits it.
    world.log.unit("early", *noted("early", update(1, 1)))

    class WakesAfterTheSerialRun(Zombies):
        def run(self, batch: MicroBatch) -> list[TaskResult]:
            results = super().run(batch)
            if len(self.asleep) == 2:
                world.database.run("INSERT INTO item (id, v) VALUES (1, 0);")
                self.asleep[-1]()
            return results

    job = world.job(WakesAfterTheSerialRun(world.runner()), consistency=Consistency.CONFLICT)
    job.run(once=True)
    assert world.items() == {1: 1}
    assert job.summary.outcomes == {COMMITTED: 1}


def test_a_paused_log_is_followed_and_the_target_left_alone_also_after_a_restart(world: World) -> None:
    world.log.unit("A", insert(1), note("A"))
    world.log.pause()
    for _ in range(2):
        world.apply(on_failure=OnFailure.STOP)
        assert (world.journal(), world.log.statuses()) == ([], {"A": UnitStatus.IN_PROGRESS})
        world.log.snapshot()
    world.log.unit("B", insert(2), note("B"))
    world.log.pause(resume=True)
    world.apply()
    assert (world.journal(), world.log.statuses()) == (["A", "B"], {})


def test_a_job_that_runs_is_paused_and_goes_on(world: World) -> None:
    sums, health = Sums(), JobHealth()
    running = threading.Thread(target=world.job(meter=Meter(sums), health=health).run)
    running.start()
    try:
        world.log.unit("A", insert(1), note("A"))
        eventually(lambda: world.journal() == ["A"])
        world.log.pause()
        world.log.unit("B", insert(2), note("B"))
        eventually(lambda: sums.values[metric.APPLY_WAITING] == 1 and sums.values[metric.APPLY_PAUSED] == 1)
        rounds = sums.seen[metric.APPLY_WAITING]
        eventually(lambda: sums.seen[metric.APPLY_WAITING] > rounds + 2)
        assert world.journal() == ["A"]
        assert health.report().healthy
        assert "paused by a test since " in health.report().as_json()["paused"]
        world.log.pause(resume=True)
        eventually(lambda: world.journal() == ["A", "B"])
        eventually(lambda: not health.report().paused and not sums.values[metric.APPLY_PAUSED])
    finally:
        world.stop.set()
        running.join()


def test_a_correction_that_a_person_sends_takes_the_failed_units_place(world: World) -> None:
    world.log.unit("A", insert(1, -1), note("A"))
    world.log.unit("B", update(1, 5), note("B"))
    world.apply()
    assert world.log.statuses() == {"A": FAILED, "B": BLOCKED}
    assert world.log.correct("A", "A-fixed", insert(1, 1), note("A-fixed")) == "ok"
    world.apply()
    assert (world.items(), world.journal(), world.log.statuses()) == ({1: 5}, ["A-fixed", "B"], {})

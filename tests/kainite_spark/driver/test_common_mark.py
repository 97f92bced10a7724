"""When an apply job notes the common mark of several targets, and what it notes."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from kainite.base.errors import TargetUnavailableError
from kainite.observe import metric
from kainite.observe.meter import Meter
from kainite.store.memory import MemoryStore
from kainite_spark.driver.common_mark import EVERY_S, CommonMark
from kainite_spark.driver.follower import LogFollower
from kainite_spark.driver.job_metrics import JobMetrics
from support.apply_world import World, insert
from support.chaos import Fate, KilledError, MortalTarget
from support.metric_sums import Sums
from support.several_world import OneTarget, SeveralWorld, contact, item, noting
from support.stores import Database


@pytest.fixture
def world(tmp_path: Path) -> Iterator[SeveralWorld]:
    databases = {}
    for name in ("shop", "crm"):
        path = tmp_path / f"{name}.db"
        sqlite3.connect(path).close()
        databases[name] = Database(f"sqlite:///{path}")
    with closing(SeveralWorld(MemoryStore(), databases)) as made:
        yield made


def noted(target: OneTarget) -> int:
    ((mark,),) = target.database.rows("SELECT everywhere_below FROM kainite_mark")
    assert isinstance(mark, int)
    return mark


def both(world: SeveralWorld, number: int) -> int:
    """Puts a unit with a row of each target into the log; returns its transaction id."""
    name = f"T-{number}"
    return world.log.unit(name, *noting(name, item(number), contact(number)))


def test_a_mark_is_noted_when_it_has_risen_and_not_too_often() -> None:
    now, seen = [100.0], list[int]()
    mark = CommonMark(seen.append, lambda: now[0])
    for below, after, at_once in (
        (0, 0.0, False),
        (5, 0.0, False),
        (5, EVERY_S, False),
        (5, 9.0, False),
        (4, 9.0, True),
        (6, 0.0, False),
        (7, 0.0, True),
    ):
        now[0] += after
        mark.look(below, now=at_once)
    assert seen == [0, 5, 6, 7]


def test_a_mark_that_could_not_be_noted_is_noted_again() -> None:
    answers = [TargetUnavailableError("away"), None]
    seen = list[int]()

    def note(below: int) -> None:
        seen.append(below)
        if (error := answers.pop(0)) is not None:
            raise error

    mark = CommonMark(note, lambda: 1.0)
    with pytest.raises(TargetUnavailableError):
        mark.look(5)
    mark.look(5)
    mark.look(5)
    assert seen == [5, 5]


def test_the_mark_passes_a_unit_when_each_target_has_it(world: SeveralWorld) -> None:
    """Shows: neither target says so before the log has the commits of both, and each does after that."""
    unit = both(world, 1)
    world.apply("shop")
    world.apply("shop")
    assert noted(world.shop) == unit
    world.apply("crm")
    assert noted(world.crm) == unit  # the log's owner had not copied its commit yet
    world.apply()
    assert noted(world.shop) == noted(world.crm) == world.log.state.next_id > unit


def test_a_unit_that_failed_in_one_target_holds_the_mark_in_all(world: SeveralWorld) -> None:
    tid = world.log.unit("bad", *noting("bad", item(1, -1), contact(1)))
    both(world, 2)
    world.apply()
    world.apply()
    assert (noted(world.shop), noted(world.crm)) == (tid, tid)
    assert world.log.ask("discard", "bad") == "ok"
    world.apply()
    world.apply()
    assert noted(world.shop) == noted(world.crm) == world.log.state.next_id


def test_a_crash_around_the_note_leaves_a_mark_that_is_true(world: SeveralWorld) -> None:
    """Shows: killed before or after the transaction, the target has the old mark or the new one, and then the new."""
    for number, when in enumerate(("before", "after")):
        unit = both(world, number)
        world.apply()
        assert noted(world.crm) == unit
        fate = Fate(on=f"{when} note_common_mark")
        with pytest.raises(KilledError):
            world.job("crm", target=MortalTarget(world.crm.target, fate)).run(once=True)
        assert noted(world.crm) == (unit if when == "before" else world.log.state.next_id)
        world.apply("crm")
        assert noted(world.crm) == world.log.state.next_id


def test_an_only_target_has_no_mark(tmp_path: Path) -> None:
    sqlite3.connect(tmp_path / "only.db").close()
    world = World(MemoryStore(), f"sqlite:///{tmp_path / 'only.db'}")
    world.log.unit("T-1", insert(1))
    world.apply()
    assert world.items() == {1: 0}
    tables = world.database.rows("SELECT name FROM sqlite_schema WHERE name LIKE 'kainite%' AND type = 'table'")
    assert sorted(tables) == [("kainite_applied",), ("kainite_fence",)]


def test_how_long_the_mark_has_stood_is_a_metric(world: SeveralWorld) -> None:
    """Shows: it tells of the unit that another target lacks, though this target has it; 0 when all have all."""
    both(world, 1)
    told, now = [], [0.0]
    for _ in range(2):
        sums = Sums()
        now[0] = 0.0
        metrics = JobMetrics(Meter(sums), lambda: now[0])
        world.apply("shop")
        follower = LogFollower(world.store, "0", target="shop")
        follower.start()
        metrics.sample(follower.backlog, follower.next_id, follower.everywhere_below)
        now[0] = 30.0
        metrics.sample(follower.backlog, follower.next_id, follower.everywhere_below)
        told.append(sums.values[metric.COMMON_MARK_LAG])
        world.apply()
        world.apply()
    assert told == [30_000.0, 0.0]

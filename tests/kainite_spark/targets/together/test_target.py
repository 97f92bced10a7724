"""Several targets as the driver has them: their fences, what each has of a unit, and what only some have."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from kainite.base.errors import TargetFencedError
from kainite.settings import TargetCommit
from kainite.store.memory import MemoryStore
from kainite_spark.targets.contract import Unit
from kainite_spark.targets.fence import Fence
from kainite_spark.targets.together.session import ledger_in
from support.atomic_world import LEDGER, AtomicWorld
from support.chaos import Fate, KilledError
from support.joint_history import file_databases
from support.several_world import NOTES, contact, item, noting
from support.stores import Database

FENCE = Fence(LEDGER, 2, 3)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[AtomicWorld]:
    with closing(AtomicWorld(MemoryStore(), file_databases(tmp_path), commit=TargetCommit.TOGETHER)) as made:
        yield made


def test_a_unit_is_applied_when_each_target_has_it_and_one_in_some_alone_is_told(
    world: AtomicWorld, caplog: pytest.LogCaptureFixture
) -> None:
    target = world.joint()
    target.raise_generation(LEDGER, 2)
    target.begin_micro_batch(FENCE)
    with closing(target.connect()) as session:
        session.apply(FENCE, [Unit(1, "T-1", tuple(noting("T-1", item(1, 1), contact(1, 1))))])
    with closing(world.targets["crm"].connect()) as crm:
        own = Fence(ledger_in(LEDGER, "crm"), 2, 3)
        crm.apply(own, [Unit(2, "T-2", tuple(noting("T-2", contact(2, 2))))])
    assert target.close_micro_batch(replace(FENCE, micro_batch=4), [1, 2, 3]) == {1}
    assert caplog.messages == ["unit is in some targets alone"]


def test_a_session_remembers_no_unit_that_all_targets_have(world: AtomicWorld) -> None:
    """Shows it by targets that went back. A session lives as long as its process, and would grow with its units."""
    target = world.joint()
    target.raise_generation(LEDGER, 2)
    target.begin_micro_batch(FENCE)
    unit = Unit(1, "T-1", tuple(noting("T-1", item(1, 1), contact(1, 1))))
    with closing(target.connect()) as session:
        for _ in range(2):
            session.apply(FENCE, [unit])
            assert (world.noted("shop"), world.noted("crm")) == (["T-1"], ["T-1"])
            for name, table in (("shop", "item"), ("crm", "contact")):
                emptied = ("kainite_applied", NOTES[name], table)
                world.databases[name].run("".join(f"DELETE FROM {each};" for each in emptied))


def test_a_job_that_was_taken_over_is_fenced_in_each_target(world: AtomicWorld) -> None:
    target = world.joint()
    target.raise_generation(LEDGER, 2)
    target.raise_generation(LEDGER, 3)
    for name in ("shop", "crm"):
        with closing(world.targets[name].connect()) as session, pytest.raises(TargetFencedError):
            session.apply(Fence(ledger_in(LEDGER, name), 2, 3), [Unit(1, "T", ())])
    with closing(target.connect()) as session, pytest.raises(TargetFencedError):
        session.apply(FENCE, [Unit(1, "T", tuple(noting("T", item(1, 1), contact(1, 1))))])
    assert (world.rows("shop"), world.rows("crm")) == ({}, {})


def test_a_discard_of_a_unit_in_progress_says_which_targets_keep_it(
    world: AtomicWorld, caplog: pytest.LogCaptureFixture
) -> None:
    world.log.unit("both", *noting("both", item(1, 1), contact(1, 1)))
    with pytest.raises(KilledError):
        world.job(Fate(on="after commit in shop")).run(once=True)
    world.log.ask("discard", "both")
    world.apply()
    assert world.statuses() == {}
    assert (world.noted("shop"), world.noted("crm")) == (["both"], [])
    assert "unit is in some targets alone" in caplog.messages


def test_each_target_has_a_ledger_of_its_own(tmp_path: Path) -> None:
    """Shows that in one file: schemas of a server's database that are named by two addresses share Kainite's tables."""
    sqlite3.connect(tmp_path / "one.db").close()
    one = Database(f"sqlite:///{tmp_path / 'one.db'}")
    with closing(AtomicWorld(MemoryStore(), {"shop": one, "crm": one}, commit=TargetCommit.TOGETHER)) as world:
        target = world.joint()
        target.raise_generation("log/0", 1)
        target.raise_generation("log/0", 2)
    fences = "SELECT log_partition, generation FROM kainite_fence ORDER BY 1"
    assert one.rows(fences) == [("log/0:crm", 2), ("log/0:shop", 2)]

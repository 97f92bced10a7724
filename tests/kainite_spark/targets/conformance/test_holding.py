"""Targets whose transactions wait for each other, of each kind and mixed: what one refuses, the other does not have."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from kainite.settings import TargetCommit
from kainite.store.memory import MemoryStore
from support.atomic_world import AtomicWorld
from support.chaos import Fate
from support.several_world import changed, contact, item, noting
from support.stores import Database

MIXED = [("postgresql", "mariadb"), ("mariadb", "sqlite"), ("sqlite", "postgresql")]


@pytest.fixture(params=MIXED, ids="-".join)
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[AtomicWorld]:
    """Gives a log, and databases of these kinds for shop, which commits first, and CRM."""
    databases = {}
    for name, kind in zip(("shop", "crm"), request.param, strict=True):
        if kind == "sqlite":
            sqlite3.connect(tmp_path / "target.db").close()
            databases[name] = Database(f"sqlite:///{tmp_path / 'target.db'}")
        else:
            databases[name] = Database(request.getfixturevalue({"postgresql": "postgres"}.get(kind, kind)))
    with closing(AtomicWorld(MemoryStore(), databases, commit=TargetCommit.TOGETHER)) as made:
        yield made


@pytest.mark.parametrize("moment", ["before commit in shop", "after commit in shop", "after commit in crm"])
def test_a_unit_is_in_both_targets_once_wherever_the_job_dies(world: AtomicWorld, moment: str) -> None:
    world.log.unit("both", *noting("both", item(1, 1), contact(1, 1)))
    world.log.unit("crm alone", *noting("crm alone", contact(2, 2)))
    fate = Fate(on=moment)
    world.apply(fate)
    assert fate.dead
    assert (world.rows("shop"), world.rows("crm")) == ({1: 1}, {1: 1, 2: 2})
    assert (world.noted("shop"), world.noted("crm")) == (["both"], ["both", "crm alone"])
    assert world.statuses() == {}


@pytest.mark.parametrize(("shop", "crm"), [(-1, 1), (1, -1)])
def test_what_one_target_refuses_the_other_does_not_have(world: AtomicWorld, shop: int, crm: int) -> None:
    """Shows a refusal by either target is the unit's, and that units beside it are applied."""
    world.log.unit("good", *noting("good", item(1, 1), contact(1, 1)))
    world.log.unit("bad", *noting("bad", item(2, shop), contact(2, crm)))
    world.log.unit("behind", *noting("behind", changed("item", 2, 5)))
    world.log.unit("beside", *noting("beside", item(3, 3)))
    world.apply()
    assert (world.rows("shop"), world.rows("crm")) == ({1: 1, 3: 3}, {1: 1})
    assert world.statuses() == {"bad": "failed", "behind": "blocked"}


@pytest.mark.parametrize("world", [("sqlite", "postgresql")], ids="-".join, indirect=True)
def test_a_deferred_constraint_is_checked_before_the_first_commit(world: AtomicWorld) -> None:
    world.databases["crm"].run("ALTER TABLE contact ADD UNIQUE (v) DEFERRABLE INITIALLY DEFERRED;")
    world.log.unit("good", *noting("good", item(1, 1), contact(1, 7)))
    world.log.unit("bad", *noting("bad", item(2, 2), contact(2, 7)))
    world.apply()
    assert world.statuses() == {"bad": "failed"}
    assert (world.noted("shop"), world.noted("crm")) == (["good"], ["good"])

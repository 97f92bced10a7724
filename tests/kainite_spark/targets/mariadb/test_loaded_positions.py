"""What an apply job does in a MariaDB target that is loaded, or was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pytest

from kainite.base.errors import TargetFencedError, TargetUnavailableError
from kainite.capture.postgresql.consistent_snapshot import ConsistentPoint
from kainite.capture.postgresql.source_identity import SourceIdentity
from kainite.replicate.mariadb_load_ledger import MariadbLoadLedger
from kainite.replicate.mariadb_target_session import mariadb_session
from kainite.uow.catalogue.reflection import reflect
from kainite.uow.delta import Delta, Operation
from kainite_spark.targets.contract import Unit
from kainite_spark.targets.fence import Fence
from kainite_spark.targets.mariadb.target import MariadbTarget
from kainite_spark.targets.schema import Schema
from support.mariadb_server import rows_of, run_script

LOG = "log/0"
POINT = 1000


@dataclass(frozen=True)
class LoadedName:
    """A table that is loaded; implements :class:`kainite.replicate.found_load.PlacedTable`."""

    place: tuple[str, str]


@dataclass
class LoadedWorld:
    """A target with a load's driver, and what an apply job does there."""

    url: str
    target: MariadbTarget
    ledger: MariadbLoadLedger

    def load(self, *, live: bool = True) -> None:
        """Loads the table ``item`` as of the point, without any row."""
        self.ledger.begin()
        point = ConsistentPoint(POINT, "a snapshot", SourceIdentity("7", 1, "shop"))
        self.ledger.plan(point, [LoadedName((rows_of(self.url, "SELECT DATABASE()")[0][0], "item"))], [])
        if live:
            self.ledger.finish()

    def apply(self, fence: Fence, *units: Unit) -> None:
        with closing(self.target.connect()) as session:
            session.apply(fence, units)

    def rows(self, table: str) -> list[tuple[Any, ...]]:
        return rows_of(self.url, f"SELECT id FROM {table} ORDER BY id")


def unit(tid: int, name: str) -> Unit:
    deltas = [Delta(table, Operation.INSERT, {"id": tid}, {"id": tid}, {}) for table in ("item", "other")]
    return Unit(tid, name, tuple(deltas))


@pytest.fixture
def world(mariadb: str) -> Iterator[LoadedWorld]:
    run_script(mariadb, "CREATE TABLE item (id int PRIMARY KEY); CREATE TABLE other (id int PRIMARY KEY)")
    catalogue = reflect(mariadb)
    target = MariadbTarget(mariadb, Schema.of(catalogue))
    target.prepare(LOG, catalogue)
    with mariadb_session(mariadb) as connection:
        ledger = MariadbLoadLedger(connection, LOG)
        ledger.create()
        yield LoadedWorld(mariadb, target, ledger)


def test_what_the_copy_has_is_left_out_and_acknowledged(world: LoadedWorld) -> None:
    world.load()
    world.target.raise_generation(LOG, 1)
    fence = Fence(LOG, 1, 0)
    world.target.begin_micro_batch(fence)
    names = (f"my-0-1-42-{POINT - 1}", f"my-0-1-43-{POINT}", "another source's")
    world.apply(fence, *(unit(tid, name) for tid, name in enumerate(names)))
    assert world.rows("item") == [(1,), (2,)]
    assert world.rows("other") == [(0,), (1,), (2,)]
    assert rows_of(world.url, "SELECT transaction_id FROM kainite_applied ORDER BY 1") == [(0,), (1,), (2,)]


def test_a_session_reads_the_point_of_a_load_that_came_in_between(world: LoadedWorld) -> None:
    world.target.raise_generation(LOG, 1)
    fence = Fence(LOG, 1, 0)
    world.target.begin_micro_batch(fence)
    with closing(world.target.connect()) as session:
        session.apply(fence, [unit(0, "my-0-1-42-999")])
        run_script(world.url, "DELETE FROM item")
        world.load()
        with pytest.raises(TargetFencedError):
            session.apply(fence, [unit(1, "my-0-1-42-999")])
        with pytest.raises(TargetFencedError):
            world.target.begin_micro_batch(Fence(LOG, 1, 1))
        world.target.raise_generation(LOG, 2)
        world.target.begin_micro_batch(Fence(LOG, 2, 0))
        session.apply(Fence(LOG, 2, 0), [unit(2, "my-0-1-42-999")])
        session.apply_in_source_order(Fence(LOG, 2, 0), unit(3, "my-0-1-42-999"))
    assert (world.rows("item"), world.rows("other")) == ([], [(0,), (2,), (3,)])


def test_no_apply_job_gets_in_before_the_target_is_live(world: LoadedWorld) -> None:
    world.load(live=False)
    with pytest.raises(TargetUnavailableError, match="the target's tables are loading, and not live"):
        world.target.raise_generation(LOG, 99)
    assert rows_of(world.url, "SELECT generation FROM kainite_fence") == [(-1,)]
    world.ledger.finish()
    world.target.raise_generation(LOG, 99)
    assert rows_of(world.url, "SELECT generation FROM kainite_fence") == [(99,)]

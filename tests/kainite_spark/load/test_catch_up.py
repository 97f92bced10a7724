"""What was held is applied once, without what came with the copy; the table is live when its point is passed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest

from kainite.base.errors import TargetRejectedError
from kainite.capture.postgresql.consistent_snapshot import ConsistentPoint
from kainite.capture.postgresql.source_identity import SourceIdentity
from kainite.log.format.deltas import dump_deltas
from kainite.replicate import table_ledger, table_load
from kainite.replicate.table_ledger import OwnLoadState
from kainite.replicate.table_load import TableLoad
from kainite.replicate.tables import ReplicaTable
from kainite.uow.catalogue.reflection import reflect
from kainite.uow.delta import Delta, Operation
from kainite_spark.load.catch_up import CatchUp
from kainite_spark.targets.opening import open_target
from kainite_spark.targets.postgresql.target import PostgresTarget

POINT = ConsistentPoint(0x20, "a snapshot", SourceIdentity("7", 1, "shop"))
ITEM = ReplicaTable("public", "item", "public.item", (), (), "d", 0, ())


def held(target: psycopg.Connection, tid: int, lsn: str, value: int, key: int = 1) -> None:
    delta = Delta("item", Operation.UPDATE, {"id": key}, {"v": value}, {})
    target.execute(
        table_ledger.HOLD, ("log/0", ["public"], ["item"], [tid], [f"pg-7-{lsn}"], [True], [dump_deltas([delta])])
    )


def reach(target: psycopg.Connection, lsn: str) -> None:
    target.execute(table_ledger.REACHED, (lsn, "log/0", lsn))


@pytest.fixture
def target(postgres: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("CREATE TABLE item (id int PRIMARY KEY, v int CHECK (v < 100))")
        yield connection


@pytest.fixture
def catching_up(target: psycopg.Connection, postgres: str) -> Iterator[CatchUp]:
    catalogue = reflect(postgres)
    with closing(open_target(postgres, catalogue)) as opened:
        assert isinstance(opened, PostgresTarget)
        opened.prepare("log/0", catalogue)
        load = TableLoad(target, "log/0", ("public", "item"))
        load.steps.create()
        load.begin()
        load.plan(POINT, ())
        target.execute("INSERT INTO item VALUES (1, 0), (2, 0)")
        with closing(opened.connect()) as session:
            yield CatchUp(load, POINT.lsn, session, threading.Event(), lambda: None)


def test_changes_from_the_point_on_are_applied_in_the_order_in_which_they_were_held(
    target: psycopg.Connection, catching_up: CatchUp
) -> None:
    held(target, 3, "0/1F", 1, key=2)  # came with the copy
    held(target, 5, "0/20", 5)
    held(target, 4, "0/21", 4)  # a correction's turn came before a unit that it held back
    reach(target, "0/21")
    assert catching_up.run()
    assert target.execute("SELECT id, v FROM item ORDER BY id").fetchall() == [(1, 4), (2, 0)]
    found = catching_up.load.found()
    assert found is not None
    assert found.state is OwnLoadState.LIVE


def test_the_table_is_not_live_before_the_apply_job_has_passed_the_point(
    target: psycopg.Connection, catching_up: CatchUp
) -> None:
    places = iter(["0/1E", "0/1F", "0/20"])
    looked: list[str] = []

    def look() -> None:
        looked.append(next(places))
        reach(target, looked[-1])

    assert CatchUp(catching_up.load, POINT.lsn, catching_up.session, threading.Event(), look).run()
    assert looked == ["0/1E", "0/1F", "0/20"]


def test_a_stop_leaves_it_to_the_next_driver_and_a_refusal_is_told(
    target: psycopg.Connection, catching_up: CatchUp
) -> None:
    held(target, 3, "0/20", 100)
    stop = threading.Event()
    stop.set()
    assert not CatchUp(catching_up.load, POINT.lsn, catching_up.session, stop, lambda: None).run()
    with pytest.raises(TargetRejectedError, match="item_v_check"):
        catching_up.run()
    assert target.execute("SELECT count(*) FROM kainite_held_delta").fetchall() == [(1,)]


def test_the_pieces_of_a_unit_are_applied_in_one_transaction(
    catching_up: CatchUp, target: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Meets a constraint that is checked at the end of the unit, and would be refused between two pieces."""
    monkeypatch.setattr(table_load, "HELD_BYTES", 1)
    target.execute("UPDATE item SET v = id")
    target.execute("ALTER TABLE item ADD UNIQUE (v) DEFERRABLE INITIALLY DEFERRED")
    swapped = [Delta("item", Operation.UPDATE, {"id": id}, {"v": v}, {}) for id, v in ((1, 2), (2, 1))]
    for delta, last in zip(swapped, (False, True), strict=True):
        values = ["public"], ["item"], [7], ["pg-7-0/30"], [last], [dump_deltas([delta])]
        target.execute(table_ledger.HOLD, ("log/0", *values))
    reach(target, "0/30")
    assert catching_up.run()
    assert target.execute("SELECT id, v FROM item ORDER BY 1").fetchall() == [(1, 2), (2, 1)]

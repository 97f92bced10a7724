"""Tables of a MariaDB target that are given up because too much is held of them."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pymysql
import pytest

from kainite.base.errors import TargetFencedError
from kainite.capture.postgresql.consistent_snapshot import ConsistentPoint
from kainite.capture.postgresql.source_identity import SourceIdentity
from kainite.replicate import mariadb_giving_up
from kainite.replicate.mariadb_giving_up import give_up_full_in_mariadb
from kainite.replicate.mariadb_table_load import MariadbTableLoad
from kainite.replicate.mariadb_target_session import mariadb_session
from kainite.replicate.table_ledger import OwnLoadState
from kainite.replicate.table_load import OwnLoad
from kainite.targets.mariadb.rows import rows_of
from kainite_spark.targets.mariadb import ledger as of_the_apply_job
from support.mariadb_server import run_script

LOG = "log/0"
POINT = ConsistentPoint(4711, "a snapshot", SourceIdentity("7", 1, "shop"))
HELD = 8192


@pytest.fixture
def target(mariadb: str) -> Iterator[pymysql.connections.Connection]:
    run_script(mariadb, "CREATE TABLE item (id int PRIMARY KEY)")
    with mariadb_session(mariadb) as connection:
        for statement in of_the_apply_job.CREATE:
            connection.query(statement)
        yield connection


@pytest.fixture
def load(target: pymysql.connections.Connection, mariadb: str) -> Iterator[MariadbTableLoad]:
    """Gives a load of the table that failed, with changes that are held; its driver lives."""
    with mariadb_session(mariadb) as connection:
        made = MariadbTableLoad(connection, LOG, (str(rows_of(target, "SELECT DATABASE()")[0][0]), "item"))
        made.steps.create()
        made.begin()
        made.plan(POINT, [])
        for log in (LOG, "log/1"):
            hold(target, log)
        made.enter(OwnLoadState.FAILED, "no room")
        yield made


def hold(target: pymysql.connections.Connection, log: str, count: int = 1) -> None:
    with target.cursor() as cursor:
        for _ in range(count):
            cursor.execute(
                "INSERT INTO kainite_held_delta (log_partition, table_schema, table_name, transaction_id, uow, is_last,"
                " size, deltas) VALUES (%s, DATABASE(), 'item', 1, 'my-1', 1, %s, %s)", (log, HELD, b"x" * HELD),
            )  # fmt: skip


def held(target: pymysql.connections.Connection) -> list[tuple[str]]:
    return rows_of(target, "SELECT log_partition FROM kainite_held_delta ORDER BY place")


def end_driver(load: MariadbTableLoad) -> None:
    """Takes the driver's lock away while its session lives, as a server does that has lost it."""
    rows_of(load._connection, "SELECT RELEASE_ALL_LOCKS()")  # noqa: SLF001


def test_a_table_is_given_up_when_too_much_is_held_and_its_driver_is_gone(
    target: pymysql.connections.Connection, mariadb: str, load: MariadbTableLoad
) -> None:
    give_up_full_in_mariadb(mariadb, LOG, 1)
    assert load.found() == OwnLoad(OwnLoadState.FAILED, 4711, None, "no room")  # the driver lives
    end_driver(load)
    give_up_full_in_mariadb(mariadb, LOG, HELD)
    assert len(held(target)) == 2  # no more is held than may be
    give_up_full_in_mariadb(mariadb, LOG, HELD - 1)
    told = "8,192 bytes of changes were held, more than targetHeldBytes; before that: no room"
    assert load.found() == OwnLoad(OwnLoadState.GIVEN_UP, 4711, None, told)
    assert held(target) == [("log/1",)]
    assert rows_of(target, "SELECT tables FROM kainite_fence") == [(2,)]
    with pytest.raises(TargetFencedError):
        load.enter(OwnLoadState.CATCHING_UP)
    with pytest.raises(TargetFencedError):
        load.steps.go_on()


def test_what_a_crash_has_left_is_dropped_piece_by_piece_by_the_next_look(
    target: pymysql.connections.Connection, mariadb: str, load: MariadbTableLoad, monkeypatch: pytest.MonkeyPatch
) -> None:
    end_driver(load)
    monkeypatch.setattr(mariadb_giving_up, "_dropped", lambda *_: False)
    give_up_full_in_mariadb(mariadb, LOG, 1)
    monkeypatch.undo()
    hold(target, LOG, 450)
    give_up_full_in_mariadb(mariadb, LOG, 2**30)
    assert held(target) == [("log/1",)]


def test_a_load_that_has_begun_keeps_what_it_holds(
    target: pymysql.connections.Connection, mariadb: str, load: MariadbTableLoad, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Begins a load between the look at the states and the drop."""
    end_driver(load)
    give_up_full_in_mariadb(mariadb, LOG, 1)
    kept = mariadb_giving_up._dropped  # noqa: SLF001

    def late(*values: object) -> bool:
        load.begin()
        hold(target, LOG)
        return kept(*values)  # type: ignore[arg-type]

    monkeypatch.setattr(mariadb_giving_up, "_dropped", late)
    give_up_full_in_mariadb(mariadb, LOG, 1)
    assert held(target) == [("log/1",), (LOG,)]


def test_a_target_without_loads_and_one_that_is_away_are_left_alone(
    mariadb: str, caplog: pytest.LogCaptureFixture
) -> None:
    give_up_full_in_mariadb(mariadb, LOG, 1)
    assert caplog.messages == []
    with caplog.at_level(logging.WARNING):
        give_up_full_in_mariadb("mariadb://nobody@127.0.0.1:1/shop", LOG, 1)
    assert "tables that are not live were not looked at" in caplog.text

"""The ledger of a load in MariaDB: who may write, what is emptied, and what is left."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

import pymysql
import pytest

from kainite.base.errors import CatalogueError, TargetError, TargetFencedError
from kainite.capture.postgresql.consistent_snapshot import ConsistentPoint
from kainite.capture.postgresql.source_identity import SourceIdentity
from kainite.replicate.ledger import CheckStep, CopyStep, LoadState, LoadStep
from kainite.replicate.mariadb_ledger import CHECK_STAGE, CLAIM, HOLD, TAKE_STEP, driver_lock, step_lock
from kainite.replicate.mariadb_load_ledger import MariadbLoadLedger, found_mariadb_load, mariadb_snapshot_needed
from kainite.replicate.mariadb_status import mariadb_status
from kainite.replicate.mariadb_target_session import end_mariadb_session, mariadb_session
from kainite.targets.mariadb.connection import connect
from kainite.targets.mariadb.rows import rows_of
from kainite_spark.targets.mariadb import ledger as of_the_apply_job
from support.mariadb_server import run_script
from support.waiting import eventually

LOG = "log/0"


@dataclass(frozen=True)
class PlacedName:
    """A table that is loaded; implements :class:`kainite.replicate.found_load.PlacedTable`."""

    place: tuple[str, str]


POINT = ConsistentPoint(4711, "a snapshot", SourceIdentity("7", 1, "shop"))


@pytest.fixture
def connection(mariadb: str) -> Iterator[pymysql.connections.Connection]:
    run_script(mariadb, "CREATE TABLE item (id int PRIMARY KEY); CREATE TABLE line (id int PRIMARY KEY, item int,"
               " FOREIGN KEY (item) REFERENCES item (id))")  # fmt: skip
    with mariadb_session(mariadb) as made:
        for statement in of_the_apply_job.CREATE:
            made.query(statement)
        yield made


def planned(connection: pymysql.connections.Connection) -> MariadbLoadLedger:
    made = MariadbLoadLedger(connection, LOG)
    made.create()
    made.begin()
    made.plan(POINT, tables_in(connection), steps_in(connection))
    return made


def tables_in(connection: pymysql.connections.Connection) -> list[PlacedName]:
    schema = rows_of(connection, "SELECT DATABASE()")[0][0]
    return [PlacedName((schema, "item")), PlacedName((schema, "line"))]


def steps_in(connection: pymysql.connections.Connection) -> list[LoadStep]:
    places = [table.place for table in tables_in(connection)]
    copies = [LoadStep(number, 1, *place, CopyStep(("SELECT 1",), "")) for number, place in enumerate(places, 1)]
    return [*copies, LoadStep(3, CHECK_STAGE, *places[1], CheckStep())]


def done(connection: pymysql.connections.Connection, *steps: int) -> None:
    for step in steps:
        rows_of(connection, "UPDATE kainite_load_step SET done_at = NOW(), copied_rows = 5 WHERE step = %s", step)


def test_a_load_from_its_beginning_to_its_end(connection: pymysql.connections.Connection, mariadb: str) -> None:
    assert found_mariadb_load(connection, LOG) is None
    assert mariadb_status(connection, LOG).state is None
    made = planned(connection)
    assert rows_of(connection, "SELECT generation, micro_batch FROM kainite_fence") == [(-1, 2**63 - 1)]
    found = made.found()
    assert found is not None
    assert (found.generation, found.state, found.position, found.copies) == (1, LoadState.LOADING, 4711, True)
    assert (found.snapshot, found.source) == ("a snapshot", "7/shop")
    assert made.left() == [1, 2]
    assert made.left([2]) == [1]
    made.seen()
    made.failed(2, "too long")
    assert list(made.names_of([2, 3]).values()) == [f"{tables_in(connection)[1].place[0]}.line"] * 2
    assert made.names_of([]) == {}
    told = mariadb_status(connection, LOG)
    assert [(one.state.value, one.cause) for one in told.tables] == [("waiting", None), ("failed", "too long")]
    assert mariadb_snapshot_needed(mariadb, LOG, 1, "a snapshot", 600)
    assert not mariadb_snapshot_needed(mariadb, LOG, 1, "another one", 600)
    assert not mariadb_snapshot_needed(mariadb, LOG, 1, "a snapshot", -1)
    done(connection, 1, 2)
    assert made.left() == [3]
    assert not mariadb_snapshot_needed(mariadb, LOG, 1, "a snapshot", 600)
    with pytest.raises(TargetFencedError):
        made.finish()
    done(connection, 3)
    made.finish()
    told = mariadb_status(connection, LOG)
    assert (told.consistent, told.rows, told.statements, told.statements_done) == (True, 15, 1, 1)
    with pytest.raises(TargetFencedError):
        made.go_on()


def test_one_driver_at_a_time_for_the_life_of_its_session(
    connection: pymysql.connections.Connection, mariadb: str
) -> None:
    first = planned(connection)
    database = rows_of(connection, "SELECT DATABASE()")[0][0]
    with mariadb_session(mariadb) as other:
        with pytest.raises(TargetError, match="another kainite replicate load of log/0 runs"):
            MariadbLoadLedger(other, LOG)
        MariadbLoadLedger(other, "log/1")
        end_mariadb_session(other, rows_of(connection, "SELECT CONNECTION_ID()")[0][0])
        eventually(lambda: not rows_of(other, "SELECT IS_USED_LOCK(%s)", driver_lock(database, LOG))[0][0])
        second = MariadbLoadLedger(other, LOG)
        second.go_on()
        assert second.generation == first.generation + 1
        second.seen()
        end_mariadb_session(other, 2**31)
    with pytest.raises(pymysql.Error):
        first.plan(POINT, [], [])  # it empties nothing: its session is gone


def test_a_driver_that_goes_on_ends_the_sessions_of_steps_that_were_left_behind(
    connection: pymysql.connections.Connection, mariadb: str
) -> None:
    made = planned(connection)
    database = rows_of(connection, "SELECT DATABASE()")[0][0]
    with closing(connect(mariadb)) as left:
        assert rows_of(left, TAKE_STEP, step_lock(database, LOG, 2), 0) == [(1,)]
        left.begin()
        rows_of(left, HOLD, LOG, made.generation)
        rows_of(left, CLAIM, LOG, 2)
        made.go_on()
        with pytest.raises(pymysql.Error):
            left.commit()
    assert made.generation == 2


def test_a_driver_whose_generation_is_not_the_loads_may_write_nothing(
    connection: pymysql.connections.Connection,
) -> None:
    made = planned(connection)
    rows_of(connection, "UPDATE kainite_load SET generation = 7")
    for write in (made.seen, made.finish, lambda: made.plan(POINT, [], [])):
        with pytest.raises(TargetFencedError, match="generation 1 of the load of log/0 may not write any more"):
            write()
    made.void()
    assert rows_of(connection, "SELECT position FROM kainite_load") == [(4711,)]


def test_what_a_load_filled_is_emptied_and_nothing_else(
    connection: pymysql.connections.Connection, mariadb: str
) -> None:
    made = planned(connection)
    run_script(mariadb, "INSERT INTO item VALUES (1); INSERT INTO line VALUES (1, 1); CREATE TABLE own (id int)")
    run_script(mariadb, "INSERT INTO own VALUES (1)")
    made.void()
    made.begin()
    own = PlacedName((tables_in(connection)[0].place[0], "own"))
    with pytest.raises(CatalogueError, match=r"rows that no load has put there, in test_\w+\.own"):
        made.plan(POINT, [*tables_in(connection), own], steps_in(connection))
    assert rows_of(connection, "SELECT COUNT(*) FROM line") == [(1,)]
    run_script(mariadb, "DROP TABLE line")
    made.plan(POINT, tables_in(connection)[:1], steps_in(connection)[:1])
    assert rows_of(connection, "SELECT COUNT(*) FROM item") == [(0,)]
    assert rows_of(connection, "SELECT COUNT(*) FROM own") == [(1,)]
    assert rows_of(connection, "SELECT @@foreign_key_checks") == [(1,)]


def test_a_failed_transaction_leaves_nothing(connection: pymysql.connections.Connection) -> None:
    made = planned(connection)
    twice = steps_in(connection)[:1] * 2
    made.void()
    with pytest.raises(pymysql.IntegrityError):
        made.plan(POINT, tables_in(connection), twice)
    assert rows_of(connection, "SELECT position FROM kainite_load") == [(None,)]
    assert made.left() == [1, 2]

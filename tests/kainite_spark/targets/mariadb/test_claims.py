"""A transaction of MariaDB writes by the states of the tables that hold while it does, and under its own load alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pymysql
import pytest

from kainite.base.errors import TargetFencedError, TargetRejectedError
from kainite.log.format.deltas import read_deltas
from kainite.replicate import mariadb_ledger, mariadb_table_ledger, table_ledger
from kainite.replicate.mariadb_table_load import MariadbTableLoad
from kainite.targets.mariadb.connection import connect
from kainite.targets.mariadb.rows import rows_of
from kainite.uow.catalogue.reflection import reflect
from kainite.uow.delta import Delta, Operation
from kainite_spark.targets.contract import Unit
from kainite_spark.targets.fence import Fence
from kainite_spark.targets.mariadb.claims import UnitsClaim
from kainite_spark.targets.mariadb.loaded_positions import LoadedPositions
from kainite_spark.targets.mariadb.session import MariadbSession
from kainite_spark.targets.opening import open_target
from support.mariadb_server import run_script

LOG = "log/0"
FENCE = Fence(LOG, 1, 0)


def unit(tid: int, **values: object) -> Unit:
    return Unit(tid, f"my-7-0-42-{tid}0", tuple(Delta(name, Operation.INSERT, {"id": tid}, {"id": tid, **values}, {})
                                              for name in ("item", "other")))  # fmt: skip


@pytest.fixture
def target(mariadb: str) -> Iterator[pymysql.connections.Connection]:
    run_script(mariadb, "CREATE TABLE item (id int PRIMARY KEY, told longtext);"
               " CREATE TABLE other (id int PRIMARY KEY, told longtext)")  # fmt: skip
    with closing(connect(mariadb)) as connection:
        for statement in (*mariadb_ledger.CREATE, *mariadb_table_ledger.CREATE):
            connection.query(statement)
        yield connection


@pytest.fixture
def session(target: pymysql.connections.Connection, mariadb: str) -> Iterator[MariadbSession]:
    catalogue = reflect(mariadb)
    with closing(open_target(mariadb, catalogue)) as opened:
        opened.prepare(LOG, catalogue)
        opened.raise_generation(LOG, 1)
        opened.begin_micro_batch(FENCE)
        with closing(opened.connect()) as made:
            assert isinstance(made, MariadbSession)
            yield made


def ids(target: pymysql.connections.Connection, table: str) -> list[int]:
    return [one for (one,) in rows_of(target, f"SELECT id FROM {table} ORDER BY 1")]


def held(target: pymysql.connections.Connection) -> list[tuple[str, int]]:
    return rows_of(target, "SELECT uow, is_last FROM kainite_held_delta ORDER BY place")


def place(target: pymysql.connections.Connection) -> tuple[str, str, str]:
    return LOG, str(rows_of(target, "SELECT DATABASE()")[0][0]), "item"


def set_loading(target: pymysql.connections.Connection) -> None:
    target.begin()
    with target.cursor() as cursor:
        cursor.execute(mariadb_table_ledger.RAISE_VERSION, (LOG,))
        cursor.execute(mariadb_table_ledger.SET_LOADING, place(target))
    target.commit()


def test_a_session_that_knew_the_tables_before_holds_and_writes_as_they_are_now(
    target: pymysql.connections.Connection, session: MariadbSession
) -> None:
    session.apply(FENCE, [unit(1)])
    set_loading(target)
    session.apply(FENCE, [unit(2)])
    session.apply_in_source_order(FENCE, unit(3))
    assert (ids(target, "item"), ids(target, "other")) == ([1], [1, 2, 3])
    assert held(target) == [("my-7-0-42-20", 1), ("my-7-0-42-30", 1)]
    assert rows_of(target, "SELECT reached FROM kainite_load_table") == [(30,)]
    target.begin()
    with target.cursor() as cursor:
        cursor.execute(mariadb_table_ledger.RAISE_VERSION, (LOG,))
        cursor.execute("UPDATE kainite_load_table SET state = 'live', position = 40")
    target.commit()
    session.apply(FENCE, [unit(4)])
    assert (ids(target, "item"), ids(target, "other")) == ([1, 4], [1, 2, 3, 4])
    assert session.applied(LOG, [1, 2, 3, 4, 5]) == {1, 2, 3, 4}


def test_states_do_not_change_under_a_transaction_that_has_read_them(
    target: pymysql.connections.Connection, session: MariadbSession, mariadb: str
) -> None:
    del session  # it has made the fence
    catalogue = reflect(mariadb)
    claim = UnitsClaim(FENCE, [unit(1)], LoadedPositions(catalogue))
    with closing(connect(mariadb)) as task:
        task.begin()
        claim.take(task)
        target.query("SET SESSION innodb_lock_wait_timeout = 0")
        with pytest.raises(pymysql.OperationalError, match="1205"):
            set_loading(target)
        target.rollback()
        task.rollback()
    set_loading(target)


def test_what_is_refused_holds_nothing_either(target: pymysql.connections.Connection, session: MariadbSession) -> None:
    set_loading(target)
    session.apply(FENCE, [unit(1)])
    with pytest.raises(TargetRejectedError):
        session.apply(FENCE, [unit(2), Unit(3, "my-7-0-42-30", unit(1).deltas)])
    assert held(target) == [("my-7-0-42-10", 1)]
    assert session.applied(LOG, [1, 2, 3]) == {1}


def test_a_change_of_any_size_is_held_in_pieces_that_fit_into_a_statement(
    target: pymysql.connections.Connection, session: MariadbSession
) -> None:
    set_loading(target)
    told = "ü'\\\0" * 400_000
    session.apply(FENCE, [unit(1, told=told), unit(2)])
    found = rows_of(target, "SELECT transaction_id, is_last, size, deltas FROM kainite_held_delta ORDER BY place")
    assert [last for *_, last, _, _ in found] == [*[0] * (len(found) - 2), 1, 1]
    assert len(found) > 4
    assert max(size for _, _, size, _ in found) == mariadb_table_ledger.HELD_PIECE
    assert all(size == len(piece) for _, _, size, piece in found)
    [delta] = read_deltas(b"".join(piece for tid, _, _, piece in found if tid == 1))
    assert delta.row["told"] == told


def test_what_is_held_is_taken_once_and_under_the_loads_generation_alone(
    target: pymysql.connections.Connection, session: MariadbSession
) -> None:
    set_loading(target)
    session.apply(FENCE, [unit(1)])
    _, schema, name = place(target)
    load = table_ledger.load_name(LOG, (schema, name))
    with target.cursor() as cursor:
        cursor.execute(mariadb_ledger.BEGIN, (load,))
    driver = MariadbTableLoad(target, LOG, (schema, name))
    [one] = driver.held()
    unit_of = Unit(one.tid, one.uow, tuple(read_deltas(one.pieces[0])))
    with pytest.raises(TargetFencedError, match=r"generation 0 of log/0 table .*\.item"):
        session.catch_up(load, 0, one.places, [unit_of])
    assert (ids(target, "item"), len(held(target))) == ([], 1)
    session.catch_up(load, 1, one.places, [unit_of])
    assert (ids(target, "item"), held(target)) == ([1], [])
    with pytest.raises(TargetFencedError):
        session.catch_up(load, 1, one.places, [unit_of])

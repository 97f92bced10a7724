"""Gives up tables of a MariaDB target whose own load nobody goes on with: :mod:`kainite.replicate.giving_up`'s rules.

Steps, invariants and what a crash leaves are those of :mod:`~kainite.replicate.giving_up`. The lock of the table's
driver is one of this session, which holds it from before step 1 until behind it. What is held is dropped in
transactions of :data:`_DROPPED_AT_ONCE` pieces; each holds the row of the table's state, so that no load begins
meanwhile, whose held deltas it would drop too.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, Final

import pymysql

from kainite.base.logs import event
from kainite.replicate import mariadb_ledger as ledger
from kainite.replicate import mariadb_table_ledger as table_ledger
from kainite.replicate.table_ledger import load_name, why_given_up
from kainite.targets.mariadb.connection import connect
from kainite.targets.mariadb.rows import line_of, rows_if_there, rows_of

if TYPE_CHECKING:
    from kainite.replicate.tables import TableName

_LOG = logging.getLogger(__name__)

_DROPPED_AT_ONCE: Final = 200
_DATABASE: Final = "SELECT DATABASE()"
# The next look tries again.
_LOCK_WAIT: Final = "SET SESSION innodb_lock_wait_timeout = 5"

_STATES: Final = """
    SELECT table_schema, table_name, state,
           (SELECT CAST(COALESCE(SUM(h.size), 0) AS SIGNED) FROM kainite_held_delta h
            WHERE h.log_partition = t.log_partition AND h.table_schema = t.table_schema
              AND h.table_name = t.table_name)
    FROM kainite_load_table t WHERE log_partition = %s AND state <> 'live'"""

GIVE_UP: Final = """
    UPDATE kainite_load_table SET state = 'given up', cause = CONCAT_WS('; before that: ', %s, cause)
    WHERE log_partition = %s AND table_schema = %s AND table_name = %s AND state NOT IN ('live', 'given up')"""

FORGET_POINT: Final = """
    UPDATE kainite_load SET generation = generation + 1, position = NULL, snapshot = NULL
    WHERE log_partition = %s AND state = 'loading'"""

IS_GIVEN_UP: Final = """
    SELECT 1 FROM kainite_load_table
    WHERE log_partition = %s AND table_schema = %s AND table_name = %s AND state = 'given up' FOR UPDATE"""

_DROP: Final = f"{table_ledger.FORGET_HELD} LIMIT {_DROPPED_AT_ONCE}"


def give_up_full_in_mariadb(url: str, log_partition: str, limit: int) -> None:
    """Gives up tables of which more is held than allowed; tells in the log what it did, or why it could not look.

    Args:
        url: the target.
        log_partition: the log's name there.
        limit: the most bytes of a table's changes that are held without a driver.
    """
    try:
        with closing(connect(url)) as connection:
            connection.query(_LOCK_WAIT)
            for schema, name, state, held in rows_if_there(connection, _STATES, log_partition):
                place = (schema, name)
                given_up = state == "given up" or (held > limit and _give_up(connection, log_partition, place, held))
                while given_up and _dropped(connection, log_partition, place):
                    pass
    except pymysql.Error as error:
        event(_LOG, logging.WARNING, "tables that are not live were not looked at", cause=line_of(error))


def _give_up(connection: pymysql.connections.Connection, log_partition: str, table: TableName, held: int) -> bool:
    """Carries out step 1; tells whether the table is given up, which one with a driver is not."""
    load, cause = load_name(log_partition, table), why_given_up(held)
    lock = ledger.driver_lock(str(rows_of(connection, _DATABASE)[0][0]), load)
    if rows_of(connection, ledger.ONE_DRIVER, lock)[0][0] != 1:
        return False
    with _transaction(connection) as cursor:
        cursor.execute(table_ledger.RAISE_VERSION, (log_partition,))
        given_up = bool(cursor.execute(GIVE_UP, (cause, log_partition, *table)))
        if given_up:
            cursor.execute(FORGET_POINT, (load,))
    rows_of(connection, ledger.GIVE_BACK, lock)
    if given_up:
        event(_LOG, logging.ERROR, "table given up: only kainite replicate reload mends it", table=".".join(table),
              held_bytes=held)  # fmt: skip
    return given_up


def _dropped(connection: pymysql.connections.Connection, log_partition: str, table: TableName) -> bool:
    """Drops some of what is held of a table that is given up; tells whether there may be more."""
    with _transaction(connection) as cursor:
        place = (log_partition, *table)
        return bool(cursor.execute(IS_GIVEN_UP, place)) and bool(cursor.execute(_DROP, place) == _DROPPED_AT_ONCE)


@contextmanager
def _transaction(connection: pymysql.connections.Connection) -> Iterator[Any]:
    connection.begin()
    try:
        with connection.cursor() as cursor:
            yield cursor
        connection.commit()
    except BaseException:
        connection.close()  # which rolls back, whatever state it is in
        raise

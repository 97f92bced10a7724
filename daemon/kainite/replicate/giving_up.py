"""Gives up tables whose own load nobody goes on with, once more of their changes is held than the target has room for.

A table that failed, or whose ``add`` or ``reload`` was killed, stays as it is until a person starts the command again
(:mod:`kainite.replicate.table_ledger`); meanwhile the apply job holds its changes. So that this does not fill the
target's disk, the apply job looks each half minute (:mod:`kainite_spark.driver.replica_watch`) and *gives up* such a
table when more than ``targetHeldBytes`` is held of it.

==========================  ===========================================================================================
step                        what it does, in one transaction
==========================  ===========================================================================================
1. gives up                 takes the lock of the table's driver, which a living driver has; raises the version of the
                            tables' states; notes *given up* with the cause; forgets the point of the table's load, and
                            raises the load's generation
2. drops                    deletes what is held of tables that are given up
==========================  ===========================================================================================

Invariants:

1. A table with a living driver is not given up, however much is held: the driver takes that away again.
2. From step 1 on nothing is held of the table, and nothing is applied to it: the version shuts out transactions that
   were made before, as with every change of state. Units are acknowledged without the table's deltas.
3. Nobody goes on with the load: it has no point any more, and a driver or a task of an older generation, which has lost
   its lock and lives, commits nothing. So the next ``add`` or ``reload`` begins anew.
4. Nothing is lost: the new load's point is made behind its own beginning, so the copy has whatever a unit that was
   acknowledged before has changed. From its beginning on changes are held again.

A crash in step 1 leaves the table as it was, one between the steps leaves deltas that the next look drops; so does a
load that begins. A statement of step 2 that a load overtakes deletes nothing that the load holds: it sees the rows of
its own beginning alone, and of those only the ones of tables that were given up then.
"""

from __future__ import annotations

import logging
from contextlib import closing
from typing import Any, Final

import psycopg
from psycopg.rows import namedtuple_row

from kainite.base.logs import event
from kainite.base.redaction import redacted
from kainite.replicate.load_ledger import LOCK_DRIVER
from kainite.replicate.table_ledger import RAISE_VERSION, load_name, why_given_up
from kainite.replicate.tables import TableName
from kainite.targets.postgresql.connection import connect

_LOG = logging.getLogger(__name__)

ANSWER_S: Final = 10
"""Seconds within which the target must take a connection."""

LOCK_WAIT_S: Final = 5.0
"""Seconds for which the version's lock is waited for; the next look tries again."""

_ARE_THERE: Final = "SELECT to_regclass('kainite_held_delta') IS NOT NULL AND to_regclass('kainite_load') IS NOT NULL"

_STATES: Final = """
    SELECT count(*) FILTER (WHERE state <> 'given up') AS held, count(*) FILTER (WHERE state = 'given up') AS given_up,
           pg_total_relation_size('kainite_held_delta') AS bytes
    FROM kainite_load_table WHERE log_partition = %s AND state <> 'live'"""

# The size of a long value is known without reading it.
_FULL: Final = """
    SELECT h.table_schema AS schema, h.table_name AS name, sum(octet_length(h.deltas))::bigint AS bytes
    FROM kainite_held_delta h JOIN kainite_load_table t USING (log_partition, table_schema, table_name)
    WHERE log_partition = %s AND t.state NOT IN ('live', 'given up')
    GROUP BY 1, 2 HAVING sum(octet_length(h.deltas)) > %s"""

GIVE_UP: Final = """
    UPDATE kainite_load_table SET state = 'given up', cause = concat_ws('; before that: ', %s::text, cause)
    WHERE log_partition = %s AND table_schema = %s AND table_name = %s AND state NOT IN ('live', 'given up')"""

FORGET_POINT: Final = """
    UPDATE kainite_load SET generation = generation + 1, position = NULL, snapshot = NULL
    WHERE log_partition = %s AND state = 'loading'"""

_DROP: Final = """
    DELETE FROM kainite_held_delta h USING kainite_load_table t
    WHERE h.log_partition = %s AND t.state = 'given up' AND t.log_partition = h.log_partition
      AND t.table_schema = h.table_schema AND t.table_name = h.table_name"""


def give_up_full(url: str, log_partition: str, limit: int) -> None:
    """Gives up tables of which more is held than allowed; tells in the log what it did, or why it could not look.

    Args:
        url: the target, as libpq takes it.
        log_partition: the log's name there.
        limit: the most bytes of a table's changes that are held without a driver.
    """
    try:
        with closing(connect(url, "kainite apply", ANSWER_S)) as connection:
            connection.autocommit = True
            _look(connection.cursor(row_factory=namedtuple_row), log_partition, limit)
    except psycopg.Error as error:
        cause = redacted(" ".join(str(error).split()))
        event(_LOG, logging.WARNING, "tables that are not live were not looked at", cause=cause)


def _look(cursor: psycopg.Cursor[Any], log_partition: str, limit: int) -> None:
    if not _one(cursor.execute(_ARE_THERE))[0]:
        return
    states = _one(cursor.execute(_STATES, (log_partition,)))
    given_up = states.given_up
    if states.held and states.bytes > limit:
        for full in cursor.execute(_FULL, (log_partition, limit)).fetchall():
            given_up += _give_up(cursor, log_partition, (full.schema, full.name), full.bytes)
    if given_up:
        cursor.execute(_DROP, (log_partition,))


def _give_up(cursor: psycopg.Cursor[Any], log_partition: str, table: TableName, held: int) -> bool:
    """Carries out step 1; tells whether the table is given up, which one with a driver is not."""
    load, cause = load_name(log_partition, table), why_given_up(held)
    with cursor.connection.transaction():
        cursor.execute(f"SET LOCAL lock_timeout = '{LOCK_WAIT_S * 1000:.0f}ms'")
        if not _one(cursor.execute(LOCK_DRIVER, (load,)))[0]:
            return False
        cursor.execute(RAISE_VERSION, (log_partition,))
        if cursor.execute(GIVE_UP, (cause, log_partition, *table)).rowcount != 1:
            return False
        cursor.execute(FORGET_POINT, (load,))
    event(_LOG, logging.ERROR, "table given up: only kainite replicate reload mends it", table=".".join(table),
          held_bytes=held)  # fmt: skip
    return True


def _one(cursor: psycopg.Cursor[Any]) -> Any:
    row = cursor.fetchone()
    assert row is not None, "the statement returns a row"
    return row

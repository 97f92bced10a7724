"""Makes a snapshot of a source that holds exactly what committed before one LSN, the *consistent point*.

The boundary between a copy and the stream is a place in the WAL: a transaction belongs to the copy if its commit record
lies before the point, and to the stream if not (as PostgreSQL's own table synchronisation has it,
``should_apply_changes_for_rel`` in ``worker.c``). A snapshot by transaction ids with an LSN that is asked for beside it
is no such boundary, since commits become visible in another order than that of the WAL. So the server makes both at
once: a temporary slot, created as the first command of a transaction, gives the point, and its snapshot becomes the
transaction's. The slot is dropped at once and holds back no WAL; the transaction stays open and holds back vacuum.

The transaction also locks the tables against what moves or removes rows behind a snapshot's back (``TRUNCATE``,
``VACUUM FULL``, ``CLUSTER``, ``ALTER TABLE`` with a rewrite, ``DROP``), as ``pg_dump`` does, and looks whether that has
happened between the point and the lock. Reads and writes of rows go on.

States: *open*, from the creation to the end of the ``with``. The end of the connection, for whatever reason, ends the
snapshot; who has imported it already may finish. Nothing is left on the server.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from psycopg import errors, pq, sql

from kainite.base.errors import SourceError
from kainite.capture.postgresql.replication_connection import connect, execute, one_line
from kainite.capture.postgresql.replication_frames import parse_lsn
from kainite.capture.postgresql.source_identity import SourceIdentity
from kainite.targets.postgresql.connection import connect as connect_sql

LOCK_WAIT_S: Final = 10.0
"""Seconds that the creation waits for open transactions of the source before it gives up and names them."""

# A transaction of any database of the cluster is in the way, and a prepared one too.
_IN_THE_WAY: Final = """
    SELECT 'pid ' || pid || ' (' || concat_ws(', ', usename, nullif(application_name, ''), datname) || ', '
           || state || ', its transaction is open for ' || extract(epoch FROM now() - xact_start)::int || ' s)'
    FROM pg_stat_activity
    WHERE backend_xid IS NOT NULL AND pid <> pg_backend_pid() AND xact_start < now() - %(waited)s * interval '1 s'
    UNION ALL
    SELECT 'the prepared transaction ' || quote_literal(gid) || ' (' || owner || ', ' || database || ')'
    FROM pg_prepared_xacts"""
_HELD: Final = "SELECT pg_terminate_backend(PID) on the source ends a transaction, ROLLBACK PREPARED a prepared one"
_NAMES: Final = "SELECT string_agg('ONLY ' || oid::regclass::text, ', ') FROM unnest('{oids}'::oid[]) oid"
_MOVED: Final = """
    SELECT string_agg(t.oid::regclass::text, ', ') FROM pg_class t JOIN pg_namespace s ON s.oid = relnamespace
    WHERE t.oid = ANY('{oids}'::oid[])
      AND (relfilenode IS DISTINCT FROM pg_relation_filenode(t.oid) AND relkind = 'r'
           OR to_regclass(format('%I.%I', nspname, relname)) IS DISTINCT FROM t.oid)"""
_LOCK_TIMED_OUT: Final = b"55P03"


@dataclass(frozen=True, slots=True)
class ConsistentPoint:
    """A snapshot and its place in the source's WAL.

    Attributes:
        lsn: the snapshot has the transactions whose commit LSN is less, and no others.
        snapshot: the name by which other sessions import the snapshot.
        source: the cluster and database.
    """

    lsn: int
    snapshot: str
    source: SourceIdentity


@contextmanager
def consistent_snapshot(
    url: str, tables: Callable[[pq.abc.PGconn], Sequence[int]], lock_wait: float = LOCK_WAIT_S
) -> Iterator[ConsistentPoint]:
    """Makes a snapshot; other sessions may import it inside the ``with``.

    Args:
        url: the source.
        tables: asked, with the connection, for the OIDs of the tables that are to be locked.
        lock_wait: seconds that are waited for transactions that write, and for locks on the tables.

    Raises:
        SourceError: the server refused; a transaction is open for too long; or a table was truncated, written anew
            or renamed while the snapshot was made.
    """
    connection = connect(url)
    began = time.monotonic()
    try:
        execute(connection, f"SET lock_timeout = '{round(lock_wait * 1000)}ms'")
        for name in ("statement_timeout", "idle_in_transaction_session_timeout", "transaction_timeout"):
            # The last one came with PostgreSQL 17.
            execute(connection, f"SELECT set_config(name, '0', false) FROM pg_settings WHERE name = '{name}'")
        identity = _identity(connection)
        try:
            lsn, snapshot = _create(connection)
            _lock(connection, tables(connection))
        except _LockTimedOutError as error:
            raise SourceError(in_the_way(url, str(error), time.monotonic() - began)) from None
        yield ConsistentPoint(lsn, snapshot, identity)
    finally:
        connection.finish()


def lives(url: str, snapshot: str) -> bool:
    """Tells whether a snapshot can still be imported.

    Raises:
        psycopg.Error: the source does not answer.
    """
    with connect_sql(url, "kainite snapshot") as connection:
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        try:
            connection.execute(sql.SQL("SET TRANSACTION SNAPSHOT {}").format(sql.Literal(snapshot)))
        except (errors.UndefinedObject, errors.InvalidParameterValue, errors.ObjectNotInPrerequisiteState):
            return False
        finally:
            connection.execute("ROLLBACK")
    return True


class _LockTimedOutError(Exception):
    """The server waited for a lock in vain."""


def _identity(connection: pq.abc.PGconn) -> SourceIdentity:
    system, timeline, _, database = _row(execute(connection, "IDENTIFY_SYSTEM"))[:4]
    return SourceIdentity(system, int(timeline), database)


def _create(connection: pq.abc.PGconn) -> tuple[int, str]:
    """Begins the transaction; returns the consistent point and the snapshot's name."""
    # The name is in use for an instant; names of temporary slots and others must differ all the same.
    name = f"kainite_point_{connection.backend_pid}"
    execute(connection, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    created = _row(_patient(connection, f"CREATE_REPLICATION_SLOT {name} TEMPORARY LOGICAL pgoutput (SNAPSHOT 'use')"))
    exported = _row(execute(connection, "SELECT pg_export_snapshot()"))
    execute(connection, f"DROP_REPLICATION_SLOT {name}")
    return parse_lsn(created[1]), exported[0]


def _lock(connection: pq.abc.PGconn, oids: Sequence[int]) -> None:
    """Locks tables, then looks that they are still those that the snapshot sees.

    Raises:
        SourceError: they are not.
    """
    among = "{" + ",".join(map(str, oids)) + "}"
    if names := _row(execute(connection, _NAMES.format(oids=among)))[0]:
        _patient(connection, f"LOCK TABLE {names} IN ACCESS SHARE MODE")
    # The rows of pg_class and pg_namespace are the snapshot's, the functions' answers are of now. Rows are read by the
    # table's name, which may have gone to another table before the lock.
    moved = _row(execute(connection, _MOVED.format(oids=among)))[0]
    if moved:
        raise SourceError(f"{moved}: truncated, written anew, or renamed, while the snapshot was made; begin again")


def _patient(connection: pq.abc.PGconn, command: str) -> pq.abc.PGresult:
    """Executes a command that may wait for a lock."""
    result = connection.exec_(command.encode())
    if result.error_field(pq.DiagnosticField.SQLSTATE) == _LOCK_TIMED_OUT:
        raise _LockTimedOutError(one_line(result.error_message))
    if result.status not in (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK):
        raise SourceError(f"replication: {one_line(result.error_message)}")
    return result


def in_the_way(url: str, cause: str, waited: float) -> str:
    """Returns a message that names who is in the way of a consistent point.

    Args:
        url: the source.
        cause: what the server said.
        waited: seconds that were waited.

    Raises:
        psycopg.Error: the source does not answer.
    """
    with connect_sql(url, "kainite snapshot") as connection:
        found = [row[0] for row in connection.execute(_IN_THE_WAY, {"waited": waited})]
    who = "; ".join(found) or "no transaction that is open for so long any more"
    return f"no snapshot of the source in {waited:.0f} s, {cause}. In the way: {who}. {_HELD}"


def _row(result: pq.abc.PGresult) -> list[str]:
    return [(result.get_value(0, column) or b"").decode() for column in range(result.nfields)]

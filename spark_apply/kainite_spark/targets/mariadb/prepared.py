"""Prepared transactions in MariaDB, by XA: makes them, looks at them, and finishes them.

A transaction is begun by ``XA START``, ended by ``XA END``, and prepared by ``XA PREPARE``. Its identifier there is
Kainite's, cut at its last colon (:func:`xid_of`).

What MariaDB 10.11 does, which this module and its tests rely on:

* **who may finish it**: the session that prepared it, which takes no other statement until then; and when that session
  has ended, any session of any role, connected to any database. As long as it lives, others are told that there is no
  such transaction, though ``XA RECOVER`` lists it. So :func:`finish` looks there before it believes that;
* **locks**: ``XA PREPARE`` gives shared locks back, that of the fence's row too, and a restart of the server forgets
  them in any case. What the transaction has written stays locked, also by a restart. So it writes a row of
  its own into ``kainite_prepared``, while it has the fence's lock, and whoever advances the fence waits for that row;
* **since when**: ``XA RECOVER`` tells no time and no database. Both are told by that row, which is read before it is
  committed (READ UNCOMMITTED). A transaction without such a row is one of another database, and is left alone;
* **a crash of the server** loses no prepared transaction that it has confirmed, if it writes its log to disk at each
  commit. Sessions that have ended leave what they had prepared, and lose what they had not.

=====================================  =============================================================================
crash, or a lost answer                then
=====================================  =============================================================================
before ``XA PREPARE``                  the server rolls back when the session has ended
after it                               listed, and its row in ``kainite_prepared`` is locked, also after a restart
after ``XA COMMIT``                    not listed; the row is committed, and deleted when the fence advances
after ``XA ROLLBACK``                  not listed; the row is gone
a task stands still after              its session lives on, and nobody else can finish it, until the server ends the
``XA PREPARE``                         session, after 60 seconds (``idle_transaction_timeout``)
=====================================  =============================================================================

With a binary log, the two halves stand in it one after the other. It is not crash safe for them (MDEV-21469,
MDEV-32830): after a crash of the server, a replica may lack one, or have it twice. The data of the server itself are
right.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import pymysql

from kainite.base.errors import TargetError, TargetUnavailableError
from kainite_spark.targets.mariadb import ledger
from kainite_spark.targets.mariadb.errors import number_of
from kainite_spark.targets.mariadb.packet import FailedStatementError, send
from kainite_spark.targets.preparing import PreparedPart, name_in

_FORMAT: Final = 0x4B61
"""The number of the form of Kainite's identifiers; transactions of others have other ones."""

_UNKNOWN: Final = 1397
_LONGEST: Final = 64
"""The most bytes of each half of an identifier."""

RELEASE_WAIT_S: Final = 2.0
"""How long it is waited for the end of the session that prepared a transaction: a connection that was closed a moment
ago."""

_LOOK_EVERY_S: Final = 0.02
_COMMIT_WAIT: Final = "SET SESSION lock_wait_timeout = 30"
"""How long a commit waits for a backup that holds up all commits; the server's own limit is a day."""

_SERVER: Final = """
    SELECT VERSION(), @@global.innodb_flush_log_at_trx_commit, @@global.log_bin, @@global.sync_binlog"""
_CLUSTER: Final = "SHOW GLOBAL VARIABLES LIKE 'wsrep_on'"
# By SHOW: it leaves out what a server does not have, where @@ fails. server_uid came with 10.6.19.
PLACE: Final = """
    SHOW GLOBAL VARIABLES WHERE variable_name
    IN ('server_uid', 'hostname', 'port', 'socket', 'datadir', 'server_id', 'gtid_domain_id')"""
_DATABASE: Final = "SELECT DATABASE()"
_FIRST: Final = (10, 5)

OTHER_SERVER: Final = (
    "targetCommit=atomic needs MariaDB 10.5 or later: MySQL, and earlier ones, were never tried, or roll back what is"
    " prepared when the connection ends. With targetCommit=each they take part"
)
CLUSTER: Final = (
    "the server is a node of a Galera cluster (wsrep_on), which prepares no transactions, and targetCommit=atomic needs"
    " them: name a server outside of a cluster, or set targetCommit=each"
)
FLUSHING: Final = (
    "MariaDB may lose what it has prepared when its host crashes, and targetCommit=atomic relies on it:"
    " SET GLOBAL innodb_flush_log_at_trx_commit = 1, and with a binary log sync_binlog = 1, and write both into the"
    " server's configuration"
)


@dataclass(frozen=True, slots=True)
class Preparation:
    """A transaction that ends by being prepared; a :class:`kainite_spark.targets.units_transaction.Transactional`.

    Attributes:
        connection: its session.
        gid: its identifier.
    """

    connection: pymysql.connections.Connection
    gid: str

    def commit(self) -> None:
        """Prepares the transaction.

        Raises:
            pymysql.Error: nobody knows whether it is prepared, or the server has rolled it back.
        """
        xid = xid_of(self.gid)
        try:
            send(self.connection, [f"XA END {xid}", f"XA PREPARE {xid}"])
        except FailedStatementError as failed:
            raise failed.error from failed

    def rollback(self) -> None:
        """Rolls the transaction back, before it is prepared, whatever its state.

        Raises:
            FailedStatementError: it cannot; the caller closes the connection, which has the same effect.
        """
        xid = xid_of(self.gid)
        with suppress(FailedStatementError):  # it is ended already, or the server has rolled it back
            send(self.connection, [f"XA END {xid}"])
        send(self.connection, [f"XA ROLLBACK {xid}"])


def xid_of(gid: str) -> str:
    """Returns an identifier as MariaDB's statements spell it, for one that Kainite made.

    Raises:
        TargetError: its numbers are too long for MariaDB; no log comes that far.
    """
    first, _, second = gid.rpartition(":")
    if max(len(first), len(second)) > _LONGEST or name_in(gid) is None:
        raise TargetError(f"MariaDB takes no transaction of the name {gid}")
    return f"'{first}','{second}',{_FORMAT}"


def prepared_under(connection: pymysql.connections.Connection, prefix: str) -> Sequence[PreparedPart]:
    """Returns the prepared transactions of this database whose identifiers begin so, oldest first.

    Args:
        connection: in no transaction.
        prefix: the beginning.

    Raises:
        FailedStatementError: the server does not answer.
    """
    listed = {gid for gid in _listed(connection) if gid.startswith(prefix)}
    if not listed:
        return []
    _, holding = send(connection, ["SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED", ledger.HOLDING])
    named = ((name_in(gid), gid, float(age)) for gid, age in holding.rows if gid in listed)
    return [PreparedPart(name, gid, max(0.0, age)) for name, gid, age in named if name is not None]


def finish(connection: pymysql.connections.Connection, gid: str, *, committed: bool) -> bool:
    """Commits a prepared transaction, or rolls it back; returns False where there is none of that identifier.

    Args:
        connection: the one that prepared it, or one in no transaction.
        gid: the identifier.
        committed: whether it is committed.

    Raises:
        FailedStatementError: nobody knows whether it is finished.
        TargetUnavailableError: the session that prepared it lives, and it alone can finish it.
    """
    deadline = time.monotonic() + RELEASE_WAIT_S
    while not _finished(connection, f"XA {'COMMIT' if committed else 'ROLLBACK'} {xid_of(gid)}"):
        if gid not in _listed(connection):
            return False
        if time.monotonic() > deadline:
            raise TargetUnavailableError(
                f"MariaDB: the session that prepared {gid} has not ended, and until then no other one can finish it:"
                " the server ends it after 60 seconds"
            )
        time.sleep(_LOOK_EVERY_S)
    return True


def require_preparing(connection: pymysql.connections.Connection) -> None:
    """Checks that the server keeps what it has prepared, whatever crashes.

    Raises:
        TargetError: it does not.
    """
    [server], cluster = (answer.rows for answer in send(connection, [_SERVER, _CLUSTER]))
    version, flushing, logs, syncing = server
    kept = int(flushing) in (1, 3) and (not int(logs) or int(syncing) == 1)
    if why := why_not(str(version), kept=kept, cluster=any(value == "ON" for _, value in cluster)):
        raise TargetError(why)


def why_not(version: str, *, kept: bool, cluster: bool) -> str | None:
    """Returns why a server cannot take part in transactions over several targets; None if it can.

    Args:
        version: what it calls itself.
        kept: whether it keeps what it has prepared when its host crashes.
        cluster: whether it is a node of a Galera cluster.
    """
    numbers = re.match(r"(\d+)\.(\d+)", version)
    if "MariaDB" not in version or numbers is None or (int(numbers[1]), int(numbers[2])) < _FIRST:
        return OTHER_SERVER
    if cluster:
        return CLUSTER
    return None if kept else FLUSHING


def ledger_place(connection: pymysql.connections.Connection) -> str:
    """Returns the server and the database of Kainite's own tables."""
    server, database = (answer.rows for answer in send(connection, [PLACE, _DATABASE]))
    return "/".join([*(f"{name}={value}" for name, value in sorted(server)), str(database[0][0])])


def _finished(connection: pymysql.connections.Connection, statement: str) -> bool:
    """Executes a statement; returns False if the server does not know, or does not give, the transaction."""
    try:
        send(connection, [_COMMIT_WAIT, statement])
    except FailedStatementError as failed:
        if number_of(failed.error) != _UNKNOWN:
            raise
        return False
    return True


def _listed(connection: pymysql.connections.Connection) -> Iterable[str]:
    """Yields the identifiers of Kainite's transactions that are prepared in the server, in all databases."""
    [answer] = send(connection, ["XA RECOVER"])
    for form, length, _, data in answer.rows:
        text = data if isinstance(data, str) else bytes(data).decode(errors="replace")
        if form == _FORMAT:
            yield f"{text[:length]}:{text[length:]}"

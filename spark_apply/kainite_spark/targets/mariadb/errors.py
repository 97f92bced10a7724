"""Decides what an error of MariaDB or MySQL means: units refused, rows busy, or the target unavailable. Pure.

What the server answers about a unit's statements, or about its commit, is a refusal, whatever its number: triggers
raise numbers of their own, and no list has them all. The caller cuts the group until the unit at fault stands alone.
Before any data the same transaction has written the acknowledgements, so the database can be written. The exceptions
are in
:data:`_BUSY`, :data:`_LOST` and :data:`_UNAVAILABLE`.

After any error the session rolls back: after most errors the server itself has undone the one statement alone, also
after a lock that was not to be had in time (1205), but after a deadlock (1213) the whole transaction.
"""

from __future__ import annotations

from typing import Final

import pymysql

from kainite.base.errors import (
    TargetBusyError,
    TargetError,
    TargetInterruptedError,
    TargetRejectedError,
    TargetUnavailableError,
)
from kainite.base.redaction import redacted

DUPLICATE: Final = 1062

_BUSY: Final = frozenset(
    {
        1020,  # the row has changed since the snapshot was made
        1037, 1038, 1041,  # out of memory: a part of the group may need less
        1197,  # more than the binary log's cache of a transaction: a part of the group may fit
        1205,  # a lock was not to be had in time
        1206,  # too many locks: a part of the group may need fewer
        1213,  # deadlock
        1317,  # a person ended the statement
        1402, 1613, 1614,  # the server has rolled a transaction back that was to be prepared
        1412,  # the table was altered meanwhile
        1615,  # a statement has to be prepared again
        1969, 3024,  # the statement took too long: a part of the group may take less time
        3572,  # a lock was not to be had at once
    }
)  # fmt: skip
"""The target could not take this request, while it may take another one, or a part of it."""

_LOST: Final = frozenset(
    {
        0,  # PyMySQL: there is no connection
        1153,  # a packet too large, after which the server hangs up
        1158, 1159, 1160, 1161,  # reading or writing packets
        1927,  # a person ended the connection
        2006, 2013, 2014, 2027, 2055,  # the connection is lost, or its packets are out of step
        4031,  # the server has hung up on a connection that rested
    }
)  # fmt: skip
"""The connection is lost, perhaps because of these units, so the caller asks whether the target answers."""

_UNAVAILABLE: Final = frozenset(
    {
        1021, 1026, 1028, 1030, 1114,  # disk full, errors of files and of the storage engine, a table that is full
        1040, 1203, 1226,  # too many connections, or a role's limits
        1043, 1044, 1045, 1049, 1129, 1130, 1698,  # the role is not let in, or there is no such database
        1053, 1077, 1079, 1152, 1184,  # shutdown, an aborted connection
        1290, 1792, 1836, 1874,  # the server, or its transactions, are read-only
        1665,  # the binary log's format does not go with READ COMMITTED
        1047, 1180,  # a node of a cluster that is not ready; an error during the commit
        2002, 2003, 2005,  # the server cannot be reached
    }
)  # fmt: skip
"""What may pass by itself: the same unit may be applied later, without anybody mending it."""

_NO_OWN_TABLE: Final = frozenset({1054, 1136, 1146, 1364})


def number_of(error: pymysql.Error) -> int:
    """Returns the error's number; 0 where PyMySQL gives none."""
    first = error.args[0] if error.args else 0
    return first if isinstance(first, int) else 0


def about_units(error: pymysql.Error, table: str | None) -> TargetError:
    """Returns Kainite's error for an error of a unit's statement, or of the commit.

    Args:
        error: what PyMySQL raised.
        table: the table whose statement failed, if known.
    """
    return _passing(error, table) or TargetRejectedError(_described(error, table))


def about_own_tables(error: pymysql.Error) -> TargetError:
    """Returns Kainite's error for an error that is about no unit's rows: Kainite's own tables, a connection.

    Own tables that are missing, or are not as they must be, give a plain TargetError, which ends the apply job. A value
    that cannot be stored is a unit's name, and refuses it. A missing right gives a TargetUnavailableError, since
    somebody may grant it meanwhile.
    """
    passing = _passing(error, None)
    if passing is not None:
        return passing
    if isinstance(error, pymysql.DataError):
        return TargetRejectedError(_described(error, None))
    if number_of(error) in _NO_OWN_TABLE:
        return TargetError(f"MariaDB: {_described(error, None)}")
    return TargetUnavailableError(f"MariaDB: {_described(error, None)}")


def _passing(error: pymysql.Error, table: str | None) -> TargetError | None:
    """Returns the error if what it tells may pass by itself."""
    number, text = number_of(error), f"MariaDB: {_described(error, table)}"
    if number in _BUSY:
        return TargetBusyError(text)
    if number in _LOST:
        return TargetInterruptedError(text)
    return TargetUnavailableError(text) if number in _UNAVAILABLE else None


def _described(error: pymysql.Error, table: str | None) -> str:
    told = " ".join(str(error.args[-1] if error.args else error).split())
    told = f"{told} ({number_of(error)})"
    return redacted(f"{table}: {told}" if table else told)

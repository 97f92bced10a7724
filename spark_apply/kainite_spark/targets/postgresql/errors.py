"""Decides what an error of PostgreSQL means: units refused, rows busy, or the target unavailable. Pure.

What the target answers about a unit's statements, or about its commit, is a refusal, whatever the SQLSTATE: an
application's functions raise codes of their own, and no list has them all. The caller cuts the group until the unit at
fault stands alone. Before any data the same transaction has written the acknowledgements, so the database can be
written and the role may write it: what is forbidden or read-only after that concerns this statement alone. The
exceptions are in :data:`_BUSY`, :data:`_LOST` and :data:`_UNAVAILABLE`, each with its reason, and errors that end the
session (severity FATAL and PANIC).

What the target answers about Kainite's own tables, or to a session that connects, is no unit's fault, except for a
unit's name that cannot be stored.
"""

from __future__ import annotations

from typing import Final

import psycopg

from kainite.base.errors import (
    TargetBusyError,
    TargetError,
    TargetInterruptedError,
    TargetRejectedError,
    TargetUnavailableError,
)
from kainite.base.redaction import redacted

_BUSY: Final = frozenset(
    {
        "25P04",  # transaction timeout: a part of the group may take less time
        "40001",  # serialization failure
        "40P01",  # deadlock
        "53200",  # out of memory: a part of the group may need less
        "53400",  # a configured limit, of which a part of the group may stay below
        "55P03",  # a lock was not to be had in time
        "57014",  # statement timeout, or a person cancelled the statement
        "XX000",  # internal; also an allocation beyond a gigabyte
    }
)
"""The target could not take this request, while it may take another one, or a part of it."""

_LOST: Final = frozenset(
    {
        "08000",  # the connection broke
        "08003",  # there is no connection
        "08006",  # the connection failed
        "08P01",  # protocol violation: a message too large
        "40003",  # nobody knows whether the commit was made
        "57P02",  # a backend crashed, perhaps by this statement
    }
)
"""The connection is lost, perhaps because of these units, so the caller asks whether the target answers."""

_UNAVAILABLE: Final = (
    "08",  # connections, also those of a foreign table or dblink
    "25P03",  # the session was idle in its transaction for too long: this process hung
    "53",  # resources: disk full, too many connections
    "57",  # an operator, shutdown, start-up, the database was dropped
    "58",  # errors of the system beneath: input and output, a file is missing
    "72",  # snapshot too old: a later try has a new snapshot
    "F0",  # the configuration file
    "HV00N",  # a foreign server cannot be connected to
)
"""How the codes begin that may pass by themselves: the same unit may be applied later, without anybody mending it."""

_FATAL: Final = frozenset({"FATAL", "PANIC"})
_OF_VALUES: Final = "22"
_INSUFFICIENT_PRIVILEGE: Final = "42501"
_OTHER_TABLES: Final = "42"
_NOT_ENCODABLE: Final = (psycopg.DataError, psycopg.ProgrammingError)


def about_units(error: psycopg.Error, table: str | None) -> TargetError:
    """Returns Kainite's error for an error of a unit's statement, or of the commit.

    Args:
        error: what psycopg raised.
        table: the table whose statement failed, if known.
    """
    passing = _passing(error, table)
    if passing is not None:
        return passing
    if error.diag.severity_nonlocalized in _FATAL:
        return TargetInterruptedError(f"PostgreSQL: {_described(error, table)}")
    if error.sqlstate is None and not isinstance(error, _NOT_ENCODABLE):
        return TargetUnavailableError(f"PostgreSQL: {_described(error, table)}")
    return TargetRejectedError(_described(error, table))


def about_own_tables(error: psycopg.Error) -> TargetError:
    """Returns Kainite's error for an error that is about no unit's rows: Kainite's own tables, a connection.

    Own tables that are missing, or are not as they must be, give a plain TargetError, which ends the apply job: its
    next start makes them, or says again what is wrong. A missing right gives a TargetUnavailableError, since somebody
    may grant it meanwhile.
    """
    passing = _passing(error, None)
    if passing is not None:
        return passing
    state = error.sqlstate
    if isinstance(error, _NOT_ENCODABLE) if state is None else state.startswith(_OF_VALUES):
        return TargetRejectedError(_described(error, None))
    if state is not None and state.startswith(_OTHER_TABLES) and state != _INSUFFICIENT_PRIVILEGE:
        return TargetError(f"PostgreSQL: {_described(error, None)}")
    return TargetUnavailableError(f"PostgreSQL: {_described(error, None)}")


def is_about_foreign_key(error: BaseException | None) -> bool:
    """Returns whether a foreign key refuses what was done; before PostgreSQL 18 a RESTRICT says so as any other."""
    return isinstance(error, psycopg.errors.ForeignKeyViolation | psycopg.errors.RestrictViolation)


def _passing(error: psycopg.Error, table: str | None) -> TargetError | None:
    """Returns the error if what it tells may pass by itself."""
    state = error.sqlstate
    if state in _BUSY:
        return TargetBusyError(f"PostgreSQL: {_described(error, table)}")
    if state in _LOST if state else isinstance(error, psycopg.OperationalError):
        return TargetInterruptedError(f"PostgreSQL: {_described(error, table)}")
    if state is not None and state.startswith(_UNAVAILABLE):
        return TargetUnavailableError(f"PostgreSQL: {_described(error, table)}")
    return None


def _described(error: psycopg.Error, table: str | None) -> str:
    diagnosis = error.diag
    parts = [diagnosis.message_primary or str(error), diagnosis.message_detail]
    named = diagnosis.table_name or table
    text = " ".join("; ".join(part for part in parts if part).split())
    return redacted(f"{named}: {text}" if named else text)

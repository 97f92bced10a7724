"""Decides what an error of PostgreSQL means: units refused, rows busy, or the target unavailable. Pure.

These SQLSTATE classes are a unit's own fault, a refusal: feature not supported (0A), one row twice in
a statement (21), data (22), integrity (23), triggered data change (27), foreign routine (38, 39),
schema drift (42), WITH CHECK OPTION (44), program limits (54), raised by a trigger (P0).

These mean that the target could not take this request, while it may take another one, or a part of it: a lock or
statement timeout, a transaction timeout, a deadlock, a serialization failure, not enough memory for this
statement, a configured limit, an allocation beyond a gigabyte (XX000). A connection that is lost may be lost for the
same reason (a message too large, a backend that the kernel killed), so the caller asks whether the target
answers. Any other error (resources, shutdown, permissions) may pass by itself.
"""

from __future__ import annotations

import psycopg

from kainite.base.errors import (
    TargetBusyError,
    TargetError,
    TargetInterruptedError,
    TargetRejectedError,
    TargetUnavailableError,
)

_REFUSALS = frozenset({"0A", "21", "22", "23", "27", "38", "39", "42", "44", "54", "P0"})
_BUSY = frozenset({"25P04", "40001", "40P01", "53200", "53400", "55P03", "57014", "XX000"})
_LOST = frozenset({"08000", "08003", "08006", "08P01", "57P02"})
_INSUFFICIENT_PRIVILEGE = "42501"
_NOT_ENCODABLE = (psycopg.DataError, psycopg.ProgrammingError)


def translated(error: psycopg.Error, table: str | None) -> TargetError:
    """Returns Kainite's error for an error of psycopg.

    Args:
        error: what psycopg raised.
        table: the table whose statement failed, if known.
    """
    state = error.sqlstate
    refused = isinstance(error, _NOT_ENCODABLE) if state is None else state[:2] in _REFUSALS
    if refused and state != _INSUFFICIENT_PRIVILEGE:
        return TargetRejectedError(_described(error, table))
    if state in _BUSY:
        return TargetBusyError(f"PostgreSQL: {_described(error, table)}")
    lost = state in _LOST if state else isinstance(error, psycopg.OperationalError)
    return (TargetInterruptedError if lost else TargetUnavailableError)(f"PostgreSQL: {_described(error, table)}")


def _described(error: psycopg.Error, table: str | None) -> str:
    diagnosis = error.diag
    parts = [diagnosis.message_primary or str(error), diagnosis.message_detail]
    named = diagnosis.table_name or table
    text = " ".join("; ".join(part for part in parts if part).split())
    return f"{named}: {text}" if named else text

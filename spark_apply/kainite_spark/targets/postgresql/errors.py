"""Decides whether an error of PostgreSQL refuses the units, or means that the target is unavailable. Pure.

These SQLSTATE classes are a unit's own fault, a refusal: feature not supported (0A), one row twice in
a statement (21), data (22), integrity (23), triggered data change (27), foreign routine (38, 39),
schema drift (42), WITH CHECK OPTION (44), program limits (54), raised by a trigger (P0). Any other
error (connection, deadlock, locks, resources, shutdown, permissions) may pass.
"""

from __future__ import annotations

import psycopg

from kainite.base.errors import TargetError, TargetRejectedError, TargetUnavailableError

_REFUSALS = frozenset({"0A", "21", "22", "23", "27", "38", "39", "42", "44", "54", "P0"})
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
    return TargetUnavailableError(f"PostgreSQL: {_described(error, table)}")


def _described(error: psycopg.Error, table: str | None) -> str:
    diagnosis = error.diag
    parts = [diagnosis.message_primary or str(error), diagnosis.message_detail]
    named = diagnosis.table_name or table
    text = " ".join("; ".join(part for part in parts if part).split())
    return f"{named}: {text}" if named else text

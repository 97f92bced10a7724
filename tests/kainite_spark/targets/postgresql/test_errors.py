"""The errors of PostgreSQL that refuse a unit, by SQLSTATE, and those that may pass."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import errors

from kainite.base.errors import (
    TargetBusyError,
    TargetError,
    TargetInterruptedError,
    TargetRejectedError,
    TargetUnavailableError,
)
from kainite_spark.targets.postgresql.errors import about_own_tables, about_units


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (errors.UniqueViolation("x"), TargetRejectedError),
        (errors.NumericValueOutOfRange("x"), TargetRejectedError),
        (errors.UndefinedColumn("x"), TargetRejectedError),
        (errors.RaiseException("x"), TargetRejectedError),
        (errors.CardinalityViolation("x"), TargetRejectedError),
        (errors.WithCheckOptionViolation("x"), TargetRejectedError),
        (psycopg.DataError("x"), TargetRejectedError),
        (errors.InsufficientPrivilege("x"), TargetRejectedError),
        (errors.CaseNotFound("x"), TargetRejectedError),
        (errors.InvalidTransactionTermination("x"), TargetRejectedError),
        (errors.ObjectNotInPrerequisiteState("x"), TargetRejectedError),
        (errors.DataCorrupted("x"), TargetRejectedError),
        (errors.TransactionTimeout("x"), TargetBusyError),
        (errors.IdleInTransactionSessionTimeout("x"), TargetUnavailableError),
        (errors.TooManyConnections("x"), TargetUnavailableError),
        (errors.SqlclientUnableToEstablishSqlconnection("x"), TargetUnavailableError),
        (errors.DatabaseDropped("x"), TargetUnavailableError),
        (errors.IoError("x"), TargetUnavailableError),
        (errors.StatementCompletionUnknown("x"), TargetInterruptedError),
        (errors.DeadlockDetected("x"), TargetBusyError),
        (errors.SerializationFailure("x"), TargetBusyError),
        (errors.LockNotAvailable("x"), TargetBusyError),
        (errors.QueryCanceled("x"), TargetBusyError),
        (errors.OutOfMemory("x"), TargetBusyError),
        (errors.ConfigurationLimitExceeded("x"), TargetBusyError),
        (errors.InternalError_("x"), TargetBusyError),
        (errors.ProgramLimitExceeded("x"), TargetRejectedError),
        (errors.ProtocolViolation("x"), TargetInterruptedError),
        (errors.CrashShutdown("x"), TargetInterruptedError),
        (errors.AdminShutdown("x"), TargetUnavailableError),
        (errors.DiskFull("x"), TargetUnavailableError),
        (psycopg.OperationalError("x"), TargetInterruptedError),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else value.__name__,
)
def test_the_class_of_an_error_decides(error: psycopg.Error, expected: type[TargetError]) -> None:
    assert type(about_units(error, None)) is expected


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (errors.InsufficientPrivilege("x"), TargetUnavailableError),
        (errors.ReadOnlySqlTransaction("x"), TargetUnavailableError),
        (errors.InvalidPassword("x"), TargetUnavailableError),
        (errors.UndefinedTable("x"), TargetError),
        (errors.UndefinedColumn("x"), TargetError),
        (errors.UntranslatableCharacter("x"), TargetRejectedError),
        (psycopg.DataError("x"), TargetRejectedError),
        (errors.LockNotAvailable("x"), TargetBusyError),
        (errors.AdminShutdown("x"), TargetUnavailableError),
        (psycopg.OperationalError("x"), TargetInterruptedError),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else value.__name__,
)
def test_an_error_of_kainites_own_tables_refuses_no_unit(error: psycopg.Error, expected: type[TargetError]) -> None:
    assert type(about_own_tables(error)) is expected


def test_a_refusal_is_one_line_that_names_the_table() -> None:
    assert str(about_units(psycopg.DataError("a\n  b"), "item")) == "item: a b"

from __future__ import annotations

import pymysql
import pytest

from kainite.base.errors import (
    TargetBusyError,
    TargetError,
    TargetInterruptedError,
    TargetRejectedError,
    TargetUnavailableError,
)
from kainite_spark.targets.mariadb.errors import about_own_tables, about_units, number_of


@pytest.mark.parametrize(
    ("number", "meaning"),
    [
        (1205, TargetBusyError),
        (1213, TargetBusyError),
        (2013, TargetInterruptedError),
        (1927, TargetInterruptedError),
        (1040, TargetUnavailableError),
        (1290, TargetUnavailableError),
        (1452, TargetRejectedError),
        (1142, TargetRejectedError),  # the acknowledgements were written before it
        (1644, TargetRejectedError),  # SIGNAL in a trigger
        (31337, TargetRejectedError),  # nobody knows: the group is cut until the unit stands alone
    ],
)
def test_an_error_of_a_units_statement_has_a_meaning(number: int, meaning: type[TargetError]) -> None:
    assert type(about_units(pymysql.OperationalError(number, "told"), "orders")) is meaning


@pytest.mark.parametrize(
    ("error", "meaning"),
    [
        (pymysql.ProgrammingError(1146, "Table 'shop.kainite_applied' doesn't exist"), TargetError),
        (pymysql.OperationalError(1142, "INSERT command denied"), TargetUnavailableError),
        (pymysql.DataError(1406, "Data too long for column 'uow'"), TargetRejectedError),
        (pymysql.OperationalError(1205, "Lock wait timeout exceeded"), TargetBusyError),
        (pymysql.InterfaceError(0, ""), TargetInterruptedError),
    ],
)
def test_an_error_about_kainites_own_tables_refuses_no_unit(error: pymysql.Error, meaning: type[TargetError]) -> None:
    assert type(about_own_tables(error)) is meaning


def test_the_message_names_the_table_and_no_password() -> None:
    error = pymysql.IntegrityError(1452, "Cannot add\nmariadb://root:geheimnis@h/d")
    assert str(about_units(error, "orders")) == "orders: Cannot add mariadb://root:***@h/d (1452)"


def test_an_error_without_a_number_has_none() -> None:
    assert (number_of(pymysql.Error("text")), number_of(pymysql.Error())) == (0, 0)

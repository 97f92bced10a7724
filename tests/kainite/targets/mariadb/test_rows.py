"""Rows of tables that need not be there."""

from __future__ import annotations

from contextlib import closing

import pymysql
import pytest

from kainite.targets.mariadb.connection import connect
from kainite.targets.mariadb.rows import line_of, rows_if_there, rows_of


def test_a_table_that_is_not_there_has_no_rows_and_other_errors_are_told(mariadb: str) -> None:
    with closing(connect(mariadb)) as connection:
        assert rows_of(connection, "SELECT %s, 2", "a") == [("a", 2)]
        assert rows_if_there(connection, "SELECT * FROM nowhere") == []
        with pytest.raises(pymysql.Error) as error:
            rows_if_there(connection, "SELECT nothing")
    assert line_of(error.value).startswith("Unknown column 'nothing' in ")

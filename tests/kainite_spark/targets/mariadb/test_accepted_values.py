"""A value that is told to be taken is taken by the server."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest

from kainite.targets.mariadb.connection import connect
from kainite.targets.mariadb.type_families import family_of
from kainite.uow.catalogue.tables import Column
from kainite_spark.targets.mariadb.accepted_values import accepting
from kainite_spark.targets.mariadb.literals import literal

TYPES = ("tinyint(4)", "smallint(6)", "int(10) unsigned", "bigint(20)", "decimal(5,2)", "decimal(5,2) unsigned",
         "varchar(3)", "char(3)", "tinytext", "text", "date", "double", "timestamp", "enum('a')")  # fmt: skip
VALUES = (0, 1, -1, 127, 128, 2**32 - 1, 2**63, 999, 1000, "999.99", "abc", "abcd", "é", "a" * 255, "a" * 256,
          "2026-01-31", "2026-02-30", "1000-01-01 00:00:00", 1.5, 1e300, None, True, "")  # fmt: skip


@pytest.mark.parametrize("kind", TYPES)
def test_what_is_surely_taken_is_taken(mariadb_server: str, kind: str) -> None:
    column = Column("v", kind, family_of(kind.partition("(")[0].partition(" ")[0], kind, "latin1_swedish_ci"))
    told = accepting(column)
    with closing(connect(mariadb_server)) as connection:
        connection.query(f"CREATE TEMPORARY TABLE t (v {kind}) CHARACTER SET latin1")
        for value in filter(told, VALUES):
            connection.query(f"INSERT INTO t VALUES ({literal(column, value)})")


@pytest.mark.parametrize(
    ("kind", "value", "sure"),
    [
        ("int(11)", 2**31 - 1, True),
        ("int(11)", 2**31, False),
        ("int(11) unsigned", -1, False),
        ("varchar(3)", "abc", True),
        ("varchar(3)", "é", False),
        ("decimal(5,2)", "999.99", False),
        ("decimal(5,2)", "998.00", True),
        ("timestamp", "2026-01-31 00:00:00", False),
        ("point", "x", False),
    ],
)
def test_a_value_is_sure_within_its_types_limits(kind: str, value: Any, sure: bool) -> None:
    assert accepting(Column("v", kind, family_of("", kind, None)))(value) is sure


def test_null_is_taken_where_it_may_be() -> None:
    assert accepting(Column("v", "int(11)", family_of("int", "int(11)", None)))(None)
    assert not accepting(Column("v", "int(11)", family_of("int", "int(11)", None), nullable=False))(None)

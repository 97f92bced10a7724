"""What a statement means that the binlog has as a text."""

from __future__ import annotations

import pytest

from kainite.capture.mysql.events import Query
from kainite.capture.mysql.statements import Means, statement_of


@pytest.mark.parametrize(
    ("text", "means", "name"),
    [
        ("BEGIN", Means.BEGIN, ""),
        ("COMMIT", Means.COMMIT, ""),
        ("/* a comment */ rollback", Means.ROLLBACK, ""),
        ("SAVEPOINT `A`", Means.SAVEPOINT, "`a`"),
        ("ROLLBACK TO `a`", Means.ROLLBACK_TO, "`a`"),
        ("ROLLBACK TO SAVEPOINT `a`", Means.ROLLBACK_TO, "`a`"),
        ("XA COMMIT X'78',X'',1", Means.XA_COMMIT, "X'78',X'',1"),
        ("XA BEGIN X'78',X'',1", Means.XA_START, "X'78',X'',1"),
        ("truncate `a``b`", Means.TRUNCATE, "a`b"),
        ('-- why\nTRUNCATE TABLE\n other . "t"', Means.TRUNCATE, "t"),
        ("INSERT INTO t VALUES (1)", Means.CHANGE, "INSERT"),
        ("WITH a AS (SELECT 1) DELETE FROM t", Means.CHANGE, "WITH"),
        ("CREATE TABLE t AS SELECT 1", Means.CHANGE, "CREATE"),
        ("CREATE TABLE t (id int)", Means.OTHER, "CREATE"),
        ("ALTER TABLE t ADD c int", Means.OTHER, "ALTER"),
        ("", Means.OTHER, ""),
    ],
)
def test_meanings(text: str, means: Means, name: str) -> None:
    found = statement_of(Query("shop", text))
    assert (found.means, found.name) == (means, name)


def test_a_statement_is_about_the_database_that_it_names() -> None:
    assert statement_of(Query("shop", "TRUNCATE other.t")).database == "other"
    change = statement_of(Query("mysql", "INSERT INTO shop.t VALUES (1)"))
    assert change.is_about("shop")
    assert not change.is_about("elsewhere")

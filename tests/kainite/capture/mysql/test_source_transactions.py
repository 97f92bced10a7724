"""What the binlog has of transactions becomes the records of their units, or fails them; nothing is lost in silence."""

from __future__ import annotations

from pathlib import Path

import pytest

from kainite.base.errors import SourceError
from kainite.capture.truncate import OnTruncate
from support.mariadb_source import Extraction, execute, here, keys, mariadb_with_binlog, rows, source_database, told
from support.mysql_server import IS_MYSQL

TABLE = "CREATE TABLE item (id int PRIMARY KEY, name varchar(40), made int AS (id + 1) VIRTUAL, UNIQUE (name))"


def test_what_was_rolled_back_is_not_given_whatever_the_binlog_has(database: str) -> None:
    execute(database, TABLE)
    with Extraction(database) as extraction:
        execute(
            database,
            "BEGIN", "INSERT INTO item (id) VALUES (1)", "SAVEPOINT a", "INSERT INTO item (id) VALUES (2)",
            "ROLLBACK TO a", "INSERT INTO item (id) VALUES (3)", "COMMIT",
            # A temporary table makes the server log what is rolled back.
            "BEGIN", "CREATE TEMPORARY TABLE mine (id int)", "INSERT INTO item (id) VALUES (10)", "SAVEPOINT b",
            "INSERT INTO item (id) VALUES (11)", "DROP TEMPORARY TABLE mine", "ROLLBACK TO SAVEPOINT b",
            "INSERT INTO item (id) VALUES (12)", "COMMIT",
            "BEGIN", "CREATE TEMPORARY TABLE mine (id int)", "INSERT INTO item (id) VALUES (20)", "ROLLBACK",
            "INSERT INTO item (id) VALUES (30)",
        )  # fmt: skip
        last = 3 if IS_MYSQL else 4
        found = keys(extraction.until(last))
    assert found == [
        (1, "insert", "1"), (1, "insert", "3"), (1, "end", 2),
        (2, "insert", "10"), (2, "insert", "12"), (2, "end", 2),
        *([] if IS_MYSQL else [(3, "end", 0)]),  # MySQL has nothing in its binlog of what is rolled back as a whole
        (last, "insert", "30"), (last, "end", 1),
    ]  # fmt: skip


def test_xa_transactions_are_given_when_they_commit(database: str) -> None:
    execute(database, TABLE)
    with Extraction(database) as before:
        execute(
            database,
            "XA START 'x'", "INSERT INTO item (id) VALUES (1)", "XA END 'x'", "XA PREPARE 'x'",
        )  # fmt: skip
        execute(database, "INSERT INTO item (id) VALUES (2)")
        execute(
            database,
            "XA START 'y'", "INSERT INTO item (id) VALUES (3)", "XA END 'y'", "XA PREPARE 'y'", "XA ROLLBACK 'y'",
            "XA START 'z'", "INSERT INTO item (id) VALUES (4)", "XA END 'z'", "XA COMMIT 'z' ONE PHASE",
        )  # fmt: skip
        assert keys(before.until(2)) == [(1, "insert", "2"), (1, "end", 1), (2, "insert", "4"), (2, "end", 1)]
    execute(database, "FLUSH BINARY LOGS", "XA COMMIT 'x'")
    with Extraction(database, before.offset) as after:
        assert keys(after.until(3)) == [(3, "insert", "1"), (3, "end", 1)]
        assert "prepared" not in after.offset


def test_truncate_and_statements_fail_their_units(database: str) -> None:
    execute(database, TABLE, "CREATE TABLE other (id int PRIMARY KEY)")
    start = here(database)
    execute(
        database,
        "INSERT INTO item (id) VALUES (1)", "TRUNCATE TABLE item",
        "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
        "SET SESSION binlog_format = STATEMENT",
        "INSERT INTO item (id) VALUES (2)", "SET SESSION binlog_format = ROW", "INSERT INTO item (id) VALUES (3)",
        "truncate `other`",
    )  # fmt: skip
    with Extraction(database, start) as extraction:
        found = told(extraction.until(5))
        assert [one["number"] for one in found if one.get("end")] == [1, 2, 3, 4, 5]
        reasons = {one["number"]: one["refused"] for one in found if "refused" in one}
        assert reasons.keys() == {2, 3, 5}
        assert "TRUNCATE names no rows" in reasons[2]
        assert "INSERT was logged as a statement" in reasons[3]
    with Extraction(database, start, on_truncate=OnTruncate.SKIP, tables=("item",)) as extraction:
        again = told(extraction.until(5))
    assert {one["number"] for one in again if "refused" in one} == {3}
    assert [one["uow"] for one in again if one.get("end")] == [one["uow"] for one in found if one.get("end")]


def test_a_truncate_that_is_applied_is_a_change_without_a_row(database: str) -> None:
    execute(database, TABLE, "CREATE TABLE other (id int PRIMARY KEY)")
    start = here(database)
    execute(database, "INSERT INTO item (id) VALUES (1)", "TRUNCATE TABLE item", "TRUNCATE other")
    with Extraction(database, start, on_truncate=OnTruncate.APPLY, tables=("item",)) as extraction:
        found = told(extraction.until(3))
    emptied = found[2]
    assert emptied == {
        "uow": emptied["uow"], "number": 2, "ordinal": 0, "relation": "item", "operation": "truncate", "types": {},
        "key": {}, "new": {},
    }  # fmt: skip
    assert [(one["number"], one["count"]) for one in found if one.get("end")] == [(1, 1), (2, 1), (3, 0)]


PARTS = "CREATE TABLE part (id int PRIMARY KEY, v int) PARTITION BY RANGE (id) (PARTITION low VALUES LESS THAN (10))"


@pytest.mark.parametrize(
    ("statement", "about"),
    [
        ("DROP TABLE item", "drop table) of item"),
        pytest.param(
            "CREATE OR REPLACE TABLE item (id int PRIMARY KEY)",
            "create or replace table) of item",
            marks=pytest.mark.mariadb,
        ),
        ("RENAME TABLE item TO was, other TO item", "rename table) of item, was, other, item"),
        ("ALTER TABLE other RENAME TO item2", "alter table rename) of other, item2"),
        ("ALTER TABLE part TRUNCATE PARTITION low", "alter table truncate partition) of part"),
        pytest.param(
            "ALTER IGNORE TABLE item ADD UNIQUE (id)", "alter ignore table) of item", marks=pytest.mark.mariadb
        ),
        ("ALTER TABLE -- low alone\n part TRUNCATE PARTITION low", "alter table truncate partition) of part"),
        ("ALTER TABLE part EXCHANGE PARTITION low WITH TABLE plain", "alter table exchange partition) of part, plain"),
    ],
)
def test_rows_that_a_statement_replaces_without_naming_them_fail_its_unit(
    database: str, statement: str, about: str
) -> None:
    """Fails what would leave other rows in the target than in the source, and nothing would tell it."""
    execute(database, TABLE, "CREATE TABLE other (id int PRIMARY KEY)", PARTS)
    execute(database, "CREATE TABLE plain (id int PRIMARY KEY, v int)", "INSERT INTO item (id) VALUES (1)")
    start = here(database)
    execute(database, "CREATE TEMPORARY TABLE own (id int)", "DROP TEMPORARY TABLE own", statement)
    execute(database, "CREATE TABLE last (id int PRIMARY KEY)", "INSERT INTO last VALUES (1)")
    with Extraction(database, start) as extraction:
        found = told(extraction.until(2))
    [refused, end, change, last] = found
    assert refused["refused"].startswith(f"a change ({about} that cannot be carried")
    assert (end["number"], end["count"], last["number"]) == (1, 0, 2)
    assert change["relation"] == "last"
    with Extraction(database, start, tables=("last",)) as extraction:  # numbers do not depend on what is read
        assert keys(extraction.until(2)) == [(1, "end", 0), (2, "insert", "1"), (2, "end", 1)]


@pytest.mark.mariadb
def test_a_statement_names_tables_in_any_case_where_the_server_does_not_tell_them_apart(tmp_path: Path) -> None:
    with (
        mariadb_with_binlog(tmp_path / "server", "--lower-case-table-names=1") as server,
        source_database(server) as database,
    ):
        name = rows(database, "SELECT database()")[0][0]
        execute(database, TABLE, PARTS)
        start = here(database)
        execute(
            database, "TRUNCATE TABLE Item", f"RENAME TABLE {name.upper()}.Item TO Thing, Thing TO Item",
            "ALTER TABLE PART TRUNCATE PARTITION low", f"TRUNCATE {name.upper()}.ITEM",
        )  # fmt: skip
        with Extraction(database, start, tables=("item", "part")) as extraction:
            found = told(extraction.until(4))
    refused = [one["refused"] for one in found if "refused" in one]
    assert [one.partition(" that cannot")[0] for one in refused] == [
        "a change (truncate) of item", "a change (rename table) of item, item",
        "a change (alter table truncate partition) of part", "a change (truncate) of item",
    ]  # fmt: skip


def test_a_transaction_that_is_passed_over_fails_its_unit(database: str) -> None:
    execute(database, TABLE)
    start = here(database)
    execute(database, "INSERT INTO item (id) VALUES (1), (2)", "INSERT INTO item (id) VALUES (3)")
    with Extraction(database, start) as extraction:
        gtid = told(extraction.until(2))[0]["uow"].removeprefix("my-").rpartition("-")[0]
    with Extraction(database, start, passed_over=frozenset({gtid})) as extraction:
        found = told(extraction.until(2))
    assert ["refused" in one for one in found] == [True, False, False, False]
    assert [one.get("count") for one in found] == [None, 0, None, 1]


REPEATABLE = "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ"


def test_no_statement_that_changes_rows_is_lost_in_silence(database: str) -> None:
    setting, analyzed = ("", "") if IS_MYSQL else ("SET STATEMENT max_statement_time = 10 FOR ", "ANALYZE ")
    execute(database, TABLE)
    with Extraction(database) as extraction:
        execute(
            database,
            REPEATABLE, "SET SESSION binlog_format = STATEMENT",
            "INSERT\n INTO item (id) VALUES (1)",
            f"{setting}UPDATE item SET name = 'a'",
            f"{analyzed}UPDATE item SET name = 'b'",
            "SET SESSION binlog_format = ROW",
            f"{setting}TRUNCATE item",
        )  # fmt: skip
        found = told(extraction.until(4))
    assert [one["number"] for one in found if "refused" in one] == [1, 2, 3, 4]


def test_an_xa_transaction_is_read_with_all_that_stands_in_it(database: str) -> None:
    execute(database, TABLE)
    with Extraction(database) as extraction:
        execute(
            database,
            "XA START 'x'", *([] if IS_MYSQL else ["CREATE TEMPORARY TABLE mine (id int)"]),
            "INSERT INTO item (id) VALUES (1)", "SAVEPOINT a",
            "INSERT INTO item (id) VALUES (2)", "ROLLBACK TO a", "XA END 'x'", "XA PREPARE 'x'", "XA COMMIT 'x'",
        )  # fmt: skip
        execute(
            database,
            REPEATABLE, "SET SESSION binlog_format = STATEMENT",
            "XA START 'y'", "INSERT INTO item (id) VALUES (3)", "XA END 'y'", "XA PREPARE 'y'", "XA COMMIT 'y'",
        )  # fmt: skip
        found = keys(extraction.until(2))
    assert found == [(1, "insert", "1"), (1, "end", 1), (2, "refused", None), (2, "end", 0)]


def test_a_large_xa_transaction_gives_nothing_before_it_commits(database: str) -> None:
    """Shows it: else its records would carry the number of the next transaction, without an end."""
    execute(database, TABLE, "CREATE TABLE large (id int PRIMARY KEY, t longtext)")
    with Extraction(database) as extraction:
        rows_ = [f"INSERT INTO large VALUES ({n}, REPEAT('x', 900000))" for n in range(12)]
        execute(database, "XA START 'x'", *rows_, "XA END 'x'", "XA PREPARE 'x'")
        execute(database, "INSERT INTO item (id) VALUES (1)")
        execute(database, "XA COMMIT 'x'")
        found = told(extraction.until(2))
    assert len({one["uow"] for one in found}) == 2
    assert [one["count"] for one in found if one.get("end")] == [1, 12]


def test_a_transaction_that_cannot_be_read_can_be_passed_over(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    execute(database, TABLE)
    start = here(database)
    execute(database, "INSERT INTO item (id) VALUES (1)")

    def unreadable(*_: object) -> None:
        raise SourceError("binlog: an event ends too early")

    monkeypatch.setattr("kainite.capture.mysql.table_reading.changed_rows", unreadable)
    with Extraction(database, start) as extraction, pytest.raises(SourceError, match="--skip-transaction") as error:
        extraction.until(1)
    gtid = str(error.value).partition("--skip-transaction ")[2].partition(" ")[0]
    with Extraction(database, start, passed_over=frozenset({gtid})) as extraction:
        assert keys(extraction.until(1)) == [(1, "refused", None), (1, "end", 0)]

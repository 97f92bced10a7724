"""The extractor gives a MariaDB database's committed transactions, each with one dense number."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from kainite.base.errors import SourceError
from kainite.capture.truncate import OnTruncate
from support.mariadb_source import Extraction, execute, here, mariadb_with_binlog, rows, source_database
from support.mysql_server import IS_MYSQL

TABLE = "CREATE TABLE item (id int PRIMARY KEY, name varchar(40), made int AS (id + 1) VIRTUAL, UNIQUE (name))"


def told(records: list[bytes]) -> list[dict[str, Any]]:
    return [orjson.loads(record) for record in records]


def keys(records: list[bytes]) -> list[tuple[Any, ...]]:
    """Returns number, operation and key of each change, and ``end`` and count of each end."""
    return [
        (one["number"], "end", one["count"])
        if one.get("end")
        else (one["number"], one.get("operation", "refused"), one.get("key", {}).get("id"))
        for one in told(records)
    ]


def test_a_transaction_becomes_a_numbered_unit(database: str) -> None:
    execute(database, TABLE)
    with Extraction(database) as extraction:
        execute(
            database,
            "INSERT INTO item (id, name) VALUES (1, 'first')",
            "BEGIN", "UPDATE item SET name = 'äé' WHERE id = 1", "DELETE FROM item WHERE id = 1", "COMMIT",
        )  # fmt: skip
        found = told(extraction.until(2))
    first, end, update, delete, last = found
    assert first == {
        "uow": first["uow"], "number": 1, "ordinal": 0, "relation": "item", "operation": "insert",
        "types": {"id": 20, "name": 25}, "key": {"id": "1"}, "new": {"id": "1", "name": "first"},
    }  # fmt: skip
    assert (end["number"], end["count"], end["end"]) == (1, 1, True)
    assert (update["key"], update["new"]["name"], update["old"]) == ({"id": "1"}, "äé", {"name": "first"})
    assert (delete["key"], delete["new"], delete["ordinal"]) == ({"id": "1"}, {}, 1)
    assert (last["number"], last["count"]) == (2, 2)
    server = rows(database, "SELECT @@server_uuid")[0][0] + ":" if IS_MYSQL else "0-7-"
    assert first["uow"].startswith(f"my-{server}")


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


def test_the_tables_that_are_read_change_no_number(database: str) -> None:
    execute(database, TABLE, "CREATE TABLE other (id int PRIMARY KEY)")
    start = here(database)
    execute(
        database,
        "INSERT INTO other VALUES (1)", "BEGIN", "INSERT INTO other VALUES (2)", "INSERT INTO item (id) VALUES (2)",
        "COMMIT",
    )  # fmt: skip
    with Extraction(database, start, tables=("item",)) as extraction:
        found = keys(extraction.until(2))
    assert found == [(1, "end", 0), (2, "insert", "2"), (2, "end", 1)]


def test_a_table_that_is_altered_in_mid_stream_is_read_as_it_was(database: str) -> None:
    execute(database, TABLE)
    start = here(database)
    execute(
        database,
        "INSERT INTO item (id, name) VALUES (1, 'a')",
        "ALTER TABLE item ADD COLUMN more decimal(6,2) FIRST, DROP COLUMN made",
        "INSERT INTO item (id, name, more) VALUES (2, 'b', -1.5)",
        "ALTER TABLE item DROP COLUMN name, CHANGE id key_ bigint unsigned",
        "INSERT INTO item VALUES (3.14, 18446744073709551615)",
        "DROP TABLE item",  # fails a unit of its own
        "CREATE TABLE last (id int PRIMARY KEY)",
    )
    with Extraction(database, start) as extraction:
        found = told(extraction.until(3))
    assert [one["new"] for one in found if "new" in one] == [
        {"id": "1", "name": "a", "made": "2"},  # that it was computed nobody knows any more
        {"id": "2", "name": "b", "more": "-1.50"},
        {"key_": "18446744073709551615", "more": "3.14"},
    ]


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


def test_the_same_request_brings_the_same_answer(database: str) -> None:
    execute(database, TABLE)
    start = here(database)
    execute(database, *(f"INSERT INTO item (id) VALUES ({n})" for n in range(20)))
    with Extraction(database, start) as first, Extraction(database, start) as second:
        assert first.until(20) == second.until(20)
        assert first.offset == second.offset
        if not IS_MYSQL:
            assert first.offset["gtid"] == rows(database, "SELECT @@global.gtid_binlog_pos")[0][0]


@pytest.mark.mariadb
def test_a_gtid_begins_the_extraction_too(database: str) -> None:
    execute(database, TABLE, "INSERT INTO item (id) VALUES (1)")
    gtid = rows(database, "SELECT @@global.gtid_binlog_pos")[0][0]
    execute(database, "INSERT INTO item (id) VALUES (2)")
    with Extraction(database, {"gtid": gtid, "number": 7}) as extraction:
        assert keys(extraction.until(8)) == [(8, "insert", "2"), (8, "end", 1)]
        position = extraction.offset["position"]
    assert position == here(database)["position"]


@pytest.mark.mariadb
def test_a_gtid_in_a_file_beyond_4_gib_is_refused(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows it: the server tells 32 bits of where the first event behind the GTID stands."""
    execute(database, TABLE, "INSERT INTO item (id) VALUES (1)")
    gtid, file = rows(database, "SELECT @@global.gtid_binlog_pos")[0][0], here(database)["file"]
    for size, refused in ((2**32 - 1, False), (2**32, True)):
        monkeypatch.setattr("kainite.capture.mysql.source._files", lambda _, size=size: {file: size})
        with Extraction(database, {"gtid": gtid, "number": 0}) as extraction:
            if not refused:
                assert extraction.answer() == []
                continue
            with pytest.raises(SourceError, match=f"the GTID stands in {file}, which has 4294967296 bytes"):
                extraction.answer()


def test_an_idle_source_moves_the_offset(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kainite.capture.mysql.extractor.ADVANCE_EVERY_S", 0.0)
    execute(database, TABLE)
    with Extraction(database) as extraction:
        execute(database, "FLUSH BINARY LOGS", "CREATE TABLE another (id int PRIMARY KEY)")
        wanted = here(database)
        for _ in range(100):
            extraction.answer()
            if extraction.offset["file"] == wanted["file"] and extraction.offset["position"] == wanted["position"]:
                break
        assert (extraction.offset["position"], extraction.offset["number"]) == (wanted["position"], 0)


def test_a_heartbeat_is_a_unit_without_deltas(database: str) -> None:
    execute(database, TABLE)
    with Extraction(database, heartbeat=0.001) as extraction:
        assert keys(extraction.until(2))[:2] == [(1, "end", 0), (2, "end", 0)]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"source": {"server": "8", "database": "DB", "begun": 0}}, "another server"),
        ({"source": {"server": "7", "database": "elsewhere", "begun": 0}}, "read from database elsewhere"),
        ({"file": "binlog.000000"}, "no binlog file binlog.000000 any more"),
        ({"position": 2**40}, "lost the end of its binlog"),
        pytest.param({"gtid": "0-9-99"}, "written anew", marks=pytest.mark.mariadb),
    ],
)
def test_an_offset_of_another_server_is_refused(database: str, changed: dict[str, Any], message: str) -> None:
    execute(database, TABLE, "INSERT INTO item (id) VALUES (1)")
    name = database.split("/")[3].split("?")[0]
    offset = here(database) | changed
    if offset.get("source", {}).get("database") == "DB":
        offset["source"]["database"] = name
    with Extraction(database, offset) as extraction, pytest.raises(SourceError, match=message):
        extraction.answer()


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("CREATE TABLE t (id int)", "table t: it has no primary key"),
        ("CREATE TABLE t (id int PRIMARY KEY) ENGINE=MyISAM", "table t: its engine MyISAM has no transactions"),
        ("CREATE TABLE t (id int PRIMARY KEY, g point)", "its column g has the type point"),
        pytest.param(
            "CREATE TABLE t (id int PRIMARY KEY, c text COMPRESSED)",
            "its column c has the attribute COMPRESSED",
            marks=pytest.mark.mariadb,
        ),
        pytest.param(
            "CREATE TABLE t (id int PRIMARY KEY) WITH SYSTEM VERSIONING",
            "system-versioned",
            marks=pytest.mark.mariadb,
        ),
    ],
)
def test_a_table_whose_changes_cannot_be_carried_is_refused(database: str, table: str, message: str) -> None:
    execute(database, TABLE)
    start = here(database)
    execute(database, table)
    with Extraction(database, start) as extraction, pytest.raises(SourceError, match=message):
        extraction.answer()
    with Extraction(database, start, tables=("item",)) as extraction:
        assert extraction.answer() == []
    execute(database, "DROP TABLE t")
    with Extraction(database, start) as extraction:
        extraction.answer()
        execute(database, table, "INSERT INTO t (id) VALUES (1)")  # while it is read, the unit alone fails
        assert [one.get("refused", "")[:3] for one in told(extraction.until(1)) if "refused" in one]


def test_names_with_backticks_and_dots_arrive(database: str) -> None:
    execute(database, "CREATE TABLE `a``b.c` (`k``1` int PRIMARY KEY, `select` text)")
    with Extraction(database) as extraction:
        execute(database, "INSERT INTO `a``b.c` VALUES (1, 'x')", "TRUNCATE `a``b.c`")
        change, *_ = found = told(extraction.until(2))
    assert (change["relation"], change["new"]) == ("a`b.c", {"k`1": "1", "select": "x"})
    assert "a`b.c" in found[2]["refused"]


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


@pytest.mark.mariadb
def test_a_sequence_is_no_table(database: str) -> None:
    execute(database, TABLE, "CREATE SEQUENCE numbers")
    with Extraction(database) as extraction:
        execute(database, "INSERT INTO item (id) VALUES (NEXTVAL(numbers))", "DO SETVAL(numbers, 5000)")
        found = keys(extraction.until(2))
    assert found == [(1, "insert", "1"), (1, "end", 1), (2, "end", 0)]


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


def test_a_server_busy_with_other_databases_ends_an_answer_too(
    database: str, mariadb_source_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shows it: else an extractor that has much to pass over is killed for its silence, and begins there again."""
    monkeypatch.setattr("kainite.capture.mysql.extractor.ADVANCE_EVERY_S", 0.0)
    monkeypatch.setattr("kainite.capture.mysql.extractor._LONGEST", 0.001)
    execute(database, TABLE)
    start = here(database)
    with source_database(mariadb_source_server) as other:
        execute(other, "CREATE TABLE t (id int PRIMARY KEY)", *(f"INSERT INTO t VALUES ({n})" for n in range(500)))
        goal = here(database)
        with Extraction(database, start) as extraction:
            assert extraction.answer() == []
            assert extraction.offset["position"] < goal["position"]
            while extraction.offset["position"] < goal["position"]:
                extraction.answer()

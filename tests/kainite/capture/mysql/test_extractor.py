"""The extractor gives a MariaDB database's committed transactions, each with one dense number."""

from __future__ import annotations

from typing import Any

import pytest

from kainite.base.errors import SourceError
from support.mariadb_source import Extraction, execute, here, keys, rows, source_database, told
from support.mysql_server import IS_MYSQL

TABLE = "CREATE TABLE item (id int PRIMARY KEY, name varchar(40), made int AS (id + 1) VIRTUAL, UNIQUE (name))"


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


@pytest.mark.mariadb
def test_a_sequence_is_no_table(database: str) -> None:
    execute(database, TABLE, "CREATE SEQUENCE numbers")
    with Extraction(database) as extraction:
        execute(database, "INSERT INTO item (id) VALUES (NEXTVAL(numbers))", "DO SETVAL(numbers, 5000)")
        found = keys(extraction.until(2))
    assert found == [(1, "insert", "1"), (1, "end", 1), (2, "end", 0)]


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

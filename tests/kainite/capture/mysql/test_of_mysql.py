"""What MySQL has in its binlog and MariaDB has not: it arrives, or is refused in one line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest

from kainite.base.errors import SourceError
from support.mariadb_source import Extraction, execute, here, mariadb_with_binlog, rows, source_database
from support.mysql_replica import mysql_replica

pytestmark = pytest.mark.mysql

TABLE = "CREATE TABLE item (id int PRIMARY KEY, v json)"
LONG = '\'{"a": 1, "b": "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}\''


def extracted(database: str, made: Sequence[str], *statements: str, transactions: int) -> list[dict[str, Any]]:
    """Returns the records of transactions, without their units' ends."""
    execute(database, *made)
    with Extraction(database) as extraction:
        execute(database, *statements)
        found = [orjson.loads(record) for record in extraction.until(transactions)]
    return [one for one in found if not one.get("end")]


def news(records: list[dict[str, Any]]) -> list[Any]:
    return [(one["relation"], one["new"]) for one in records]


def test_what_a_session_has_compressed_fails_its_unit_alone(database: str) -> None:
    found = extracted(
        database, [TABLE],
        "INSERT INTO item VALUES (1, NULL)", "SET SESSION binlog_transaction_compression = ON",
        "INSERT INTO item VALUES (2, NULL)", "SET SESSION binlog_transaction_compression = OFF",
        "INSERT INTO item VALUES (3, NULL)", transactions=3,
    )  # fmt: skip
    assert [one.get("key", {}).get("id") for one in found] == ["1", None, "3"]
    assert "binlog_transaction_compression = OFF" in found[1]["refused"]


def test_a_part_of_a_document_fails_its_unit_alone(database: str) -> None:
    start, name = here(database), database.split("/")[3].split("?")[0]
    found = extracted(
        database, [TABLE, f"INSERT INTO item VALUES (1, {LONG})"],
        "SET SESSION binlog_row_value_options = 'PARTIAL_JSON'", "UPDATE item SET v = JSON_SET(v, '$.a', 2)",
        "SET SESSION binlog_row_value_options = ''", "UPDATE item SET v = JSON_SET(v, '$.a', 3)", transactions=2,
    )  # fmt: skip
    assert "binlog_row_value_options = ''" in found[0]["refused"]
    assert orjson.loads(found[1]["new"]["v"])["a"] == 3
    with source_database(database.replace(f"/{name}?", "/mysql?")) as other:
        execute(other, "CREATE TABLE t (id int PRIMARY KEY)")
        with Extraction(other, start) as extraction:  # of another database
            assert extraction.quiet() == []


def test_what_is_passed_over_may_be_compressed(database: str) -> None:
    execute(database, TABLE)
    start = here(database)
    execute(database, "SET SESSION binlog_transaction_compression = ON", "INSERT INTO item VALUES (2, NULL)")
    with Extraction(database, start) as extraction:
        gtid = orjson.loads(extraction.until(1)[0])["uow"].removeprefix("my-").rpartition("-")[0]
    with Extraction(database, start, passed_over=frozenset({gtid})) as extraction:
        assert "passed over" in orjson.loads(extraction.until(1)[0])["refused"]


def test_tagged_gtids_are_called_by_their_places(database: str) -> None:
    found = extracted(
        database, [TABLE],
        "SET gtid_next = 'AUTOMATIC:tag'", "INSERT INTO item VALUES (1, NULL)", "SET gtid_next = 'AUTOMATIC'",
        "INSERT INTO item VALUES (2, NULL)", transactions=2,
    )  # fmt: skip
    server = rows(database, "SELECT @@server_uuid")[0][0]
    assert [one["uow"].startswith(f"my-{of}") for one, of in zip(found, ("binlog.", server), strict=True)] == [True] * 2


def test_a_table_that_is_made_of_a_query_comes_with_its_rows(database: str) -> None:
    found = extracted(
        database, [TABLE, "INSERT INTO item VALUES (1, NULL), (2, NULL)"],
        "CREATE TABLE made (PRIMARY KEY (id)) AS SELECT id FROM item", transactions=1,
    )  # fmt: skip
    assert news(found) == [("made", {"id": "1"}), ("made", {"id": "2"})]


def test_hidden_columns_of_indexes_are_none_and_invisible_ones_come(database: str) -> None:
    found = extracted(
        database,
        ["CREATE TABLE item (id int PRIMARY KEY, t varchar(9), v json, i int INVISIBLE, d int DEFAULT (1 + 1),"
         " UNIQUE ((LOWER(t))), INDEX ((CAST(v AS UNSIGNED ARRAY))), CHECK (id > 0))"],
        "INSERT INTO item (id, t, v, i) VALUES (1, 'aB', '[1, 2]', 3)", "UPDATE item SET t = 'C'", transactions=2,
    )  # fmt: skip
    first = {"id": "1", "t": "aB", "v": "[1, 2]", "i": "3", "d": "2"}
    assert news(found) == [("item", first), ("item", first | {"t": "C"})]


def test_a_key_that_the_server_makes_is_one(database: str) -> None:
    found = extracted(
        database, ["SET sql_generate_invisible_primary_key = ON", "CREATE TABLE item (v int)"],
        "INSERT INTO item (v) VALUES (5)", "UPDATE item SET v = 6", transactions=2,
    )  # fmt: skip
    assert [one["key"] for one in found] == [{"my_row_id": "1"}] * 2


def test_columns_that_come_and_go_at_once(database: str) -> None:
    found = extracted(
        database, ["CREATE TABLE item (id int PRIMARY KEY)"],
        "INSERT INTO item VALUES (1)", "ALTER TABLE item ADD COLUMN b int DEFAULT 5 FIRST, ALGORITHM = INSTANT",
        "UPDATE item SET id = 2", "ALTER TABLE item DROP COLUMN b, ALGORITHM = INSTANT", "INSERT INTO item VALUES (3)",
        transactions=3,
    )  # fmt: skip
    assert news(found) == [("item", {"id": "1"}), ("item", {"b": "5", "id": "2"}), ("item", {"id": "3"})]


def test_a_vector_is_refused(database: str) -> None:
    execute(database, "CREATE TABLE item (id int PRIMARY KEY, v vector(3))")
    with Extraction(database) as extraction, pytest.raises(SourceError, match="its column v has the type vector"):
        extraction.answer()


@pytest.mark.parametrize(
    ("setting", "mend"),
    [
        ("binlog_transaction_compression = ON", "binlog_transaction_compression = OFF"),
        ("binlog_row_value_options = 'PARTIAL_JSON'", "binlog_row_value_options = ''"),
        ("binlog_row_metadata = MINIMAL", "binlog_row_metadata = 'FULL'"),
        ("binlog_row_image = MINIMAL", "binlog_row_image = 'FULL'"),
        ("binlog_format = MIXED", "binlog_format = 'ROW'"),
    ],
)
def test_what_must_be_set_otherwise_is_refused_with_what_mends_it(database: str, setting: str, mend: str) -> None:
    execute(database, TABLE)
    name = setting.partition(" ")[0]
    before = rows(database, f"SELECT @@global.{name}")[0][0]
    execute(database, f"SET GLOBAL {setting}")
    try:
        with Extraction(database) as extraction, pytest.raises(SourceError, match=f"SET GLOBAL {mend}"):
            extraction.answer()
    finally:
        execute(database, f"SET GLOBAL {name} = '{before}'" if isinstance(before, str) else f"SET GLOBAL {name} = 0")


def test_a_server_without_gtids_calls_transactions_by_their_places(tmp_path: Path) -> None:
    with (
        mariadb_with_binlog(tmp_path / "s", "--gtid-mode=OFF", "--enforce-gtid-consistency=OFF") as server,
        source_database(server) as database,
    ):
        found = extracted(
            database, [TABLE],
            "XA START 'x'", "INSERT INTO item VALUES (1, NULL)", "XA END 'x'", "XA PREPARE 'x'", "XA COMMIT 'x'",
            "INSERT INTO item VALUES (2, NULL)", transactions=2,
        )  # fmt: skip
        assert [one["key"]["id"] for one in found] == ["1", "2"]
        assert all(one["uow"].startswith("my-binlog.00000") for one in found)


FAMILY = (
    "CREATE TABLE parent (id int PRIMARY KEY)",
    "CREATE TABLE child (id int PRIMARY KEY, p int, FOREIGN KEY (p) REFERENCES parent (id)"
    " ON UPDATE CASCADE ON DELETE CASCADE)",
    "CREATE TABLE toy (id int PRIMARY KEY, c int, p int, FOREIGN KEY (c) REFERENCES child (id) ON DELETE SET NULL,"
    " FOREIGN KEY (p) REFERENCES parent (id) ON UPDATE CASCADE)",
)


@pytest.mark.parametrize("acts", [True, False])
def test_what_foreign_keys_do_in_the_source_arrives_whether_the_target_does_it_too(database: str, acts: bool) -> None:
    """Shows it: MySQL logs the rows that its foreign keys change, and the child's new key before the parent's."""
    server = database.replace(f"/{database.split('/')[3].split('?')[0]}?", "/mysql?")
    with source_database(server) as target:
        execute(target, *(FAMILY if acts else [re.sub(r", FOREIGN KEY .*", ")", table) for table in FAMILY]))
        with mysql_replica(database, target, FAMILY) as made:
            execute(
                database,
                "INSERT INTO parent VALUES (1), (2), (3)",
                "INSERT INTO child VALUES (10, 1), (11, 1), (20, 2), (30, 3)",
                "INSERT INTO toy VALUES (100, 10, 2), (101, 11, 3), (200, 20, 3)",
                "UPDATE parent SET id = id + 10 ORDER BY id DESC", "DELETE FROM parent WHERE id = 11",
                "BEGIN", "UPDATE parent SET id = 5 WHERE id = 12", "DELETE FROM child WHERE id = 20",
                "UPDATE parent SET id = 6 WHERE id = 5", "COMMIT",
            )  # fmt: skip
            made.catch_up(6)
            assert made.failed() == {}
        for table in ("parent", "child", "toy"):
            query = f"SELECT * FROM {table} ORDER BY id"
            assert rows(target, query) == rows(database, query)
        assert rows(target, "SELECT * FROM toy ORDER BY id") == [(100, None, 6), (101, None, 13), (200, None, 13)]

"""Tables are cut into ranges that together have each row once, by keys of any type."""

from __future__ import annotations

import itertools
from contextlib import closing

import pytest

from kainite.capture.mysql import snapshot_tables as module
from kainite.capture.mysql.snapshot_tables import key_ranges, of_other_engines, snapshot_tables
from kainite.capture.mysql.source_catalogue import MysqlSourceCatalogue
from support.mariadb_source import execute, rows

pytestmark = pytest.mark.mariadb  # a snapshot of MySQL does not say its place in the binlog

KEYS = {
    "int": ("id INT", "CAST(seq AS SIGNED) - 3000"),
    "bigint unsigned": ("id BIGINT UNSIGNED", "18446744073709551615 - seq * 7"),
    "varchar": ("id VARCHAR(40) CHARACTER SET latin1", "CONCAT(CHAR(97 + seq % 26), '''ä\\\\', seq)"),
    "latin1": ("id VARCHAR(40) CHARACTER SET latin1", "CONCAT('ü', LPAD(seq, 6, '0'))"),
    "gbk": ("id CHAR(40) CHARACTER SET gbk", "CONCAT('中', LPAD(seq, 6, '0'))"),
    "utf32": ("id VARCHAR(40) CHARACTER SET utf32", "CONCAT('a', LPAD(seq, 6, '0'))"),
    "collated": ("id VARCHAR(40) COLLATE utf8mb4_general_ci", "CONCAT(IF(seq % 2, 'a', 'A'), seq)"),
    "binary": ("id BINARY(4)", "UNHEX(LPAD(HEX(seq * 977), 8, '0'))"),
    "decimal": ("id DECIMAL(20,4)", "seq / 8 - 100"),
    "datetime": ("id DATETIME(3)", "'2024-01-01' + INTERVAL seq SECOND"),
    "timestamp": ("id TIMESTAMP(3)", "'2024-01-01' + INTERVAL seq SECOND"),
    "uuid": ("id UUID", "CONCAT('11223344-5566-4788-99aa-', LPAD(HEX(seq * 77), 12, '0'))"),
    "two columns": ("id INT, more INT", "seq DIV 2500, seq"),
    "float": ("id DOUBLE", "seq / 3"),
}


@pytest.mark.parametrize("kind", KEYS)
def test_ranges_have_each_row_once(database: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RANGE_BYTES", 32 * 1024)
    columns, values = KEYS[kind]
    key = "id, more" if "more" in columns else "id"
    execute(
        database,
        f"CREATE TABLE item ({columns}, pad CHAR(100) DEFAULT 'x', PRIMARY KEY ({key}))",
        f"INSERT INTO item ({key}) SELECT {values} FROM seq_1_to_6000",
        "ANALYZE TABLE item",
    )
    with closing(MysqlSourceCatalogue(database)) as catalogue:
        (table,) = snapshot_tables(catalogue, str(catalogue.value("SELECT database()")), ())
        found = list(itertools.islice(key_ranges(catalogue, table), 100))
    counts = [rows(database, f"SELECT COUNT(*) FROM item WHERE {one}")[0][0] for one in found]
    assert sum(counts) == 6000
    several = {"float": 1, "two columns": 3}.get(kind, 6)
    assert len(found) >= several


def test_a_small_table_is_one_range_and_computed_columns_and_heartbeats_are_left_out(database: str) -> None:
    execute(
        database,
        "CREATE TABLE `odd ``%s` (`a%` INT PRIMARY KEY, b INT, twice INT AS (b * 2) STORED)",
        "CREATE TABLE kainite_heartbeat (id INT PRIMARY KEY)",
        "INSERT INTO `odd ``%s` (`a%`, b) VALUES (1, 2)",
    )
    with closing(MysqlSourceCatalogue(database)) as catalogue:
        (table,) = snapshot_tables(catalogue, str(catalogue.value("SELECT database()")), ())
        assert list(key_ranges(catalogue, table)) == ["TRUE"]
        assert table.name == "odd `%s"
        assert [column.name for column in table.copied] == ["a%", "b"]
        assert catalogue.rows(table.query("TRUE")) == [(1, 2)]


def test_tables_of_other_engines_are_named(database: str) -> None:
    execute(database, "CREATE TABLE a (id INT PRIMARY KEY)", "CREATE TABLE b (id INT PRIMARY KEY) ENGINE=MyISAM")
    with closing(MysqlSourceCatalogue(database)) as catalogue:
        name = str(catalogue.value("SELECT database()"))
        assert of_other_engines(catalogue, name, ()) == ["b"]
        assert of_other_engines(catalogue, name, ("a",)) == []

"""Which tables of MariaDB and PostgreSQL are compared, and why others are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from kainite.base.errors import SettingsError, SourceError
from kainite.capture.mysql import snapshot_tables
from kainite.replicate.paired_ends import ComparablePair, paired_tables_to_compare
from support.binlog_loading import BinlogLoading, binlog_loading
from support.mariadb_source import source_database
from support.replicas import tables_of

SOURCE = (
    "CREATE TABLE item (id INT PRIMARY KEY, name VARCHAR(200))", "CREATE TABLE more (id INT PRIMARY KEY, v INT)",
    "CREATE TABLE plain (id INT PRIMARY KEY) ENGINE=MyISAM", "CREATE TABLE lone (id INT PRIMARY KEY)",
    "INSERT INTO item SELECT seq, REPEAT('x', 200) FROM seq_1_to_3000", "ANALYZE TABLE item",
)  # fmt: skip
TARGET = (
    "CREATE TABLE item (id int PRIMARY KEY, name text)", "CREATE TABLE more (id int PRIMARY KEY)",
    "CREATE TABLE plain (id int PRIMARY KEY)",
)  # fmt: skip


def test_tables_are_paired_by_their_names(
    mariadb_source_server: str, postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot_tables, "RANGE_BYTES", 64 * 1024)
    with (
        source_database(mariadb_source_server) as source,
        binlog_loading(source, postgres, tmp_path, SOURCE, TARGET) as world,
    ):
        found = asked(world)
        assert [table.name for table in found.tables] == ["public.item"]
        assert found.left_out == {
            "public.more": "the target's table has no column v", "lone": "the target has no such table",
            "public.plain": "a table that is not InnoDB's has no snapshot: ALTER TABLE … ENGINE=InnoDB",
        }  # fmt: skip
        assert len(list(found.tables[0].source.ranges())) > 2
        for name in ("item", "public.item"):
            assert [table.name for table in asked(world, name).tables] == ["public.item"]
        assert asked(world, "item").left_out == {}
        with pytest.raises(SettingsError, match="no table lone, nothing of the source is read"):
            asked(world, "nothing", "item", "lone")
        world.in_target("DROP TABLE item, more, plain", "CREATE TABLE another (id int PRIMARY KEY)")
        with pytest.raises(SourceError, match="no table that is read and that the target has"):
            asked(world)


def asked(world: BinlogLoading, *only: str) -> ComparablePair:
    return paired_tables_to_compare(world.ends, tables_of(world.ends.target), only)

"""The watch over a MariaDB source: each change of a table that is read is seen, and a marker is none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kainite.base.errors import SourceError
from kainite.replicate.binlog_watch import watching_binlog
from support.binlog_loading import BinlogLoading, binlog_loading
from support.mariadb_source import source_database

TABLES = ("CREATE TABLE item (id INT PRIMARY KEY)", "CREATE TABLE other (id INT PRIMARY KEY)")


@pytest.fixture
def world(mariadb_source_server: str, postgres: str, tmp_path: Path) -> Iterator[BinlogLoading]:
    with (
        source_database(mariadb_source_server) as source,
        binlog_loading(source, postgres, tmp_path, TABLES, []) as made,
    ):
        yield made


def test_markers_have_numbers_and_what_is_not_read_changes_nothing(world: BinlogLoading) -> None:
    world.in_source("INSERT INTO item VALUES (1)")
    ends = replace(world.ends, source=replace(world.ends.source, tables=("item",)))
    with watching_binlog(ends) as watch:
        assert watch.mark() == 2
        watch.look()
        world.in_source("INSERT INTO other VALUES (1)")
        watch.look()
        assert watch.mark() == 4


@pytest.mark.parametrize(
    ("statement", "table"), [("INSERT INTO item VALUES (2)", "item"), ("TRUNCATE TABLE item", "a table")]
)
def test_a_change_is_told_with_its_transaction(world: BinlogLoading, statement: str, table: str) -> None:
    with watching_binlog(world.ends) as watch:
        watch.mark()
        world.in_source(statement)
        with pytest.raises(SourceError, match=rf"unit my-.*-2 has changed {table}, behind the cut-over's point binlog"):
            watch.look()

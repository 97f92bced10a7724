"""A point of a MariaDB source has a number, and its snapshots are released where there is none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from kainite.base.errors import SourceError
from kainite.capture.mysql.place import BinlogPlace
from kainite.capture.mysql.snapshot_tables import snapshot_tables
from kainite.replicate.binlog_point import (
    binlog_point,
    end_of_binlog,
    number_now,
    offset_of,
    second_extractor,
    source_catalogue,
)
from support.binlog_loading import BinlogLoading, binlog_loading
from support.mariadb_source import source_database


@dataclass
class NotedSnapshots:
    """Implements :class:`kainite.replicate.binlog_point.BegunSnapshots` without any snapshot."""

    place: BinlogPlace
    held: list[str] = field(default_factory=list)
    released: bool = False

    def hold(self, tables: Sequence[str]) -> None:
        self.held += tables

    def release(self) -> None:
        self.released = True


@pytest.fixture
def world(mariadb_source_server: str, postgres: str, tmp_path: Path) -> Iterator[BinlogLoading]:
    with (
        source_database(mariadb_source_server) as source,
        binlog_loading(source, postgres, tmp_path, ["CREATE TABLE item (id INT PRIMARY KEY)"], []) as made,
    ):
        yield made


def test_a_place_has_the_number_of_the_last_transaction_before_it(world: BinlogLoading) -> None:
    world.in_source("INSERT INTO item VALUES (1)", "INSERT INTO item VALUES (2)")
    with source_catalogue(world.ends) as (catalogue, database):
        tables = snapshot_tables(catalogue, database, ())
        here = end_of_binlog(catalogue)
        snapshots, found = binlog_point(world.ends, tables, NotedSnapshots)
        assert (snapshots.place, snapshots.held, snapshots.released) == (here, ["item"], False)
        assert (found.number, found.server, found.database) == (2, "7", database)
        assert number_now(world.ends) == 2
        with closing(second_extractor(world.ends)) as extractor:
            records = list(extractor.records_up_to(offset_of(world.ends), here))
            assert len(records) == 4
            assert list(extractor.records_up_to(offset_of(world.ends), here)) == []


def test_a_table_that_is_altered_meanwhile_releases_the_snapshots(world: BinlogLoading) -> None:
    with source_catalogue(world.ends) as (catalogue, database):
        tables = snapshot_tables(catalogue, database, ())
    begun: list[NotedSnapshots] = []

    def begin(least: BinlogPlace) -> NotedSnapshots:
        begun.append(NotedSnapshots(least))
        world.in_source("ALTER TABLE item ADD COLUMN v INT")
        return begun[0]

    with pytest.raises(SourceError, match="table item was altered meanwhile"):
        binlog_point(world.ends, tables, begin)
    assert begun[0].released

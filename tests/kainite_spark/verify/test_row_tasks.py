"""Threads of a comparison with MariaDB whose snapshot is gone say so in one line."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from kainite.base.errors import SourceError, TargetUnavailableError
from kainite.capture.mysql.snapshot_session import SnapshotSession
from kainite.replicate.paired_ends import paired_tables_to_compare
from kainite.replicate.paired_rows import KeyRange
from kainite.uow.catalogue.tables import Catalogue
from kainite_spark.verify.row_tasks import MariadbReader, PostgresReader, RowReader, RowTask, key_texts, run_row_items
from kainite_spark.verify.tasks import RangeItem, RangeSums, Side, Snapshots
from support.binlog_loading import binlog_loading
from support.mariadb_source import source_database
from support.replicas import tables_of


def test_a_side_that_does_not_answer_is_named(mariadb_source_server: str, postgres: str, tmp_path: Path) -> None:
    made = ["CREATE TABLE item (id INT PRIMARY KEY, v DECIMAL(5,2))", "INSERT INTO item VALUES (1, 1.5), (2, NULL)"]
    with (
        source_database(mariadb_source_server) as source,
        binlog_loading(source, postgres, tmp_path, made, ["CREATE TABLE item (id int PRIMARY KEY, v text)"]) as world,
        closing(SnapshotSession(source)) as session,
        Snapshots({Side.TARGET: (postgres, "00000003-00000002-1")}) as gone,
    ):
        session.begin()
        found = paired_tables_to_compare(world.ends, tables_of(postgres), ())
        task = RowTask((), found.tables, Catalogue({}), 10)
        readers: dict[Side, RowReader] = {
            Side.SOURCE: MariadbReader(session, Side.SOURCE), Side.TARGET: PostgresReader(gone, Side.TARGET),
        }  # fmt: skip
        ours = RangeItem(0, Side.SOURCE, KeyRange("item", "id > 1"))
        [sums] = run_row_items(task, readers, [ours])
        assert isinstance(sums, RangeSums)
        assert ([count for _, count, _ in sums.sums], sums.wire_bytes) == ([1], len('["2",null]'))
        its = RangeItem(0, Side.TARGET, KeyRange("public.item", "true"))
        with pytest.raises(TargetUnavailableError, match=r"the target: .*start the comparison again"):
            list(run_row_items(task, readers, [its]))
        wrong = RangeItem(0, Side.SOURCE, KeyRange("item", "nothing"))
        with pytest.raises(SourceError, match=r"the source: .*nothing.*start the comparison again"):
            list(run_row_items(task, readers, [wrong]))
        session.close()
        with pytest.raises(SourceError, match="start the comparison again"):
            list(run_row_items(task, readers, [ours]))
    assert key_texts(found.tables[0], '["5"]') == {"id": "5"}

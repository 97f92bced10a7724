"""Threads of a comparison with MariaDB whose snapshot is gone say so in one line."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from kainite.base.errors import SourceError, TargetUnavailableError
from kainite.capture.mysql.snapshot_session import SnapshotSession
from kainite.replicate.binlog_compared import KeyRange
from kainite.replicate.binlog_ends_compared import binlog_tables_to_compare
from kainite.replicate.same_point import SamePoint
from kainite.uow.catalogue.tables import Catalogue
from kainite_spark.verify.binlog_tasks import BinlogVerifyTask, key_texts, run_binlog_items
from kainite_spark.verify.tasks import RangeItem, RangeSums, Side
from support.binlog_loading import binlog_loading
from support.mariadb_source import source_database
from support.replicas import tables_of


def test_a_side_that_does_not_answer_is_named(mariadb_source_server: str, postgres: str, tmp_path: Path) -> None:
    made = ["CREATE TABLE item (id INT PRIMARY KEY, v DECIMAL(5,2))", "INSERT INTO item VALUES (1, 1.5), (2, NULL)"]
    with (
        source_database(mariadb_source_server) as source,
        binlog_loading(source, postgres, tmp_path, made, ["CREATE TABLE item (id int PRIMARY KEY, v text)"]) as world,
        closing(SnapshotSession(source)) as session,
    ):
        session.begin()
        found = binlog_tables_to_compare(world.ends, tables_of(postgres), ())
        gone = SamePoint(1, "", "00000003-00000002-1", (), {})
        task = BinlogVerifyTask(postgres, gone, found.tables, Catalogue({}), 10)
        ours = RangeItem(0, Side.SOURCE, KeyRange("item", "id > 1"))
        [sums] = run_binlog_items(task, session, [ours])
        assert isinstance(sums, RangeSums)
        assert ([count for _, count, _ in sums.sums], sums.wire_bytes) == ([1], len('["2",null]'))
        its = RangeItem(0, Side.TARGET, KeyRange("public.item", "true"))
        with pytest.raises(TargetUnavailableError, match=r"the target: .*start the comparison again"):
            list(run_binlog_items(task, session, [its]))
        wrong = RangeItem(0, Side.SOURCE, KeyRange("item", "nothing"))
        with pytest.raises(SourceError, match=r"the source: .*nothing.*start the comparison again"):
            list(run_binlog_items(task, session, [wrong]))
        session.close()
        with pytest.raises(SourceError, match="start the comparison again"):
            list(run_binlog_items(task, session, [ours]))
    assert key_texts(found.tables[0], '["5"]') == {"id": "5"}

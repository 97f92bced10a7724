"""Tasks of a comparison whose snapshot is gone say so in one line."""

from __future__ import annotations

import pytest

from kainite.base.errors import SourceError, TargetUnavailableError
from kainite.capture.postgresql.replication import SourceSlot
from kainite.replicate.compared_tables import compared_table
from kainite.replicate.ends import ReplicaEnds, source_session
from kainite.replicate.same_point import SamePoint
from kainite.replicate.tables import described
from kainite.uow.catalogue.tables import Catalogue
from kainite_spark.verify.tasks import BucketsItem, RangeItem, Side, VerifyTask, key_of, run_items
from support.replicas import LOG


def test_a_side_that_does_not_answer_is_named(source: SourceSlot, postgres: str) -> None:
    with source_session(source.url) as session:
        item = described(session, [("public", "item")])["public", "item"]
    table = compared_table(item, item)
    assert not isinstance(table, str)
    gone = SamePoint(0x10, "00000003-00000001-1", "00000003-00000002-1", (), {})
    task = VerifyTask(ReplicaEnds(source, postgres, LOG), gone, (table,), Catalogue({}), 10)
    [pages] = table.source.ranges(1024)
    with pytest.raises(SourceError, match=r"the source: .*snapshot.*start the comparison again"):
        list(run_items(task, [RangeItem(0, Side.SOURCE, pages)]))
    with pytest.raises(TargetUnavailableError, match=r"the target: .*start the comparison again"):
        list(run_items(task, [RangeItem(0, Side.TARGET, pages)]))
    with pytest.raises(SourceError):
        list(run_items(task, [BucketsItem(0, frozenset({0}))]))
    assert key_of(table, "5") == ("5",)

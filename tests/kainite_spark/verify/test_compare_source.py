"""What a comparison asks of a PostgreSQL source."""

from __future__ import annotations

import pytest

from kainite.base.errors import SettingsError
from kainite.capture.postgresql.replication import SourceSlot
from kainite.replicate.ends import ReplicaEnds
from kainite.replicate.same_point import SamePoint
from kainite.uow.catalogue.tables import Catalogue
from kainite_spark.verify.compare_source import PostgresCompareSource
from kainite_spark.verify.runners import THREADS, ThreadItems
from kainite_spark.verify.tasks import RangeItem, Side
from support.replicas import LOG, run


def test_tables_are_planned_locked_and_cut_into_ranges(source: SourceSlot, postgres: str) -> None:
    run(postgres, "CREATE TABLE item (id int PRIMARY KEY, name text, price numeric)")
    sizes: list[int] = []

    def runner(size: int) -> ThreadItems:
        sizes.append(size)
        return ThreadItems()

    asked = PostgresCompareSource(ReplicaEnds(source, postgres, LOG), runner, 0.5)
    plan = asked.plan(Catalogue({}), ["item"])
    assert ([table.name for table in plan.tables], plan.target.tables) == (["public.item"], ["public.item"])
    assert plan.points.lock_wait == 0.5
    made = plan.at(SamePoint(1, "a", "b", (), {}), [0], Catalogue({}), 10)
    assert (made.parallelism, sizes) == (THREADS, [plan.tables[0].bytes])
    ranges = list(made.ranges(0))
    assert [item.side for item in ranges] == [Side.SOURCE, Side.TARGET]
    assert all(isinstance(item, RangeItem) and item.table == 0 for item in ranges)
    with pytest.raises(SettingsError, match=r"no table public\.nothing"):
        asked.plan(Catalogue({}), ["nothing"])

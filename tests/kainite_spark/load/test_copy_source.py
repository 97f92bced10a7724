"""What a load asks of a PostgreSQL source."""

from __future__ import annotations

import pytest

from kainite.base.errors import SourceError
from kainite.capture.postgresql.replication import SourceSlot
from kainite.uow.catalogue.tables import Catalogue
from kainite_spark.load.copy_source import PostgresCopySource
from support.replicas import loading

TABLES = "CREATE TABLE item (id int PRIMARY KEY, name text)"


def test_what_is_published_is_planned(source: SourceSlot, postgres: str) -> None:
    with loading(source, postgres, both=[TABLES]) as world:
        asked = PostgresCopySource(world.ends)
        asked.check_sessions()
        asked.check()
        planned = asked.plan(Catalogue({}), 2)
        assert [table.place for table in planned.tables] == [("public", "item")]
        assert [step.table for step in planned.steps] == ["item"]
        assert not asked.lives("00000003-00000001-1")


def test_a_publication_without_tables_is_refused(source: SourceSlot, postgres: str) -> None:
    with loading(source, postgres) as world, pytest.raises(SourceError, match="has no table, or does not exist"):
        PostgresCopySource(world.ends).plan(Catalogue({}), 2)

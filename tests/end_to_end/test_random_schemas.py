"""Random schemas and histories: a source's tables, and those of its replica, are the same row by row."""

from __future__ import annotations

import random

import psycopg
import pytest

from kainite.capture.postgresql.replication import SourceSlot
from kainite.settings import ApplySettings, TargetTriggers
from support.postgresql_source import source
from support.random_schemas import RandomHistory, RandomSchema
from support.replica import replica

__all__ = ["source"]

CATCH_UPS, TRANSACTIONS = 4, 8


@pytest.mark.parametrize("seed", range(10))
def test_a_replica_has_the_rows_of_its_source(source: SourceSlot, postgres: str, seed: int) -> None:
    check(source, postgres, seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(10, 210))
def test_many_replicas_have_the_rows_of_their_sources(source: SourceSlot, postgres: str, seed: int) -> None:
    check(source, postgres, seed)


def check(source: SourceSlot, target: str, seed: int) -> None:
    chance = random.Random(seed)
    schema = RandomSchema(chance)
    made = [trigger.sql for trigger in schema.triggers]
    at_source = ["ALTER PUBLICATION changes SET (publish_via_partition_root = true)"] if schema.by_root else []
    if schema.copies_triggers:
        scripts = [*schema.scripts, *made]
        settings = ApplySettings(triggers=TargetTriggers.OFF, trigger_tables=tuple(schema.repeatable))
    else:
        scripts, settings, at_source = [*schema.scripts], ApplySettings(), [*made, *at_source]
    with replica(source, target, *scripts, at_source=at_source, apply=settings) as copied:
        with psycopg.connect(source.url, autocommit=True) as connection:
            history = RandomHistory(schema, chance, connection)
            for _ in range(CATCH_UPS):
                copied.catch_up(history.run(TRANSACTIONS))
                assert copied.failed() == {}
        for table in ("history", "tally", *(table.name for table in schema.tables)):
            expected, found = copied.values(table)
            assert found == expected, table

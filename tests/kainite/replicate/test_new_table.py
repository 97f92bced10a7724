"""A table that the target lacks is made there, and published."""

from __future__ import annotations

import psycopg
import pytest

from kainite.base.errors import CatalogueError, SourceError
from kainite.capture.postgresql.replication import SourceSlot
from kainite.replicate.ends import ReplicaEnds
from kainite.replicate.new_table import make_table, publish, source_table
from kainite.replicate.tables import described, published
from kainite_demo.postgres_server import programs
from support.replicas import LOG, run

pytestmark = pytest.mark.usefixtures("_pg_dump")
TABLES = """
    CREATE TABLE parent (id int PRIMARY KEY); CREATE TABLE absent (id int PRIMARY KEY);
    CREATE TABLE line (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, parent_id int REFERENCES parent,
                       absent_id int REFERENCES absent, name varchar(7) UNIQUE);
    CREATE INDEX by_parent ON line (parent_id)"""
CONSTRAINTS = "SELECT contype::text, count(*) FROM pg_constraint WHERE conrelid = 'line'::regclass GROUP BY 1"


@pytest.fixture
def _pg_dump(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(programs()), prepend=":")


def test_keys_and_indexes_come_with_it_and_foreign_keys_to_what_is_there(source: SourceSlot, postgres: str) -> None:
    ends = ReplicaEnds(source, postgres, LOG)
    run(source.url, TABLES)
    run(postgres, "CREATE TABLE parent (id int PRIMARY KEY)")
    table = source_table(ends, ("public", "line"))
    with psycopg.connect(postgres, autocommit=True) as target:
        for _ in range(2):  # what is there is left alone
            with target.transaction():
                make_table(target, ends, table)
        assert described(target, [table.place])[table.place].columns == table.columns
        found: dict[str, int] = dict(target.execute(CONSTRAINTS).fetchall())
        assert {kind: found[kind] for kind in "pfu"} == {"p": 1, "f": 1, "u": 1}
        assert target.execute("SELECT to_regclass('by_parent') IS NOT NULL, current_schema()").fetchall() == [
            (True, "public")
        ]


def test_what_the_target_does_not_take_is_told(source: SourceSlot, postgres: str) -> None:
    ends = ReplicaEnds(source, postgres, LOG)
    run(source.url, "CREATE SCHEMA own; CREATE TABLE own.line (id int)")
    table = source_table(ends, ("own", "line"))
    with (
        psycopg.connect(postgres, autocommit=True) as target,
        pytest.raises(CatalogueError, match=r'does not take own\.line: schema "own" does not exist.*make it there'),
        target.transaction(),
    ):
        make_table(target, ends, table)
    with pytest.raises(SourceError, match=r"the source has no table public\.none"):
        source_table(ends, ("public", "none"))


def test_a_table_is_published_once_and_a_refusal_has_the_statement(source: SourceSlot, postgres: str) -> None:
    run(source.url, TABLES, "CREATE PUBLICATION own FOR TABLE parent")
    ends = ReplicaEnds(SourceSlot(source.url, source.slot, "own"), postgres, LOG)
    table = source_table(ends, ("public", "line"))
    publish(ends, table)
    publish(ends, table)
    with psycopg.connect(source.url, autocommit=True) as connection:
        assert [one.full_name for one in published(connection, "own")] == ["public.line", "public.parent"]
    missing = ReplicaEnds(SourceSlot(source.url, source.slot, "none"), postgres, LOG)
    with pytest.raises(SourceError, match=r'does not exist.*owner execute ALTER PUBLICATION "none" ADD TABLE'):
        publish(missing, table)

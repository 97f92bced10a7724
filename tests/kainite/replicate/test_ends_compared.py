"""Which tables of two databases can be compared, and why others cannot."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from kainite.base.errors import SettingsError, SourceError
from kainite.capture.postgresql.replication import SourceSlot
from kainite.replicate.ends import ReplicaEnds
from kainite.replicate.ends_compared import tables_to_compare
from support.names import unique
from support.replicas import LOG, run

ITEM = "CREATE TABLE item (id int PRIMARY KEY, name text, price numeric)"
NOTE = "CREATE TABLE note (text text)"
OTHER_HASH = """
    CREATE SCHEMA odd;
    CREATE FUNCTION odd.hashtextextended(text, bigint) RETURNS bigint LANGUAGE sql IMMUTABLE
        AS 'SELECT pg_catalog.hashtextextended($1, $2) + 1';
"""


@pytest.fixture
def ascii_database(postgres_server: str) -> Iterator[str]:
    """Gives an empty database that is not encoded in UTF-8."""
    name = unique("ascii").replace("-", "_")
    run(postgres_server, f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'SQL_ASCII' LOCALE 'C'")
    yield make_conninfo(postgres_server, dbname=name)
    run(postgres_server, f"DROP DATABASE {name} WITH (FORCE)")


def compared(ends: ReplicaEnds, *only: str) -> tuple[list[str], dict[str, str]]:
    tables, left_out = tables_to_compare(ends, only)
    return [table.name for table in tables], left_out


def test_tables_of_both_sides_are_compared_and_others_are_named(source: SourceSlot, postgres: str) -> None:
    run(source.url, "CREATE SCHEMA s", "CREATE TABLE s.item (id int PRIMARY KEY)")
    ends = ReplicaEnds(source, postgres, LOG)
    run(postgres, ITEM, "ALTER TABLE item DROP COLUMN price, DROP COLUMN name", "CREATE TABLE own (id int)", NOTE)
    why = {"public.item": "the target's table has no column name, price", "s.item": "the target has no such table"}
    assert compared(ends) == (["public.note"], why)
    run(postgres, "CREATE SCHEMA s", "CREATE TABLE s.item (id int PRIMARY KEY)")
    assert compared(ends) == (["public.note", "s.item"], {"public.item": why["public.item"]})


def test_both_sides_of_a_table_have_its_own_parts(source: SourceSlot, postgres: str) -> None:
    run(postgres, "CREATE TABLE item (id int PRIMARY KEY, name text, price numeric) PARTITION BY HASH (id)",
        "CREATE TABLE one PARTITION OF item FOR VALUES WITH (MODULUS 2, REMAINDER 0)",
        "CREATE TABLE two PARTITION OF item FOR VALUES WITH (MODULUS 2, REMAINDER 1)")  # fmt: skip
    (item,), _ = tables_to_compare(ReplicaEnds(source, postgres, LOG), ["item"])
    assert (item.columns, item.key_columns) == (("id", "name", "price"), ("id",))
    assert [part.sql for part in item.source.parts] == ["public.item"]
    assert [part.sql for part in item.target.parts] == ["public.one", "public.two"]


@pytest.mark.parametrize(("only", "found"), [("item", "public.item"), ("public.note", "public.note")])
def test_named_tables_are_compared_alone(source: SourceSlot, postgres: str, only: str, found: str) -> None:
    run(postgres, ITEM, NOTE)
    assert compared(ReplicaEnds(source, postgres, LOG), only) == ([found], {})


def test_names_that_the_publication_lacks_are_refused(source: SourceSlot, postgres: str) -> None:
    run(postgres, ITEM, NOTE, "CREATE TABLE own (id int)")
    with pytest.raises(SettingsError, match=r"^publication changes has no table public\.own, s\.item$"):
        compared(ReplicaEnds(source, postgres, LOG), "s.item", "item", "own")


def test_a_publication_without_tables_is_told(source: SourceSlot, postgres: str) -> None:
    ends = ReplicaEnds(replace(source, publication="nothing"), postgres, LOG)
    with pytest.raises(SourceError, match="publication nothing has no table, or does not exist"):
        compared(ends)


def test_databases_of_different_encodings_are_refused(source: SourceSlot, ascii_database: str) -> None:
    """Checks that rows are never said to differ because their texts are stored in different ways."""
    run(ascii_database, ITEM, NOTE)
    with pytest.raises(SettingsError, match="source's database is encoded in UTF8, the target's in SQL_ASCII"):
        compared(ReplicaEnds(source, ascii_database, LOG))


def test_servers_that_hash_in_different_ways_are_refused(source: SourceSlot, postgres: str) -> None:
    name = conninfo_to_dict(postgres)["dbname"]
    run(postgres, ITEM, NOTE, OTHER_HASH, f"ALTER DATABASE {name} SET search_path = odd, pg_catalog, public")
    with pytest.raises(SettingsError, match="both servers hash texts in different ways"):
        compared(ReplicaEnds(source, postgres, LOG))


def test_a_database_that_does_not_answer_is_told(source: SourceSlot) -> None:
    away = make_conninfo(host="127.0.0.1", port=1, user="nobody", dbname="nothing")
    with pytest.raises(SourceError, match=r"the target: .*refused"):
        compared(ReplicaEnds(source, away, LOG))
    with pytest.raises(SourceError, match=r"the source: .*refused"):
        compared(ReplicaEnds(replace(source, url=away), away, LOG))

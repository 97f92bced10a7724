"""How tables are compared, and what the hashes of a real PostgreSQL tell apart."""

from __future__ import annotations

from dataclasses import replace

import psycopg

from kainite.replicate.compared_tables import MOST_BUCKETS, ComparedTable, compared_table, hash_probe
from kainite.replicate.tables import ReplicaColumn, ReplicaTable, TablePart

COLUMNS = tuple(ReplicaColumn(name, "text") for name in ("id", "a", "b"))
TABLE = ReplicaTable("public", "t", "public.t", COLUMNS, ("id",), "d", 10, (TablePart(1, "public.t", 1, 8192),))


def compared(source: ReplicaTable = TABLE, target: ReplicaTable = TABLE) -> ComparedTable:
    found = compared_table(source, target)
    assert not isinstance(found, str)
    return found


def test_what_the_target_lacks_is_said() -> None:
    assert compared_table(TABLE, None) == "the target has no such table"
    less = replace(TABLE, columns=COLUMNS[:1])
    assert compared_table(TABLE, less) == "the target's table has no column a, b"
    assert compared(less, TABLE).columns == ("id",)


def test_a_table_whose_key_is_not_published_has_none() -> None:
    assert compared().key == (('"id"', "text"),)
    assert compared(replace(TABLE, published_columns=frozenset({"a"}))).key == ()


def test_buckets_follow_the_number_of_rows() -> None:
    assert compared().buckets == 1
    assert compared(replace(TABLE, rows=10_000)).buckets == 16
    assert compared(replace(TABLE, rows=0, parts=(TablePart(1, "t", 1, 2**40),))).buckets == MOST_BUCKETS


def test_hashes_tell_places_texts_and_nulls_apart(postgres: str) -> None:
    rows = ["'1', 'x', 'y'", "'1', 'y', 'x'", "'1', 'x', NULL", "'1', NULL, 'x'", "'1', '', 'x'", "'1', 'xy', ''",
            "NULL, NULL, NULL", "'2', 'x', 'y'"]  # fmt: skip
    values = ", ".join(f"({row})" for row in rows)
    query = f"SELECT {compared().source.row_hash} FROM (VALUES {values}) AS t (id, a, b)"
    with psycopg.connect(postgres) as connection:
        found = [one for (one,) in connection.execute(query.encode())]
        assert len(set(found)) == len(rows)
        assert (
            connection.execute(hash_probe().encode()).fetchone() == connection.execute(hash_probe().encode()).fetchone()
        )

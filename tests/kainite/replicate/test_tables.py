"""The list of tables, as a real server has them."""

from __future__ import annotations

import psycopg

from kainite.capture.postgresql.replication import SourceSlot
from kainite.replicate.tables import ReplicaColumn, described, published

_SCHEMA = """
    CREATE SCHEMA "Odd one";
    CREATE TYPE "Odd one".mood AS ENUM ('well', 'ill');
    CREATE TABLE "Odd one"."T x" (
        b int NOT NULL, a text NOT NULL, mood "Odd one".mood, gone int,
        twice int GENERATED ALWAYS AS (b * 2) STORED, n bigint GENERATED ALWAYS AS IDENTITY, PRIMARY KEY (a, b));
    ALTER TABLE "Odd one"."T x" DROP COLUMN gone;
    CREATE TABLE whole (id int PRIMARY KEY, note text) PARTITION BY RANGE (id);
    CREATE TABLE low PARTITION OF whole FOR VALUES FROM (0) TO (10);
    CREATE TABLE high PARTITION OF whole FOR VALUES FROM (10) TO (20) PARTITION BY LIST (id);
    CREATE TABLE ten PARTITION OF high FOR VALUES IN (10);
"""


def test_columns_key_and_parts_are_told(source: SourceSlot) -> None:
    with psycopg.connect(source.url, autocommit=True) as connection:
        connection.execute(_SCHEMA.encode())
        found = described(connection, [("Odd one", "T x"), ("public", "whole"), ("public", "missing")])
    assert sorted(found) == [("Odd one", "T x"), ("public", "whole")]
    odd, whole = found["Odd one", "T x"], found["public", "whole"]
    assert odd.sql == '"Odd one"."T x"'
    assert odd.key == ("a", "b")
    assert odd.columns == (
        ReplicaColumn("b", "integer", not_null=True),
        ReplicaColumn("a", "text", not_null=True),
        ReplicaColumn("mood", '"Odd one".mood'),
        ReplicaColumn("twice", "integer", generated=True),
        ReplicaColumn("n", "bigint", not_null=True, identity="a"),
    )
    assert [column.name for column in odd.copied] == ["b", "a", "mood", "n"]
    assert [part.sql for part in odd.parts] == ['"Odd one"."T x"']
    assert [part.sql for part in whole.parts] == ["public.low", "public.ten"]


def test_a_publication_of_leaves_names_these_and_one_of_the_whole_names_it(source: SourceSlot) -> None:
    with psycopg.connect(source.url, autocommit=True) as connection:
        connection.execute(_SCHEMA.encode())
        connection.execute("CREATE PUBLICATION leaves FOR TABLE whole")
        connection.execute("CREATE PUBLICATION wholes FOR TABLE whole WITH (publish_via_partition_root = true)")
        leaves, wholes = published(connection, "leaves"), published(connection, "wholes")
    assert [table.full_name for table in leaves] == ["public.low", "public.ten"]
    assert [table.full_name for table in wholes] == ["public.whole"]


def test_a_publications_columns_and_rows_are_told(source: SourceSlot) -> None:
    with psycopg.connect(source.url, autocommit=True) as connection:
        connection.execute("CREATE PUBLICATION part FOR TABLE item (id, name) WHERE (id > 5)")
        (item,) = published(connection, "part")
    assert [column.name for column in item.copied] == ["id", "name"]
    assert item.published_rows == "(id > 5)"


def test_a_computed_column_is_copied_where_the_publication_sends_it(source: SourceSlot) -> None:
    with psycopg.connect(source.url, autocommit=True) as connection:
        connection.execute(_SCHEMA.encode())
        connection.execute('CREATE PUBLICATION plain FOR TABLE "Odd one"."T x"')
        connection.execute(
            'CREATE PUBLICATION full_rows FOR TABLE "Odd one"."T x" WITH (publish_generated_columns = stored)'
        )
        (plain,), (full,) = published(connection, "plain"), published(connection, "full_rows")
    assert "twice" not in {column.name for column in plain.copied}
    assert "twice" in {column.name for column in full.copied}
